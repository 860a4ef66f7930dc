"""Builders of jobs that wait in queues, and their admission."""

import numpy as np

from firmament_py.queues.admission import Jobs, admit
from firmament_py.queues.quota import capacity
from firmament_py.queues.shares import fair_shares
from firmament_py.queues.tree import build
from tests.firmament_py.queues.trees import RESOURCES, queue, queue_id, quota

LANES = 3


def job(
    name,
    cpu=0,
    gpu=0,
    *,
    count=1,
    priority=0,
    created=0,
    flavors=None,
    preemptible=True,
    lane=0,
    charge=0.0,
    own=None,
    others=None,
):
    """`own`, `others`: {column: amount} that it may preempt."""
    return {
        "queue": queue_id(name),
        "request": {"cpu": cpu, "gpu": gpu},
        "count": count,
        "priority": priority,
        "created": created,
        "flavors": flavors,
        "preemptible": preemptible,
        "lane": lane,
        "charge": charge,
        "own": own or {},
        "others": others or {},
    }


def arrays(queues, jobs):
    return Jobs(
        queue=np.array([queues.row[j["queue"]] for j in jobs], np.int64),
        request=np.array([[j["request"].get(r, 0) for r in queues.resources] for j in jobs], np.int64),
        count=np.array([j["count"] for j in jobs], np.int64),
        priority=np.array([j["priority"] for j in jobs], np.int64),
        created_us=np.array([j["created"] for j in jobs], np.int64),
        suitable=np.array([[j["flavors"] is None or f in j["flavors"] for f in queues.flavors] for j in jobs]),
        preemptible=np.array([j["preemptible"] for j in jobs]),
        lane=np.array([LANES * queues.row[j["queue"]] + j["lane"] for j in jobs], np.int64),
        charge=np.array([j["charge"] for j in jobs], np.float64),
        victims=(victims(queues, jobs, "own"), victims(queues, jobs, "others")),
    )


def victims(queues, jobs, field):
    found = np.zeros((len(jobs), queues.nominal.shape[1]), np.int64)
    for j, job in enumerate(jobs):
        for on, amount in job[field].items():
            found[j, queues.column(*on.split("/"))] = amount
    return found


def admitted(described, jobs, usage=None, total=1000, scores=None):
    """The queues, and what admit says of the jobs; `usage`: name -> {column: amount}; `scores`: (name, lane) ->
    score."""
    queues = build(described, RESOURCES)
    own = np.zeros_like(queues.nominal)
    for name, amounts in (usage or {}).items():
        for on, amount in amounts.items():
            own[queues.row[queue_id(name)], queues.column(*on.split("/"))] = amount
    totals = np.full(queues.nominal.shape[1], total) if isinstance(total, int) else np.array(total)
    waiting = arrays(queues, jobs)
    request = own.copy()
    for row, amounts in zip(waiting.queue, waiting.request * waiting.count[:, None], strict=True):
        request[row] += np.tile(amounts, len(queues.flavors))
    share = fair_shares(queues, totals, request)
    score = np.zeros(LANES * queues.count)
    for (name, lane), value in (scores or {}).items():
        score[LANES * queues.row[queue_id(name)] + lane] = value
    return queues, admit(queues, capacity(queues), own, waiting, totals, share, score=score)


def sequence(result):
    """Jobs in the order of their admission, once for each item."""
    return np.repeat(result.portions.job, result.portions.items).tolist()


COHORT = (
    queue("c"),
    queue("a", "c", quota(10)),
    queue("b", "c", quota(10)),
)

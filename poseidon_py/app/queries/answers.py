"""Answers that combine what the scheduler observes with the reasons that the flow service gives."""

import itertools
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from poseidon_py.app.queries.gang_list import gangs_json
from poseidon_py.app.queries.job_list import JOBS_SHOWN, UnknownJob, jobs_json, queue_statistics
from poseidon_py.app.queries.queue_list import WAITING_SHOWN, queues_json, waiting_in
from poseidon_py.app.queries.start_list import BY_START, starts_json
from poseidon_py.feed.client import Engine
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store
from poseidon_py.tracking.times import written
from poseidon_py.tracking.tracker import Tracker

Json = dict[str, Any]
Explain = Callable[[PodRecord], Awaitable[Json]]


async def gangs_answer(store: Store, engine: Engine, name: str, namespace: str) -> Json:
    """The body of /gangs. Raises EngineError, UnknownGang."""
    reply = await engine.list_gangs()
    return gangs_json(
        store.gangs,
        reply.gangs,
        now_us=time.time_ns() // 1000,
        name=name,
        namespace=namespace,
        queue_of=lambda known: store.queues.resolution_of(known).name,
    )


async def queue_answer(store: Store, engine: Engine, namespace: str, queue: str, order: str) -> Json:
    """The body of /queue. `order`: BY_START or empty. Raises EngineError, UnknownQueue."""
    if queue:
        queues_json(store.queues, await engine.list_queues(), name=queue)
    return starts_json(
        store,
        await engine.starts(),
        now_us=time.time_ns() // 1000,
        namespace=namespace,
        queue=queue,
        by_start=order == BY_START,
    )


async def queues_answer(
    store: Store, engine: Engine, tracker: Tracker | None, explain: Explain, suspended: Sequence[Json], name: str
) -> Json:
    """The body of /queues. `suspended`: workloads that wait to be resumed. Raises EngineError, UnknownQueue."""
    body = queues_json(store.queues, await engine.list_queues(), name=name)
    queues = body["queues"]
    for at, queue in enumerate(queues):
        if queue["name"] == name:
            waiting = waiting_in(store, queues[at:])
            queue["waiting"] = [await _why(known, explain) for known in waiting[:WAITING_SHOWN]]
            queue["more"] = max(len(waiting) - WAITING_SHOWN, 0)
            names = _names_from(queues[at:]) | {local["name"] for local in queue["local_queues"]}
            held_back = [each for each in suspended if each["queue"] in names]
            queue["suspended"], queue["more_suspended"] = held_back[:WAITING_SHOWN], len(held_back[WAITING_SHOWN:])
            if tracker is not None:
                queue |= queue_statistics(tracker, _names_from(queues[at:]))
    return body


def _names_from(queues: Sequence[Json]) -> set[str]:
    """Of the first one and of those below it."""
    first, *others = queues
    below = itertools.takewhile(lambda each: each["depth"] > first["depth"], others)
    return {first["name"], *(each["name"] for each in below)}


async def _why(known: PodRecord, explain: Explain) -> Json:
    explained = await explain(known)
    return {"pod": known.full_name, "why": explained["problem"] or explained["message"] or explained["state"]}


async def jobs_answer(
    store: Store, tracker: Tracker | None, explain: Explain, suspended: Sequence[Json], **selection: str
) -> Json:
    """The body of /jobs. `suspended`: workloads that wait to be resumed. Raises EngineError, UnknownJob."""

    async def why(uid: str) -> Json | None:
        known = store.pods.get(uid)
        return await explain(known) if known is not None else None

    if tracker is None:
        return {"since": None, "more": 0, "jobs": [], "suspended": []}
    chosen = [each for each in suspended if _is_selected(each, **selection)]
    try:
        body = await jobs_json(tracker, time.time(), why, **selection)
    except UnknownJob:
        if not chosen:
            raise
        body = {"since": written(tracker.since), "more": 0, "jobs": []}
    return body | {"suspended": chosen[:JOBS_SHOWN]}


def _is_selected(
    workload: Json, *, name: str = "", namespace: str = "", queue: str = "", user: str = "", state: str = ""
) -> bool:
    """Whether a suspended workload is what was asked for. It has no pods: those of its users and states are jobs."""
    its_namespace, _, its_name = workload["name"].partition("/")
    if "/" in name:
        namespace, _, name = name.partition("/")
    return (
        name in ("", its_name)
        and namespace in ("", its_namespace)
        and queue in ("", workload["queue"])
        and not (user or state)
    )

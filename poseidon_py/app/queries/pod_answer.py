"""What is known of one pod: the body of /explain, which `poseidon explain` prints.

The store has the pods that run or wait. Those that have ended, that cannot be described, or that another scheduler
places are read from the API server, which says more about them.
"""

import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from poseidon_py.app.devices.answers import devices_of
from poseidon_py.app.queries.start_list import start_of
from poseidon_py.app.queries.verdicts import verdict_json
from poseidon_py.kube.client import NotFoundError
from poseidon_py.kube.objects import Pod
from poseidon_py.kube.outcomes import Outcome, outcome_of
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store
from protos.gen import flow_pb2

Json = dict[str, Any]
_NOTHING: Json = {
    "problem": "",
    "placed_by": "",
    "requests": {},
    "queue": "",
    "gang": None,
    "message": "",
    **verdict_json(flow_pb2.ExplainReply()),
    "reserves": False,
    "starts": None,
    "expected": None,
    "fits_now": 0,
    "nearest": [],
    "devices": [],
    "story": [],
}


async def pod_answer(
    store: Store,
    read: Callable[[str, str], Awaitable[Pod]],
    explain: Callable[[PodRecord], Awaitable[Json]],
    starts: Callable[[Iterable[int]], Awaitable[flow_pb2.StartsReply]],
    namespace: str,
    name: str,
    *,
    own_names: tuple[str, ...],
) -> Json | None:
    """None: there is no such pod. `read`: the pod of a namespace and a name from the API server; `explain`: what the
    engine says of a pod; `starts`: its forecast of tasks; `own_names`: those of this scheduler. Raises what these
    raise."""
    known = store.pod_named(namespace, name)
    if known is not None and known.observed.assigned_to_us:
        body = await explain(known) | {"devices": devices_of(store, known)}
        if known.node or known.assumed or known.observed.deleting:
            return body
        return body | {"expected": start_of(store, known, await starts([known.task]), time.time_ns() // 1000)}
    try:
        pod = await read(namespace, name)
    except NotFoundError:
        return None
    body = await explain(known) if known is not None else _described(pod)
    scheduler = pod.spec.scheduler_name or "default-scheduler"
    if scheduler not in own_names:
        problem = f"the scheduler {scheduler} places it, not this one ({', '.join(own_names)})"
        return body | {"problem": problem}
    _, _, problem = store.problems.invalid.get(pod.metadata.uid, ("", "", ""))
    return body | {"state": "invalid", "problem": problem} if problem else body


def _described(pod: Pod) -> Json:
    """A pod that the store does not have: it has ended, or it cannot be used, or its event is still to come."""
    outcome = outcome_of(pod)
    state = "not yet observed" if outcome is None else f"has {outcome.value}"
    if outcome is Outcome.EVICTED:
        state = "was evicted"
    return _NOTHING | {
        "pod": f"{pod.metadata.namespace}/{pod.metadata.name}",
        "uid": pod.metadata.uid,
        "state": state,
        "node": pod.spec.node_name or "",
        "priority": pod.spec.priority or 0,
        "problem": pod.status.reason or "",
    }

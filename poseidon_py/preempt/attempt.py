"""Single requests of preemptions and migrations, and their outcomes by the API server's answer.

Every request carries the pod's UID, so that it cannot affect the successor of a deleted pod, and can be repeated. After
409 and lost answers the pod is read to find out what happened.
"""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Protocol

from poseidon_py.describe.annotations.preemption_terms import (
    ANNOUNCED,
    EVICTION_TIME,
    PREEMPTED_BY,
    STATE,
    Announcement,
    PreemptionState,
)
from poseidon_py.kube.client import (
    ApiError,
    BusyError,
    ConflictError,
    KubeError,
    LostAnswerError,
    MalformedAnswerError,
    NotFoundError,
    UnreachableError,
)
from poseidon_py.kube.objects import PREEMPTED, TERMINAL, Pod
from poseidon_py.state.records import PodRecord


class PreemptApi(Protocol):
    """The requests of kube.Kube that preemption and migration need."""

    async def pod(self, namespace: str, name: str) -> Pod: ...
    async def patch_pod_status(self, namespace: str, name: str, patch: Mapping[str, Any]) -> None: ...
    async def nominate_pod(
        self,
        namespace: str,
        name: str,
        uid: str,
        node: str,
        annotations: Mapping[str, str | None] | None = None,
        conditions: Sequence[Mapping[str, Any]] = (),
    ) -> str: ...
    async def delete_pod(self, namespace: str, name: str, uid: str) -> None: ...
    async def evict_pod(self, namespace: str, name: str, uid: str) -> None: ...


_NO_STATE: dict[str, str | None] = dict.fromkeys((STATE, EVICTION_TIME, PREEMPTED_BY))


class Result(Enum):
    DONE = "the API server has done it"
    GONE = "the pod is deleted, being deleted or terminated, or another pod has its name"
    RETRY = "no clear answer: ask again later"
    REFUSED = "the API server does not do it"


@dataclass(frozen=True, slots=True)
class Outcome:
    result: Result
    error: KubeError | None = None
    version: str = ""
    """Resource version of the pod afterwards, of a nomination."""

    @property
    def retry_after(self) -> float:
        """Seconds that the API server asks to wait at least."""
        return (self.error.retry_after or 0.0) if isinstance(self.error, BusyError) else 0.0


async def mark(api: PreemptApi, known: PodRecord, message: str, now: float) -> Outcome:
    """Sets the condition that tells controllers why the pod ends. `now`: seconds since the epoch."""
    kind, reason = PREEMPTED
    condition = _condition(known, kind, True, reason, message, now)
    patch = {"metadata": {"uid": known.uid}, "status": {"conditions": [condition]}}
    return await _outcome(api, known, api.patch_pod_status(known.namespace, known.name, patch))


async def announce(
    api: PreemptApi, known: PodRecord, announcement: Announcement, scheduler: str, now: float
) -> Outcome:
    """Writes when and for what the pod will be evicted, as annotations and a condition in one request."""
    state, time = PreemptionState.WILL_EVICTED, announcement.time
    message = f"{scheduler}: will be evicted at {time} for pod {announcement.preemptor}"
    annotations = {STATE: state.value, EVICTION_TIME: time, PREEMPTED_BY: announcement.preemptor}
    patch = {
        "metadata": {"uid": known.uid, "annotations": annotations},
        "status": {"conditions": [_condition(known, state.condition, True, ANNOUNCED, message, now)]},
    }
    return await _outcome(api, known, api.patch_pod_status(known.namespace, known.name, patch))


async def retract(
    api: PreemptApi, known: PodRecord, state: PreemptionState, reason: str, message: str, now: float
) -> Outcome:
    """Removes the state of a delayed preemption from the pod; the condition tells why it is over."""
    patch = {
        "metadata": {"uid": known.uid, "annotations": _NO_STATE},
        "status": {"conditions": [_condition(known, state.condition, False, reason, message, now)]},
    }
    return await _outcome(api, known, api.patch_pod_status(known.namespace, known.name, patch))


def _condition(known: PodRecord, kind: str, status: bool, reason: str, message: str, now: float) -> dict[str, Any]:
    generation = known.observed.generation
    return ({"observedGeneration": generation} if generation else {}) | {
        "type": kind,
        "status": str(status),
        "reason": reason,
        "message": message,
        "lastTransitionTime": datetime.fromtimestamp(int(now), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


async def delete(api: PreemptApi, known: PodRecord) -> Outcome:
    """Deletes the pod, with its own grace period."""
    return await _outcome(api, known, api.delete_pod(known.namespace, known.name, known.uid))


async def evict(api: PreemptApi, known: PodRecord) -> Outcome:
    """Deletes the pod if its disruption budgets allow that, which 429 denies."""
    outcome = await _outcome(api, known, api.evict_pod(known.namespace, known.name, known.uid))
    error = outcome.error
    return Outcome(Result.REFUSED, error) if isinstance(error, BusyError) and error.code == 429 else outcome


async def nominate(
    api: PreemptApi, known: PodRecord, node: str, privileged: bool | None = None, now: float = 0.0
) -> Outcome:
    """Writes the name of the pod's nominated node; empty: removes it. With it the state Privileged; None: it has not
    changed."""
    further: tuple[Any, ...] = ()
    if privileged is not None:
        state = PreemptionState.PRIVILEGED
        condition = _condition(known, state.condition, True, ANNOUNCED, "its victims will be evicted", now)
        if not privileged:
            condition |= {"status": "False", "reason": "Ended", "message": "it does not wait for victims any more"}
        further = ({STATE: state.value} if privileged else _NO_STATE, [condition])
    try:
        version = await api.nominate_pod(known.namespace, known.name, known.uid, node, *further)
    except MalformedAnswerError:
        return Outcome(Result.DONE)
    except NotFoundError as error:
        return Outcome(Result.GONE, error)
    except (UnreachableError, BusyError, LostAnswerError, ConflictError) as error:
        return Outcome(Result.RETRY, error)
    except KubeError as error:
        return Outcome(Result.REFUSED, error)
    return Outcome(Result.DONE, version=version)


async def _outcome(api: PreemptApi, known: PodRecord, request: Awaitable[None]) -> Outcome:
    try:
        await request
    except NotFoundError as error:
        return Outcome(Result.GONE, error)
    except (LostAnswerError, ConflictError) as error:
        return Outcome(Result.GONE if await _is_gone(api, known) else Result.RETRY, error)
    except (UnreachableError, BusyError) as error:
        return Outcome(Result.RETRY, error)
    except ApiError as error:
        return Outcome(Result.REFUSED, error)
    return Outcome(Result.DONE)


async def _is_gone(api: PreemptApi, known: PodRecord) -> bool:
    """Reads the pod; if that fails, too, it counts as existing."""
    try:
        pod = await api.pod(known.namespace, known.name)
    except NotFoundError:
        return True
    except KubeError:
        return False
    metadata = pod.metadata
    return metadata.uid != known.uid or metadata.deleting is not None or pod.status.phase in TERMINAL

"""Single requests of preemptions and migrations, and their outcomes by the API server's answer.

Every request carries the pod's UID, so that it cannot affect the successor of a deleted pod, and can be repeated. After
409 and lost answers the pod is read to find out what happened.
"""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Protocol

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
    async def nominate_pod(self, namespace: str, name: str, uid: str, node: str) -> str: ...
    async def delete_pod(self, namespace: str, name: str, uid: str) -> None: ...
    async def evict_pod(self, namespace: str, name: str, uid: str) -> None: ...


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


async def mark(api: PreemptApi, known: PodRecord, scheduler: str, now: float) -> Outcome:
    """Sets the condition that tells controllers why the pod ends. `now`: seconds since the epoch."""
    kind, reason = PREEMPTED
    condition = {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": f"{scheduler}: preempting to accommodate a higher priority pod",
        "lastTransitionTime": datetime.fromtimestamp(int(now), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    patch = {"metadata": {"uid": known.uid}, "status": {"conditions": [condition]}}
    return await _outcome(api, known, api.patch_pod_status(known.namespace, known.name, patch))


async def delete(api: PreemptApi, known: PodRecord) -> Outcome:
    """Deletes the pod, with its own grace period."""
    return await _outcome(api, known, api.delete_pod(known.namespace, known.name, known.uid))


async def evict(api: PreemptApi, known: PodRecord) -> Outcome:
    """Deletes the pod if its disruption budgets allow that, which 429 denies."""
    outcome = await _outcome(api, known, api.evict_pod(known.namespace, known.name, known.uid))
    error = outcome.error
    return Outcome(Result.REFUSED, error) if isinstance(error, BusyError) and error.code == 429 else outcome


async def nominate(api: PreemptApi, known: PodRecord, node: str) -> Outcome:
    """Writes the name of the pod's nominated node; empty: removes it."""
    try:
        version = await api.nominate_pod(known.namespace, known.name, known.uid, node)
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

"""One attempt to bind a pod, and its outcome by the API server's answer.

A bind carries the pod's UID, and the API server binds a pod once, so that a repeat can neither bind twice nor bind the
successor of a deleted pod. After 404, 409 and lost answers the pod is read to find out what happened.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from poseidon_py.bind.placement import Placement
from poseidon_py.kube.client import (
    ApiError,
    BusyError,
    ConflictError,
    KubeError,
    LostAnswerError,
    NotFoundError,
    UnreachableError,
)
from poseidon_py.kube.objects import TERMINAL, Pod


class BindApi(Protocol):
    """The requests of kube.Kube that binding needs."""

    async def bind(self, namespace: str, name: str, uid: str, node: str, timeout: float) -> None: ...
    async def pod(self, namespace: str, name: str) -> Pod: ...


class Result(Enum):
    BOUND = "to our node"
    OTHER_NODE = "bound to another node"
    GONE = "deleted, or another pod has its name"
    DELETING = "being deleted, or terminated"
    UNBOUND = "it has no node: the bind may be sent"
    RETRY = "no clear answer: ask again later"
    REFUSED = "the API server does not bind it"


@dataclass(frozen=True, slots=True)
class Outcome:
    result: Result
    request: str = ""
    """Label of the request in the metrics: bound, lost, busy, conflict or error."""
    error: KubeError | None = None
    node: str = ""
    """Name of the other node of OTHER_NODE."""

    @property
    def retry_after(self) -> float:
        """Seconds that the API server asks to wait at least."""
        return (self.error.retry_after or 0.0) if isinstance(self.error, BusyError) else 0.0


_BOUND = Outcome(Result.BOUND, "bound")


async def send_bind(api: BindApi, placement: Placement, timeout: float) -> Outcome:
    """Sends the bind once. `timeout`: seconds. Never UNBOUND."""
    known = placement.known
    try:
        await api.bind(known.namespace, known.name, known.uid, placement.node, timeout)
    except LostAnswerError as error:
        placement.in_doubt = True
        found = await read_back(api, placement)
        return Outcome(Result.RETRY, "lost", error) if found.result is Result.UNBOUND else _of("lost", found)
    except (UnreachableError, BusyError) as error:
        return Outcome(Result.RETRY, "busy", error)
    except (ConflictError, NotFoundError) as error:
        found = await read_back(api, placement)
        # the pod has no node and cannot be bound: gates, a newer version, a webhook that rejects it
        return Outcome(Result.REFUSED, "conflict", error) if found.result is Result.UNBOUND else _of("conflict", found)
    except ApiError as error:
        return Outcome(Result.REFUSED, "error", error)
    return _BOUND


async def read_back(api: BindApi, placement: Placement) -> Outcome:
    """Reads the pod to find out whether the placement was, or can still be, carried out."""
    known = placement.known
    try:
        pod = await api.pod(known.namespace, known.name)
    except NotFoundError:
        return Outcome(Result.GONE)
    except KubeError as error:
        placement.in_doubt = True
        return Outcome(Result.RETRY, error=error)
    placement.in_doubt = False
    if pod.metadata.uid != known.uid:
        return Outcome(Result.GONE)
    if pod.spec.node_name == placement.node:
        return Outcome(Result.BOUND)
    if pod.spec.node_name:
        return Outcome(Result.OTHER_NODE, node=pod.spec.node_name)
    if pod.metadata.deleting is not None or pod.status.phase in TERMINAL:
        return Outcome(Result.DELETING)
    return Outcome(Result.UNBOUND)


def _of(request: str, found: Outcome) -> Outcome:
    return Outcome(found.result, request, found.error, found.node)

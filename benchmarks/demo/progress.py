"""The pods of a run while they are scheduled, followed by a watch: when each pod appeared and when it was bound.

Times are those at which an event arrived, in seconds of the monotonic clock.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable

from msgspec import Struct, field

from poseidon_py.kube.client import GoneError, Kube, KubeError
from poseidon_py.util.decoding import Decoder, MalformedError

_IDLE_TIMEOUT = 150.0
_RETRY_SECONDS = 0.5
_DONE = ("Succeeded", "Failed")
_DELETED = "Deleted"


class Owner(Struct, gc=False):
    kind: str = ""


class Metadata(Struct):
    uid: str = ""
    name: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owners: list[Owner] | None = field(default=None, name="ownerReferences")
    deleting: str | None = field(default=None, name="deletionTimestamp")
    version: str = field(default="", name="resourceVersion")


class Spec(Struct):
    node: str | None = field(default=None, name="nodeName")
    scheduler: str | None = field(default=None, name="schedulerName")
    priority: int | None = None
    priority_class: str | None = field(default=None, name="priorityClassName")


class Condition(Struct, gc=False):
    type: str = ""
    status: str = ""
    reason: str | None = None


class Status(Struct):
    phase: str | None = None
    nominated: str | None = field(default=None, name="nominatedNodeName")
    conditions: list[Condition] | None = None


class Pod(Struct):
    """The fields of a pod that matter here."""

    metadata: Metadata = field(default_factory=Metadata)
    spec: Spec = field(default_factory=Spec)
    status: Status = field(default_factory=Status)


class _Event(Struct):
    type: str
    object: Pod


class Seen(Struct):
    """One pod. bound_at is None while it has no node."""

    kind: str
    created_at: float
    bound_at: float | None = None
    phase: str = "Pending"
    unschedulable: bool = False
    """A condition has said that it cannot be scheduled."""
    finite: bool = False
    """It runs for a limited time."""
    leaving: bool = False
    """Its deletion was requested."""

    @property
    def settled(self) -> bool:
        """Whether nothing is left to happen to it: it runs for ever, has ended, or has no node and the reason why."""
        if self.phase == _DELETED or (self.phase in _DONE and not self.leaving):
            return True
        return not self.leaving and (self.unschedulable if self.bound_at is None else not self.finite)


class Progress:
    """All pods of one scheduler. `run` watches the API server until cancelled.

    kind_label: the label that holds a pod's kind. is_finite: whether a pod with these annotations ends on its own.
    observe: called with each change, its type and the pod, in the API server's order.
    """

    def __init__(
        self,
        kube: Kube,
        scheduler: str,
        kind_label: str = "",
        is_finite: Callable[[dict[str, str]], bool] = lambda _: False,
        observe: Callable[[str, Pod], None] = lambda what, pod: None,
    ) -> None:
        self._kube = kube
        self._scheduler = scheduler
        self._kind_label = kind_label
        self._is_finite = is_finite
        self._observe = observe
        self.pods: dict[str, Seen] = {}
        self.bound = 0
        self.version = 0
        """The newest resource version of a pod, also of other schedulers' pods."""
        self.changed_at = time.monotonic()
        """When a pod was last created, bound, ended, or marked unschedulable."""

    async def run(self, version: str = "0") -> None:
        """Watches from resource version `version`. A broken watch resumes at the last version, or, if the server has
        compacted it, starts again with all pods."""
        decoder: Decoder[_Event] = Decoder(_Event, "event")
        while True:
            parameters = {"resourceVersion": version}
            if version != "0":  # else a new API server asks etcd for progress, which an old etcd does not have
                parameters["allowWatchBookmarks"] = "true"
            partial = b""
            try:
                async for piece in self._kube.watch("/api/v1/pods", parameters, _IDLE_TIMEOUT):
                    end = piece.rfind(b"\n") + 1
                    lines, partial = (partial + piece[:end], piece[end:]) if end else (b"", partial + piece)
                    now = time.monotonic()
                    for event in decoder.decode_lines(lines):
                        self._take(event, now)
                        version = event.object.metadata.version or version
            except (GoneError, MalformedError):  # an ERROR event does not decode as a pod: start again as well
                version = "0"
                await asyncio.sleep(_RETRY_SECONDS)
            except KubeError:
                await asyncio.sleep(_RETRY_SECONDS)

    def _take(self, event: _Event, now: float) -> None:
        pod = event.object
        if event.type not in ("BOOKMARK", "ERROR"):
            self.version = max(self.version, int(pod.metadata.version or 0))
        if event.type in ("BOOKMARK", "ERROR") or pod.spec.scheduler != self._scheduler:
            return
        self._observe(event.type, pod)
        seen = self.pods.get(pod.metadata.uid)
        if event.type == "DELETED":
            if seen is not None and seen.phase not in _DONE:
                seen.phase = _DELETED
                self.changed_at = now
            return
        if seen is None:
            kind = (pod.metadata.labels or {}).get(self._kind_label, "")
            seen = Seen(kind, now, finite=self._is_finite(pod.metadata.annotations or {}))
            self.pods[pod.metadata.uid] = seen
            self.changed_at = now
        if pod.metadata.deleting and not seen.leaving:
            seen.leaving = True
            self.changed_at = now
        if pod.spec.node and seen.bound_at is None:
            seen.bound_at = now
            self.bound += 1
            self.changed_at = now
        if pod.status.phase and pod.status.phase != seen.phase:
            seen.phase = pod.status.phase
            self.changed_at = now
        if not seen.unschedulable and not pod.spec.node:
            for condition in pod.status.conditions or ():
                if condition.type == "PodScheduled" and condition.status == "False":
                    seen.unschedulable = True
                    self.changed_at = now

    @property
    def present(self) -> int:
        """Number of pods that exist."""
        return sum(pod.phase != _DELETED for pod in self.pods.values())

    def tried(self, expected: int) -> bool:
        """Whether as many pods as expected exist, and each is bound or marked unschedulable."""
        return self.present >= expected and all(
            pod.bound_at is not None or pod.unschedulable or pod.phase == _DELETED for pod in self.pods.values()
        )

    def waits(self, kind: str) -> bool:
        """Whether a pod of this kind is marked unschedulable and has no node."""
        return any(pod.kind == kind and pod.unschedulable and pod.bound_at is None for pod in self.pods.values())

    def settled(self, expected: int) -> bool:
        """Whether as many pods as expected exist, and nothing is left to happen to any."""
        return self.present >= expected and all(pod.settled for pod in self.pods.values())

    def counts(self) -> dict[str, Counter[str]]:
        """By kind: submitted, bound, ended, waiting; without pods that were deleted before they had ended."""
        result: dict[str, Counter[str]] = {}
        for pod in self.pods.values():
            if pod.phase == _DELETED:
                continue
            count = result.setdefault(pod.kind, Counter(submitted=0, bound=0, ended=0, waiting=0))
            count["submitted"] += 1
            count["waiting" if pod.bound_at is None else "bound"] += 1
            count["ended"] += pod.phase in _DONE
        return result

    def bind_seconds(self) -> list[float]:
        """Seconds from creation to bind of each bound pod, ascending."""
        return sorted(pod.bound_at - pod.created_at for pod in self.pods.values() if pod.bound_at is not None)


def percentiles(values: list[float], at: tuple[int, ...] = (50, 90, 99, 100)) -> dict[str, float]:
    """{"p50": ..., ..., "max": ...} of ascending values, nearest rank; empty for none."""
    if not values:
        return {}
    return {
        ("max" if p == 100 else f"p{p}"): values[min(len(values) - 1, max(0, -(-p * len(values) // 100) - 1))]
        for p in at
    }

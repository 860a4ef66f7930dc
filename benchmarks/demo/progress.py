"""What can be seen of the pods while they are scheduled: a watch, and when each pod came and was bound.

Times are those at which the API server told us, seconds of the monotonic clock.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable

from msgspec import Struct, field

from poseidon_py.kube.client import GoneError, Kube, KubeError
from poseidon_py.util.decoding import Decoder, MalformedError

_SILENCE = 150.0
_REST_SECONDS = 0.5
_DONE = ("Succeeded", "Failed")


class _Metadata(Struct):
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    version: str = field(default="", name="resourceVersion")


class _Spec(Struct):
    node: str | None = field(default=None, name="nodeName")
    scheduler: str | None = field(default=None, name="schedulerName")


class _Condition(Struct, gc=False):
    type: str = ""
    status: str = ""


class _Status(Struct):
    phase: str | None = None
    conditions: list[_Condition] | None = None


class _Pod(Struct):
    metadata: _Metadata = field(default_factory=_Metadata)
    spec: _Spec = field(default_factory=_Spec)
    status: _Status = field(default_factory=_Status)


class _Event(Struct):
    type: str
    object: _Pod


class Seen(Struct):
    """One pod. bound_at is None while it has no node."""

    kind: str
    came_at: float
    bound_at: float | None = None
    phase: str = "Pending"
    told: bool = False
    """A condition says that it cannot be scheduled at present."""
    ends: bool = False
    """It runs for a stated time."""


class Progress:
    """All pods of one scheduler. `run` follows the API server until cancelled.

    kind_label: the label that says what kind of pod it is. ends: tells from a pod's annotations whether it ends.
    """

    def __init__(
        self,
        kube: Kube,
        scheduler: str,
        kind_label: str = "",
        ends: Callable[[dict[str, str]], bool] = lambda _: False,
    ) -> None:
        self._kube = kube
        self._scheduler = scheduler
        self._kind_label = kind_label
        self._ends = ends
        self.pods: dict[str, Seen] = {}
        self.bound = 0
        self.changed_at = time.monotonic()
        """When a pod last came, was bound, ended, or was told that it cannot be scheduled."""

    async def run(self, version: str = "0") -> None:
        """Watches from resource version `version`; a broken watch goes on where it ended, or, if the server has
        forgotten that, with all there is."""
        decoder: Decoder[_Event] = Decoder(_Event, "event")
        while True:
            parameters = {"resourceVersion": version, "allowWatchBookmarks": "true"}
            rest = b""
            try:
                async for piece in self._kube.watch("/api/v1/pods", parameters, _SILENCE):
                    end = piece.rfind(b"\n") + 1
                    lines, rest = (rest + piece[:end], piece[end:]) if end else (b"", rest + piece)
                    now = time.monotonic()
                    for event in decoder.decode_lines(lines):
                        self._take(event, now)
                        version = event.object.metadata.version or version
            except (GoneError, MalformedError):  # an error among the events is no pod, and means the same
                version = "0"
                await asyncio.sleep(_REST_SECONDS)
            except KubeError:
                await asyncio.sleep(_REST_SECONDS)

    def _take(self, event: _Event, now: float) -> None:
        pod = event.object
        if event.type in ("BOOKMARK", "ERROR") or pod.spec.scheduler != self._scheduler:
            return
        seen = self.pods.get(pod.metadata.uid)
        if event.type == "DELETED":
            if seen is not None and seen.phase not in _DONE:
                seen.phase = "Deleted"
                self.changed_at = now
            return
        if seen is None:
            kind = (pod.metadata.labels or {}).get(self._kind_label, "")
            seen = Seen(kind, now, ends=self._ends(pod.metadata.annotations or {}))
            self.pods[pod.metadata.uid] = seen
            self.changed_at = now
        if pod.spec.node and seen.bound_at is None:
            seen.bound_at = now
            self.bound += 1
            self.changed_at = now
        if pod.status.phase and pod.status.phase != seen.phase:
            seen.phase = pod.status.phase
            self.changed_at = now
        if not seen.told and not pod.spec.node:
            for condition in pod.status.conditions or ():
                if condition.type == "PodScheduled" and condition.status == "False":
                    seen.told = True
                    self.changed_at = now

    def settled(self, expected: int, quiet_seconds: float) -> bool:
        """Whether all expected pods are there, each bound or told why not, all that end have, and nothing moves."""
        if len(self.pods) < expected or time.monotonic() - self.changed_at < quiet_seconds:
            return False
        return all(
            pod.told if pod.bound_at is None else not pod.ends or pod.phase in _DONE for pod in self.pods.values()
        )

    def counts(self) -> dict[str, Counter[str]]:
        """By kind: submitted, bound, ended, waiting."""
        result: dict[str, Counter[str]] = {}
        for pod in self.pods.values():
            count = result.setdefault(pod.kind, Counter(submitted=0, bound=0, ended=0, waiting=0))
            count["submitted"] += 1
            count["waiting" if pod.bound_at is None else "bound"] += 1
            count["ended"] += pod.phase in _DONE
        return result

    def bind_seconds(self) -> list[float]:
        """How long each bound pod waited, ascending."""
        return sorted(pod.bound_at - pod.came_at for pod in self.pods.values() if pod.bound_at is not None)


def percentiles(values: list[float], at: tuple[int, ...] = (50, 90, 99, 100)) -> dict[str, float]:
    """{"p50": ..., ..., "max": ...} of ascending values, nearest rank; empty for none."""
    if not values:
        return {}
    return {
        ("max" if p == 100 else f"p{p}"): values[min(len(values) - 1, max(0, -(-p * len(values) // 100) - 1))]
        for p in at
    }

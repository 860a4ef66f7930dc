"""One pass over all pods and nodes that the scheduler knows: what is used and free, and what waits and why.

A pass over 50,000 pods takes a tenth of a second, so it is done in steps between which the scheduler goes on, and all
readers share its result for a time that follows from what it took.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from poseidon_py.dashboard.wait_reasons import WaitReason, wait_reason_of
from poseidon_py.kube.quantity import PODS
from poseidon_py.state.node_record import NodeRecord
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store
from poseidon_py.util.tasks import end_tasks

log = logging.getLogger(__name__)

Amounts = dict[str, int]
"""Resource -> amount in the engine's units: millicores, bytes, pieces."""

_T = TypeVar("_T")
_DERIVED = 100
_STEP = 500
"""Pods or nodes in a step, which takes about a millisecond."""
_LEAST_AGE = 2.0
_LARGEST_AGE = 10.0
_SHARE = 0.02
"""Of one core, that passes take at most, up to that age."""


@dataclass(slots=True)
class NodeUse:
    """A node, and what the pods on it have requested."""

    name: str
    labels: Mapping[str, str]
    allocatable: Mapping[str, int]
    tainted: str
    """Its taints that keep pods off, as KEY=VALUE:EFFECT; empty: none."""
    used: Amounts = field(default_factory=dict)
    pods: int = 0

    def free(self, resource: str) -> int:
        return self.allocatable.get(resource, 0) - self.used.get(resource, 0)


@dataclass(slots=True)
class Waiting:
    """Pods that wait for one reason."""

    reason: WaitReason
    message: str
    pods: list[PodRecord] = field(default_factory=list)


@dataclass(slots=True)
class Survey:
    """What a pass found."""

    at: float
    """Seconds since the epoch."""
    seconds: float = 0.0
    """Of computing."""
    number: int = 0
    """Passes that found the same have the same."""
    nodes: dict[str, NodeUse] = field(default_factory=dict)
    waiting: dict[tuple[str, str], Waiting] = field(default_factory=dict)
    """By key of the reason, and message."""
    requested: Amounts = field(default_factory=dict)
    """By pods that wait."""
    namespaces: Counter[str] = field(default_factory=Counter)
    """Pods by namespace."""
    placed: int = 0
    """Pods that are on nodes or being bound, with those of other schedulers."""
    leaving: int = 0
    _derived: dict[object, Any] = field(default_factory=dict, repr=False)

    def derived(self, key: object, compute: Callable[[], _T]) -> _T:
        """What follows from the pass alone, computed once for all readers. `key`: one of few."""
        if key not in self._derived:
            if len(self._derived) >= _DERIVED:
                self._derived.clear()
            self._derived[key] = compute()
        found: _T = self._derived[key]
        return found

    def add_waiting(self, pod: PodRecord, reason: WaitReason, message: str) -> None:
        key = reason.key, message
        group = self.waiting.get(key)
        if group is None:
            group = self.waiting[key] = Waiting(reason, message)
        group.pods.append(pod)

    @property
    def pending(self) -> int:
        return sum(len(each.pods) for each in self.waiting.values())

    def summary(self) -> object:
        """What readers are told of."""
        waiting = {key: len(group.pods) for key, group in self.waiting.items()}
        return self.totals(), waiting, dict(self.namespaces), self.placed, self.leaving, len(self.nodes)

    def totals(self) -> dict[str, tuple[int, int]]:
        """Resource -> (used, allocatable), of all nodes."""
        return self.derived("totals", self._totals)

    def _totals(self) -> dict[str, tuple[int, int]]:
        found: dict[str, list[int]] = {}
        for node in self.nodes.values():
            for resource, amount in node.allocatable.items():
                total = found.setdefault(resource, [0, 0])
                total[0] += node.used.get(resource, 0)
                total[1] += amount
        return {resource: (used, total) for resource, (used, total) in sorted(found.items()) if total}


class Surveys:
    """`newest` gives one that is not too old."""

    def __init__(
        self,
        store: Store,
        conditions: Callable[[], Mapping[str, str]],
        *,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.thread_time,
    ) -> None:
        """`conditions`: UID of a pod -> the message of its condition. `cpu`: seconds that this thread has computed."""
        self._store = store
        self._conditions = conditions
        self._now = now
        self._monotonic = monotonic
        self._cpu = cpu
        self._descriptions: dict[str, _Description] = {}
        """Of nodes, by name."""
        self._last: Survey | None = None
        self._last_at = 0.0
        self._running: asyncio.Task[Survey] | None = None
        self._summary: object = None
        self.changes = 0
        """Passes that found something else than the one before."""

    async def newest(self) -> Survey:
        """The last one, at once unless there was none yet. If it is too old, a pass begins, whose result the next
        reader gets: a scheduler that is busy answers pages late otherwise."""
        if self._last is not None:
            age = self._monotonic() - self._last_at
            if age > min(max(_LEAST_AGE, self._last.seconds / _SHARE), _LARGEST_AGE):
                self._begin()
            return self._last
        return await asyncio.shield(self._begin())

    async def fresh(self) -> Survey:
        """One that begins now, or has begun already."""
        return await asyncio.shield(self._begin())

    def _begin(self) -> asyncio.Task[Survey]:
        if self._running is None:
            self._running = asyncio.create_task(self._pass(), name="survey")
            self._running.add_done_callback(self._ended)
        return self._running

    def _ended(self, ended: asyncio.Task[Survey]) -> None:
        self._running = None
        if not ended.cancelled() and (error := ended.exception()) is not None:
            log.error("a pass over the state for the page failed", exc_info=error)

    async def stop(self) -> None:
        """Ends a pass."""
        if self._running is not None:
            await end_tasks(self._running)

    async def _pass(self) -> Survey:
        found, pace = Survey(self._now()), _Pace(self._cpu)
        for node in list(self._store.nodes.values()):
            await pace.step()
            found.nodes[node.name] = self._node(node)
        self._descriptions = {name: self._descriptions[name] for name in found.nodes}
        on_nodes: dict[tuple[str, int], int] = {}
        waiting: list[PodRecord] = []
        for pod in list(self._store.pods.values()):
            await pace.step()
            found.namespaces[pod.namespace] += 1
            found.leaving += pod.leaving
            if name := pod.node or pod.assumed:
                found.placed += 1
                key = name, pod.described.class_id
                on_nodes[key] = on_nodes.get(key, 0) + 1
            elif pod.observed.scheduler and not pod.observed.deleting:
                waiting.append(pod)
        requests: dict[int, tuple[tuple[str, int], ...]] = {}
        for (name, class_id), count in on_nodes.items():
            await pace.step()
            node_use = found.nodes.get(name)
            if node_use is None:
                continue  # pods can be observed before, or after, their node
            node_use.pods += count
            for resource, amount in self._requests(class_id, requests):
                node_use.used[resource] = node_use.used.get(resource, 0) + amount * count
        conditions, now_us = self._conditions(), int(found.at * 1e6)
        for pod in waiting:
            await pace.step()
            found.add_waiting(pod, wait_reason_of(pod, now_us), conditions.get(pod.uid, ""))
            for resource, amount in self._requests(pod.described.class_id, requests):
                found.requested[resource] = found.requested.get(resource, 0) + amount
        found.seconds = pace.ended()
        summary = found.summary()
        if summary != self._summary:
            self._summary = summary
            self.changes += 1
        found.number = self.changes
        self._last, self._last_at = found, self._monotonic()
        return found

    def _node(self, record: NodeRecord) -> NodeUse:
        known = self._descriptions.get(record.name)
        if known is None or known.key != record.key or record.base is None:
            known = self._descriptions[record.name] = _described(record)
        return NodeUse(record.name, known.labels, known.allocatable, known.taints)

    def _requests(self, class_id: int, known: dict[int, tuple[tuple[str, int], ...]]) -> tuple[tuple[str, int], ...]:
        found = known.get(class_id)
        if found is None:
            described = self._store.classes.get(class_id)
            amounts = tuple(described.requests.items()) if described is not None else ()
            found = known[class_id] = amounts if any(name == PODS for name, _ in amounts) else ((PODS, 1), *amounts)
        return found


@dataclass(frozen=True, slots=True)
class _Description:
    """Of a node; `key`: as of NodeRecord."""

    key: object
    labels: Mapping[str, str]
    allocatable: Mapping[str, int]
    taints: str


def _described(record: NodeRecord) -> _Description:
    base = record.base
    if base is None:
        return _Description(None, {}, {}, "")
    effects = ("NoSchedule", "NoExecute")
    taints = (
        f"{each.key}{'=' if each.value else ''}{each.value}:{each.effect}"
        for each in base.taints
        if each.effect in effects
    )
    return _Description(record.key, dict(base.labels), dict(base.allocatable), ", ".join(sorted(taints)))


class _Pace:
    """Lets others go on from time to time, and counts the seconds between."""

    def __init__(self, cpu: Callable[[], float]) -> None:
        self._cpu = cpu
        self._began = cpu()
        self._seconds = 0.0
        self._steps = 0

    async def step(self) -> None:
        self._steps += 1
        if self._steps % _STEP == 0:
            self._seconds += self._cpu() - self._began
            await asyncio.sleep(0)
            self._began = self._cpu()

    def ended(self) -> float:
        return self._seconds + self._cpu() - self._began

"""Polls the sources one after the other and sends the usage of pods and nodes to the flow service.

Nothing waits for it: a source that is absent, slow or incomplete causes a warning and growing delays, and scheduling
continues with earlier measurements, or with requests.
"""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from poseidon_py.feed.client import Engine, EngineError
from poseidon_py.feed.resync import Session
from poseidon_py.metrics.metrics import Metrics
from poseidon_py.state.node_record import NodeRecord
from poseidon_py.state.store import Store
from poseidon_py.usage.gathered import AT, CPU, MEMORY, RX, TX, Gathered, Row, SourceError
from poseidon_py.util.backoff import Backoff
from protos.gen import flow_pb2

log = logging.getLogger(__name__)

DEFAULT_INTERVAL = 30.0
"""Seconds; metrics-server scrapes every 15."""

DEFAULT_STALE = 300.0
"""Seconds."""

_LONGEST_POLL = 30.0
_SLOWEST = 300.0
_CHUNK = 5000


class Source(Protocol):
    """A source of usage figures."""

    @property
    def name(self) -> str: ...

    async def gather(self, into: Gathered) -> None:
        """Add its figures. Raises SourceError or TimeoutError if some or all are missing."""
        ...


class Collector:
    """`run` in a separate task.

    interval: seconds between polls; None: the default, provided that the flow service uses measurements or a node has
    thresholds of usage. stale: seconds after which the usage of a node with thresholds is unknown.
    """

    def __init__(
        self,
        store: Store,
        engine: Engine,
        session: Session,
        sources: Sequence[Source],
        interval: float | None,
        stale: float = DEFAULT_STALE,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        self._store = store
        self._metrics = store.metrics
        self._engine = engine
        self._session = session
        self._always = interval is not None
        self.interval = DEFAULT_INTERVAL if interval is None else interval
        self._sources = [_Watched(source, self.interval, monotonic, store.metrics) for source in sources]
        self._stale_us = round(1e6 * stale)
        self._seen: dict[str, dict[str, tuple[float, float]]] = {}  # by node id: sample times, amounts
        self._sleep = sleep
        self._monotonic = monotonic
        self._now_us = now_us
        self._last_success = math.nan
        self.polls = 0

    @property
    def active(self) -> bool:
        """Whether it polls at all."""
        return self._always or self._session.wants_usage or bool(self._with_thresholds())

    @property
    def age(self) -> float:
        """Seconds since a poll last gave samples; NaN: never."""
        return self._monotonic() - self._last_success

    def status(self) -> dict[str, Any]:
        """For `poseidon status`."""
        return {
            "polling": self.active,
            "interval_seconds": self.interval,
            "polls": self.polls,
            "last_poll_age_seconds": None if math.isnan(self.age) else self.age,
            "problems": {watched.source.name: watched.problem for watched in self._sources if watched.problem},
        }

    async def run(self) -> None:
        """Poll periodically. Never returns."""
        while True:
            async with self._session.call():
                pass  # wait until the flow service is connected and has announced whether it uses measurements
            began = self._monotonic()
            if self.active:
                await self.poll()
            await self._sleep(max(self.interval - (self._monotonic() - began), 0.1))

    async def poll(self) -> None:
        """Poll every source that is due, and send the figures."""
        gathered = Gathered()
        for watched in self._sources:
            await watched.gather(gathered)
        self.polls += 1
        self._count("refused", gathered.refused)
        self._note_busy_nodes(gathered)
        if gathered.pods or gathered.nodes:
            try:
                await self._send(gathered)
            except EngineError as error:
                log.warning("cannot send usage to the flow service: %s", error)
                if error.code in ("UNAVAILABLE", "CLOSED"):
                    self._session.lost()

    def _with_thresholds(self) -> list[NodeRecord]:
        return [node for node in self._store.nodes.values() if node.thresholds.percent]

    def _note_busy_nodes(self, gathered: Gathered) -> None:
        """Has nodes with thresholds described by what they use."""
        nodes, now_us = self._with_thresholds(), self._now_us()
        self._seen = {node.id: self._seen.get(node.id, {}) for node in nodes}
        for node in nodes:
            seen, row = self._seen[node.id], gathered.nodes.get(node.name)
            for resource, column in (("cpu", CPU), ("memory", MEMORY)):
                if row is not None and not math.isnan(row[column]):
                    seen[resource] = row[AT] or now_us, row[column]
            node.used = {each: amount for each, (at, amount) in seen.items() if now_us - at <= self._stale_us}
            self._store.touch_node(node.name)

    async def _send(self, gathered: Gathered) -> None:
        tasks, ids = await self._rows_of_pods(gathered), self._rows_of_nodes(gathered)
        for start in range(0, max(len(tasks), len(ids)), _CHUNK):
            some, nodes = tasks[start : start + _CHUNK], ids[start : start + _CHUNK]
            async with self._session.call() as epoch:
                report = flow_pb2.UsageReport(
                    epoch=epoch,
                    task_uid=[task for task, _ in some],
                    tasks=_columns([row for _, row in some]),
                    node_id=[node for node, _ in nodes],
                    nodes=_columns([row for _, row in nodes]),
                )
                reply = await self._engine.report_usage(report)
                if reply.status == flow_pb2.STALE_EPOCH:
                    self._session.stale(epoch)
                    return
            for result in ("taken", "old", "refused", "unknown"):
                self._count(result, getattr(reply, result))
            if reply.taken + reply.old:
                self._last_success = self._monotonic()
            await self._sleep(0)

    async def _rows_of_pods(self, gathered: Gathered) -> list[tuple[int, Row]]:
        """Rows of tasks that the flow service knows. A reading older than the pod is of an earlier pod of its name."""
        named = {(p.namespace, p.name): p for p in self._store.pods.values() if p.sent is not None}
        found, now_us = [], self._now_us()
        for position, (name, row) in enumerate(gathered.pods.items()):
            if position % _CHUNK == 0:
                await self._sleep(0)
            row[AT] = row[AT] or now_us
            known = named.get(name)
            if known is not None and row[AT] > known.created_us:
                found.append((known.task, row))
        self._count("unknown", len(gathered.pods) - len(found))
        return found

    def _rows_of_nodes(self, gathered: Gathered) -> list[tuple[str, Row]]:
        found, now_us = [], self._now_us()
        for name, row in gathered.nodes.items():
            row[AT] = row[AT] or now_us
            known = self._store.nodes.get(name)
            if known is not None:
                found.append((known.id, row))
        self._count("unknown", len(gathered.nodes) - len(found))
        return found

    def _count(self, result: str, samples: int) -> None:
        if samples:
            self._metrics.usage_samples.labels(result).inc(samples)


class _Watched:
    """A source and its outages: one warning when an outage begins or changes, one line when it ends."""

    def __init__(self, source: Source, interval: float, monotonic: Callable[[], float], metrics: Metrics) -> None:
        self.source = source
        self.problem = ""
        self._metrics = metrics
        self._monotonic = monotonic
        self._limit = min(max(interval, 5.0), _LONGEST_POLL)
        self._backoff = Backoff(interval, max(_SLOWEST, interval))
        self._not_before = -math.inf

    async def gather(self, into: Gathered) -> None:
        """Add the figures of the source if it is due. Never raises."""
        if self._monotonic() < self._not_before:
            return
        problem = ""
        try:
            async with asyncio.timeout(self._limit):
                await self.source.gather(into)
        except TimeoutError:
            problem = f"no answer within {self._limit:.0f} s"
        except SourceError as error:
            problem = str(error)
        except Exception as error:
            # no answer of a source, and no content of its token file, may stop the polling
            problem = f"its answer cannot be used: {type(error).__name__}: {error}"
        self._metrics.usage_polls.labels(self.source.name, "failed" if problem else "answered").inc()
        if problem:
            self._not_before = self._monotonic() + self._backoff.next()
            if problem != self.problem:
                log.warning("cannot read usage metrics from %s: %s", self.source.name, problem)
        elif self.problem:
            log.info("usage metrics from %s are back", self.source.name)
            self._backoff.reset()
        self.problem = problem


def _columns(rows: list[Row]) -> flow_pb2.UsageColumns:
    return flow_pb2.UsageColumns(
        at_us=[int(row[AT]) for row in rows],
        cpu=[row[CPU] for row in rows],
        memory=[row[MEMORY] for row in rows],
        rx=[row[RX] for row in rows],
        tx=[row[TX] for row in rows],
    )

"""Polls the use of queues from the flow service, for the status of their objects and for the metrics.

The leader polls while there are queues: every few seconds, and when the service has taken a new tree. Where past use
counts, others poll from time to time, so that they can tell it to a service that restarts.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from poseidon_py.feed.client import Engine, EngineError
from poseidon_py.feed.resync import Session
from poseidon_py.kube.quantity import CPU
from poseidon_py.report.queue_amounts import QueueAmount, QueueAmounts, past_of, share_of, uses_of
from poseidon_py.report.queue_types import type_of
from poseidon_py.report.queue_use import QueueUse
from poseidon_py.state.queues.registry import QueueRegistry
from poseidon_py.util.metrics import Metrics
from poseidon_py.util.queue_metrics import QueueFigures
from poseidon_py.util.timestamps import timestamp
from protos.gen import flow_pb2

log = logging.getLogger(__name__)

PERIOD = 5.0
"""Seconds between two polls."""
_PAUSE = 0.5
"""Seconds between two polls at least, while trees change."""
STANDBY_PERIOD = 60.0
"""Seconds between two polls of a replica that is not the leader."""
PAST_PERIOD = 300.0
"""Seconds for which the past use in statuses stays as it is: it changes all the time."""
_MILLI = 1000.0


class QueuePoll:
    """`run` in a separate task; `wake` when leadership, the tree or the kind of queues has changed."""

    def __init__(
        self,
        engine: Engine,
        session: Session,
        registry: QueueRegistry,
        leads: Callable[[], bool],
        note: Callable[[Mapping[int, QueueUse]], None],
        metrics: Metrics,
        *,
        period: float = PERIOD,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`note`: takes the use of all queues, by id. `period`: seconds between two polls."""
        self._engine = engine
        self._session = session
        self._registry = registry
        self._leads = leads
        self._note = note
        self._metrics = metrics
        self._period = period
        self._sleep = sleep
        self._woken = asyncio.Event()
        self._failed = False
        self._past: dict[int, dict[str, float]] = {}
        self._past_us = 0

    def wake(self) -> None:
        """A poll is due, if this process leads and there are queues."""
        self._woken.set()

    @property
    def _due(self) -> float | None:
        """Seconds until the next poll; None: none is due."""
        tree = self._registry.tree
        if not tree.queues:
            return None
        if self._leads():
            return self._period
        return STANDBY_PERIOD if self._registry.past_use.counts(tree) else None

    async def run(self) -> None:
        """Never returns."""
        while True:
            try:
                async with asyncio.timeout(self._due):
                    await self._woken.wait()
            except TimeoutError:
                pass
            self._woken.clear()
            if not self._leads() or self._due is None:
                self._metrics.queues.show(())
            if self._due is not None:
                await self._poll()
                await self._sleep(_PAUSE)

    async def _poll(self) -> None:
        try:
            async with self._session.call() as epoch:
                tree = self._registry.tree
                reply = await self._engine.list_queues()
        except EngineError as error:
            if not self._failed:
                log.warning("cannot read the use of queues from the flow service, and will retry: %s", error)
            self._failed = True
            if error.code in ("UNAVAILABLE", "CLOSED"):
                self._session.lost()
            return
        self._failed = False
        if reply.epoch != epoch:
            return
        if reply.HasField("past_use"):
            self._registry.past_use.last = reply.past_use
        if not self._leads():
            return
        amounts = QueueAmounts(tree, reply)
        self._note(self._with_past(amounts, uses_of(amounts)))
        self._metrics.queues.show(
            _figures(queue.name, type_of(queue.key), amounts.states[queue.id], amounts.of(queue.id))
            for queue in tree.queues
            if queue.id in amounts.states
        )

    def _with_past(self, amounts: QueueAmounts, uses: dict[int, QueueUse]) -> dict[int, QueueUse]:
        """The uses with what local queues used in the past, as of a while ago."""
        if not amounts.past_us:
            self._past = {}
            return uses
        if amounts.past_us - self._past_us >= PAST_PERIOD * 1e6 or amounts.local_states.keys() - self._past.keys():
            self._past_us = amounts.past_us
            self._past = {ident: past_of(amounts.of_local(ident)) for ident in amounts.local_states}
        at = timestamp(self._past_us / 1e6)
        return uses | {
            ident: replace(uses[ident], past=past, past_at=at) for ident, past in self._past.items() if ident in uses
        }


def _figures(name: str, kind: str, state: flow_pb2.QueueState, amounts: Sequence[QueueAmount]) -> QueueFigures:
    return QueueFigures(
        name,
        kind,
        state.pending,
        state.running,
        share_of(state),
        _sums(amounts, lambda each: each.used),
        _sums(amounts, lambda each: each.guarantee),
        _sums(amounts, lambda each: each.borrowed),
    )


def _sums(amounts: Sequence[QueueAmount], field: Callable[[QueueAmount], int | None]) -> dict[str, float]:
    """The amounts of all flavors together, by resource; infinite: without a limit."""
    sums: dict[str, float] = {}
    for each in amounts:
        amount = field(each)
        scale = _MILLI if each.resource == CPU else 1.0
        sums[each.resource] = sums.get(each.resource, 0.0) + (amount / scale if amount is not None else math.inf)
    return sums

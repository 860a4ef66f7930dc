"""Polls the use of queues from the flow service, for the status of their objects and for the metrics.

The leader polls while there are queues: every few seconds, and when the service has taken a new tree. Where past use
counts, others poll from time to time, so that they can tell it to a service that restarts.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from poseidon_py.feed.client import Engine, EngineError
from poseidon_py.feed.resync import Session
from poseidon_py.metrics.metrics import Metrics
from poseidon_py.report.queue_amounts import QueueAmounts, past_of, uses_of
from poseidon_py.report.queue_figures import figures_of
from poseidon_py.report.queue_use import QueueUse
from poseidon_py.state.queues.registry import QueueRegistry
from poseidon_py.util.timestamps import timestamp

log = logging.getLogger(__name__)

PERIOD = 5.0
"""Seconds between two polls."""
_PAUSE = 0.5
"""Seconds between two polls at least, while trees change."""
STANDBY_PERIOD = 60.0
"""Seconds between two polls of a replica that is not the leader."""
PAST_PERIOD = 300.0
"""Seconds for which the past use in statuses stays as it is: it changes all the time."""


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
        self._metrics.queues.show(figures_of(tree, amounts, self._registry.built.taking))

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

"""Puts the page together, and keeps its history."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from poseidon_py.app.serving.http_endpoints import first_problem
from poseidon_py.dashboard.assets import Assets
from poseidon_py.dashboard.endpoints import DashboardEndpoints
from poseidon_py.dashboard.history import FINE_SECONDS, RoundHistory, Series
from poseidon_py.dashboard.queue_tree import samples_of
from poseidon_py.dashboard.scope import Scopes
from poseidon_py.dashboard.stream import Stream
from poseidon_py.dashboard.survey import Survey, Surveys
from poseidon_py.dashboard.watched import Shared, Watched
from poseidon_py.feed.client import EngineError
from poseidon_py.util.tasks import end_tasks

log = logging.getLogger(__name__)


class Dashboard:
    """A bridge's `pages`: `attach` before the bridge starts."""

    def __init__(
        self,
        watched: Watched,
        plotly: Path | None = None,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`plotly`: as of Assets. Raises MissingPlotly."""
        self._watched = watched
        self._sleep = sleep
        self._now = now
        self._assets = Assets(plotly)
        self._rounds = RoundHistory()
        self._series = Series()
        self._surveys = Surveys(watched.store, self._conditions, now=now)
        self._scopes = Scopes(self._namespaces)
        self._stream = Stream(self._tick, sleep=sleep)
        shared = Shared(time.monotonic)
        self._endpoints = DashboardEndpoints(
            watched, self._surveys, self._rounds, self._series, self._scopes, shared, self._stream
        )
        self._sampling: asyncio.Task[None] | None = None

    def attach(self) -> None:
        """The bridge serves it from its start on, and tells it of rounds."""
        self._watched.pages = self
        self._watched.round_listeners.append(self._rounds)

    # -- app/serving/http_endpoints.py: Pages -----------------------------------------------------------------

    @property
    def public(self) -> frozenset[str]:
        return self._assets.paths

    def routes(self) -> list[web.RouteDef]:
        return [*self._assets.routes(), *self._endpoints.routes()]

    async def start(self) -> None:
        self._sampling = asyncio.create_task(self._sample_always(), name="dashboard samples")

    async def stop(self) -> None:
        await self._stream.stop()
        await self._scopes.stop()
        await self._surveys.stop()
        if self._sampling is not None:
            await end_tasks(self._sampling)

    # -- samples and ticks ------------------------------------------------------------------------------------

    async def _sample_always(self) -> None:
        while True:
            await self._sleep(FINE_SECONDS)
            try:
                await self.sample()
            except EngineError as error:
                log.debug("no sample of queues for the page: %s", error)
            except Exception:  # the scheduler must go on
                log.exception("cannot take a sample for the page")

    async def sample(self) -> None:
        """Adds the totals of now. Raises EngineError."""
        survey = await self._surveys.fresh()
        values = dict(_samples(survey))
        if self._watched.store.queues.tree.queues:
            values |= samples_of(await self._watched.queues(""))
        self._series.add(self._now(), values)

    async def _tick(self) -> bytes:
        survey = await self._surveys.newest()
        rounds = self._rounds.newest(1)
        last = rounds[0].stats if rounds else None
        body: dict[str, Any] = {
            "survey": survey.number,
            "round": self._rounds.count,
            "seconds": last.seconds if last is not None else None,
            "placed": survey.placed,
            "pending": survey.pending,
            "nodes": len(survey.nodes),
            "leading": self._watched.leads,
            "not_ready": first_problem(self._watched.checks()),
        }
        return msgspec.json.encode(body)

    def _conditions(self) -> Mapping[str, str]:
        runtime = self._watched.runtime
        return runtime.reporter.conditions if runtime is not None else {}

    async def _namespaces(self) -> Iterable[str]:
        return self._watched.store.namespaces.messages.keys() | (await self._surveys.newest()).namespaces.keys()


def _samples(survey: Survey) -> Iterator[tuple[str, float]]:
    for resource, (used, allocatable) in survey.totals().items():
        yield f"use/{resource}", used / allocatable
    yield "pods/placed", survey.placed
    yield "pods/pending", survey.pending
    by_reason: dict[str, int] = {}
    for group in survey.waiting.values():
        by_reason[group.reason.key] = by_reason.get(group.reason.key, 0) + len(group.pods)
    for key, count in by_reason.items():
        yield f"pending/{key}", count

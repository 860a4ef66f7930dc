"""What the page asks of a scheduler."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from poseidon_py.app.runtime import Runtime
from poseidon_py.app.serving.http_endpoints import Pages
from poseidon_py.config.settings import Settings
from poseidon_py.feed.client import Engine
from poseidon_py.metrics.metrics import Metrics
from poseidon_py.rounds.listener import RoundListener
from poseidon_py.state.store import Store
from poseidon_py.tracking.tracker import Tracker

Json = dict[str, Any]


class Watched(Protocol):
    """app.bridge.Bridge. Answers raise as in app/serving/state_endpoints.py."""

    settings: Settings
    store: Store
    metrics: Metrics
    pages: Pages | None
    round_listeners: list[RoundListener]

    @property
    def engine(self) -> Engine: ...

    @property
    def runtime(self) -> Runtime | None: ...

    @property
    def leads(self) -> bool: ...

    @property
    def tracker(self) -> Tracker | None: ...

    def serves(self) -> Json: ...

    def checks(self) -> Mapping[str, str]: ...

    async def explain(self, namespace: str, name: str) -> Json | None: ...

    async def gangs(self, name: str, namespace: str) -> Json: ...

    async def queues(self, name: str) -> Json: ...

    async def jobs(self, **selection: str) -> Json: ...

    async def network(self, **selection: str) -> Json: ...


class Shared:
    """Answers that several readers get within some seconds are computed once."""

    def __init__(self, monotonic: Callable[[], float], seconds: float = 2.0) -> None:
        self._monotonic = monotonic
        self._seconds = seconds
        self._known: dict[str, tuple[float, Any]] = {}

    async def get(self, key: str, compute: Callable[[], Awaitable[Any]]) -> Any:
        """`key`: one of few. Raises what `compute` raises."""
        until, value = self._known.get(key, (0.0, None))
        if until <= self._monotonic():
            value = await compute()
            self._known[key] = self._monotonic() + self._seconds, value
        return value

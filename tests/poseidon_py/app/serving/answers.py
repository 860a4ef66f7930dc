"""What the endpoints of a test ask instead of a bridge."""

from collections.abc import Mapping
from typing import Any

from poseidon_py.config.settings import Settings
from poseidon_py.metrics.metrics import Metrics

Json = dict[str, Any]


class Answers:
    """Healthy, and has nothing to say; tests replace what they ask for."""

    def __init__(self, rebalancer: Any = None, **settings: Any) -> None:
        self.metrics = Metrics()
        self.settings = Settings(**{"health_port": 0, "bind_address": "127.0.0.1", **settings})
        self.rebalancer = rebalancer

    def alive(self) -> str:
        return ""

    def checks(self) -> Mapping[str, str]:
        return {}

    def refresh(self) -> None:
        pass

    def serves(self) -> Json:
        raise AssertionError

    async def status(self) -> Json:
        raise AssertionError

    async def explain(self, namespace: str, name: str) -> Json | None:
        raise AssertionError

    async def devices(self, node: str) -> Json:
        return {"node": node}

    async def gangs(self, name: str, namespace: str) -> Json:
        raise AssertionError

    async def queue(self, namespace: str, queue: str, order: str) -> Json:
        raise AssertionError

    async def queues(self, name: str) -> Json:
        raise AssertionError

    async def jobs(self, **selection: str) -> Json:
        raise AssertionError

    async def network(self, **selection: str) -> Json:
        raise AssertionError

    async def fits(self, body: Json) -> Json:
        raise AssertionError

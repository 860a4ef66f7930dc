"""`poseidon rebalance` beside a replica that carries out its plans."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from click.testing import CliRunner, Result

from poseidon_py.app.serving.state_endpoints import Health
from poseidon_py.cli.main import cli
from protos.gen import flow_pb2
from tests.poseidon_py.app.serving.answers import Answers
from tests.poseidon_py.moving_rig import MovingRig

IDENTITY = {"server": "https://here:6443", "in_cluster": False, "scheduler_names": ["poseidon"], "identity": "x"}


class Bridge(MovingRig):
    """A replica with its own health port, whose evicted pods are gone at once, and which follows its plan closely."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        self.end_at_once()
        self.rebalancer._sleep = lambda _: asyncio.sleep(0.005)
        answers = Answers(self.rebalancer)
        answers.serves = lambda: IDENTITY  # type: ignore[method-assign]
        self.health = Health(answers)

    async def __aenter__(self):
        await super().__aenter__()
        self._tasks.append(asyncio.create_task(self.rebalancer.run()))
        await self.health.start()
        return self

    async def __aexit__(self, *error):
        await self.health.stop()
        await super().__aexit__(*error)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.health.port}"

    def plan(self) -> None:
        """The engine has the plan of `chain`."""
        tasks = {name: self.store.pods[f"uid-{name}"].task for name in "abc"}
        plan = self.engine.plan = flow_pb2.MovePlan(
            before=7, after=8, bound=9, bounded=True, running=3, movable=2, guarded=1
        )
        fields: Any = {"from": "n", "to": "m"}
        moves = {name: flow_pb2.Move(task_uid=tasks[name], task=f"default/{name}", **fields) for name in "abc"}
        plan.steps.add(moves=[moves["a"], moves["b"]])
        plan.steps.add(moves=[moves["c"]], after=[0], win=1)
        plan.wins.add(node="n", count=1)
        plan.budgets.add(name="default/b", moves=2, allowed=1)


@asynccontextmanager
async def bridge(**fields: Any) -> AsyncIterator[Bridge]:
    async with Bridge(**fields) as running:
        running.plan()
        yield running


async def run(*arguments: str, address: str = "") -> Result:
    """The command in a thread, so that the bridge can answer it."""
    where = ["--address", address] if address else []
    return await asyncio.to_thread(CliRunner().invoke, cli, ["rebalance", *where, *arguments])

"""`poseidon rebalance` that is interrupted, or whose flow service or leader changes."""

import asyncio
from functools import partial
from typing import Any

import pytest

from poseidon_py.cli.carry_out import Execution
from poseidon_py.util.process.signals import INTERRUPTED
from tests.poseidon_py.cli.rebalancing import bridge, run


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("poseidon_py.cli.carry_out._POLL_SECONDS", 0.005)
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setenv("COLUMNS", "120")


class Meanwhile:
    """Replaces the pauses of the command by what happens meanwhile, in this order; then nothing happens any more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *actions: Any, monotonic: Any = lambda: 0.0) -> None:
        self._actions = list(actions)
        self._loop = asyncio.get_running_loop()
        command = partial(Execution, sleep=self._sleep, monotonic=monotonic)
        monkeypatch.setattr("poseidon_py.cli.rebalance.Execution", command)

    def _sleep(self, _: float) -> None:
        """In the command's thread."""
        action = self._actions.pop(0) if self._actions else None
        if action is KeyboardInterrupt:
            raise KeyboardInterrupt
        asyncio.run_coroutine_threadsafe(self._happen(action), self._loop).result(30)

    async def _happen(self, action: Any) -> None:
        if action is not None:
            await action()
        await asyncio.sleep(0.02)


async def nothing() -> None:
    """A pause in which the bridge goes on."""


async def test_an_interrupted_command_stops_the_plan_and_names_what_is_under_way(monkeypatch):
    async with bridge() as leader:
        leader.pods.hold = asyncio.Event()
        Meanwhile(monkeypatch, nothing, nothing, KeyboardInterrupt)
        result = await run("--execute", "--yes", address=leader.address)
        assert result.exit_code == INTERRUPTED
        assert "stopped: no further step begins; under way: default/a, default/b" in result.output
        leader.pods.hold.set()
        await leader.settle()
        await leader.left("a", "b")
        assert leader.pods.of("evict") == ["a", "b"]
        assert leader.states["c"] == "dropped"


async def test_a_plan_that_cannot_be_stopped_is_told(monkeypatch):
    async with bridge() as leader:
        leader.pods.hold = asyncio.Event()
        Meanwhile(monkeypatch, nothing, leader.health.stop, KeyboardInterrupt)
        result = await run("--execute", "--yes", address=leader.address)
        assert result.exit_code == 1
        assert "error: the plan is not stopped: no scheduler at" in result.output
        leader.pods.hold.set()


async def test_a_flow_service_that_is_restarted_gets_the_plan_again(monkeypatch):
    async with bridge() as leader:
        leader.pods.hold = asyncio.Event()

        async def restart() -> None:
            leader.engine.restart()
            assert leader.pods.hold is not None
            leader.pods.hold.set()

        Meanwhile(monkeypatch, nothing, restart)
        result = await run("--execute", "--yes", address=leader.address)
        assert (result.exit_code, result.output.splitlines()[-1]) == (0, "3 done")
        assert leader.pods.of("evict") == ["a", "b", "c"]


@pytest.mark.parametrize("how", ["killed", "stands by"])
async def test_a_new_leader_gets_the_moves_that_have_not_ended(monkeypatch, how):
    async with bridge() as first, bridge(leads=False) as second:
        first.pods.hold = asyncio.Event()

        async def fail_over() -> None:
            """The API server has evicted a and b."""
            if how == "killed":
                await first.health.stop()
            first.loop.stand_by()
            first.rebalancer.stand_by()
            await second.left("a", "b")

        async def lead() -> None:
            second.loop.lead()

        Meanwhile(monkeypatch, nothing, fail_over, nothing, lead)
        result = await run("--address", second.address, "--execute", "--yes", address=first.address)
        assert result.exit_code == 0, result.output
        assert (first.pods.of("evict"), second.pods.of("evict")) == (["a", "b"], ["c"])
        assert "retrying for 60 s" in result.output
        assert "sent the remaining 3 moves to the leader again" in result.output
        assert result.output.splitlines()[-1] == "3 done"
        (step,) = second.engine.moves.steps
        assert [moved.task for moved in step.moves] == ["default/c"]
        first.pods.hold.set()


async def test_without_a_new_leader_the_command_gives_up_after_a_minute(monkeypatch):
    async with bridge() as leader:
        leader.pods.hold = asyncio.Event()
        times = iter([0.0, 30.0, 59.0, 60.0])
        Meanwhile(monkeypatch, nothing, leader.health.stop, monotonic=lambda: next(times))
        result = await run("--execute", "--yes", address=leader.address)
        assert result.exit_code == 1
        assert result.output.splitlines()[-1].startswith("error: no scheduler at")
        assert list(times) == []
        leader.pods.hold.set()


async def test_a_pod_that_somebody_else_deletes_is_dropped(monkeypatch):
    async with bridge() as leader:
        leader.pods.hold = asyncio.Event()

        async def delete() -> None:
            leader.gone("c")

        async def go_on() -> None:
            assert leader.pods.hold is not None
            leader.pods.hold.set()

        Meanwhile(monkeypatch, nothing, delete, nothing, go_on)
        result = await run("--execute", "--yes", address=leader.address)
        assert result.exit_code == 1
        assert result.output.splitlines()[-2:] == ["2 done, 1 dropped", "  default/c: dropped, it has ended"]


async def test_only_standbys_do_not_carry_out():
    async with bridge(leads=False) as standby:
        result = await run("--execute", "--yes", address=standby.address)
        assert result.exit_code == 1
        assert result.output.splitlines()[-1].startswith("error: this replica is not the leader; ask the leader")

"""`poseidon rebalance` with bridges that serve HTTP; their engines and API servers are fakes."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from poseidon_py.app.http_endpoints import Health
from poseidon_py.app.move_plan import decode_plan, encode_plan
from poseidon_py.cli.carry_out import Execution
from poseidon_py.cli.main import cli
from poseidon_py.kube.client import BusyError
from poseidon_py.util.metrics import Metrics
from protos.gen import flow_pb2
from tests.command_line import invoke
from tests.poseidon_py.moving_rig import MovingRig, chain

BUDGET = BusyError(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
IDENTITY = {"server": "https://here:6443", "in_cluster": False, "scheduler_names": ["poseidon"], "identity": "x"}


class Bridge(MovingRig):
    """A replica with its own health port, whose evicted pods are gone at once, and which follows its plan closely."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        self.end_at_once()
        self.rebalancer._sleep = lambda _: asyncio.sleep(0.005)
        none: Any = lambda *_: None  # noqa: E731
        self.health = Health(
            Metrics(),
            alive=none,
            ready=none,
            refresh=none,
            identity=lambda: IDENTITY,
            status=none,
            explain=none,
            gangs=none,
            fits=none,
            rebalancer=lambda: self.rebalancer,
        )

    async def __aenter__(self):
        await super().__aenter__()
        self._tasks.append(asyncio.create_task(self.rebalancer.run()))
        await self.health.start("127.0.0.1", 0)
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


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("poseidon_py.cli.carry_out._POLL_SECONDS", 0.005)
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setenv("COLUMNS", "120")


@asynccontextmanager
async def bridge(**fields: Any) -> AsyncIterator[Bridge]:
    async with Bridge(**fields) as running:
        running.plan()
        yield running


async def run(*arguments: str, address: str = "") -> Result:
    """The command in a thread, so that the bridge can answer it."""
    where = ["--address", address] if address else []
    return await asyncio.to_thread(CliRunner().invoke, cli, ["rebalance", *where, *arguments])


# -- printing ----------------------------------------------------------------------------------------------------------


async def test_by_default_the_plan_is_printed_and_nothing_changes():
    async with bridge() as leader:
        result = await run("--goal", "pack", "--moves", "12", address=leader.address)
        assert result.exit_code == 0
        lines = [line.split() for line in result.output.splitlines()]
        assert result.output.splitlines()[0] == (
            "3 moves: 1 more node is empty (7 -> 8); no plan of 12 moves empties more than 9"
        )
        rows = [[cell for cell in line if cell not in "│┃"] for line in lines]
        assert ["1", "default/a", "n", "m", "makes", "room", "for", "step", "2"] in rows
        assert ["2", "default/c", "n", "m", "empties", "n", "after", "1"] in rows
        assert ["default/b", "2", "1:", "moves", "wait", "for", "it"] in rows
        assert "3 pods run; 2 may move, 1 more but for disruption budgets that permit none now" in result.output
        assert leader.pods.of("evict") == []
        assert (
            await run("--goal", "pack", "--moves", "12", "--dry-run", address=leader.address)
        ).output == result.output


async def test_what_is_asked_for():
    async with bridge() as leader:
        await run(
            *("--goal", "pack", "--moves", "9", "--for", "cpu=1,memory=1Gi", "--moves-per-win", "3"),
            address=leader.address,
        )
        await run(address=leader.address)
        first, second = leader.engine.plan_requests
        assert (first.goal, first.moves, first.moves_per_win) == (flow_pb2.PlanRequest.PACK, 9, 3)
        assert dict(first.shape) == {"cpu": 1000, "memory": 2**30, "pods": 1}
        assert (second.goal, second.moves) == (flow_pb2.PlanRequest.PLACE, 50)


async def test_the_plan_as_json_and_in_a_file(tmp_path):
    async with bridge() as leader:
        file = tmp_path / "plan.json"
        result = await run("--goal", "pack", "--json", "--out", str(file), address=leader.address)
        assert json.loads(result.output) == json.loads(file.read_text())
        plan = decode_plan(file.read_bytes())
        assert [move.uid for move in plan.moves] == ["uid-a", "uid-b", "uid-c"]
        text = (await run("--goal", "pack", address=leader.address)).output
    assert invoke(cli, "rebalance", "--plan", str(file)).output == text  # no scheduler is needed


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"running": 5}, 'annotate pods, or label namespaces, with poseidon.io/movable: "true"'),
        ({"running": 5, "guarded": 2}, "all pods that may move are guarded by disruption budgets that permit no"),
        ({"running": 5, "movable": 5, "before": 3, "after": 3}, "no moves help\n"),
        (
            {"before": 3, "after": 3, "bound": 3, "bounded": True},
            "no moves help; no plan of 50 moves lets fewer than 3",
        ),
        ({}, "no moves: no pending pod waits for capacity"),
        ({"problem": "the policy failed; correct it"}, "the policy failed; correct it"),
    ],
    ids=str,
)
@pytest.mark.parametrize("flags", [(), ("--execute", "--yes")], ids=["dry run", "execute"])
async def test_without_moves_the_reason_is_told(fields, text, flags):
    async with bridge() as leader:
        leader.engine.plan = flow_pb2.MovePlan(**fields)
        result = await run(*flags, address=leader.address)
        assert result.exit_code == 0
        assert text in result.output
        assert leader.engine.calls["carry_out"] == 0


# -- flags -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--goal", "all"), "error: --goal: 'all' is not a goal; give place, pack, spread or policy\n"),
        (("--moves", "0"), "error: --moves: '0' is refused; give a whole number from 1 to 5000\n"),
        (("--moves", "many"), "error: --moves: 'many' is refused; give a whole number from 1 to 5000\n"),
        (("--for", "cpu=1"), "error: --for: belongs to the goal pack; give goal pack, or omit it\n"),
        (("--goal", "pack", "--for", "cpu=1x"), "error: --for: the amount of cpu: '1x' is not a quantity; give one"),
        (("--goal", "pack", "--moves-per-win", "-1"), "error: --moves-per-win: '-1' is refused; give a whole number"),
        (("--dry-run", "--execute"), "error: --dry-run and --execute exclude each other; give one of them\n"),
        (("--yes",), "error: --yes confirms --execute; give both, or neither\n"),
        (("--plan", "/dev/null", "--goal", "pack"), "error: --plan has a plan already; omit --goal, or omit --plan\n"),
        (("--plan", "/dev/null"), "error: --plan /dev/null: it is not the JSON of a plan: "),
        (("--plan", "/nowhere"), "Error: Invalid value for '--plan': File '/nowhere' does not exist.\n"),
    ],
    ids=str,
)
def test_flags_that_cannot_be_used(arguments, text):
    result = invoke(cli, "rebalance", *arguments)
    assert result.exit_code == 2
    assert text in result.output


def test_a_malformed_file_names_the_field(tmp_path):
    file = tmp_path / "plan.json"
    file.write_text('{"goal": "pack", "steps": [{"step": 1, "moves": [{"pod": "a/b", "uid": "u", "from": "n"}]}]}')
    result = invoke(cli, "rebalance", "--plan", str(file))
    assert (result.exit_code, result.output) == (
        2,
        f"error: --plan {file}: steps[0].moves[0]: object missing required field to\n",
    )


async def test_a_file_that_cannot_be_written(tmp_path):
    file = tmp_path / "missing" / "plan.json"
    async with bridge() as leader:
        result = await run("--out", str(file), address=leader.address)
        assert (result.exit_code, result.output) == (2, f"error: --out {file}: No such file or directory\n")


def test_no_scheduler():
    result = invoke(cli, "rebalance", "--address", "127.0.0.1:9")
    assert result.exit_code == 1
    assert "no scheduler at 127.0.0.1:9" in result.output


async def test_the_scheduler_of_another_cluster_is_not_used(tmp_path):
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        'clusters: [{name: c, cluster: {server: "https://there:6443"}}]\n'
        "contexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\nusers: [{name: u, user: {}}]\n"
    )
    async with bridge() as leader:
        result = await run("--kubeconfig", str(kubeconfig), address=leader.address)
        assert result.exit_code == 1
        assert "serves the API server https://here:6443, not https://there:6443" in result.output
        assert leader.engine.plan_requests == []


# -- carrying out ------------------------------------------------------------------------------------------------------


async def test_a_plan_is_carried_out_step_by_step():
    async with bridge() as leader:
        result = await run("--goal", "pack", "--execute", "--yes", address=leader.address)
        assert result.exit_code == 0, result.output
        assert leader.pods.of("evict") == ["a", "b", "c"]
        lines = result.output.splitlines()
        assert lines[-1] == "3 done"
        assert "3/3  default/c  n -> m  done" in lines


async def test_without_a_terminal_it_has_to_be_confirmed_by_a_flag():
    async with bridge() as leader:
        result = await run("--execute", address=leader.address)
        assert result.exit_code == 2
        assert result.output.endswith(
            "error: --execute needs a terminal to ask for confirmation; give --yes to carry it out without\n"
        )
        assert leader.engine.calls["carry_out"] == 0


@pytest.mark.parametrize("agrees", [True, False])
async def test_on_a_terminal_it_asks(monkeypatch, agrees: bool):
    asked: list[str] = []

    def confirm(text: str, **_: Any) -> bool:
        asked.append(text)
        return agrees

    monkeypatch.setattr("poseidon_py.cli.rebalance.has_terminal", lambda: True)
    monkeypatch.setattr(click, "confirm", confirm)
    async with bridge() as leader:
        result = await run("--execute", address=leader.address)
        assert asked == ["Carry out 3 moves?"]
        assert (result.exit_code, leader.pods.of("evict")) == ((0, ["a", "b", "c"]) if agrees else (1, []))


async def test_the_outcome_as_json_alone_on_standard_output():
    async with bridge() as leader:
        result = await run("--execute", "--yes", "--json", address=leader.address)
        found = json.loads(result.stdout)
        assert [(each["pod"], each["state"]) for each in found] == [(f"default/{name}", "done") for name in "abc"]
        assert "default/a  n -> m  done" in result.stderr


async def test_a_plan_from_a_file_is_carried_out(tmp_path):
    file = tmp_path / "plan.json"
    file.write_bytes(encode_plan(chain()))
    async with bridge() as leader:
        for _ in range(2):  # the second time all pods have gone
            result = await run("--plan", str(file), "--execute", "--yes", address=leader.address)
        assert leader.pods.of("evict") == ["a", "b", "c"]
        assert result.exit_code == 1
        assert result.output.splitlines()[-4:] == [
            "3 dropped",
            *(f"  default/{name}: dropped, the pod had gone before" for name in "abc"),
        ]


async def test_a_move_that_a_budget_refuses_is_told():
    async with bridge() as leader:
        leader.pods.faults = [BUDGET]
        result = await run("--execute", "--yes", address=leader.address)
        assert result.exit_code == 1
        assert result.output.splitlines()[-2:] == [
            "1 dropped, 2 done",
            f"  default/a: dropped, its eviction was refused: {BUDGET}",
        ]


async def test_another_plan_is_not_replaced():
    async with bridge() as leader:
        leader.pods.hold = asyncio.Event()
        await leader.rebalancer.carry_out(chain())
        result = await run("--execute", "--yes", address=leader.address)
        assert result.exit_code == 1
        assert "error: another plan is being carried out; wait until its moves have ended" in result.output
        leader.pods.hold.set()


# -- interruption, restarts, leaders -----------------------------------------------------------------------------------


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
        assert result.exit_code == 1
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
        assert result.output.splitlines()[-2:] == ["2 done, 1 dropped", "  default/c: dropped, the pod has ended"]


async def test_only_standbys_do_not_carry_out():
    async with bridge(leads=False) as standby:
        result = await run("--execute", "--yes", address=standby.address)
        assert result.exit_code == 1
        assert result.output.splitlines()[-1].startswith("error: this replica is not the leader; ask the leader")

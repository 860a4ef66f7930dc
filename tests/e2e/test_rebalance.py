"""`poseidon rebalance` as users run it: plans, and plans that are carried out, through restarts and failover."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from poseidon_py.util.process.signals import INTERRUPTED
from tests.e2e.api import PATIENCE, Json
from tests.e2e.backends import PODS, Backend, Synthetic
from tests.e2e.conftest import SYNTHETIC
from tests.e2e.objects import node, pod
from tests.e2e.owners import Owner
from tests.e2e.preemption import BUDGETS
from tests.e2e.processes import POSEIDON, Process, Scheduler, kill_and_see, run
from tests.e2e.test_migration import evictions
from tests.e2e.test_restarts import LEASE

Schedule = Callable[..., Scheduler]

FLAGS = ("--migrate=never", "--migrate-after=0", "--preemption=off")
"""Nothing but the plan moves pods."""


def rebalance(scheduler: Scheduler, *arguments: str, code: int = 0) -> list[str]:
    """The lines that the command prints."""
    done = run(*POSEIDON, "rebalance", "--address", scheduler.address, *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout.splitlines()


def executing(*addresses: str, plan: Path) -> Process:
    where = [word for address in addresses for word in ("--address", address)]
    return Process([*POSEIDON, "rebalance", *where, "--plan", str(plan), "--execute", "--yes"])


# -- goals -------------------------------------------------------------------------------------------------------------


@pytest.mark.flags(*FLAGS)
def test_pack_empties_nodes(backend: Backend, scheduler: Scheduler) -> None:
    """Four pods that fit on one node are on four."""
    backend.create(*(node(name, cpu="4") for name in "abcd"))
    with Owner(backend, "o") as owner:
        for name in "abcd":
            owner.create(name, cpu="1")
        before = backend.until_bound(4)
        backend.until_seen_by(scheduler)
        printed = rebalance(scheduler, "--goal=pack")
        assert printed[0] == "3 moves: 3 more nodes are empty (0 -> 3); no plan of 50 moves empties more than 3"
        assert backend.bound() == before
        assert rebalance(scheduler, "--goal=pack", "--execute", "--yes")[-1] == "3 done"
        found = backend.until_bound(4)
        assert len(set(found.values())) == 1
        assert len(owner.came_from) == 3
        assert all(found[name] != origin for name, origin in owner.came_from.items())
        assert rebalance(scheduler, "--goal=pack")[0] == "no moves help; no plan of 50 moves empties more than 3"


@pytest.mark.flags(*FLAGS)
def test_place_lets_a_large_pod_fit(backend: Backend, scheduler: Scheduler) -> None:
    """Each node has 2 of 4 cores free, and the pod requests 3."""
    backend.create(node("a", cpu="4"), node("b", cpu="4"))
    with Owner(backend, "o") as owner:
        for name in "aabb":
            owner.create(name, cpu="1")
        backend.until_bound(4)
        backend.create(pod("large", cpu="3"))
        backend.until_unschedulable("large")
        backend.until_seen_by(scheduler)
        printed = rebalance(scheduler)
        assert printed[0].startswith("1 move: 1 more pod fits (1 -> 0 wait)")
        assert "large" not in backend.bound()
        assert rebalance(scheduler, "--execute", "--yes")[-1] == "1 done"
        where = backend.until_bound(5)
        ((successor, origin),) = owner.came_from.items()
        assert (where["large"], where[successor] == origin) == (origin, False)


@pytest.mark.flags(*FLAGS, "--policy=load-spreading", "--policy-option=move-cost=1")
@pytest.mark.parametrize("goal", ["spread", "policy"])
def test_pods_are_spread_by_either_goal(backend: Backend, scheduler: Scheduler, goal: str) -> None:
    """Four pods are on one of two nodes."""
    backend.create(node("a"), node("b"))
    with Owner(backend, "o") as owner:
        for _ in range(4):
            owner.create("a", cpu="1")
        backend.until_bound(4)
        backend.until_seen_by(scheduler)
        assert " costs " in rebalance(scheduler, f"--goal={goal}")[0]
        assert rebalance(scheduler, f"--goal={goal}", "--execute", "--yes")[-1] == "2 done"
        assert Counter(backend.until_bound(4).values()) == {"a": 2, "b": 2}


@pytest.mark.flags(*FLAGS)
def test_without_pods_that_opted_in_the_remedy_is_told(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("a"), node("b"), pod("p"), pod("q"))
    backend.until_bound(2)
    backend.until_seen_by(scheduler)
    printed = rebalance(scheduler, "--goal=pack", "--execute", "--yes")
    assert "no moves help" in printed[0]
    assert 'poseidon.io/movable: "true"' in printed[-1]


# -- budgets, restarts, failover ---------------------------------------------------------------------------------------


def fragmented(synthetic: Synthetic, scheduler: Scheduler, owner: Owner, tmp_path: Path) -> Path:
    """Four pods that fit on one node are on four, and a budget allows no eviction any more. Returns the file of a plan
    that empties three nodes."""
    synthetic.create(*(node(name, cpu="4") for name in "abcd"))
    for name in "abcd":
        owner.create(name, cpu="1")
    synthetic.until_bound(4)
    running(synthetic, 4)
    synthetic.create(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "o"},
            "spec": {"minAvailable": 3, "selector": {"matchLabels": {"app": "o"}}},
        }
    )
    until_plans(scheduler, lambda plan: [use["allowed"] for use in plan["budgets"]] == [1])
    file = tmp_path / "plan.json"
    printed = rebalance(scheduler, "--goal=pack", "--out", str(file))
    assert printed[0].startswith("3 moves: 3 more nodes are empty (0 -> 3)")
    assert any("default/o" in line and "1: moves wait for it" in line for line in printed)
    permit(synthetic, 0)
    until_plans(scheduler, lambda plan: plan["guarded"] == 4)
    return file


def permit(synthetic: Synthetic, evictions: int) -> None:
    """Changes how many of the four pods may be missing at a time."""
    synthetic.patch(f"{BUDGETS}/o", {"spec": {"minAvailable": 4 - evictions}})


def until_plans(scheduler: Scheduler, condition: Callable[[Json], bool]) -> None:
    """Waits until the scheduler's plan shows that it knows the newest state."""
    end = time.monotonic() + PATIENCE
    while True:
        code, body = scheduler.get("/rebalance?goal=pack")
        if code == 200 and condition(json.loads(body)):
            return
        assert time.monotonic() < end, body
        time.sleep(0.1)


def running(synthetic: Synthetic, count: int) -> None:
    def probe(pods: list[Json]) -> bool:
        return [item["status"].get("phase") for item in pods].count("Running") == count

    synthetic.pods.until(probe, f"{count} running pods")


def never_fewer(synthetic: Synthetic, count: int) -> None:
    """Asserts that at no time since there were as many, fewer pods were on nodes and not being deleted."""
    there: set[str] = set()
    counts = []
    for what, item in synthetic.pods.history:
        metadata = item["metadata"]
        ends = what == "DELETED" or metadata.get("deletionTimestamp")
        (there.discard if ends or not item["spec"].get("nodeName") else there.add)(metadata["uid"])
        counts.append(len(there))
    first = next(at for at, number in enumerate(counts) if number > count)
    assert min(counts[first:]) == count


def packed(synthetic: Synthetic, owner: Owner) -> None:
    """All four pods are on one node, and none has returned."""
    found = synthetic.until_bound(4)
    assert len(found) == 4
    assert len(set(found.values())) == 1
    assert all(found[name] != origin for name, origin in owner.came_from.items() if name in found)
    assert len(owner.came_from) == 3


@SYNTHETIC
@pytest.mark.flags(*FLAGS)
def test_a_budget_that_permits_one_eviction_at_a_time_holds(
    synthetic: Synthetic, scheduler: Scheduler, tmp_path: Path
) -> None:
    before = evictions(synthetic)
    with Owner(synthetic, "o", stop_seconds=0.3) as owner:
        file = fragmented(synthetic, scheduler, owner, tmp_path)
        command = executing(scheduler.address, plan=file)
        command.until_says("3 waiting: the disruption budget default/o")
        assert evictions(synthetic) == before
        assert scheduler.status()["rebalance"]["moves"]["waiting"] == 3
        assert (
            "a plan of moves is carried out (goal pack): 3 waiting"
            in run(*POSEIDON, "status", "--address", scheduler.address).stdout
        )
        permit(synthetic, 1)
        assert command.wait() == 0, command.output
        assert command.lines[-1] == "3 done"
        packed(synthetic, owner)
        never_fewer(synthetic, 3)
    assert evictions(synthetic) == before + 3
    for name in owner.left:
        event = synthetic.until_event("Migrated", name)
        assert ": the plan empties " in event["message"]
    assert scheduler.status()["rebalance"] is None


@SYNTHETIC
def test_a_plan_goes_on_after_the_flow_service_was_killed(
    synthetic: Synthetic, schedule: Schedule, tmp_path: Path
) -> None:
    scheduler = schedule(*FLAGS)
    with Owner(synthetic, "o", stop_seconds=0.3) as owner:
        file = fragmented(synthetic, scheduler, owner, tmp_path)
        command = executing(scheduler.address, plan=file)
        command.until_says("waiting: the disruption budget")
        kill_and_see(scheduler.firmament_pid)
        permit(synthetic, 1)
        assert command.wait() == 0, command.output
        assert command.lines[-1] == "3 done"
        packed(synthetic, owner)
        never_fewer(synthetic, 3)


@SYNTHETIC
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["SIGKILL", "SIGSTOP"])
def test_a_new_leader_goes_on_with_the_plan(
    synthetic: Synthetic, schedule: Schedule, tmp_path: Path, number: int
) -> None:
    """The suspended leader has forgotten the plan when it resumes."""
    leader = schedule(*LEASE, *FLAGS)
    leader.until_says("leading: ")
    standby = schedule(*LEASE, *FLAGS)
    with Owner(synthetic, "o", stop_seconds=0.3) as owner:
        file = fragmented(synthetic, leader, owner, tmp_path)
        assert "is not the leader" in refusal(standby, file)
        command = executing(standby.address, leader.address, plan=file)
        command.until_says("waiting: the disruption budget")
        if number == signal.SIGKILL:
            leader.expected = {-number}
            leader.end(number)
        else:
            leader.popen.send_signal(number)
        standby.until_says("leading: ")
        command.until_says("sent the remaining 3 moves to the leader again")
        permit(synthetic, 1)
        assert command.wait() == 0, command.output
        assert command.lines[-1] == "3 done"
        if number == signal.SIGSTOP:
            leader.popen.send_signal(signal.SIGCONT)
            leader.until_says("the plan of moves is forgotten")
            assert json.loads(leader.get("/rebalance/progress")[1])["id"] == ""
        packed(synthetic, owner)
        never_fewer(synthetic, 3)


def refusal(scheduler: Scheduler, plan: Path) -> str:
    """The error of a plan that is not carried out."""
    command = executing(scheduler.address, plan=plan)
    assert command.wait() == 1
    return command.lines[-1]


@SYNTHETIC
@pytest.mark.flags(*FLAGS)
def test_an_interrupted_command_stops_the_plan(synthetic: Synthetic, scheduler: Scheduler, tmp_path: Path) -> None:
    before = evictions(synthetic)
    with Owner(synthetic, "o", stop_seconds=0.3) as owner:
        command = executing(scheduler.address, plan=fragmented(synthetic, scheduler, owner, tmp_path))
        command.until_says("waiting: the disruption budget")
        assert command.end(signal.SIGINT) == INTERRUPTED
        command.until_says("stopped: no further step begins; under way: none")
        permit(synthetic, 1)
        assert scheduler.status()["rebalance"] is None
        code, body = scheduler.get("/rebalance/progress")
        assert code == 200
        assert Counter(move["state"] for move in json.loads(body)["moves"]) == {"dropped": 3}
        assert evictions(synthetic) == before


@SYNTHETIC
@pytest.mark.flags(*FLAGS)
def test_a_pod_that_somebody_deletes_is_dropped_and_the_others_move(
    synthetic: Synthetic, scheduler: Scheduler, tmp_path: Path
) -> None:
    with Owner(synthetic, "o", stop_seconds=0.3) as owner:
        file = fragmented(synthetic, scheduler, owner, tmp_path)
        (first, *_) = [move["pod"] for step in json.loads(file.read_text())["steps"] for move in step["moves"]]
        command = executing(scheduler.address, plan=file)
        command.until_says("waiting: the disruption budget")
        synthetic.delete(PODS, first.partition("/")[2])
        command.until_says(f"{first} .* dropped: ")
        permit(synthetic, 1)
        assert command.wait() == 1, command.output
        command.until_says("2 done, 1 dropped|1 dropped, 2 done")

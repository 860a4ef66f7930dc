"""From the nomination of a pod to its bind: what others may do meanwhile, and what ends the wait.

Victims have a long grace period. They stop when the test says so, as their kubelet would.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from tests.e2e.api import Json
from tests.e2e.backends import NODES, PODS, Backend
from tests.e2e.objects import node
from tests.e2e.preemption import (
    HIGH,
    LONG,
    LOW,
    MID,
    NEVER,
    another_round,
    attempts,
    define_priorities,
    preempted,
    ranked,
    until_nominated,
    until_not_nominated,
    until_terminating,
)
from tests.e2e.processes import Scheduler
from tests.e2e.test_constraints import HOST

Schedule = Callable[..., Scheduler]


@pytest.fixture(autouse=True)
def _priorities(backend: Backend) -> None:
    define_priorities(backend)


def full(backend: Backend, *names: str) -> None:
    """Nodes with these names, each with one pod `on-NAME` on all of its capacity."""
    backend.create(*(node(name, cpu="2") for name in names))
    backend.create(*(ranked(f"on-{n}", LOW, cpu="2", grace=LONG, nodeSelector={HOST: n}) for n in names))
    backend.until_bound(len(names))


def nominated(backend: Backend, name: str, priority: str = HIGH, cpu: str = "2") -> str:
    """Creates a pod, and waits until it is nominated and its victim is terminating; returns the name of the node."""
    before = len(preempted(backend))
    backend.create(ranked(name, priority, cpu=cpu, grace=LONG))
    where = until_nominated(backend, name)
    until_terminating(backend, before + 1)
    assert preempted(backend)[before:] == [f"on-{where}"]
    return where


def stop(backend: Backend, name: str) -> None:
    """The containers of a terminating pod have stopped."""
    backend.delete(PODS, name)


@pytest.mark.parametrize("rival", [LOW, MID, HIGH], ids=["lower", "between", "equal"])
def test_others_do_not_take_the_place_of_a_nominated_pod(backend: Backend, scheduler: Scheduler, rival: str) -> None:
    # 1 of 3 cpus is free; with the 2 of the victim it is what the preemptor needs
    backend.create(node("a", cpu="3"))
    backend.until_seen_by(scheduler)
    backend.create(ranked("on-a", LOW, cpu="2", grace=LONG))
    backend.until_bound(1)
    nominated(backend, "high", cpu="3")
    backend.create(ranked("rival", rival, cpu="1"))
    backend.until_unschedulable("rival")
    another_round(backend)
    assert set(backend.bound()) == {"on-a"}
    stop(backend, "on-a")
    backend.until_bound(1, "high")
    another_round(backend)
    assert set(backend.bound()) == {"high"}
    assert preempted(backend) == ["on-a"]


def test_a_pod_of_higher_priority_takes_over_the_place(backend: Backend, scheduler: Scheduler) -> None:
    full(backend, "a")
    nominated(backend, "mid", MID)
    backend.create(ranked("high", HIGH, cpu="2"))
    until_nominated(backend, "high", "a")
    until_not_nominated(backend, "mid")
    assert "0/1 nodes are available" in backend.until_unschedulable("mid")
    stop(backend, "on-a")
    backend.until_bound(1, "high")
    another_round(backend)
    assert backend.bound() == {"high": "a"}
    assert preempted(backend) == ["on-a"]


def test_a_pod_that_has_lost_its_place_preempts_elsewhere(backend: Backend, scheduler: Scheduler) -> None:
    full(backend, "a")
    nominated(backend, "mid", MID)
    backend.create(ranked("high", HIGH, cpu="2"))
    until_nominated(backend, "high", "a")
    until_not_nominated(backend, "mid")
    full_later(backend, "b", scheduler)
    until_nominated(backend, "mid", "b")
    until_terminating(backend, 2)
    for name in ("on-a", "on-b"):
        stop(backend, name)
    assert backend.until_bound(1, "high") == {"high": "a"}
    assert backend.until_bound(1, "mid") == {"mid": "b"}
    assert preempted(backend) == ["on-a", "on-b"]


def full_later(backend: Backend, name: str, scheduler: Scheduler | None = None) -> None:
    """A node that comes with a pod on it, which a scheduler knows before: watches of pods and nodes are apart."""
    backend.create(ranked(f"on-{name}", LOW, cpu="2", grace=LONG, scheduler="somebody"))
    backend.bind(f"on-{name}", name)
    if scheduler is not None:
        backend.until_seen_by(scheduler)
    backend.create(node(name, cpu="2"))


def test_no_other_victim_is_chosen_while_one_terminates(backend: Backend, scheduler: Scheduler) -> None:
    full(backend, "a", "b")
    where = nominated(backend, "high")
    before = attempts(scheduler)
    for _ in range(3):
        another_round(backend)
    backend.create(node("c", cpu="1"))  # too small: one more reason to look again
    another_round(backend)
    assert attempts(scheduler) == before
    assert preempted(backend) == [f"on-{where}"]
    assert until_nominated(backend, "high") == where
    stop(backend, f"on-{where}")
    assert backend.until_bound(1, "high") == {"high": where}


def test_each_of_several_preemptors_has_its_own_victim(backend: Backend, scheduler: Scheduler) -> None:
    full(backend, *"abcd")
    names = [f"high-{at}" for at in range(3)]
    backend.create(*(ranked(name, HIGH, cpu="2") for name in names))
    backend.create(*(ranked(f"late-{at}", LOW, cpu="2") for at in range(3)))
    where = {name: until_nominated(backend, name) for name in names}
    assert len(set(where.values())) == 3
    victims = until_terminating(backend, 3)
    for victim in victims:
        stop(backend, victim["metadata"]["name"])
    assert backend.until_bound(3, "high-") == where
    another_round(backend)
    assert len(backend.bound("on-")) == 1
    assert backend.bound("late-") == {}
    assert len(preempted(backend)) == 3


def test_a_nominated_pod_is_placed_elsewhere_if_it_fits_there_first(backend: Backend, scheduler: Scheduler) -> None:
    full(backend, "a")
    nominated(backend, "high")
    backend.create(node("b", cpu="2"))
    assert backend.until_bound(1, "high") == {"high": "b"}
    backend.create(ranked("next", LOW, cpu="2"))
    stop(backend, "on-a")
    assert backend.until_bound(1, "next") == {"next": "a"}


def test_a_pod_whose_node_is_removed_is_placed_on_another_one(backend: Backend, scheduler: Scheduler) -> None:
    full(backend, "a")
    nominated(backend, "high")
    backend.delete(NODES, "a")
    until_not_nominated(backend, "high")
    backend.create(node("b", cpu="2"))
    assert backend.until_bound(1, "high") == {"high": "b"}
    assert preempted(backend) == ["on-a"]


def test_a_pod_whose_node_is_removed_preempts_on_another_one(backend: Backend, scheduler: Scheduler) -> None:
    full(backend, "a", "b")
    first = nominated(backend, "high")
    backend.delete(NODES, first)
    second = until_nominated(backend, "high", other_than=first)
    assert {first, second} == {"a", "b"}
    until_terminating(backend, 1, f"on-{second}")
    stop(backend, f"on-{second}")
    assert backend.until_bound(1, "high") == {"high": second}
    assert preempted(backend) == [f"on-{first}", f"on-{second}"]


def test_the_capacity_is_for_others_if_the_preemptor_is_deleted(backend: Backend, scheduler: Scheduler) -> None:
    full(backend, "a", "b")
    where = nominated(backend, "high")
    backend.create(ranked("next", LOW, cpu="2"))
    backend.until_unschedulable("next")
    backend.delete(PODS, "high")
    another_round(backend)
    assert "next" not in backend.bound()
    stop(backend, f"on-{where}")
    assert backend.until_bound(1, "next") == {"next": where}
    assert preempted(backend) == [f"on-{where}"]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_victim_that_ends_within_its_grace_period_releases_its_capacity_at_once(
    backend: Backend, scheduler: Scheduler, phase: str
) -> None:
    backend.create(node("a", cpu="2"))
    backend.until_seen_by(scheduler)
    backend.create(ranked("on-a", LOW, cpu="2", grace=LONG, restartPolicy="Never"))
    backend.until_bound(1)
    nominated(backend, "high")
    backend.finish_pod("on-a", phase)
    backend.until_bound(1, "high")
    assert [item["metadata"]["name"] for item in until_terminating(backend)] == ["on-a"]


def test_a_scheduler_that_is_killed_while_a_victim_terminates_chooses_no_other_one(
    backend: Backend, schedule: Schedule
) -> None:
    first = schedule()
    first.expected = {-signal.SIGKILL}
    full(backend, "a", "b")
    where = nominated(backend, "high")
    first.end(signal.SIGKILL)
    second = schedule()
    another_round(backend)
    backend.create(ranked("rival", NEVER, cpu="2"))
    backend.until_unschedulable("rival")
    assert preempted(backend) == [f"on-{where}"]
    assert attempts(second) == 0
    stop(backend, f"on-{where}")
    assert backend.until_bound(1, "high") == {"high": where}
    another_round(backend)
    assert preempted(backend) == [f"on-{where}"]


def test_a_scheduler_that_is_killed_before_the_deletion_decides_anew(backend: Backend, schedule: Schedule) -> None:
    """What it has written is a nomination without a victim that leaves."""
    full_pods(backend)
    backend.patch(f"{PODS}/high/status", {"status": {"nominatedNodeName": "b"}})
    schedule()
    until_terminating(backend)
    (victim,) = preempted(backend)
    where = until_nominated(backend, "high", victim.removeprefix("on-"))
    stop(backend, victim)
    assert backend.until_bound(1, "high") == {"high": where}
    assert len(preempted(backend)) == 1


def full_pods(backend: Backend) -> list[Json]:
    """Two full nodes and a pod of higher priority, without a scheduler."""
    for name in ("a", "b"):
        full_later(backend, name)
    return backend.create(ranked("high", HIGH, cpu="2"))

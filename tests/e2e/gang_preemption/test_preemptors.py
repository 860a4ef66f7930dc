"""Gangs that preempt. The cases are those of kube-scheduler's tests of pod groups; where this scheduler decides
otherwise, the test says so.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.e2e.api import Json
from tests.e2e.backends import PODS, Backend, Synthetic
from tests.e2e.conftest import SYNTHETIC
from tests.e2e.gang_preemption.full_nodes import full, lows, stop_all
from tests.e2e.objects import node
from tests.e2e.pod_groups import PodGroups
from tests.e2e.preemption import (
    HIGH,
    LONG,
    LOW,
    MID,
    NEVER,
    guard,
    none_is_evicted_for,
    preempted,
    ranked,
    until_nominated,
    until_terminating,
)
from tests.e2e.processes import Scheduler
from tests.e2e.test_constraints import HOST
from tests.e2e.test_default_spreading import ZONE

Schedule = Callable[..., Scheduler]


@pytest.mark.parametrize("minimum", [3, 0], ids=["gang", "basic"])
def test_a_group_takes_the_place_of_all_others(
    backend: Backend, scheduler: Scheduler, groups: PodGroups, minimum: int
) -> None:
    full(backend, scheduler, *lows("a", "a", "a", grace=LONG), a="3")
    backend.create(*groups.create("high", minimum).pods(3))
    for at in (1, 2, 3):
        until_nominated(backend, f"high-{at}", "a")
    assert backend.bound("high") == {}
    stop_all(backend, 3)
    backend.until_bound(3, "high")
    assert sorted(preempted(backend)) == ["low-1", "low-2", "low-3"]
    for name in ("low-1", "low-2", "low-3"):
        assert backend.until_event("Preempted", name, "on node a")["related"]["name"].startswith("high-")


def test_no_member_is_bound_before_all_victims_are_gone(
    backend: Backend, scheduler: Scheduler, groups: PodGroups
) -> None:
    full(backend, scheduler, *lows("a", "b", grace=LONG), a="1", b="1")
    backend.create(*groups.create("high", 2).pods(2))
    first, second = sorted(p["metadata"]["name"] for p in until_terminating(backend, 2))
    backend.delete(PODS, first)
    backend.create(node("c", cpu="0.5"), ranked("seen", LOW, cpu="0.5", nodeSelector={HOST: "c"}))
    backend.until_bound(1, "seen")  # by a round after that deletion
    assert backend.bound("high") == {}
    backend.delete(PODS, second)
    backend.until_bound(2, "high")


def test_what_is_free_already_saves_a_victim(backend: Backend, scheduler: Scheduler, groups: PodGroups) -> None:
    large = ranked("large", LOW, cpu="2", nodeSelector={HOST: "a"})
    small = ranked("small", LOW, cpu="1", nodeSelector={HOST: "b"})
    full(backend, scheduler, large, small, a="2", b="2")
    # one member fits beside `small`; for the other two, one victim is needed that frees two places
    backend.create(*groups.create("high", 3).pods(3))
    assert sorted(backend.until_bound(3, "high").values()) == ["a", "a", "b"]
    assert preempted(backend) == ["large"]


def test_pods_of_a_basic_group_need_only_the_victim_of_lowest_priority(
    backend: Backend, scheduler: Scheduler, groups: PodGroups
) -> None:
    """kube-scheduler evicts the one on the node where it has placed two by its scores."""
    mid = ranked("mid", MID, cpu="1", nodeSelector={HOST: "a"})
    low = ranked("low", LOW, cpu="1", nodeSelector={HOST: "b"})
    full(backend, scheduler, mid, low, a="2", b="2")
    backend.create(*groups.create("high").pods(3))
    backend.until_bound(3, "high")
    assert preempted(backend) == ["low"]


def test_a_gang_preempts_on_several_nodes(backend: Backend, scheduler: Scheduler, groups: PodGroups) -> None:
    full(backend, scheduler, *lows("a", "a", "b", "b", grace=LONG), a="2", b="2")
    backend.create(*groups.create("high", 4).pods(4))
    where = [until_nominated(backend, f"high-{at}") for at in (1, 2, 3, 4)]
    assert sorted(where) == ["a", "a", "b", "b"]
    stop_all(backend, 4)
    assert sorted(backend.until_bound(4, "high").values()) == ["a", "a", "b", "b"]
    assert len(preempted(backend)) == 4


@SYNTHETIC
def test_all_members_preempt_in_one_domain_of_the_topology(
    synthetic: Synthetic, scheduler: Scheduler, groups: PodGroups
) -> None:
    """Neither the free node of zone z nor the more important victims of zone x help. An API server without the feature
    gate TopologyAwareWorkloadScheduling drops the constraint."""
    zones = {"a": "x", "b": "x", "c": "y", "d": "y", "e": "z"}
    synthetic.create(*(node(name, cpu="1", labels={ZONE: zone}) for name, zone in zones.items()))
    synthetic.until_seen_by(scheduler)
    mids = [ranked(f"mid-{where}", MID, cpu="1", nodeSelector={HOST: where}) for where in "ab"]
    synthetic.create(*mids, *lows("c", "d", grace=LONG))
    synthetic.until_bound(4)
    synthetic.until_seen_by(scheduler)
    topology = {"topology": [{"key": ZONE}]}
    synthetic.create(*groups.create("high", 2, schedulingConstraints=topology).pods(2))
    assert sorted(until_nominated(synthetic, f"high-{at}") for at in (1, 2)) == ["c", "d"]
    stop_all(synthetic, 2)
    assert sorted(synthetic.until_bound(2, "high").values()) == ["c", "d"]
    assert sorted(preempted(synthetic)) == ["low-1", "low-2"]


def test_no_pod_is_evicted_for_a_gang_that_does_not_fit_anyway(
    backend: Backend, scheduler: Scheduler, groups: PodGroups
) -> None:
    full(backend, scheduler, ranked("high", HIGH, cpu="1"), *lows("a", "a"), a="3")
    backend.create(*groups.create("mid", 3, priority=MID).pods(3))
    none_is_evicted_for(backend, scheduler, "mid-1", "mid-2", "mid-3")
    backend.until_event("FailedScheduling", "mid-1", "no evictions or moves help: at most 2 of 3 would fit")
    assert preempted(backend) == []
    assert len(backend.bound()) == 3


def test_the_victims_of_a_gang_are_those_of_lowest_priority(
    backend: Backend, scheduler: Scheduler, groups: PodGroups
) -> None:
    full(backend, scheduler, ranked("mid", MID, cpu="1"), *lows("a", "a"), a="3")
    backend.create(*groups.create("high", 2).pods(2))
    backend.until_bound(2, "high")
    assert sorted(preempted(backend)) == ["low-1", "low-2"]


def test_a_gang_preempts_for_as_many_members_as_possible(
    backend: Backend, scheduler: Scheduler, groups: PodGroups
) -> None:
    high = [ranked(f"high-{at}", HIGH, cpu="1", nodeSelector={HOST: where}) for at, where in enumerate("cd")]
    full(backend, scheduler, *lows("a", "b"), *high, a="1", b="1", c="1", d="1")
    backend.create(*groups.create("mid", 1, priority=MID).pods(3))
    backend.until_bound(2, "mid")
    (waits,) = {"mid-1", "mid-2", "mid-3"} - set(backend.bound("mid"))
    backend.until_unschedulable(waits)
    assert sorted(preempted(backend)) == ["low-1", "low-2"]


@pytest.mark.parametrize("minimum", [2, 0], ids=["gang", "basic"])
def test_a_group_that_never_preempts(backend: Backend, scheduler: Scheduler, groups: PodGroups, minimum: int) -> None:
    if groups.version == "v1alpha2":
        pytest.skip("PodGroups of this version have no preemption policy")
    full(backend, scheduler, *lows("a", "a"), a="2")
    # a real server takes the policy from the class
    group = groups.create("high", minimum, priority=NEVER, preemptionPolicy="Never")
    backend.create(*group.pods(2, priority=HIGH))
    none_is_evicted_for(backend, scheduler, "high-1", "high-2")
    assert preempted(backend) == []


def test_a_gang_whose_pods_never_preempt(backend: Backend, scheduler: Scheduler, groups: PodGroups) -> None:
    full(backend, scheduler, *lows("a", "a"), a="2")
    backend.create(*groups.create("high", 2, priority=NEVER).pods(2))
    none_is_evicted_for(backend, scheduler, "high-1", "high-2")
    assert preempted(backend) == []


# -- disruption budgets ----------------------------------------------------------------------------------------------


def guarded(name: str) -> Json:
    return ranked(name, LOW, cpu="1", metadata={"labels": {"app": "guarded"}})


@pytest.mark.parametrize("flags", [(), ("--preempt-beyond-budgets",)], ids=["within budgets", "beyond budgets"])
def test_a_gang_spares_pods_whose_budget_allows_no_disruption(
    backend: Backend, schedule: Schedule, groups: PodGroups, flags: tuple[str, ...]
) -> None:
    scheduler = schedule(*flags)
    full(backend, scheduler, guarded("guarded-1"), guarded("guarded-2"), *lows("a"), a="3")
    guard(backend, {"app": "guarded"})
    backend.create(*groups.create("high", 2).pods(2, cpu="500m"))
    backend.until_bound(2, "high")
    assert preempted(backend) == ["low-1"]


def test_a_gang_waits_for_a_budget_unless_budgets_are_a_preference(
    backend: Backend, schedule: Schedule, groups: PodGroups
) -> None:
    scheduler = schedule()
    full(backend, scheduler, guarded("guarded-1"), guarded("guarded-2"), a="2")
    guard(backend, {"app": "guarded"}, allowed=1)
    backend.create(*groups.create("high", 2).pods(2))
    none_is_evicted_for(backend, scheduler, "high-1", "high-2")
    assert preempted(backend) == []
    scheduler.end()
    schedule("--preempt-beyond-budgets")
    backend.until_bound(2, "high")
    assert sorted(preempted(backend)) == ["guarded-1", "guarded-2"]

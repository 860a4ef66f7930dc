"""Gangs that preempt, and gangs that are preempted. The cases are those of kube-scheduler's tests of pod groups; where
this scheduler decides otherwise, the test says so.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pytest

from tests.e2e.api import Json
from tests.e2e.backends import PODS, Backend, Synthetic
from tests.e2e.conftest import SYNTHETIC
from tests.e2e.objects import node
from tests.e2e.pod_groups import Group, PodGroups, defined, served
from tests.e2e.preemption import (
    HIGH,
    LONG,
    LOW,
    MID,
    NEVER,
    define_priorities,
    guard,
    none_is_evicted_for,
    preempted,
    ranked,
    until_nominated,
    until_terminating,
)
from tests.e2e.processes import Scheduler, kill_and_see
from tests.e2e.test_constraints import HOST
from tests.e2e.test_default_spreading import ZONE
from tests.e2e.test_restarts import LEASE

Schedule = Callable[..., Scheduler]


@pytest.fixture(scope="module", autouse=True)
def _pod_groups(server: Backend) -> Iterator[None]:
    with defined(server):
        yield


@pytest.fixture
def groups(backend: Backend) -> Iterator[PodGroups]:
    define_priorities(backend)
    groups = PodGroups(backend, served(backend))
    try:
        yield groups
        groups.check()
    finally:
        groups.clean()


def full(backend: Backend, scheduler: Scheduler, *pods: Json, **nodes: str) -> None:
    """Nodes with so many cpus, and these pods on them."""
    backend.create(*(node(name, cpu=cpu) for name, cpu in nodes.items()))
    backend.until_seen_by(scheduler)
    backend.create(*pods)
    backend.until_bound(len(pods))
    backend.until_seen_by(scheduler)


def lows(*nodes: str, cpu: str = "1", grace: int = 0) -> list[Json]:
    """Single pods low-1, low-2, ..., each for the node named at its place."""
    named = enumerate(nodes, start=1)
    return [ranked(f"low-{at}", LOW, cpu=cpu, grace=grace, nodeSelector={HOST: where}) for at, where in named]


def stop_all(backend: Backend, count: int) -> None:
    """Waits for so many terminating pods, whose containers then have stopped."""
    backend.delete(PODS, *(p["metadata"]["name"] for p in until_terminating(backend, count)))


# -- gangs as preemptors ---------------------------------------------------------------------------------------------


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


# -- gangs as victims ------------------------------------------------------------------------------------------------


def running(backend: Backend, scheduler: Scheduler, group: Group, count: int) -> None:
    """A node `a` that is full of members of the group."""
    full(backend, scheduler, *group.pods(count), a=str(count))


@pytest.mark.parametrize("minimum", [3, 0], ids=["gang", "basic"])
@pytest.mark.parametrize("single", [True, False], ids=["for a single pod", "for a gang"])
def test_a_group_that_is_disrupted_as_a_whole_goes_entirely(
    backend: Backend, scheduler: Scheduler, groups: PodGroups, minimum: int, single: bool
) -> None:
    low = groups.create("low", minimum, priority=LOW, whole=True)
    running(backend, scheduler, low, 3)
    pods = [ranked("high-1", HIGH, cpu="1")] if single else groups.create("high", 1).pods(1)
    backend.create(*pods)
    assert backend.until_bound(1, "high") == {"high-1": "a"}
    assert sorted(preempted(backend)) == ["low-1", "low-2", "low-3"]
    found = groups.until_condition("low", "DisruptionTarget", "True")
    assert found["reason"] == "PreemptionByScheduler"


def test_a_gang_loses_what_is_above_its_minimum_first(
    backend: Backend, scheduler: Scheduler, groups: PodGroups
) -> None:
    low = groups.create("low", 2, priority=LOW)
    running(backend, scheduler, low, 4)
    backend.create(*groups.create("high", 2).pods(2))
    backend.until_bound(2, "high")
    assert len(preempted(backend)) == 2
    assert len(backend.bound("low")) == 2


def test_a_gang_that_would_be_below_its_minimum_goes_entirely(
    backend: Backend, scheduler: Scheduler, groups: PodGroups
) -> None:
    low = groups.create("low", 3, priority=LOW)
    running(backend, scheduler, low, 3)
    backend.create(ranked("high", HIGH, cpu="1"))
    backend.until_bound(1, "high")
    backend.pods.until(lambda pods: len(low.members(pods)) == 0, "end of the gang")
    assert len(preempted(backend)) == 3


def test_a_single_pod_is_a_better_victim_than_a_gang(backend: Backend, scheduler: Scheduler, groups: PodGroups) -> None:
    low = groups.create("low", 2, priority=LOW, whole=True)
    single = ranked("single", LOW, cpu="1", nodeSelector={HOST: "b"})
    full(backend, scheduler, *low.pods(2, nodeSelector={HOST: "a"}), single, a="2", b="1")
    backend.create(ranked("high", HIGH, cpu="1"))
    backend.until_bound(1, "high")
    assert preempted(backend) == ["single"]


def test_victims_of_lower_priority_are_not_spared_for_a_gang_of_higher_priority(
    backend: Backend, scheduler: Scheduler, groups: PodGroups
) -> None:
    mid = groups.create("mid", 1, priority=MID, whole=True)
    low = ranked("low", LOW, cpu="1", nodeSelector={HOST: "c"})
    full(backend, scheduler, low, a="1", b="1", c="1")
    backend.create(*mid.pods(2))
    backend.until_bound(3)
    backend.until_seen_by(scheduler)
    backend.create(*groups.create("high", 3).pods(3))
    backend.until_bound(3, "high")
    assert sorted(preempted(backend)) == ["low", "mid-1", "mid-2"]


def test_a_gang_of_higher_priority_stays(backend: Backend, scheduler: Scheduler, groups: PodGroups) -> None:
    low = groups.create("low", 2, priority=LOW, whole=True)
    high = groups.create("high", 2, priority=HIGH, whole=True)
    pods = [*low.pods(2, nodeSelector={HOST: "a"}), *high.pods(2, nodeSelector={HOST: "b"})]
    full(backend, scheduler, *pods, a="2", b="2")
    backend.create(*groups.create("mid", 1, priority=MID).pods(3))
    backend.until_bound(2, "mid")
    assert sorted(preempted(backend)) == ["low-1", "low-2"]
    assert len(backend.bound("high")) == 2


# -- priorities of groups --------------------------------------------------------------------------------------------


def test_a_group_of_higher_priority_preempts_although_its_pods_have_a_lower_one(
    backend: Backend, scheduler: Scheduler, groups: PodGroups
) -> None:
    victims = groups.create("victim", 3, priority=LOW, whole=True)
    full(backend, scheduler, *victims.pods(3, priority=HIGH), a="3")
    backend.create(*groups.create("preemptor", 1, priority=HIGH).pods(1, priority=LOW))
    backend.until_event("GangInvalid", "preemptor-1", "the pod group has 1000000000, which applies")
    backend.until_bound(1, "preemptor")
    assert sorted(preempted(backend)) == ["victim-1", "victim-2", "victim-3"]


def test_a_group_of_lower_priority_waits_although_its_pods_have_a_higher_one(
    backend: Backend, scheduler: Scheduler, groups: PodGroups
) -> None:
    residents = groups.create("resident", 3, priority=HIGH, whole=True)
    full(backend, scheduler, *residents.pods(3, priority=LOW), a="3")
    backend.create(*groups.create("waits", 1, priority=LOW).pods(1, priority=HIGH))
    none_is_evicted_for(backend, scheduler, "waits-1")
    assert preempted(backend) == []


# -- failures in the middle ------------------------------------------------------------------------------------------

SIZE, FIRST = 6, 2
"""Members of the gang, and how many of them are deleted before the failure."""


def half_evicted(synthetic: Synthetic, groups: PodGroups, scheduler: Scheduler, whole: bool) -> Group:
    """A single pod preempts a gang; after some deletions the API server refuses all others. What is deleted by then
    suffices for the pod, so that the places of the others are not needed."""
    low = groups.create("low", SIZE, priority=LOW, whole=whole)
    running(synthetic, scheduler, low, SIZE)
    deletions = {"verbs": ["delete"], "resources": ["pods"]}
    rules = [{**deletions, "latency_ms": 1, "first": FIRST}, {**deletions, "rate_429": 1.0, "retry_after_s": 1}]
    synthetic.faults({"rules": rules})
    synthetic.create(ranked("high", HIGH, cpu="1"))
    synthetic.pods.until(lambda pods: len(low.members(pods)) == SIZE - FIRST, f"deletion of {FIRST} members")
    assert len(preempted(synthetic)) == SIZE
    return low


@SYNTHETIC
@pytest.mark.parametrize("whole", [True, False], ids=["disrupted as a whole", "below its minimum"])
@pytest.mark.parametrize("standby", [True, False], ids=["a standby takes over", "it is started again"])
def test_a_leader_that_is_killed_in_the_middle_leaves_no_part_of_a_gang(
    synthetic: Synthetic, schedule: Schedule, groups: PodGroups, standby: bool, whole: bool
) -> None:
    leader = schedule(*LEASE)
    leader.until_says("leading: ")
    other = schedule(*LEASE) if standby else None
    low = half_evicted(synthetic, groups, leader, whole)
    leader.expected = {-signal.SIGKILL}
    leader.end(signal.SIGKILL)
    assert len(synthetic.bound("low")) == SIZE - FIRST
    synthetic.faults({"clear": True})
    if other is None:
        other = schedule(*LEASE)
    other.until_says("leading: ")
    synthetic.until_bound(1, "high")
    synthetic.pods.until(lambda pods: not low.members(pods), "end of the gang")
    deletions = [e["uid"] for e in synthetic.api("GET", "/_audit")["entries"] if e["what"] == "delete"]
    assert len(deletions) == len(set(deletions))


@SYNTHETIC
@pytest.mark.parametrize("whole", [True, False], ids=["disrupted as a whole", "below its minimum"])
def test_a_flow_service_that_is_killed_in_the_middle_leaves_no_part_of_a_gang(
    synthetic: Synthetic, schedule: Schedule, groups: PodGroups, whole: bool
) -> None:
    scheduler = schedule()
    low = half_evicted(synthetic, groups, scheduler, whole)
    kill_and_see(scheduler.firmament_pid)
    synthetic.faults({"clear": True})
    synthetic.until_bound(1, "high")
    synthetic.pods.until(lambda pods: not low.members(pods), "end of the gang")
    assert scheduler.metric("poseidon_engine_resyncs_total") >= 2


@SYNTHETIC
def test_a_gang_whose_preemptor_goes_away_in_the_middle_goes_entirely(
    synthetic: Synthetic, scheduler: Scheduler, groups: PodGroups
) -> None:
    low = half_evicted(synthetic, groups, scheduler, whole=True)
    synthetic.faults({"clear": True})
    synthetic.delete(PODS, "high")
    synthetic.pods.until(lambda pods: not low.members(pods), "end of the gang")

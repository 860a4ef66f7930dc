"""Gangs that are preempted, also when a process fails in the middle.

Cases without failures are those of kube-scheduler's tests of pod groups; where this scheduler decides otherwise, the
test says so.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from tests.e2e.backends import PODS, Backend, Synthetic
from tests.e2e.conftest import SYNTHETIC
from tests.e2e.gang_preemption.full_nodes import full, running
from tests.e2e.pod_groups import Group, PodGroups
from tests.e2e.preemption import HIGH, LOW, MID, none_is_evicted_for, preempted, ranked
from tests.e2e.processes import Scheduler, kill_and_see
from tests.e2e.test_constraints import HOST
from tests.e2e.test_restarts import LEASE

Schedule = Callable[..., Scheduler]


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
    before = len(scheduler.lines)
    kill_and_see(scheduler.firmament_pid)
    synthetic.faults({"clear": True})
    synthetic.until_bound(1, "high")
    synthetic.pods.until(lambda pods: not low.members(pods), "end of the gang")
    scheduler.until_says("synchronised the flow service", after=before)


@SYNTHETIC
def test_a_gang_whose_preemptor_goes_away_in_the_middle_goes_entirely(
    synthetic: Synthetic, scheduler: Scheduler, groups: PodGroups
) -> None:
    low = half_evicted(synthetic, groups, scheduler, whole=True)
    synthetic.faults({"clear": True})
    synthetic.delete(PODS, "high")
    synthetic.pods.until(lambda pods: not low.members(pods), "end of the gang")

"""Events about fields, labels and annotations that have no effect, or that keep pods from running."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from poseidon_py.app.gang_reports import GangReports
from poseidon_py.app.pod_problems import ProblemReports
from poseidon_py.feed.update_rows import describe_pod
from poseidon_py.rounds.leadership import Leadership
from poseidon_py.state.gangs.by_pod_group import VOLCANO
from poseidon_py.state.store import Store
from tests.poseidon_py.builders import pod
from tests.poseidon_py.state.gangs.builders import owner_or_group

PRIORITY = {"volcano.sh/task-priority": "10"}
REPORTED = "annotation volcano.sh/task-priority: has no effect: spec.priorityClassName of the pods orders them"


class Reporter:
    def __init__(self):
        self.remarks: list[tuple[str, str, str]] = []
        self.failures: list[tuple[str, str]] = []

    def remark(self, known, reason, message):
        self.remarks.append((known.name, reason, message))

    def remark_on_object(self, *what):
        self.remarks.append((what[3], what[1], what[5]))

    def failed(self, known, message):
        self.failures.append((known.name, message))


@pytest.fixture
def world():
    """A store whose problems are reported by a leader."""
    store, reporter, leadership = Store(["poseidon"]), Reporter(), Leadership()
    leadership.lead()
    problems = ProblemReports(store, cast("Any", reporter), leadership)
    store.problems.subscribe(problems)
    return SimpleNamespace(store=store, reporter=reporter, leadership=leadership, problems=problems)


def observe(store, name, **fields):
    store.observe_pod(pod(name, **fields))
    describe_pod(store, store.pods[f"uid-{name}"])


def test_an_annotation_without_effect_is_told_once_for_the_pods_of_an_owner(world):
    for name in "abc":
        observe(world.store, name, annotations=PRIORITY, owner="" if name == "c" else "job")
    assert world.reporter.remarks == [("a", "NotHonoured", REPORTED), ("c", "NotHonoured", REPORTED)]
    assert world.store.pods["uid-b"].described.reported == (REPORTED,)


def test_pods_of_other_schedulers_are_not_told(world):
    observe(world.store, "a", annotations=PRIORITY, scheduler="volcano")
    assert world.reporter.remarks == []


def test_a_new_leader_tells_what_was_observed_before(world):
    world.leadership.stand_by()
    observe(world.store, "a", annotations=PRIORITY)
    assert world.reporter.remarks == []
    world.leadership.lead()
    world.problems.lead()
    assert world.reporter.remarks == [("a", "NotHonoured", REPORTED)]


def test_a_pod_with_a_wish_that_cannot_be_kept_is_not_placed(world):
    observe(world.store, "a", annotations={"volcano.sh/numa-topology-policy": "single-numa-node"})
    assert world.store.pods["uid-a"].described.class_id == 0
    [(name, why)] = world.reporter.failures
    assert name == "a"
    assert "annotation volcano.sh/numa-topology-policy: NUMA nodes are not read, so the pod waits" in why


def test_a_bound_pod_with_such_a_wish_counts_as_it_is(world):
    observe(world.store, "a", annotations={"volcano.sh/numa-topology-policy": "restricted"}, node="n")
    assert world.store.pods["uid-a"].described.class_id != 0
    assert world.reporter.failures == []


def test_a_pod_of_the_workload_api_of_1_35_is_refused(world):
    """spec.workloadRef of scheduling.k8s.io/v1alpha1: its pods would be placed one by one."""
    observe(world.store, "a", spec={"workloadRef": {"name": "w", "podGroup": "g"}})
    assert "spec.workloadRef.name" in world.store.pods["uid-a"].described.problem or (
        "spec.workloadRef.podGroup" in world.store.pods["uid-a"].described.problem
    )


def test_a_group_is_told_once_what_has_no_effect(world):
    reports = GangReports(
        world.store,
        cast("Any", world.reporter),
        cast("Any", None),
        world.leadership,
        lambda resource: ("v1beta1", "PodGroup"),
    )
    tier = {"minMember": 2, "networkTopology": {"mode": "soft", "highestTierAllowed": 1}}
    event = (
        "g",
        "PodGroup",
        "spec.networkTopology.highestTierAllowed: has no effect: tiers of HyperNodes are not read",
    )
    for minimum in (2, 3):
        group = owner_or_group(VOLCANO, spec={**tier, "minMember": minimum})
        reports.object_changed(VOLCANO, group, gone=False)
    assert world.reporter.remarks == [event]
    reports.lead()
    assert world.reporter.remarks == [event, event]
    reports.object_changed(VOLCANO, group, gone=True)
    reports.lead()
    assert world.reporter.remarks == [event, event]

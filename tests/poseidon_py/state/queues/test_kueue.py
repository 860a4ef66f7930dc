"""Kueue's objects as a tree of queues."""

import pytest

from poseidon_py.describe.queues.model import Queue, Quota, Sharing, Stop, Victims, id_of
from poseidon_py.kube.quantity import PODS
from protos.gen import flow_pb2
from tests.poseidon_py.state.queues.kueue_objects import LABEL, cluster_queue, flavor, group, kueue_rig, simple

PLENTY = 2**40


@pytest.fixture
def rig():
    return kueue_rig()


def test_a_cluster_queue_becomes_a_queue_with_its_quotas(rig):
    rig.put("ResourceFlavor", "spot", {"nodeLabels": {"tier": "spot"}})
    cluster_queue(
        rig,
        "team-a",
        group(
            flavor("spot", cpu={"nominalQuota": 9, "borrowingLimit": "500m"}, memory={"nominalQuota": "36Gi"}),
            flavor("on-demand", cpu={"nominalQuota": "1", "lendingLimit": "0"}, memory={"nominalQuota": "1e3"}),
        ),
        group(flavor("on-demand", **{"nvidia.com/gpu": {"nominalQuota": 8}}), covered=["nvidia.com/gpu"]),
        cohortName="all",
        queueingStrategy="StrictFIFO",
        fairSharing={"weight": "2500m"},
        preemption={
            "withinClusterQueue": "LowerOrNewerEqualPriority",
            "reclaimWithinCohort": "Any",
            "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 100},
        },
    )
    assert rig.tree()["clusterqueue/team-a"] == Queue(
        "clusterqueue/team-a",
        "team-a",
        "cohort/all",
        (
            Quota("spot", "cpu", 9000, borrowing_limit=500),
            Quota("spot", "memory", 36 * 2**30),
            Quota("on-demand", "cpu", 1000, lending_limit=0),
            Quota("on-demand", "memory", 1000),
            Quota("on-demand", "nvidia.com/gpu", 8),
            Quota("spot", PODS, PLENTY, implied=True),
            Quota("on-demand", PODS, PLENTY, implied=True),
        ),
        (("cpu", "memory", PODS), ("nvidia.com/gpu",)),
        weight=2.5,
        within=Victims.LOWER_OR_NEWER_EQUAL_PRIORITY,
        reclaim=Victims.ANY,
        borrow_within=Victims.LOWER_PRIORITY,
        borrow_within_threshold=100,
        strict_fifo=True,
        unlimited=False,
    )
    assert rig.tree()["cohort/all"] == Queue("cohort/all", "all", unlimited=False)
    assert {each.name: each.labels for each in rig.queues.tree.flavors} == {
        "spot": (("tier", "spot"),),
        "on-demand": (("tier", "on-demand"),),
    }
    assert rig.queues.tree.rules.sharing is Sharing.FAIR
    assert rig.problems() == {}


def test_the_fields_of_v1beta1_have_the_same_meaning(rig):
    simple(rig, cohort="old")
    rig.put("Cohort", "old", {"parent": "root"})
    tree = rig.tree()
    assert tree["clusterqueue/team-a"].parent == "cohort/old"
    assert tree["cohort/old"].parent == "cohort/root"
    assert "cohort/root" in tree
    assert rig.queues.tree.rules.sharing is Sharing.CLASSICAL


def test_a_quota_for_pods_is_not_replaced(rig):
    cluster_queue(rig, "q", group(flavor("on-demand", pods={"nominalQuota": 5}), covered=["pods"]))
    assert rig.tree()["clusterqueue/q"].quotas == (Quota("on-demand", PODS, 5),)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param(
            {"queueingStrategy": "Fifo"},
            "spec.queueingStrategy: 'Fifo' is not valid and is ignored; give BestEffortFIFO, StrictFIFO",
            id="strategy",
        ),
        pytest.param(
            {"stopPolicy": 3},
            "spec.stopPolicy: 3 is not valid, so the queue is closed; give None, Hold, HoldAndDrain",
            id="stop",
        ),
        pytest.param(
            {"preemption": {"withinClusterQueue": "Any"}},
            "spec.preemption.withinClusterQueue: 'Any' is not valid, so the queue is closed; "
            "give Never, LowerPriority, LowerOrNewerEqualPriority",
            id="within",
        ),
        pytest.param(
            {"preemption": []},
            "spec.preemption: [] is not valid, so the queue is closed; give a mapping",
            id="preemption",
        ),
        pytest.param(
            {"preemption": {"borrowWithinCohort": {"policy": "LowerPriority"}}},
            "spec.preemption.borrowWithinCohort.policy: LowerPriority has no effect while reclaimWithinCohort is "
            "Never; set that, too",
            id="borrow",
        ),
        pytest.param(
            {"fairSharing": {"weight": "-1"}},
            "spec.fairSharing.weight: '-1' is not valid and is ignored; give a number of at least 0",
            id="weight",
        ),
        pytest.param(
            {"namespaceSelector": None},
            "spec.namespaceSelector: is missing, so no namespace may use the queue; give {} for all namespaces",
            id="no selector",
        ),
        pytest.param(
            {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}},
            "spec.namespaceSelector.matchExpressions: operator 'Gt' is not valid; give In, NotIn, Exists, "
            "DoesNotExist; it selects nothing",
            id="selector",
        ),
        pytest.param(
            {"flavorFungibility": {"whenCanBorrow": "Never"}},
            "spec.flavorFungibility.whenCanBorrow: 'Never' is not valid and is ignored; give MayStopSearch, Borrow, "
            "TryNextFlavor",
            id="fungibility",
        ),
        pytest.param(
            {"admissionChecksStrategy": {"admissionChecks": [{"name": "a"}]}},
            "spec.admissionChecksStrategy.admissionChecks[].name: admission checks are not run here, so the queue "
            "takes no pods, as in Kueue without the check's controller",
            id="checks",
        ),
        pytest.param(
            {"cohortName": 5}, "spec.cohortName: 5 is not valid, so the queue is closed; give a text", id="cohort"
        ),
        pytest.param(
            {"resourceGroups": {}},
            "spec.resourceGroups: {} is not valid, so the queue is closed; give a list",
            id="groups",
        ),
        pytest.param(
            {"resourceGroups": [group(flavor("on-demand", cpu={"nominalQuota": "a"}))]},
            "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: 'a' is not valid, so the queue is closed; "
            "give a quantity like 8, 500m or 64Gi",
            id="quantity",
        ),
        pytest.param(
            {"resourceGroups": [group(flavor("on-demand", cpu={"nominalQuota": "-1"}))]},
            "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: '-1' is not valid, so the queue is closed; "
            "give 0 or more",
            id="negative",
        ),
        pytest.param(
            {"resourceGroups": [group(flavor("on-demand", gpu={"nominalQuota": "1"}))]},
            "spec.resourceGroups[0].flavors[0].resources[0].name: 'gpu' is not in coveredResources, so its quota is "
            "ignored; add it there",
            id="not covered",
        ),
        pytest.param(
            {"resourceGroups": [group({"resources": []})]},
            "spec.resourceGroups[0].flavors[0].name: is missing, so its quotas are ignored; give the name of a "
            "ResourceFlavor",
            id="flavor without a name",
        ),
    ],
)
def test_an_invalid_field_is_named_and_the_others_count(rig, spec, problem):
    simple(rig, "other")
    good = group(flavor("on-demand", cpu={"nominalQuota": "9"}), covered=["cpu"])
    rig.put("ClusterQueue", "q", {"resourceGroups": [good], "namespaceSelector": {}, "cohortName": "c", **spec})
    assert rig.problems() == {"q": [problem]}
    if "resourceGroups" not in spec:
        assert Quota("on-demand", "cpu", 9000) in rig.tree()["clusterqueue/q"].quotas
    assert set(rig.tree()) >= {"clusterqueue/q", "clusterqueue/other"}


def test_a_queue_whose_flavor_does_not_exist_takes_no_pods(rig):
    cluster_queue(rig, "q", group(flavor("fast", cpu={"nominalQuota": 1}), covered=["cpu"]))
    assert (rig.tree()["clusterqueue/q"].stop, rig.tree()["clusterqueue/q"].quotas) == (Stop.HOLD, ())
    (declared,) = [each for each in rig.queues.declared() if each.key == "clusterqueue/q"]
    assert declared.inactive == "ResourceFlavor fast does not exist; create it or change spec.resourceGroups"
    rig.put("ResourceFlavor", "fast")
    assert rig.tree()["clusterqueue/q"].stop is Stop.NONE


def test_cohorts_in_a_cycle_are_left_out_with_what_is_below(rig):
    rig.put("Cohort", "a", {"parentName": "b"})
    rig.put("Cohort", "b", {"parentName": "a"})
    simple(rig, "in-cycle", cohortName="a")
    simple(rig, "fine", cohortName="c")
    assert set(rig.tree()) == {"clusterqueue/fine", "cohort/c"}
    problems = rig.problems()
    assert problems["a"] == ["spec.parentName: is part of the cycle a > b > a; change one of the parents"]
    assert problems["in-cycle"] == ["spec.parentName: queue a is not used; see its own problem"]
    rig.put("LocalQueue", "lq", {"clusterQueue": "in-cycle"}, namespace="default")
    rig.pod("p", labels={LABEL: "lq"})
    assert rig.problem("p") == "queue in-cycle is not used: spec.parentName: queue a is not used; see its own problem"
    rig.put("Cohort", "b", {})
    assert set(rig.tree()) >= {"clusterqueue/in-cycle", "cohort/a", "cohort/b"}
    assert rig.problem("p") == ""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, (False, False, False)),
        ({"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"}, (False, False, False)),
        ({"whenCanBorrow": "TryNextFlavor"}, (True, False, False)),
        ({"whenCanPreempt": "MayStopSearch"}, (False, True, False)),
        ({"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}, (False, True, False)),  # v1beta1
        ({"preference": "PreemptionOverBorrowing"}, (False, False, True)),
        ({"preference": "BorrowingOverPreemption"}, (False, False, False)),
    ],
)
def test_when_the_next_flavor_is_tried(rig, given, expected):
    simple(rig, flavorFungibility=given)
    (queue,) = rig.message().queues
    choice = queue.fungibility
    found = choice.next_to_avoid_borrowing, choice.preempt_before_next, choice.preempt_before_borrowing
    assert found == expected
    assert rig.problems() == {}


def test_a_problem_of_a_cohort_is_not_shown_at_the_cluster_queue_of_its_name(rig):
    simple(rig, "team", cohortName="team")
    rig.put("Cohort", "team")
    refusal = flow_pb2.Refusal(kind="queue", id="team", queue=id_of("cohort/team"), field="weight", reason="is odd")
    rig.queues.sent(1, rig.message(), [refusal])
    broken = {key: rig.queues.broken(key) for key in ("cohort/team", "clusterqueue/team")}
    assert broken == {"cohort/team": "weight: is odd", "clusterqueue/team": ""}

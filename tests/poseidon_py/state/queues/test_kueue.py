"""Kueue's objects as a tree, and the ClusterQueues of pods."""

import pytest

from poseidon_py.describe.queues.model import Queue, Quota, Sharing, Stop, Victims, id_of
from poseidon_py.kube.quantity import PODS
from tests.poseidon_py.state.queues.rig import Rig

LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"
PLENTY = 2**40


def group(*flavors, covered=("cpu", "memory")):
    return {"coveredResources": list(covered), "flavors": list(flavors)}


def flavor(name, **quotas):
    return {"name": name, "resources": [{"name": key, **value} for key, value in quotas.items()]}


def cluster_queue(rig, name, *groups, **fields):
    rig.put("ClusterQueue", name, {"resourceGroups": list(groups), "namespaceSelector": {}, **fields})


@pytest.fixture
def rig():
    rig = Rig("kueue")
    rig.put("ResourceFlavor", "on-demand", {"nodeLabels": {"tier": "on-demand"}})
    return rig


def simple(rig, name="team-a", **fields):
    cluster_queue(rig, name, group(flavor("on-demand", cpu={"nominalQuota": "9"}), covered=["cpu"]), **fields)


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
            "spec.stopPolicy: 3 is not valid and is ignored; give None, Hold, HoldAndDrain",
            id="stop",
        ),
        pytest.param(
            {"preemption": {"withinClusterQueue": "Any"}},
            "spec.preemption.withinClusterQueue: 'Any' is not valid and is ignored; "
            "give Never, LowerPriority, LowerOrNewerEqualPriority",
            id="within",
        ),
        pytest.param({"preemption": []}, "spec.preemption: [] is not valid; give a mapping", id="preemption"),
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
            "spec.admissionChecksStrategy: admission checks are not run here; Kueue's own controller runs them",
            id="checks",
        ),
        pytest.param({"cohortName": 5}, "spec.cohortName: 5 is not valid and is ignored; give a text", id="cohort"),
        pytest.param(
            {"resourceGroups": {}}, "spec.resourceGroups: {} is not valid and is ignored; give a list", id="groups"
        ),
        pytest.param(
            {"resourceGroups": [group(flavor("on-demand", cpu={"nominalQuota": "a"}))]},
            "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: 'a' is not valid and is ignored; "
            "give a quantity like 8, 500m or 64Gi",
            id="quantity",
        ),
        pytest.param(
            {"resourceGroups": [group(flavor("on-demand", cpu={"nominalQuota": "-1"}))]},
            "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: '-1' is not valid and is ignored; "
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


# -- pods ------------------------------------------------------------------------------------------------------


def test_a_pod_is_in_the_cluster_queue_of_its_local_queue(rig):
    simple(rig)
    rig.put("LocalQueue", "lq", {"clusterQueue": "team-a"}, namespace="default")
    rig.pod("p", labels={LABEL: "lq"})
    rig.pod("elsewhere", namespace="other", labels={LABEL: "lq"})
    rig.pod("free")
    assert rig.sent("p").queue == id_of("clusterqueue/team-a")
    assert rig.sent("free").queue == 0
    assert rig.problem("p") == ""
    assert rig.sent("elsewhere").queue == id_of("localqueue/other/lq")
    assert rig.problem("elsewhere") == f"LocalQueue other/lq does not exist: create it or change label {LABEL}"


def test_a_local_queue_that_is_pointed_to_another_queue_moves_its_pods_only(rig):
    simple(rig, "a")
    simple(rig, "b")
    for name in ("one", "two"):
        rig.put("LocalQueue", name, {"clusterQueue": "a"}, namespace="default")
        for number in range(3):
            rig.pod(f"{name}-{number}", labels={LABEL: name})
    rig.touched.clear()
    rig.put("LocalQueue", "one", {"clusterQueue": "b"}, namespace="default")
    assert sorted(rig.touched) == ["uid-one-0", "uid-one-1", "uid-one-2"]
    assert {rig.sent(f"one-{number}").queue for number in range(3)} == {id_of("clusterqueue/b")}
    assert rig.sent("two-0").queue == id_of("clusterqueue/a")
    rig.touched.clear()
    rig.put("LocalQueue", "one", {"clusterQueue": "b"}, namespace="default", annotations={"a": "b"})
    assert rig.touched == []


def test_a_pod_that_comes_before_its_queues_follows_them(rig):
    rig.pod("p", labels={LABEL: "lq"})
    rig.put("LocalQueue", "lq", {"clusterQueue": "team-a"}, namespace="default")
    assert rig.sent("p").queue == id_of("clusterqueue/team-a")
    assert rig.problem("p") == (
        "queue team-a does not exist: create it or change spec.clusterQueue of LocalQueue default/lq"
    )
    simple(rig)
    assert rig.problem("p") == ""
    rig.drop("LocalQueue", "lq", namespace="default")
    assert rig.sent("p").queue == id_of("localqueue/default/lq")


def test_the_label_of_the_job_or_of_its_owner_counts_for_its_pods(rig):
    simple(rig)
    rig.put("LocalQueue", "lq", {"clusterQueue": "team-a"}, namespace="default")
    rig.pod("p", owner="uid-j")
    assert rig.sent("p").queue == 0
    rig.job("j", {LABEL: "lq"})
    assert rig.sent("p").queue == id_of("clusterqueue/team-a")
    rig.job("j", {})
    assert rig.sent("p").queue == 0
    rig.job("set", {LABEL: "lq"})
    rig.job("j", {}, above="uid-set")
    assert rig.sent("p").queue == id_of("clusterqueue/team-a")


def test_a_local_queue_of_the_name_default_takes_pods_without_a_label(rig):
    simple(rig)
    rig.pod("p")
    rig.put("LocalQueue", "default", {"clusterQueue": "team-a"}, namespace="default")
    assert rig.sent("p").queue == id_of("clusterqueue/team-a")
    rig.drop("LocalQueue", "default", namespace="default")
    assert rig.sent("p").queue == 0


def test_a_cluster_queue_takes_pods_of_selected_namespaces_only(rig):
    simple(rig, namespaceSelector={"matchLabels": {"team": "a"}})
    rig.namespace("default", {"team": "b"})
    rig.put("LocalQueue", "lq", {"clusterQueue": "team-a"}, namespace="default")
    rig.pod("p", labels={LABEL: "lq"})
    assert rig.sent("p").queue not in (0, id_of("clusterqueue/team-a"))
    assert rig.problem("p") == (
        "ClusterQueue team-a does not select namespace default: change its spec.namespaceSelector, the labels of the "
        "namespace, or spec.clusterQueue of LocalQueue default/lq"
    )
    rig.namespace("default", {"team": "a"})
    assert rig.sent("p").queue == id_of("clusterqueue/team-a")


def test_a_changed_selector_of_a_cluster_queue_concerns_its_pods(rig):
    rig.namespace("default", {"team": "b"})
    rig.put("LocalQueue", "lq", {"clusterQueue": "team-a"}, namespace="default")
    rig.pod("p", labels={LABEL: "lq"})
    for team, taken in (("a", False), ("b", True), ("a", False)):
        simple(rig, namespaceSelector={"matchLabels": {"team": team}})
        assert (rig.sent("p").queue == id_of("clusterqueue/team-a")) is taken


def test_a_priority_class_of_kueue_overrides_the_priority_of_the_pod(rig):
    simple(rig)
    rig.put("LocalQueue", "lq", {"clusterQueue": "team-a"}, namespace="default")
    rig.put("WorkloadPriorityClass", "high", value=1000)
    rig.pod("p", labels={LABEL: "lq", PRIORITY: "high"}, spec={"priority": 5})
    assert rig.store.classes.get(rig.sent("p").class_id).priority == 1000
    assert rig.known("p").described.priority == 1000
    rig.put("WorkloadPriorityClass", "high", value="much")
    assert rig.problems()["high"] == [
        "value: 'much' is not valid and is ignored; give a whole number from -2147483648 to 2147483647"
    ]
    assert rig.store.classes.get(rig.sent("p").class_id).priority == 5


@pytest.mark.parametrize(
    ("policy", "running"), [("Hold", "clusterqueue/team-a"), ("HoldAndDrain", "localqueue/default/lq")]
)
def test_a_stopped_local_queue_holds_its_waiting_pods_and_drains_running_ones_if_asked(rig, policy, running):
    simple(rig)
    rig.put("LocalQueue", "lq", {"clusterQueue": "team-a", "stopPolicy": policy}, namespace="default")
    rig.pod("waits", labels={LABEL: "lq"})
    rig.pod("runs", labels={LABEL: "lq"}, node="n")
    assert rig.sent("waits").queue == id_of("localqueue/default/lq")
    assert rig.sent("runs").queue == id_of(running)
    assert rig.tree()["localqueue/default/lq"].stop is {"Hold": Stop.HOLD, "HoldAndDrain": Stop.HOLD_AND_DRAIN}[policy]


def test_pods_that_wait_for_the_admission_by_kueue_are_left_alone(rig):
    simple(rig)
    rig.put("LocalQueue", "lq", {"clusterQueue": "team-a"}, namespace="default")
    rig.pod("p", labels={LABEL: "lq"}, spec={"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]})
    assert rig.sent("p") is None


def test_pods_of_other_schedulers_are_in_no_queue(rig):
    simple(rig)
    rig.put("LocalQueue", "lq", {"clusterQueue": "team-a"}, namespace="default")
    rig.pod("p", labels={LABEL: "lq"}, node="n", scheduler="default-scheduler")
    assert rig.sent("p").queue == 0


def test_our_own_label_names_a_cluster_queue_directly(rig):
    simple(rig)
    rig.pod("p", labels={"poseidon.io/queue": "team-a", LABEL: "none"})
    assert rig.sent("p").queue == id_of("clusterqueue/team-a")


# -- admission fair sharing ------------------------------------------------------------------------------------------

BY_USE = {"admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}}
CONFIGURED = """
apiVersion: config.kueue.x-k8s.io/v1beta2
admissionFairSharing:
  usageHalfLifeTime: 168h
  resourceWeights: {cpu: 2, nvidia.com/gpu: "10", memory: 0.000001}
"""


def configure(rig, text):
    data = {"controller_manager_config.yaml": text}
    rig.put("ConfigMap", "kueue-manager-config", namespace="kueue-system", data=data)


def test_local_queues_are_served_by_past_use(rig):
    simple(rig, **BY_USE)
    rig.put("LocalQueue", "a", {"clusterQueue": "team-a", "fairSharing": {"weight": "2500m"}}, namespace="default")
    rig.put("LocalQueue", "b", {"clusterQueue": "team-a"}, namespace="default")
    configure(rig, CONFIGURED)
    message = rig.message()
    assert [(each.name, each.queue, each.HasField("weight"), each.weight) for each in message.local_queues] == [
        ("default/a", id_of("clusterqueue/team-a"), True, 2.5),
        ("default/b", id_of("clusterqueue/team-a"), False, 0.0),
    ]
    assert [each.by_past_use for each in message.queues] == [True]
    assert (message.half_life_seconds, message.sampling_seconds) == (168 * 3600, 300)
    # of a millicore, a byte, a device
    assert dict(message.resource_weights) == {"cpu": 0.002, "nvidia.com/gpu": 10, "memory": 1e-6}
    rig.pod("p", labels={LABEL: "a"})
    assert rig.sent("p").local_queue == id_of("local/default/a")
    assert rig.sent("p").queue == id_of("clusterqueue/team-a")
    assert rig.problems() == {}


def test_without_a_half_life_the_mode_has_no_effect_and_says_so(rig):
    simple(rig, **BY_USE)
    assert rig.problems() == {
        "team-a": ["spec.admissionScope: has no effect, as past use does not count; give --queue-half-life SECONDS"]
    }
    rig.queues.past_use.half_life_seconds = 60.0
    simple(rig, **BY_USE)
    assert rig.problems() == {}
    assert rig.message().half_life_seconds == 60.0
    assert dict(rig.message().resource_weights) == {"cpu": 0.001}  # as if in cores
    simple(rig, admissionScope={"admissionMode": "Odd"})
    assert rig.problems()["team-a"][0].startswith("spec.admissionScope.admissionMode: 'Odd' is not valid")


@pytest.mark.parametrize("text", ["", "admissionFairSharing: 7", "a: [", "manageJobsWithoutQueueName: true"])
def test_other_configurations_do_not_count(rig, text):
    simple(rig)
    configure(rig, text)
    assert rig.message().half_life_seconds == 0.0
    assert bool(rig.problems()) is (text in ("admissionFairSharing: 7", "a: ["))


def test_a_configuration_that_is_gone_does_not_count(rig):
    simple(rig)
    configure(rig, CONFIGURED)
    rig.drop("ConfigMap", "kueue-manager-config", namespace="kueue-system")
    assert rig.message().half_life_seconds == 0.0


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


# -- topologies -----------------------------------------------------------------------------------------------------

REQUIRED, PREFERRED = "kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/podset-preferred-topology"
LEVELS = {"levels": [{"nodeLabel": "block"}, {"nodeLabel": "rack"}]}


def with_topology(rig):
    rig.put("ResourceFlavor", "on-demand", {"nodeLabels": {"tier": "on-demand"}, "topologyName": "dc"})
    simple(rig)
    rig.put("LocalQueue", "q", {"clusterQueue": "team-a"}, namespace="default")


def test_a_flavor_whose_topology_does_not_exist_closes_its_queues(rig):
    with_topology(rig)
    assert rig.tree()["clusterqueue/team-a"].stop is Stop.HOLD
    (declared,) = [each for each in rig.queues.declared() if each.key == "clusterqueue/team-a"]
    assert (declared.inactive, declared.reason) == (
        "Topology dc does not exist; create it or change spec.topologyName of ResourceFlavor on-demand",
        "TopologyNotFound",
    )
    rig.put("Topology", "dc", LEVELS)
    assert rig.tree()["clusterqueue/team-a"].stop is Stop.NONE
    rig.drop("Topology", "dc")
    assert rig.tree()["clusterqueue/team-a"].stop is Stop.HOLD


@pytest.mark.parametrize("annotation", [REQUIRED, PREFERRED])
def test_pods_name_levels_of_the_topologies_of_their_queue(rig, annotation):
    with_topology(rig)
    rig.put("Topology", "dc", LEVELS)
    rig.pod("good", labels={LABEL: "q"}, annotations={annotation: "rack"})
    rig.pod("bad", labels={LABEL: "q"}, annotations={annotation: "shelf"})
    assert rig.problem("good") == ""
    assert rig.problem("bad") == f"annotation {annotation}: shelf is no level of Topology dc; give block or rack"
    rig.put("Topology", "dc", {"levels": [{"nodeLabel": "shelf"}]})
    assert rig.problem("bad") == ""
    assert rig.problem("good").endswith("give shelf")
    rig.put("ResourceFlavor", "on-demand", {"nodeLabels": {"tier": "on-demand"}})  # no flavor has a topology
    assert rig.problem("good") == ""


def test_a_topology_without_levels_says_so(rig):
    rig.put("Topology", "dc", {"levels": [{"nodeLabel": ""}]})
    problem = "spec.levels: names no labels; give a list of nodeLabel, the widest domains first"
    assert rig.problems() == {"dc": [problem]}

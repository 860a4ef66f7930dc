"""What is not known closes: limits that cannot be read, and queues that are gone, or not in force."""

import json
import re

import pytest
import yaml

from poseidon_py.describe.queues.model import Stop, id_of
from poseidon_py.kube.queue_objects.fields import Fields, Problems
from poseidon_py.report.queue_bodies import condition_of
from poseidon_py.state.queues.registry import OPENING_DELAY, TREE
from tests.paths import ROOT
from tests.poseidon_py.state.queues.kueue_objects import simple
from tests.poseidon_py.state.queues.rig import Rig

OWN = "poseidon.io/queue"
KUEUE = "kueue.x-k8s.io/queue-name"


def quota(**fields):
    resource = {"name": "cpu", "nominalQuota": 4, **fields}
    return {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [resource]}]}]}


def waiting(kind, label):
    """A rig with a pod that names the queue q."""
    rig = Rig(kind)
    rig.pod("p", labels={label: "q"})
    return rig


# -- limits that cannot be read ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "closing"),
    [
        pytest.param({"limit": {"cpu": "lots"}}, "spec.limit.cpu: 'lots'", id="limit"),
        pytest.param({"limit": "4"}, "spec.limit: '4'", id="limit-no-mapping"),
        pytest.param({"lendingLimit": {"cpu": -1}}, "spec.lendingLimit.cpu: -1", id="lending"),
        pytest.param({"parent": 5}, "spec.parent: 5", id="parent"),
        pytest.param({"nodeSelector": {"a": 1}}, "spec.nodeSelector: ", id="nodes"),
        pytest.param({"stop": "halt"}, "spec.stop: 'halt'", id="stop"),
        pytest.param({"preemption": {"within": "Any"}}, "spec.preemption.within: 'Any'", id="preemption"),
        pytest.param({"reclaim": {"evictionsPerHour": "few"}}, "spec.reclaim.evictionsPerHour: 'few'", id="evictions"),
        pytest.param({"tenants": [{"users": "eve", "priority": 9}]}, "spec.tenants[0].users: 'eve'", id="tenants"),
        pytest.param([], "spec: []", id="no-spec"),
        pytest.param({"weight": "x"}, "", id="weight"),
        pytest.param({"guarantee": {"cpu": "x"}}, "", id="guarantee"),
        pytest.param({"priority": "x"}, "", id="priority"),
        pytest.param({"order": "lifo"}, "", id="order"),
        pytest.param({"preemptionNotice": "x"}, "", id="notice"),
    ],
)
def test_a_field_that_limits_closes_our_own_queue_if_it_cannot_be_read(spec, closing):
    rig = waiting("poseidon", OWN)
    rig.put("Queue", "q", spec)
    (declared,) = rig.queues.declared()
    condition = condition_of(declared)
    assert condition is not None
    assert declared.problems
    if not closing:
        assert (rig.tree()["queue/q"].stop, rig.problem("p"), condition["status"]) == (Stop.NONE, "", "True")
        return
    assert rig.tree()["queue/q"].stop is Stop.HOLD
    assert rig.problem("p").startswith(f"queue q is closed: {closing}")
    assert re.search(r"is not valid, so the queue is closed; give .", rig.problem("p"))
    assert (condition["status"], condition["reason"]) == ("False", "Misconfigured")
    assert condition["message"].startswith(closing)
    rig.put("Queue", "q")
    assert (rig.tree()["queue/q"].stop, rig.problem("p")) == (Stop.NONE, "")


@pytest.mark.parametrize(
    ("mode", "kind", "spec", "closing"),
    [
        pytest.param("kueue", "ClusterQueue", quota(borrowingLimit="x"), "spec.resourceGroups[0]", id="kueue"),
        pytest.param("kai", "KaiQueue", {"resources": {"cpu": {"limit": "x"}}}, "spec.resources.cpu.limit", id="kai"),
        pytest.param("volcano", "VolcanoQueue", {"capability": {"cpu": "x"}}, "spec.capability.cpu", id="volcano"),
    ],
)
def test_a_limit_that_cannot_be_read_closes_the_queues_of_others_too(mode, kind, spec, closing):
    rig = waiting(mode, OWN)
    if mode == "kueue":
        rig.put("ResourceFlavor", "f")
        spec = {"namespaceSelector": {}, **spec}
    rig.put(kind, "q", spec)
    (queue,) = rig.tree().values()
    assert queue.stop is Stop.HOLD
    assert rig.problem("p").startswith(f"queue q is closed: {closing}")
    assert "'x' is not valid, so the queue is closed; give" in rig.problem("p")


def test_an_elastic_quota_that_cannot_be_read_closes_its_namespace():
    rig = Rig("elasticquota")
    rig.pod("p")
    rig.put("ElasticQuota", "q", {"max": {"cpu": "x"}}, namespace="default")
    assert rig.problem("p").startswith("queue default/q is closed: spec.max.cpu: 'x' is not valid")


def test_a_cohort_a_flavor_or_a_local_queue_that_cannot_be_read_closes_what_depends_on_it():
    rig = waiting("kueue", KUEUE)
    rig.put("ResourceFlavor", "on-demand")
    simple(rig, cohortName="org")
    rig.put("LocalQueue", "q", {"clusterQueue": "team-a"}, namespace="default")
    assert rig.problem("p") == ""
    rig.put("Cohort", "org", quota(borrowingLimit="x"))
    assert rig.problem("p").startswith("queue org is closed: spec.resourceGroups[0]")
    rig.drop("Cohort", "org")
    rig.put("ResourceFlavor", "on-demand", {"nodeLabels": {"a": 1}})
    closed = "queue team-a is closed: ResourceFlavor on-demand cannot be used: spec.nodeLabels: "
    assert rig.problem("p").startswith(closed)
    rig.put("ResourceFlavor", "on-demand")
    rig.put("LocalQueue", "q", {"clusterQueue": "team-a", "stopPolicy": 3}, namespace="default")
    assert rig.problem("p").startswith("queue default/q is closed: spec.stopPolicy: 3 is not valid")
    assert rig.sent("p").queue == id_of("localqueue/default/q")


def test_a_file_of_yunikorn_that_cannot_be_read_keeps_its_last_content_and_closes_all_without_one():
    def file(text):
        rig.put("ConfigMap", "yunikorn-configs", namespace="yunikorn", data={"queues.yaml": text})

    rig = Rig("yunikorn")
    rig.pod("p", labels={"queue": "a"})
    rig.pod("plain")
    file("a: [")
    for name in ("p", "plain"):
        assert rig.problem(name).startswith("the queues of YuniKorn are not known: queues.yaml: is not YAML")
    file("partitions: [{name: default, queues: [{name: root, queues: [{name: a}]}]}]")
    assert (rig.problem("p"), rig.sent("plain").queue) == ("", 0)
    file("a: [")
    assert (rig.problem("p"), rig.key("p")) == ("", "yunikorn/root.a")
    ((problem,),) = rig.problems().values()
    assert problem.endswith("its last valid content counts until then")
    file("partitions: [{queues: [{name: root, queues: [{name: a, resources: {max: {vcore: x}}}]}]}]")
    assert rig.problem("p").startswith("queue root.a is closed: partitions[0].queues[0].queues[0].resources.max.vcore")


def test_the_quota_of_a_namespace_that_cannot_be_read_closes_its_queue():
    rig = Rig("yunikorn")
    text = "partitions: [{queues: [{name: root}], placementrules: [{name: tag, value: namespace, create: true}]}]"
    rig.put("ConfigMap", "yunikorn-configs", namespace="yunikorn", data={"queues.yaml": text})
    rig.namespace("default", annotations={"yunikorn.apache.org/namespace.max.cpu": "many"})
    rig.pod("p")
    assert rig.problem("p").startswith("queue root.default is closed: namespace default: metadata.annotations.yunikorn")


def test_the_queues_below_a_closed_one_are_closed_and_name_it():
    rig = waiting("poseidon", OWN)
    rig.put("Queue", "org", {"limit": {"cpu": "x"}})
    rig.put("Queue", "q", {"parent": "org"})
    assert rig.tree()["queue/q"].stop is Stop.HOLD
    assert rig.problem("p").startswith("queue org is closed: spec.limit.cpu: 'x' is not valid")


# -- queues that are gone, or not in force -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        pytest.param("KaiQueue", "kai.scheduler/queue", id="kai"),
        pytest.param("VolcanoQueue", "scheduling.volcano.sh/queue-name", id="volcano"),
        pytest.param("Queue", OWN, id="own"),
    ],
)
def test_a_pod_that_names_the_last_queue_of_a_kind_waits_when_that_is_deleted(kind, label):
    """With --queues auto another kind is in force then: `kubectl replace --force` of a queue opened the cluster."""
    rig = waiting("auto", label)
    rig.put(kind, "q")
    assert rig.problem("p") == ""
    rig.drop(kind, "q")
    rig.wait()
    assert rig.sent("p").queue not in (0, *(queue.id for queue in rig.queues.tree.queues))
    assert rig.problem("p") == f"queue q does not exist: create it or change label {label}"
    rig.put(kind, "q")
    assert rig.problem("p") == ""


def test_a_pod_waits_when_the_last_cluster_queue_is_deleted():
    rig = waiting("auto", KUEUE)
    rig.put("ResourceFlavor", "on-demand")
    simple(rig)
    rig.put("LocalQueue", "q", {"clusterQueue": "team-a"}, namespace="default")
    assert rig.problem("p") == ""
    rig.drop("ClusterQueue", "team-a")
    rig.wait()
    assert rig.problem("p") == (
        "queue team-a does not exist: create it or change spec.clusterQueue of LocalQueue default/q"
    )
    assert rig.sent("p").queue != 0
    rig.drop("LocalQueue", "q", namespace="default")
    assert rig.problem("p") == f"LocalQueue default/q does not exist: create it or change label {KUEUE}"


def test_a_pod_that_names_a_queue_of_a_kind_that_is_not_in_force_waits_and_is_told_so():
    rig = waiting("auto", "kai.scheduler/queue")
    rig.put("KaiQueue", "q")
    simple(rig)
    assert rig.kind == "kueue"
    assert rig.problem("p") == (
        "queue q is of kind kai, but queues of kind kueue are in force: name one of those, or run the scheduler with "
        "--queues kai"
    )
    rig.queues.set_running("kai", "kai-scheduler")  # which decides by its queues
    rig.work()
    assert rig.sent("p").queue == 0


def test_pods_that_name_no_queue_and_labels_that_can_mean_anything_concern_no_queue():
    rig = Rig("auto")
    rig.pod("plain")
    rig.pod("labelled", labels={"queue": "mail"})
    rig.pod("grouped", annotations={"scheduling.k8s.io/group-name": "g"})
    rig.group("g", {"minMember": 1, "queue": "default"})  # which Volcano creates, without limits
    assert [rig.sent(name).queue for name in ("plain", "labelled", "grouped")] == [0, 0, 0]


def test_a_queue_of_a_namespace_that_is_replaced_is_closed_in_between():
    """kubectl replace --force deletes and creates it. Nothing but the queue says that the pods are in one."""
    rig = Rig("poseidon")
    rig.namespace("default", {"team": "a"})
    rig.put("Queue", "a", {"namespaces": {"matchLabels": {"team": "a"}}})
    rig.pod("p")
    rig.drop("Queue", "a")
    assert rig.later[0][0] == OPENING_DELAY > 3.0
    assert rig.problem("p") == "queue a does not exist: create it or change spec.namespaces of the queue"
    rig.put("Queue", "a", {"namespaces": {"matchLabels": {"team": "a"}}}, uid="another")
    rig.wait()
    assert (rig.sent("p").queue, rig.problem("p")) == (id_of("queue/a"), "")
    rig.drop("Queue", "a")
    rig.wait()
    assert rig.sent("p").queue == 0


def test_a_kind_that_cannot_be_read_is_named_and_its_pods_wait():
    rig = waiting("auto", "kai.scheduler/queue")
    rig.queues.set_unreadable("kai", "403 Forbidden; allow list and watch")
    rig.work()
    assert rig.problem("p") == "queue q is not known: 403 Forbidden; allow list and watch"
    assert rig.queues.summary()["why"].endswith("queues of kind kai are not known: 403 Forbidden; allow list and watch")
    rig.queues.set_unreadable("kai", "")
    rig.put("KaiQueue", "q")
    assert rig.problem("p") == ""


# -- before it is known who runs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["auto", "kueue"])
def test_kueues_queues_are_not_taken_over_before_it_is_known_whether_kueue_runs(mode):
    rig = waiting(mode, KUEUE)
    rig.put("ResourceFlavor", "on-demand")
    rig.queues.kinds.running.clear()
    asked = []
    rig.queues.kinds.unchecked = lambda: asked.append(1)
    simple(rig)
    rig.put("LocalQueue", "q", {"clusterQueue": "team-a"}, namespace="default")
    assert asked
    assert rig.kind != "kueue"
    assert not rig.queues.kinds.writes_status or rig.kind == "poseidon"
    assert rig.problem("p") == "queue team-a waits until it is known whether the controller of kind kueue runs"
    rig.queues.set_running("kueue", "kueue-controller-manager")
    rig.work()
    assert rig.sent("p").queue == 0
    rig.queues.set_running("kueue", "")
    rig.work()
    assert (rig.kind, rig.problem("p")) == ("kueue", "")


# -- what is sent, and when --------------------------------------------------------------------------------------------


def test_a_change_of_the_tree_is_urgent_and_a_status_is_no_change():
    """A pod that was created right after `stopPolicy: Hold` was bound: the tree was sent 0.1 s later."""
    rig = Rig("poseidon")
    rig.put("Queue", "q")
    assert (list(rig.queues.queue._ready), rig.queues.queue.urgent) == ([TREE], 1)
    message = rig.message()
    rig.queues.sent(1, message, [])
    built = rig.queues.built
    rig.put("Queue", "q", status={"pending": 5})
    assert rig.queues.built is built
    assert not rig.queues.is_news(1)
    rig.put("Queue", "q", {"stop": "hold"})
    assert rig.queues.is_news(1)


# -- the definition ----------------------------------------------------------------------------------------------------


def _schema(*path):
    definition = yaml.safe_load((ROOT / "deploy" / "chart" / "definitions" / "queues.yaml").read_text())
    found = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for name in path:
        found = found["additionalProperties"] if name == "*" else found["properties"][name]
    return found


AMOUNTS = ["8", "500m", "64Gi", "1.5", ".5", "1e3", "12E", "1e-3", "lots", "-1", "", "4 ", "1Gib", "0x10", "1e", "m"]


@pytest.mark.parametrize("field", ["guarantee", "limit", "lendingLimit"])
@pytest.mark.parametrize("text", AMOUNTS)
def test_the_definition_refuses_the_amounts_that_would_close_the_queue(field, text):
    schema = _schema(field, "*")
    problems = Problems(())
    Fields({"cpu": text}, "spec.limit", problems).amount("cpu", "cpu")
    assert bool(re.search(schema["pattern"], text)) is not bool(problems.closing)
    assert schema["minimum"] == 0


DURATIONS = ["90s", "10m", "1h30m", "1.5h", "250ms", "90", "soon", "-1s", "", "1d", "1h 30m"]


@pytest.mark.parametrize(
    "path",
    [("reclaim", "minRuntime"), ("reclaim", "delay"), ("preemption", "minRuntime"), ("preemptionNotice",)],
    ids=".".join,
)
@pytest.mark.parametrize("text", DURATIONS)
def test_the_definition_refuses_the_durations_that_would_close_the_queue(path, text):
    problems = Problems(())
    Fields({"delay": text}, "spec", problems).duration("delay")
    assert bool(re.search(_schema(*path)["pattern"], text)) is not bool(problems.closing)


def test_the_patterns_are_of_the_dialect_of_the_server():
    """RE2 has no look-around and no back references."""
    text = json.dumps(yaml.safe_load((ROOT / "deploy" / "chart" / "definitions" / "queues.yaml").read_text()))
    assert "(?" not in text

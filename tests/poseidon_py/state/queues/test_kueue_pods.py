"""The ClusterQueues of pods."""

import pytest

from poseidon_py.describe.queues.model import Stop, id_of
from tests.poseidon_py.state.queues.kueue_objects import LABEL, kueue_rig, simple

PRIORITY = "kueue.x-k8s.io/priority-class"


@pytest.fixture
def rig():
    return kueue_rig()


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


def test_what_an_executor_is_owned_by_counts_for_it(rig):
    """Spark: the executors are owned by their driver, a pod, and that by the SparkApplication with the label."""
    simple(rig)
    rig.put("LocalQueue", "lq", {"clusterQueue": "team-a"}, namespace="default")
    rig.pod("executor", owner="uid-driver")
    assert rig.sent("executor").queue == 0
    rig.pod("driver", owner="uid-app")
    assert rig.sent("executor").queue == 0
    rig.job("app", {LABEL: "lq"})
    assert rig.sent("driver").queue == rig.sent("executor").queue == id_of("clusterqueue/team-a")


def test_a_priority_of_the_owner_counts_for_pods_that_name_their_queue(rig):
    simple(rig)
    rig.put("WorkloadPriorityClass", "high", value=70)
    rig.put("LocalQueue", "lq", {"clusterQueue": "team-a"}, namespace="default")
    rig.job("j", {"kueue.x-k8s.io/priority-class": "high"})
    rig.pod("p", owner="uid-j", labels={LABEL: "lq"})
    assert rig.known("p").queue.priority == 70


def test_pods_wait_for_a_priority_class_that_does_not_exist(rig):
    """Kueue does not create their workload, with an event WorkloadPriorityClassNotFound on the Job."""
    simple(rig)
    rig.put("LocalQueue", "lq", {"clusterQueue": "team-a"}, namespace="default")
    rig.job("j", {LABEL: "lq", PRIORITY: "high"})
    rig.pod("p", owner="uid-j", spec={"priority": 5})
    rig.pod("other", labels={LABEL: "lq"})
    missing = "WorkloadPriorityClass high does not exist: create it or change label kueue.x-k8s.io/priority-class"
    team_a = id_of("clusterqueue/team-a")
    assert rig.problem("p") == missing
    assert rig.sent("p").queue not in (0, team_a)
    assert rig.sent("other").queue == team_a
    rig.put("WorkloadPriorityClass", "high", value=70)
    assert rig.problem("p") == ""
    assert rig.sent("p").queue == team_a
    assert rig.known("p").queue.priority == 70
    rig.pod("p", owner="uid-j", node="n")
    rig.drop("WorkloadPriorityClass", "high")
    assert rig.sent("p").queue == team_a  # what runs goes on, and counts
    rig.pod("late", owner="uid-j")
    assert rig.problem("late") == missing


@pytest.mark.parametrize(
    ("policy", "running"), [("Hold", "clusterqueue/team-a"), ("HoldAndDrain", "localqueue/default/lq")]
)
def test_a_stopped_local_queue_stays_that_of_running_pods_without_their_priority_class(rig, policy, running):
    simple(rig)
    rig.put("LocalQueue", "lq", {"clusterQueue": "team-a", "stopPolicy": policy}, namespace="default")
    rig.pod("p", labels={LABEL: "lq", PRIORITY: "high"}, node="n")
    assert rig.sent("p").queue == id_of(running)


def test_a_priority_class_without_a_queue_is_not_looked_up(rig):
    simple(rig)
    rig.pod("p", labels={PRIORITY: "high"})
    assert rig.problem("p") == ""
    assert rig.sent("p").queue == 0


def test_a_local_queue_of_the_name_default_takes_pods_without_a_label(rig):
    simple(rig)
    rig.pod("p")
    rig.put("LocalQueue", "default", {"clusterQueue": "team-a"}, namespace="default")
    assert rig.sent("p").queue == id_of("clusterqueue/team-a")
    rig.drop("LocalQueue", "default", namespace="default")
    rig.wait()
    assert rig.sent("p").queue == 0


def test_it_is_known_for_which_resources_the_queue_of_a_pod_has_quota(rig):
    simple(rig)
    rig.put("LocalQueue", "lq", {"clusterQueue": "team-a"}, namespace="default")
    rig.pod("p", labels={LABEL: "lq"})
    rig.pod("free")
    covered = rig.queues.covered(rig.known("p"))
    assert covered is not None
    assert ("cpu" in covered, "memory" in covered) == (True, False)
    assert rig.queues.covered(rig.known("free")) is None


@pytest.mark.parametrize(
    "checks", [{"admissionChecks": ["c"]}, {"admissionChecksStrategy": {"admissionChecks": [{"name": "c"}]}}]
)
def test_pods_learn_that_a_queue_is_closed_by_its_admission_check(rig, checks):
    simple(rig, **checks)
    rig.put("LocalQueue", "lq", {"clusterQueue": "team-a"}, namespace="default")
    rig.pod("p", labels={LABEL: "lq"})
    assert rig.problem("p").startswith("queue team-a is closed: spec.admissionChecks")
    assert "admission checks are not run here" in rig.problem("p")


def test_gangs_learn_that_a_namespace_has_a_default_queue(rig):
    simple(rig)
    calls = []
    rig.queues.selected = lambda: calls.append(rig.queues.has_default("default"))
    for _ in range(2):
        rig.put("LocalQueue", "default", {"clusterQueue": "team-a"}, namespace="default")
        rig.put("LocalQueue", "lq", {"clusterQueue": "team-a"}, namespace="default")
    assert calls == [True]
    assert not rig.queues.has_default("other")
    rig.drop("LocalQueue", "default", namespace="default")
    assert calls == [True, False]


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


def test_pods_of_other_schedulers_count_where_they_name_a_queue_and_are_left_alone(rig):
    simple(rig)
    for name in ("lq", "default"):
        rig.put("LocalQueue", name, {"clusterQueue": "team-a"}, namespace="default")
    rig.pod("p", labels={LABEL: "lq"}, node="n", scheduler="default-scheduler")
    rig.pod("plain", node="n", scheduler="default-scheduler")
    rig.pod("lost", labels={LABEL: "none"}, node="n", scheduler="default-scheduler")
    assert rig.sent("p").queue == id_of("clusterqueue/team-a")
    assert rig.sent("p").unevictable
    assert rig.known("p").queue.only_counts
    assert [(rig.sent(name).queue, rig.sent(name).unevictable) for name in ("plain", "lost")] == [(0, False)] * 2


def test_our_own_label_names_a_cluster_queue_directly(rig):
    simple(rig)
    rig.pod("p", labels={"poseidon.io/queue": "team-a", LABEL: "none"})
    assert rig.sent("p").queue == id_of("clusterqueue/team-a")

"""Our own queues as a tree, and the queues of pods."""

import pytest

from poseidon_py.describe.queues.model import EVERY_NODE, Flavor, Queue, Quota, Sharing, Stop, Victims, id_of
from poseidon_py.kube.quantity import PODS
from tests.poseidon_py.state.queues.rig import Rig

LABEL = "poseidon.io/queue"


@pytest.fixture
def rig():
    return Rig("poseidon")


def queue(rig, name, **spec):
    rig.put("Queue", name, spec)


def test_every_field_arrives(rig):
    queue(rig, "org")
    queue(
        rig,
        "team",
        parent="org",
        weight=2,
        guarantee={"cpu": "4", "nvidia.com/gpu": 8},
        limit={"cpu": "4500m", "memory": "1Gi"},
        nodeSelector={"pool": "gpu"},
        reclaim={"allow": False, "minRuntime": "10m", "delay": "30s", "evictionsPerHour": 20},
        preemption={
            "within": "LowerOrNewerEqualPriority",
            "borrowWithin": {"policy": "LowerPriority", "maxPriority": 10},
            "minRuntime": "1m30s",
        },
        order="fifo",
        stop="hold",
        priority=7,
        preemptionNotice="5m",
    )
    flavor = "pool=gpu"
    assert rig.tree()["queue/team"] == Queue(
        "queue/team",
        "team",
        "queue/org",
        (
            Quota(flavor, "cpu", 4000, limit=4500),
            Quota(flavor, "nvidia.com/gpu", 8),
            Quota(flavor, "memory", limit=2**30),
            Quota(flavor, PODS, implied=True),
        ),
        (("cpu", "nvidia.com/gpu", "memory", PODS),),
        weight=2.0,
        priority=7,
        within=Victims.LOWER_OR_NEWER_EQUAL_PRIORITY,
        reclaim=Victims.ANY,
        fence=True,
        borrow_within=Victims.LOWER_PRIORITY,
        borrow_within_threshold=10,
        strict_fifo=True,
        stop=Stop.HOLD,
        preempt_min_runtime_seconds=90.0,
        reclaim_min_runtime_seconds=600.0,
        preemption_delay_seconds=30.0,
        evictions_per_hour=20,
    )
    assert rig.tree()["queue/org"] == Queue(
        "queue/org", "org", weight=1.0, within=Victims.LOWER_PRIORITY, reclaim=Victims.ANY
    )
    assert rig.queues.tree.flavors == (Flavor(flavor, (("pool", "gpu"),)),)
    assert rig.queues.tree.rules.sharing is Sharing.PROPORTIONAL
    assert rig.problems() == {}


def test_nodes_are_those_of_all_ancestors(rig):
    queue(rig, "org", nodeSelector={"region": "eu", "pool": "a"})
    queue(rig, "team", parent="org", nodeSelector={"pool": "b"}, guarantee={"cpu": 1})
    assert rig.tree()["queue/team"].quotas[0].flavor == "pool=b,region=eu"
    queue(rig, "org")
    queue(rig, "team", parent="org", guarantee={"cpu": 1})
    assert rig.tree()["queue/team"].quotas == (Quota(EVERY_NODE, "cpu", 1000),)


def test_a_queue_below_one_that_does_not_exist_waits_for_it_and_one_below_a_stopped_one_is_stopped(rig):
    queue(rig, "leaf", parent="team")
    queue(rig, "team", parent="org")
    assert rig.tree() == {}
    assert rig.problems()["team"] == ["spec.parent: queue org does not exist; create it or name another"]
    assert rig.problems()["leaf"] == ["spec.parent: queue team is not used; see its own problem"]
    queue(rig, "org", stop="drain")
    assert {key: each.stop for key, each in rig.tree().items()} == dict.fromkeys(
        ("queue/org", "queue/team", "queue/leaf"), Stop.HOLD_AND_DRAIN
    )


def test_a_queue_that_is_its_own_parent_is_left_out(rig):
    queue(rig, "a", parent="a")
    queue(rig, "b")
    assert set(rig.tree()) == {"queue/b"}
    assert rig.problems() == {"a": ["spec.parent: is part of the cycle a > a; change one of the parents"]}


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param(
            {"reclaim": {"evictionsPerHour": -1}},
            "spec.reclaim.evictionsPerHour: -1 is not valid, so the queue is closed; "
            "give a whole number from 0 to 2147483647",
            id="evictions",
        ),
        pytest.param(
            {"reclaim": {"minRuntime": "soon"}},
            "spec.reclaim.minRuntime: 'soon' is not valid, so the queue is closed; "
            "give a duration like 90s, 10m or 1h30m",
            id="duration",
        ),
        pytest.param(
            {"guarantee": {"cpu": 2}, "limit": {"cpu": 1}},
            "spec.limit.cpu: is less than the guarantee; raise it, or lower spec.guarantee",
            id="limit below guarantee",
        ),
        pytest.param(
            {"lendingLimit": {"cpu": 2}},
            "spec.lendingLimit.cpu: has no effect without a guarantee; remove it",
            id="lending",
        ),
        pytest.param(
            {"tenants": [{"priority": 5}]},
            "spec.tenants[0].namespaces: and namespaceSelector and users are missing, so it is "
            "everyone; give one of them",
            id="tenant",
        ),
        pytest.param(
            {"tenants": [{"users": "eve"}]},
            "spec.tenants[0].users: 'eve' is not valid, so the queue is closed; give a list of texts",
            id="users",
        ),
        pytest.param(
            {"priority": 2**40},
            "spec.priority: 1099511627776 is not valid and is ignored; "
            "give a whole number from -2147483648 to 2147483647",
            id="priority",
        ),
        pytest.param(
            {"reclaim": {"allow": "yes"}},
            "spec.reclaim.allow: 'yes' is not valid, so the queue is closed; give true or false",
            id="flag",
        ),
    ],
)
def test_an_invalid_field_is_named_and_the_others_count(rig, spec, problem):
    queue(rig, "other")
    queue(rig, "q", weight=3, **spec)
    assert problem in rig.problems()["q"]
    assert rig.tree()["queue/q"].weight == 3.0
    assert "queue/other" in rig.tree()


# -- pods ------------------------------------------------------------------------------------------------------


def test_a_pod_names_its_queue_by_a_label(rig):
    rig.pod("p", labels={LABEL: "team"})
    assert rig.sent("p").queue == id_of("queue/team")
    assert rig.problem("p") == f"queue team does not exist: create it or change label {LABEL}"
    queue(rig, "team")
    assert rig.problem("p") == ""
    queue(rig, "below", parent="team")
    assert rig.problem("p") == f"queue team has queues below it, which take pods: name one of them in label {LABEL}"


def test_without_a_label_the_namespace_decides(rig):
    rig.namespace("default", {"team": "a"})
    rig.pod("p")
    assert rig.sent("p").queue == 0
    queue(rig, "a", namespaces={"matchLabels": {"team": "a"}})
    assert rig.sent("p").queue == id_of("queue/a")
    rig.namespace("default", {"team": "b"})
    assert rig.sent("p").queue == 0
    queue(rig, "b", namespaces={"matchExpressions": [{"key": "team", "operator": "Exists"}]})
    assert rig.sent("p").queue == id_of("queue/b")
    queue(rig, "a", namespaces={})
    assert rig.problem("p") == f"queues a, b select namespace default: name one by label {LABEL}"
    rig.drop("Queue", "b")
    assert rig.sent("p").queue == id_of("queue/a")


def test_a_label_does_not_open_a_queue_of_other_namespaces(rig):
    queue(rig, "a", namespaces={"matchLabels": {"team": "a"}})
    rig.pod("p", labels={LABEL: "a"})
    assert rig.sent("p").queue not in (0, id_of("queue/a"))
    assert rig.problem("p") == (
        "queue a does not select namespace default: change its spec.namespaces, the labels of the namespace, or "
        f"label {LABEL}"
    )


def test_a_pod_follows_the_queue_that_its_label_names_however_that_changes(rig):
    """Nothing but the queue changes: not the selectors of namespaces, not the namespace, not the pod."""
    rig.pod("p", labels={LABEL: "a"})
    queue(rig, "a", namespaces={"matchLabels": {"team": "a"}})
    assert rig.key("p") == "not selected/default/a"
    queue(rig, "a")
    assert rig.key("p") == "queue/a"
    queue(rig, "a", preemptible=False)
    assert rig.sent("p").unevictable is False
    assert not rig.known("p").queue.preemptible
    queue(rig, "a", tenants=[{"namespaces": ["default"], "priority": 7}])
    assert rig.queues.resolution_of(rig.known("p")).priority == 7
    rig.drop("Queue", "a")
    assert rig.problem("p") == f"queue a does not exist: create it or change label {LABEL}"


def test_tenants_have_priorities_and_rights_of_their_own(rig):
    tenants = [
        {"users": ["eve"], "priority": 100},
        {"namespaces": ["default"], "mayPreempt": False},
        {"namespaceSelector": {"matchLabels": {"team": "b"}}, "priority": -5},
    ]
    queue(rig, "q", tenants=tenants)
    rig.namespace("other", {"team": "b"})
    rig.pod("eve", labels={LABEL: "q", "poseidon.io/user": "eve"}, spec={"priority": 1})
    rig.pod("plain", labels={LABEL: "q"}, spec={"priority": 1})
    rig.pod("b", namespace="other", labels={LABEL: "q"}, spec={"priority": 1})
    rig.pod("free", spec={"priority": 1})
    classes = {name: rig.store.classes.get(rig.sent(name).class_id) for name in ("eve", "plain", "b", "free")}
    assert {name: each.priority for name, each in classes.items()} == {"eve": 100, "plain": 1, "b": -5, "free": 1}
    assert {name for name, each in classes.items() if each.never_preempts} == {"plain"}
    queue(rig, "q")
    assert rig.store.classes.get(rig.sent("eve").class_id).priority == 1


@pytest.mark.parametrize(("lent", "closed"), [("3", True), ("4", False), ("5", False)])
def test_a_queue_that_lends_less_than_its_guarantee_is_closed(rig, lent, closed):
    """The engine divides by weight what nodes offer, and keeps no guarantee idle."""
    queue(rig, "q", guarantee={"cpu": "4"}, lendingLimit={"cpu": lent})
    rig.pod("p", labels={"poseidon.io/queue": "q"})
    expected = (
        "queue q is closed: spec.lendingLimit.cpu: these queues lend their whole guarantee and reclaim it, so the "
    )
    assert rig.problem("p") == (f"{expected}queue is closed; remove the field" if closed else "")

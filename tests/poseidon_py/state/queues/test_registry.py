"""The kind of queues in force, the message for the engine, and the pods that a change concerns."""

import pytest

from poseidon_py.describe.queues import model
from poseidon_py.describe.queues.messages import OF_NODES, queue_message, queues_message
from poseidon_py.describe.queues.model import Flavor, Queue, Quota, Rules, Sharing, Stop, Tree, Victims, id_of
from poseidon_py.state.queues.registry import TREE
from protos.gen import flow_pb2
from tests.poseidon_py.state.queues.rig import Rig

LABEL = "poseidon.io/queue"


@pytest.mark.parametrize(
    ("enum", "contract"),
    [
        (Victims, flow_pb2.Queue.Victims),
        (Stop, flow_pb2.Queue.Stop),
        (Sharing, flow_pb2.Queues.Sharing),
    ],
)
def test_the_enumerations_are_those_of_the_contract(enum, contract):
    theirs = {name: value for name, value in contract.items() if name != "SHARING_UNSPECIFIED"}
    assert {each.name: each.value for each in enum} == theirs


def test_every_field_is_in_the_message():
    queue = Queue(
        "k/team",
        "team",
        "k/org",
        (Quota("f", "cpu", 1, 2, 3, 4), Quota("f", "memory", 0, 0, 0, 0), Quota("f", "pods")),
        (("cpu", "memory"),),
        weight=0.0,
        priority=3,
        within=Victims.LOWER_PRIORITY,
        reclaim=Victims.ANY,
        borrow_within=Victims.LOWER_OR_NEWER_EQUAL_PRIORITY,
        borrow_within_threshold=0,
        strict_fifo=True,
        stop=Stop.HOLD_AND_DRAIN,
        preempt_min_runtime_seconds=1.0,
        reclaim_min_runtime_seconds=2.0,
        preemption_delay_seconds=3.0,
        unlimited=True,
        reclaimable=False,
        fence=True,
        fungibility=(True, False, True),
        by_past_use=True,
        evictions_per_hour=4,
        priority_offset=-4,
        priority_fence=True,
    )
    message = queue_message(queue)
    assert {field.name for field, _ in message.ListFields()} == {field.name for field in message.DESCRIPTOR.fields}
    choice = message.fungibility
    assert (choice.next_to_avoid_borrowing, choice.preempt_before_next, choice.preempt_before_borrowing) == (
        True,
        False,
        True,
    )
    assert (message.id, message.parent) == (id_of("k/team"), id_of("k/org"))
    assert [
        (q.HasField("borrowing_limit"), q.HasField("lending_limit"), q.HasField("limit")) for q in message.quotas
    ] == [
        (True, True, True),
        (True, True, True),
        (False, False, False),
    ]
    bare = queue_message(Queue("k/a", "a"))
    assert {field.name for field, _ in bare.ListFields()} == {"id", "name", "unlimited"}
    tree = Tree((queue,), (Flavor("f", (("a", "b"),)),), Rules(Sharing.FAIR))
    whole = queues_message(tree)
    assert (whole.sharing, dict(whole.flavors[0].node_labels)) == (flow_pb2.Queues.FAIR, {"a": "b"})
    assert model.id_of("k/a") != model.id_of("k/b")


def test_off_sends_nothing_and_puts_no_pod_into_a_queue():
    rig = Rig("off")
    rig.pod("p", labels={LABEL: "team"})
    assert rig.queues.message() is None
    assert rig.sent("p").queue == 0
    assert len(rig.queues.queue) == 0


def test_auto_takes_the_first_kind_with_objects_and_ours_if_there_is_none():
    rig = Rig("auto")
    assert rig.kind == "poseidon"
    rig.put("Queue", "q")
    rig.pod("p", labels={LABEL: "q"})
    assert rig.sent("p").queue == id_of("queue/q")
    rig.put("ResourceFlavor", "f")
    assert rig.kind == "poseidon"
    rig.put("ClusterQueue", "q", {"namespaceSelector": {}})
    assert rig.kind == "kueue"
    assert rig.sent("p").queue == id_of("clusterqueue/q")
    assert rig.queues.kinds.why() == (
        "queues of kind kueue are in force; queues of kind poseidon are not used, so pods that "
        "name them wait; --queues names the kind to use"
    )
    rig.drop("ClusterQueue", "q")
    assert rig.sent("p").queue == id_of("queue/q")


def test_quota_is_not_counted_twice_where_kueue_admits():
    rig = Rig("auto")
    rig.put("ClusterQueue", "q", {"namespaceSelector": {}})
    rig.put("LocalQueue", "lq", {"clusterQueue": "q"}, namespace="default")
    rig.pod("p", labels={"kueue.x-k8s.io/queue-name": "lq"})
    assert rig.sent("p").queue == id_of("clusterqueue/q")
    rig.queues.set_running("kueue", "kueue-controller-manager")
    assert rig.sent("p").queue != 0
    rig.work()
    assert rig.sent("p").queue == 0
    assert rig.message().queues == []
    assert rig.queues.summary()["why"] == (
        "queues of kind poseidon are in force; kueue-controller-manager runs and admits by its own queues, so those of "
        "kind kueue are not counted again"
    )
    rig.queues.set_running("kueue", "")
    rig.work()
    assert rig.sent("p").queue == id_of("clusterqueue/q")


def test_named_queues_of_kueue_are_off_while_it_runs():
    rig = Rig("kueue")
    rig.put("ClusterQueue", "q", {"namespaceSelector": {}})
    rig.queues.set_running("kueue", "kueue-controller-manager")
    assert rig.queues.active is None
    assert rig.message() == flow_pb2.Queues(sharing=flow_pb2.Queues.CLASSICAL, exempt_prefixes=OF_NODES)
    assert rig.queues.summary()["kind"] is None


def test_every_change_of_the_tree_is_queued_and_the_message_follows():
    rig = Rig("poseidon")
    rig.put("Queue", "a")
    assert rig.queues.queue._ready[0] == TREE
    assert [queue.name for queue in rig.message().queues] == ["a"]
    rig.put("Queue", "b")
    assert [queue.name for queue in rig.message().queues] == ["a", "b"]
    rig.drop("Queue", "a")
    assert [queue.name for queue in rig.message().queues] == ["b"]


def test_what_the_engine_refuses_is_shown_at_the_object_and_its_pods():
    rig = Rig("poseidon")
    rig.put("Queue", "a")
    rig.pod("p", labels={LABEL: "a"})
    refusal = flow_pb2.Refusal(kind="queue", id=str(id_of("queue/a")), field="weight", reason="is negative; give more")
    rig.queues.sent(1, rig.message(), [refusal, flow_pb2.Refusal(kind="class", id="a", field="x", reason="y")])
    assert rig.problems() == {"a": ["weight: is negative; give more"]}
    assert rig.problem("p") == "queue a is not used: weight: is negative; give more"
    by_name = flow_pb2.Refusal(kind="queue", id="a", field="weight", reason="is odd; give another")
    rig.queues.sent(1, rig.message(), [by_name])
    assert rig.problems() == {"a": ["weight: is odd; give another"]}
    rig.queues.sent(1, rig.message(), [])
    assert (rig.problems(), rig.problem("p")) == ({}, "")


def test_a_change_touches_the_pods_that_it_concerns_and_no_others():
    rig = Rig("poseidon")
    for name in ("a", "b"):
        rig.put("Queue", name, {"namespaces": {"matchLabels": {"team": name}}})
    for number in range(4):
        rig.namespace(f"ns-{number}", {"team": "a"})
        rig.pod(f"p-{number}", namespace=f"ns-{number}")
    rig.touched.clear()
    rig.namespace("ns-2", {"team": "b"})
    assert rig.touched == ["uid-p-2"]
    rig.touched.clear()
    rig.put("Queue", "a", {"namespaces": {"matchLabels": {"team": "a"}}, "weight": 2})
    assert rig.touched == []


def test_the_last_pod_of_a_choice_takes_it_along():
    rig = Rig("poseidon")
    for number in range(100):
        rig.pod(f"p-{number}", namespace=f"ns-{number}", labels={LABEL: f"q-{number}"}, owner=f"uid-{number}")
    rig.pod("p-0", namespace="ns-0", labels={LABEL: "other"}, owner="uid-0")
    assert len(rig.queues._choices) == 100
    for number in range(100):
        rig.store.remove_pod(f"uid-p-{number}")
    assert (rig.queues._choices, rig.queues._of_pod, rig.queues._dependents) == ({}, {}, {})


def test_a_pod_that_is_bound_says_its_queue_too():
    rig = Rig("poseidon")
    rig.put("Queue", "q")
    rig.pod("p", labels={LABEL: "q"}, node="n")
    assert rig.sent("p").queue == id_of("queue/q")


def test_the_reason_follows_when_a_kind_that_is_not_in_force_comes_into_use():
    rig = Rig("auto")
    rig.put("KaiQueue", "k", {"resources": {}})
    rig.pod("p", annotations={"scheduling.volcano.sh/queue-name": "a"})
    assert rig.problem("p").startswith("queue a does not exist")
    rig.put("VolcanoQueue", "other", {})
    assert rig.problem("p").startswith("queue a is of kind volcano, but queues of kind kai are in force")
    rig.drop("VolcanoQueue", "other")
    rig.wait()
    assert rig.problem("p").startswith("queue a does not exist")

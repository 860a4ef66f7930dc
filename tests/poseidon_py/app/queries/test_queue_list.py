"""The queues in force as JSON, and as `poseidon queues` prints them."""

import io
import json
import math

import pytest
from rich.console import Console

from poseidon_py.app.queries.queue_list import UnknownQueue, queues_json, waiting_in
from poseidon_py.cli.queues import print_queues
from poseidon_py.describe.queues.model import id_of
from protos.gen import flow_pb2
from tests.poseidon_py.state.queues.rig import Rig


def reply_of(rig, **by_name):
    """What an engine answers that takes all leaves; `by_name`: fields of queues, with amounts as (resource, nominal,
    used, borrowed, demand, fair)."""
    reply = flow_pb2.QueuesReply()
    ids = {queue.id: queue for queue in rig.queues.tree.queues}
    parents = {queue.parent for queue in ids.values()}
    for ident, queue in ids.items():
        fields = dict(by_name.get(queue.name.replace("-", "_"), {}))
        amounts = fields.pop("amounts", ())
        parent = id_of(queue.parent) if queue.parent else 0
        open_ = fields.pop("takes_tasks", queue.key not in parents)
        state = reply.queues.add(id=ident, name=queue.name, parent=parent, takes_tasks=open_, **fields)
        for resource, nominal, used, borrowed, demand, fair in amounts:
            state.amounts.add(
                flavor="default",
                resource=resource,
                nominal=nominal,
                used=used,
                borrowed=borrowed,
                demand=demand,
                fair=fair,
            )
    return reply


def listed(rig, name="", **by_name):
    return queues_json(rig.queues, reply_of(rig, **by_name), name=name)["queues"]


@pytest.fixture
def rig():
    rig = Rig("poseidon")
    rig.put("Queue", "org")
    rig.put("Queue", "b", {"parent": "org", "guarantee": {"cpu": "2"}})
    rig.put("Queue", "a", {"parent": "org", "guarantee": {"cpu": "1"}, "limit": {"cpu": "1500m"}})
    rig.put("Queue", "alone", {"weight": "x"})
    return rig


A = {
    "running": 2,
    "pending": 3,
    "nominated": 1,
    "share": 250.0,
    "amounts": [("cpu", 1000, 1500, 500, 700, 2**60), ("pods", 0, 2, 2, 3, 2**60)],
}


def test_the_tree_in_order_with_amounts_as_quantities(rig):
    org = {"amounts": [("cpu", 0, 1500, 0, 700, 4000)]}
    queues = listed(rig, a=A, b={"amounts": [("cpu", 2000, 0, 0, 0, 0)]}, org=org)
    assert [(each["name"], each["depth"], each["parent"]) for each in queues] == [
        ("alone", 0, None),
        ("org", 0, None),
        ("a", 1, "org"),
        ("b", 1, "org"),
    ]
    assert queues[2] == {
        "name": "a",
        "type": "Queue",
        "parent": "org",
        "depth": 1,
        "state": "open",
        "why": "",
        "running": 2,
        "pending": 3,
        "nominated": 1,
        "share": 0.25,
        "resources": [  # pods have no quota, and no row
            {
                "flavor": "default",
                "resource": "cpu",
                "used": "1500m",
                "guarantee": "1",
                "limit": "1500m",
                "fair_share": None,
                "borrowed": "500m",
                "requested": "700m",
                "past": None,
            }
        ],
        "local_queues": [],
        "problems": [],
    }
    (cpu,) = queues[1]["resources"]
    assert (cpu["guarantee"], cpu["limit"], cpu["fair_share"]) == ("3", None, "4")  # of a and b together
    assert queues[0]["problems"] == ["spec.weight: 'x' is not valid and is ignored; give a number of at least 0"]
    assert json.loads(json.dumps(queues)) == queues


def test_pods_have_a_row_where_users_limit_them(rig):
    rig.put("Queue", "alone", {"limit": {"pods": "5"}})
    alone = {"amounts": [("pods", 0, 2, 2, 0, 5)]}
    (first, *_) = listed(rig, alone=alone)
    assert [(each["resource"], each["limit"]) for each in first["resources"]] == [("pods", "5")]


def test_queues_that_take_no_pods_say_why(rig):
    rig.put("Queue", "org", {"stop": "drain"})
    rig.put("Queue", "lost", {"parent": "none"})
    rig.put("Queue", "below", {"parent": "lost"})
    found = {each["name"]: (each["state"], each["why"]) for each in listed(rig, alone={"takes_tasks": False})}
    assert found == {
        "org": ("stopped", "spec.stop is drain"),
        "a": ("stopped", "queue org above it is stopped: spec.stop is drain"),
        "b": ("stopped", "queue org above it is stopped: spec.stop is drain"),
        "lost": ("invalid", "spec.parent: queue none does not exist; create it or name another"),
        "below": ("invalid", "spec.parent: queue lost is not used; see its own problem"),
        "alone": ("invalid", "see its problem"),
    }


def test_a_queue_that_the_engine_lacks_or_refuses_says_so(rig):
    empty = flow_pb2.QueuesReply()
    states = {each["name"]: each["why"] for each in queues_json(rig.queues, empty)["queues"]}
    assert set(states.values()) == {"the flow service does not know it yet"}
    refusal = flow_pb2.Refusal(kind="queue", id=str(id_of("queue/a")), field="limit", reason="is too small; raise it")
    rig.queues.sent(1, rig.message(), [refusal])
    states = {each["name"]: each["why"] for each in queues_json(rig.queues, empty)["queues"]}
    assert states["a"] == "limit: is too small; raise it"


def test_kueues_amounts_and_types():
    rig = Rig("kueue")
    rig.put("ResourceFlavor", "f")
    quota = {"name": "cpu", "nominalQuota": 2, "borrowingLimit": 1}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [quota]}]}
    rig.put("ClusterQueue", "q", {"cohortName": "q", "resourceGroups": [group], "namespaceSelector": {}})
    rig.put("ClusterQueue", "alone", {"resourceGroups": [group], "namespaceSelector": {}})
    reply = reply_of(rig)
    for state in reply.queues:
        state.amounts.add(flavor="f", resource="cpu", nominal=2000 * state.takes_tasks, used=3000, fair=7)
        state.amounts.add(flavor="f", resource="pods", nominal=2**40 * state.takes_tasks, used=3, fair=7)
    queues = queues_json(rig.queues, reply)["queues"]
    # a ClusterQueue without a cohort cannot borrow; shares do not divide anything among queues of Kueue
    assert [(each["type"], each["name"], each["resources"]) for each in queues] == [
        (kind, name, [
            {"flavor": "f", "resource": "cpu", "used": "3", "guarantee": "2", "limit": limit, "fair_share": None,
             "borrowed": "0", "requested": "0", "past": None},
        ])
        for kind, name, limit in (("ClusterQueue", "alone", "2"), ("Cohort", "q", None), ("ClusterQueue", "q", "3"))
    ]  # fmt: skip


def test_past_use_is_shown_where_it_counts():
    rig = Rig("kueue")
    rig.put("ResourceFlavor", "f")
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": 2}]}]}
    by_use = {"admissionMode": "UsageBasedAdmissionFairSharing"}
    rig.put("ClusterQueue", "q", {"resourceGroups": [group], "namespaceSelector": {}, "admissionScope": by_use})
    for name in ("b", "a"):
        rig.put("LocalQueue", name, {"clusterQueue": "q"}, namespace="ns")
    reply = reply_of(rig)
    reply.past_use.at_us = 1
    (state,) = reply.queues
    state.amounts.add(flavor="f", resource="cpu", nominal=2000, used=1000, fair=7, past=1249.7)
    local = reply.local_queues.add(id=id_of("local/ns/a"), running=1, pending=4, past_use=0.62499)
    local.amounts.add(flavor="f", resource="cpu", used=1000, past=1249.7)
    reply.local_queues.add(id=id_of("local/ns/b"), past_use=math.inf)
    body = queues_json(rig.queues, reply)
    (queue,) = body["queues"]
    assert [each["past"] for each in queue["resources"]] == ["1250m"]
    cpu = {"flavor": "f", "resource": "cpu", "used": "1", "past": "1250m"}
    assert queue["local_queues"] == [
        {"name": "ns/a", "running": 1, "pending": 4, "past_use": 0.625, "resources": [cpu]},
        {"name": "ns/b", "running": 0, "pending": 0, "past_use": None, "resources": []},
    ]
    text = printed(body)
    assert "past use" in text
    assert [line.split() for line in text.splitlines() if "ns/a" in line] == [
        ["│", "ns/a", "│", "q", "│", "1", "│", "4", "│", "0.625", "│"]
    ]
    reply.ClearField("past_use")
    assert "ns/a" not in printed(queues_json(rig.queues, reply))


def test_one_queue_has_those_below_it(rig):
    assert [each["name"] for each in listed(rig, "org")] == ["org", "a", "b"]
    assert [each["name"] for each in listed(rig, "alone")] == ["alone"]
    for name, remedy in (("alon", "did you mean alone?"), ("xyz", "`poseidon queues` lists all")):
        with pytest.raises(UnknownQueue) as error:
            listed(rig, name)
        assert str(error.value) == f"queue {name} not found; {remedy}"


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        (
            "poseidon",
            "run `kubectl apply -f deploy/chart/definitions/queues.yaml` and create a Queue of poseidon.io/v1",
        ),
        ("elasticquota", "create an ElasticQuota in the namespace of the pods"),
        ("koordinator", "create an ElasticQuota of scheduling.sigs.k8s.io/v1alpha1"),
        ("off", "start the scheduler with --queues auto, or with the kind to use"),
    ],
)
def test_without_queues_it_says_how_to_make_one(kind, how):
    rig = Rig(kind)
    body = queues_json(rig.queues, flow_pb2.QueuesReply())
    assert (body["queues"], body["how"]) == ([], how)
    assert f"no queues; to have some, {how}\n" in printed(body)
    with pytest.raises(UnknownQueue, match="there are none: "):
        queues_json(rig.queues, flow_pb2.QueuesReply(), name="x")


def test_the_pods_that_wait_are_those_of_the_queue_and_below_it_the_oldest_first(rig):
    label = "poseidon.io/queue"
    rig.pod("young", labels={label: "a"}, created="2026-01-02T00:00:00Z")
    rig.pod("old", labels={label: "b"}, created="2026-01-01T00:00:00Z")
    rig.pod("bound", labels={label: "a"}, node="n")
    rig.pod("other", labels={label: "alone"})
    rig.pod("none")
    queues = listed(rig)
    names = [each["name"] for each in queues]

    def waiting(name):
        return [known.name for known in waiting_in(rig.store, queues[names.index(name) :])]

    assert waiting("org") == ["old", "young"]
    assert waiting("a") == ["young"]
    assert waiting("alone") == ["other"]
    rig.store.assume(rig.known("other"), "n")
    assert waiting("alone") == []


def printed(body, width=200):
    out = io.StringIO()
    print_queues(body, Console(file=out, width=width))
    return out.getvalue()


def test_output(rig):
    body = queues_json(rig.queues, reply_of(rig, a=A))
    text = printed(body)
    assert text.startswith("queues of kind poseidon are in force\n")
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if line.startswith("│")]
    assert rows[2] == ["a", "open", "2", "3", "1", "0.25", "cpu", "1500m", "1", "1500m", "500m"]
    assert "│   a   │" in text  # below org
    assert "queues.poseidon.io alone: spec.weight: 'x' is not valid" in text
    assert "  a\n" in printed(body, width=50)  # as a record
    body["queues"] = body["queues"][2:3]
    assert "│ a     │" in printed(body)  # alone, it is not indented
    one = queues_json(rig.queues, reply_of(rig, a=A), name="alone")
    one["queues"][0] |= {"waiting": [{"pod": "ns/p", "why": "waits for quota"}], "more": 4}
    lines = printed(one).splitlines()
    assert lines[-4:] == [
        "alone: spec.weight: 'x' is not valid and is ignored; give a number of at least 0",
        "alone: the oldest of the pods that wait",
        "  ns/p: waits for quota",
        "  and 4 more",
    ]
    one["queues"][0] |= {"waiting": [], "more": 0}
    assert printed(one).splitlines()[-1] == "alone: no pods wait"
    held_back = {"name": "ns/j", "kind": "Job", "queue": "alone", "why": "queue alone is stopped"}
    one["queues"][0] |= {"suspended": [held_back], "more_suspended": 2}
    assert printed(one).splitlines()[-4:] == [
        "alone: no pods wait",
        "alone: the oldest of the workloads that are suspended",
        "  ns/j: queue alone is stopped",
        "  and 2 more",
    ]

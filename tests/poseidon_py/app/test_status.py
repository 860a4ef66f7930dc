"""The JSON of /status and /explain, of a given answer of the flow service."""

import pytest

from poseidon_py.app.status import explain_json, reasons_json, status_json, unfinished_json
from poseidon_py.state.pod_lifecycle import PodEvent
from poseidon_py.state.store import Store
from protos.gen import flow_pb2
from tests.poseidon_py.builders import pod


def test_the_last_round_has_its_victims_and_the_pods_that_are_nominated():
    last = flow_pb2.RoundStats(waiting=4, nominated=2, preempted=3)
    found = status_json(Store(["poseidon"]), flow_pb2.StatusReply(last_round=last), {}, {})["last_round"]
    assert (found["waiting"], found["nominated"], found["preempted"]) == (4, 2, 3)


def test_the_last_round_has_the_pods_that_migrate():
    last = flow_pb2.RoundStats(migrated=3)
    found = status_json(Store(["poseidon"]), flow_pb2.StatusReply(last_round=last), {}, {})["last_round"]
    assert found["migrated"] == 3


def test_the_state_of_a_pod_that_is_evicted():
    store = Store(["poseidon"])
    store.observe_pod(pod("a", node="n"))
    known = store.pods["uid-a"]
    assert explain_json(known, flow_pb2.ExplainReply())["state"] == "bound"
    known.migrating = True
    assert explain_json(known, flow_pb2.ExplainReply())["state"] == "being migrated"
    known.migrating, known.preempting = False, True
    assert explain_json(known, flow_pb2.ExplainReply())["state"] == "being preempted"


def test_what_is_left_to_do():
    """A script that waits for the scheduler, as the demo does, needs each kind of work that changes something later."""
    store = Store(["poseidon"])
    nothing = dict.fromkeys(("changes", "rounds", "binds", "evictions", "nominated", "reports"), 0)
    assert unfinished_json(store, rounds=False, reports=0) == nothing
    assert unfinished_json(store, rounds=True, reports=2) == {**nothing, "rounds": 1, "reports": 2}
    for name in ("assumed", "preempted", "moved", "nominated", "waits"):
        store.observe_pod(pod(name, node="n" if name in ("preempted", "moved") else ""))
    records = {known.name: known for known in store.pods.values()}
    records["assumed"].assumed = "n"
    records["preempted"].preempting = True
    records["moved"].migrating = True
    records["nominated"].nominated = "n"
    found = unfinished_json(store, rounds=False, reports=0)
    assert found == {**nothing, "changes": 5, "binds": 1, "evictions": 2, "nominated": 1}


def explained(*kinds):
    """Of a pod that waits for these reasons on a cluster of two nodes, one of which would take it."""
    store = Store(["poseidon"])
    store.observe_pod(pod("a"))
    reasons = [flow_pb2.Reason(kind=kind, detail="q", value="1") for kind in kinds]
    nearest = [flow_pb2.NearMiss(node="n"), flow_pb2.NearMiss(node="m", lacks={"cpu": 500})]
    reply = flow_pb2.ExplainReply(state="waiting", nodes=2, reasons=reasons, fits_now=1, nearest=nearest)
    return explain_json(store.pods["uid-a"], reply)


@pytest.mark.parametrize(
    "kind",
    [
        flow_pb2.Reason.OVER_QUOTA,
        flow_pb2.Reason.QUEUE_BEHIND,
        flow_pb2.Reason.QUEUE_UNKNOWN,
        flow_pb2.Reason.QUEUE_STOPPED,
        flow_pb2.Reason.GANG_INCOMPLETE,
        flow_pb2.Reason.GANG_FULL,
    ],
)
def test_nodes_are_not_listed_for_a_pod_that_waits_for_its_queue_or_gang(kind):
    """ "Fits now on 28 nodes" is no answer to why it waits."""
    found = explained(kind)
    assert (found["fits_now"], found["nearest"]) == (None, [])


def test_nodes_are_listed_for_a_pod_that_waits_for_them():
    found = explained(flow_pb2.Reason.GANG_DOES_NOT_FIT, flow_pb2.Reason.INSUFFICIENT_RESOURCE)
    assert found["fits_now"] == 1
    assert found["nearest"] == [{"node": "n", "lacks": {}}, {"node": "m", "lacks": {"cpu": 500}}]


def test_why_pods_wait():
    """Counted by message; the message of a pod that is gone is left out."""
    store = Store(["poseidon"])
    for name in "abc":
        store.observe_pod(pod(name))
    found = reasons_json(store, {"uid-c": "no cpu", "uid-a": "no cpu", "uid-b": "no memory", "uid-gone": "no cpu"})
    assert found == [
        {"pods": 2, "message": "no cpu", "example": "default/a"},
        {"pods": 1, "message": "no memory", "example": "default/b"},
    ]


@pytest.mark.parametrize(
    ("engine", "own", "says"),
    [
        pytest.param(flow_pb2.PACKING, flow_pb2.FLOW, "packing", id="the-engine-knows"),
        pytest.param(0, flow_pb2.CHEAPEST_SLOTS, "cheapest slots", id="the-flow-service-has-restarted"),
        pytest.param(0, 0, "unknown", id="another-process-has-placed-it"),
    ],
)
def test_the_step_that_has_placed_a_pod(engine, own, says):
    store = Store(["poseidon"])
    store.observe_pod(pod("a"))
    known = store.pods["uid-a"]
    known.placed_by = own
    assert explain_json(known, flow_pb2.ExplainReply(placed_by=engine))["placed_by"] == ""
    known.advance(PodEvent.ASSUME, "n")
    store.observe_pod(pod("a", node="n"))
    assert explain_json(known, flow_pb2.ExplainReply(placed_by=engine))["placed_by"] == says


def test_the_step_is_forgotten_if_another_scheduler_binds_the_pod():
    store = Store(["poseidon"])
    store.observe_pod(pod("a"))
    known = store.pods["uid-a"]
    known.placed_by = flow_pb2.FLOW
    known.advance(PodEvent.ASSUME, "n")
    store.observe_pod(pod("a", node="m"))
    assert explain_json(known, flow_pb2.ExplainReply())["placed_by"] == "unknown"

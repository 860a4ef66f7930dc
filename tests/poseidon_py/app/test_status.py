"""The JSON of /status and /explain, of a given answer of the flow service."""

from poseidon_py.app.status import explain_json, status_json
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

"""The JSON of /status, of a given answer of the flow service."""

from poseidon_py.app.status import status_json
from poseidon_py.state.store import Store
from protos.gen import flow_pb2


def test_the_last_round_has_its_victims_and_the_pods_that_are_nominated():
    last = flow_pb2.RoundStats(waiting=4, nominated=2, preempted=3)
    found = status_json(Store(["poseidon"]), flow_pb2.StatusReply(last_round=last), {}, {})["last_round"]
    assert (found["waiting"], found["nominated"], found["preempted"]) == (4, 2, 3)

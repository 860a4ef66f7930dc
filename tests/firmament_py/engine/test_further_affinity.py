"""Named demands, whose failure is a separate reason; and shared tokens."""

import pytest

from firmament_py.explain.reason import Reason, ReasonKind
from firmament_py.explain.reasons import reasons_of_task
from firmament_py.model.constraints import NodeDemand, Operator, Requirement, Term
from firmament_py.model.resources import TOKEN, TOKEN_PIECES, token_requests
from firmament_py.service import messages
from firmament_py.service.calls.invalid_field import InvalidField
from protos.gen import firmament_pb2, flow_pb2
from tests.builders import make_class, make_cluster, make_node, make_tasks, per_node


def on(key: str, *values: str) -> tuple[Term, ...]:
    return (Term((Requirement(key, Operator.IN, values),)),)


def test_every_named_demand_must_hold():
    demand = NodeDemand(affinity=(on("a", "1"),), further=(("x", on("b", "1")), ("y", on("c", "1"))))
    assert demand.picky
    assert demand.selects({"a": "1", "b": "1", "c": "1"}, {})
    for missing in "abc":
        assert not demand.selects({key: "1" for key in "abc" if key != missing}, {})


def selector(key: str) -> firmament_pb2.NodeSelector:
    demand = firmament_pb2.NodeSelectorRequirement(key=key, operator="Exists")
    return firmament_pb2.NodeSelector(nodeSelectorTerms=[firmament_pb2.NodeSelectorTerm(matchExpressions=[demand])])


def test_names_in_the_contract():
    message = flow_pb2.TaskClass(id=1, further_affinity=[selector("a"), selector("b")], further_names=["", "x"])
    demand = messages.class_defined(message).demand
    assert [name for name, _ in demand.further] == ["x"]
    assert len(demand.affinity) == 1  # what has no name counts as the task's own affinity
    del message.further_names[:]
    assert len(messages.class_defined(message).demand.affinity) == 2
    message.further_names.append("x")
    with pytest.raises(InvalidField, match="further_names"):
        messages.class_defined(message)


@pytest.mark.parametrize(
    ("tokens", "amounts"),
    [
        (["a"], {"a": TOKEN_PIECES}),
        (["a/b"], {"a": 1, "a/b": TOKEN_PIECES}),
        (["a/"], {"a": 1}),
        (["a/b", "a/c"], {"a": 2, "a/b": TOKEN_PIECES, "a/c": TOKEN_PIECES}),
        # the whole, and a part of it: no more than there is
        (["a", "a/b"], {"a": TOKEN_PIECES, "a/b": TOKEN_PIECES}),
    ],
)
def test_requests_of_tokens(tokens, amounts):
    for order in (tokens, tokens[::-1]):
        got = token_requests(order)
        assert got.get(TOKEN + "a", 0) <= TOKEN_PIECES
        assert {name.removeprefix(TOKEN): amount for name, amount in got.items()} == amounts


def test_a_named_reason_comes_after_lacking_resources():
    demand = NodeDemand(affinity=(on("a", "1"),), further=(("x", on("b", "1")), ("y", on("c", "1"))))
    nodes = [
        make_node("n1", cpu=9),
        make_node("n2", cpu=9, labels={"a": "1"}),
        make_node("n3", cpu=9, labels={"a": "1", "b": "1"}),
        make_node("n4", cpu=1, labels={"a": "1"}),
    ]
    cluster = make_cluster(*nodes, make_class(1, demand=demand, cpu=2), make_tasks([1], 1))
    assert cluster.round() == {}
    row = cluster.state.task_row(1)
    assert row is not None
    assert reasons_of_task(cluster.state, row) == (
        Reason(ReasonKind.SELECTOR_MISMATCH, 1),
        Reason(ReasonKind.INSUFFICIENT_RESOURCE, 1, "cpu"),
        Reason(ReasonKind.FURTHER_AFFINITY, 1, "x"),
        Reason(ReasonKind.FURTHER_AFFINITY, 1, "y"),
    )
    cluster.tell(make_node("n2", cpu=9, labels={"a": "1", "b": "1", "c": "1"}))
    assert cluster.round() == {1: "n2"}


def test_shares_of_a_token_exclude_its_exclusive_use():
    readers, writer = make_class(1, tokens=["disk/"]), make_class(2, tokens=["disk"])
    cluster = make_cluster(make_node("n"), readers, writer, make_tasks(range(1, 6), 1))
    assert per_node(cluster.round()) == {"n": 5}
    cluster.tell(make_tasks([9], 2))
    assert cluster.round() == {}

"""GetNetwork: the networks of a round through a real client."""

import pytest

from protos.gen import flow_pb2
from tests.firmament_py.service.flow_messages import node, task_class, tasks


def network(service, **asked) -> flow_pb2.NetworkReply:
    reply: flow_pb2.NetworkReply = service.flow.GetNetwork(flow_pb2.NetworkRequest(**asked))
    return reply


def test_before_the_first_round(service):
    assert network(service).problem == "no round of this service has solved a network yet"


def test_the_networks_of_a_round(service):
    classes = [task_class(1, "web", cpu=1), task_class(2, "db", cpu=2)]
    service.apply(classes=classes, nodes=[node("a", cpu=4), node("b", cpu=2)], tasks=tasks([1, 2, 3], 1))
    service.apply(tasks=tasks([4], 2))
    service.round()
    reply = network(service)
    assert [(each.number, each.placed, each.networks) for each in reply.rounds] == [(1, 4, len(reply.networks))]
    assert reply.round == 1
    drawn = reply.networks[0]
    assert (drawn.status, drawn.tasks, drawn.too_large) == ("optimal", 4, False)
    labels = {(each.kind, each.label) for each in drawn.vertices}
    assert {("tasks", "web"), ("tasks", "db"), ("class", "web"), ("class", "db"), ("sink", "sink")} <= labels
    into_sink = [arc for arc in drawn.arcs if drawn.vertices[arc.head].kind == "sink"]
    assert sum(arc.flow for arc in into_sink) == 4
    [name] = [each.names for each in drawn.vertices if (each.kind, each.label) == ("tasks", "db")]
    assert list(name) == ["ns/task-4"]


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"round": 7}, "the networks of round 7 are not recorded; there are those of 1"),
        ({"class_name": "none"}, "no network of round 1 has the class 'none'"),
        ({"node": "none"}, "no network of round 1 has the node 'none'"),
        ({"task": "ns/none"}, "no network of round 1 has the pod 'ns/none'"),
        (
            {"class_name": "none", "node": "a", "round": 1},
            "no network of round 1 has the class 'none' and the node 'a'",
        ),
    ],
)
def test_what_is_not_there(service, asked, problem):
    service.tell_small()
    service.round()
    assert network(service, **asked).problem == problem


def test_a_part_of_it(service):
    service.apply(
        classes=[task_class(1, "web", cpu=1), task_class(2, "db", cpu=2)],
        nodes=[node(f"n{i}", cpu=4 + i) for i in range(9)],
        tasks=tasks(range(1, 21), 1),  # of which each node takes another number
    )
    service.apply(tasks=tasks([40], 2))
    service.round()
    drawn = network(service, class_name="db").networks[0]
    assert {each.label for each in drawn.vertices if each.kind in ("tasks", "class")} == {"db"}
    assert network(service, task="ns/task-40").networks[0] == drawn
    drawn = network(service, limit=2).networks[0]
    nodes = [each for each in drawn.vertices if each.kind == "nodes"]
    assert [each.merged for each in nodes].count(1) == 2
    assert sum(each.merged for each in nodes) == 9
    [others] = [each for each in nodes if each.merged > 1]
    assert (others.label, others.HasField("price")) == ("7 more", False)


def test_a_new_state_has_no_networks(service):
    service.tell_small()
    service.round()
    assert network(service).round == 1
    service.resync()
    assert network(service).problem == "no round of this service has solved a network yet"

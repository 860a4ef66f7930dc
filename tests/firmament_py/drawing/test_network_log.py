"""Which networks are recorded, and that they are drawn with the names that are right by then."""

import pytest

from firmament_py.drawing import network_log
from firmament_py.drawing.diagram import CHEAPEST_SLOTS, named, node_position, outline_of
from firmament_py.drawing.network_log import NetworkLog
from firmament_py.model.events import NodeRemoved
from tests.builders import Cluster, make_class, make_cluster, make_node, make_tasks, removed


def three_nodes() -> Cluster:
    """A class of 70 tasks of 1 cpu (more take a network than 64), one of 5 of 2 cpu."""
    nodes = [make_node("a", cpu=40), make_node("b", cpu=40), make_node("c", cpu=10)]
    return make_cluster(*nodes, make_class(1, cpu=1), make_class(2, cpu=2), make_tasks(range(1, 71), 1))


def keep(log: NetworkLog, cluster: Cluster, number: int):
    result = cluster.run()
    log.add(cluster.state, number, result.stats.started_us, result.stats.placed, result.networks)
    return result


def test_a_round_is_drawn_with_names():
    cluster, log = three_nodes(), NetworkLog(4)
    keep(log, cluster, 1)
    recorded = log.find(0)
    assert recorded is not None
    [network] = recorded.networks
    diagram = named(cluster.state, network, outline_of(network, 40))
    assert diagram.status == "optimal"
    kinds = {each.kind.value: each for each in diagram.vertices if each.kind.value != "nodes"}
    assert (kinds["tasks"].label, kinds["tasks"].count, kinds["tasks"].names[0]) == ("class-1", 70, "task-1")
    assert (kinds["class"].label, kinds["sink"].supply) == ("class-1", -70)
    nodes = {name for each in diagram.vertices if each.kind.value == "nodes" for name in each.names}
    assert nodes == {"a", "b", "c"}
    assert diagram.outline is not None
    assert diagram.outline.flow.sum() == 3 * 70, "from tasks to the class, to nodes, to the sink"


def test_tasks_of_one_class_need_no_network():
    cluster, log = three_nodes(), NetworkLog(4)
    cluster.run()
    cluster.tell(make_tasks([100, 101], 2))
    placed = cluster.names(keep(log, cluster, 2))
    [network] = next(iter(log)).networks
    diagram = named(cluster.state, network, outline_of(network, 40, "class-2"))
    assert (diagram.status, network.vertices) == (CHEAPEST_SLOTS, 0)
    assert {each.label for each in diagram.vertices if each.kind.value == "nodes"} == set(placed.values())


def test_names_that_nobody_has():
    cluster, log = three_nodes(), NetworkLog(4)
    keep(log, cluster, 1)
    [network] = next(iter(log)).networks
    assert outline_of(network, 40, "class-9") is None
    assert node_position(cluster.state, network, "d") == -1
    assert node_position(cluster.state, network, "c") >= 0


def test_nodes_and_tasks_that_are_gone_are_not_confused_with_others():
    cluster, log = three_nodes(), NetworkLog(4)
    keep(log, cluster, 1)
    [network] = next(iter(log)).networks
    cluster.tell(removed(*range(1, 71)), NodeRemoved("id-c"), make_node("other", cpu=1), make_tasks(range(200, 270), 1))
    diagram = named(cluster.state, network, outline_of(network, 40))
    names = {name for each in diagram.vertices for name in each.names}
    assert "other" not in names
    assert {"a", "b", "a node that is gone"} <= names
    assert "task 0000000000000001, which is gone" in names
    assert node_position(cluster.state, network, "other") == node_position(cluster.state, network, "c") == -1


def test_the_last_rounds_are_kept(monkeypatch):
    cluster, log = three_nodes(), NetworkLog(2)
    keep(log, cluster, 1)
    for number in (2, 3, 4):
        cluster.tell(make_tasks([100 + number], 2))
        keep(log, cluster, number)
    assert [each.number for each in log] == [3, 4]
    assert log.find(2) is None
    assert (found := log.find(4)) is not None
    assert found.number == 4
    keep(log, cluster, 5)  # it has solved nothing
    assert [each.number for each in log] == [3, 4]


@pytest.mark.parametrize("arcs", [0, 5])
def test_a_network_that_is_too_large_has_a_size_alone(monkeypatch, arcs):
    monkeypatch.setattr(network_log, "ENTRIES_KEPT", arcs)
    cluster, log = three_nodes(), NetworkLog(2)
    keep(log, cluster, 1)
    [network] = next(iter(log)).networks
    assert network.is_too_large
    assert (network.arcs > arcs, network.tasks) == (True, 70)
    assert network.solved.solution is not None
    arrays = network.solved.solution.flow, network.solved.task_uid, network.solved.nodes, network.node_generation
    assert not any(map(len, arrays)), "no array is in memory"
    assert outline_of(network, 40) is None
    diagram = named(cluster.state, network, None)
    assert (diagram.vertices, diagram.outline) == ((), None)


def test_all_networks_together_have_a_limit(monkeypatch):
    """A round of many networks, all of which count."""
    cluster, log = three_nodes(), NetworkLog(9)
    keep(log, cluster, 1)
    [network] = next(iter(log)).networks
    monkeypatch.setattr(network_log, "ENTRIES_KEPT", network.entries)
    log.add(cluster.state, 2, 0, 0, [network.solved, network.solved])
    assert [each.number for each in log] == [1, 2], "what is too large takes nothing, and displaces nothing"
    assert [[each.is_too_large for each in of.networks] for of in log] == [[False], [True, True]]
    log.add(cluster.state, 3, 0, 0, [network.solved])
    assert [each.number for each in log] == [2, 3], "there is room for one"


def test_tasks_count_beside_arcs(monkeypatch):
    """A network of one class has few arcs, whatever number of tasks."""
    cluster, log = three_nodes(), NetworkLog(9)
    keep(log, cluster, 1)
    [network] = next(iter(log)).networks
    monkeypatch.setattr(network_log, "ENTRIES_KEPT", network.arcs + 69)
    log.add(cluster.state, 2, 0, 0, [network.solved])
    assert [each.is_too_large for of in log for each in of.networks] == [True]


def test_none_are_kept_if_none_are_asked_for():
    cluster = make_cluster(make_node("a", cpu=4), make_class(1, cpu=1), make_tasks([1], 1), kept_networks=0)
    assert cluster.run().networks == ()

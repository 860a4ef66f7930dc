"""Certificates of why a task fits nowhere: beside all sets of constraints, and by doing what they say."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.explain import blocking as module
from firmament_py.explain.blocking import Blocking, Constraint, blocking
from firmament_py.explain.ever import could_ever_fit
from firmament_py.explain.reason import ReasonKind
from firmament_py.model.constraints import NodeDemand, Taint, Toleration
from tests.builders import Cluster, make_class, make_cluster, make_node, make_tasks, needs
from tests.effort import examples

GPU, OLD = Taint("gpu", "yes", "NoSchedule"), Taint("old", "", "NoExecute")
SHORT, TAINT, SELECTOR = ReasonKind.INSUFFICIENT_RESOURCE, ReasonKind.UNTOLERATED_TAINT, ReasonKind.SELECTOR_MISMATCH


def certificate(cluster: Cluster, uid: int = 1) -> Blocking:
    row = cluster.state.task_row(uid)
    assert row is not None
    return blocking(cluster.state, row)


def test_two_constraints_block_together():
    """a: tainted, has room. b, c: not tainted, one cpu short and three."""
    cluster = make_cluster(
        make_node("a", cpu=8, taints=[GPU]),
        make_node("b", cpu=3),
        make_node("c", cpu=1),
        make_class(1, cpu=4),
        make_tasks([1], 1),
    )
    found = certificate(cluster)
    assert found.is_smallest
    assert found.constraints == (Constraint(TAINT, "gpu", "yes", 1, 0), Constraint(SHORT, "cpu", "", 2, 1))
    by_cpu, by_taint = found.remedies
    assert (by_cpu.nodes, by_cpu.node, by_cpu.without) == (2, "b", (Constraint(SHORT, "cpu", "", 2, 1),))
    assert (by_taint.nodes, by_taint.node, by_taint.without) == (1, "a", (Constraint(TAINT, "gpu", "yes", 1, 0),))


def test_a_constraint_that_all_nodes_fail_blocks_by_itself():
    """All lack memory; some cpu and the label, too: these are no part of a smallest set."""
    cluster = make_cluster(
        make_node("a", cpu=8, memory=3),
        make_node("b", cpu=1, memory=1, labels={"disk": "ssd"}),
        make_class(1, cpu=4, memory=4, demand=NodeDemand(selector=(needs("disk", "In", "ssd"),))),
        make_tasks([1], 1),
    )
    found = certificate(cluster)
    assert found.constraints == (Constraint(SHORT, "memory", "", 2, 1),)
    assert {
        each.node: {(of.kind, of.detail or of.value, of.short) for of in each.without} for each in found.remedies
    } == {
        "a": {(SELECTOR, "disk=ssd", 0), (SHORT, "memory", 1)},
        "b": {(SHORT, "cpu", 3), (SHORT, "memory", 3)},
    }


def test_a_resource_that_no_node_offers():
    cluster = make_cluster(make_node("a", cpu=8), make_class(1, cpu=1, gpu=2), make_tasks([1], 1))
    assert certificate(cluster).constraints == (Constraint(SHORT, "gpu", "", 1, 2),)


def test_there_is_none_where_a_node_takes_the_task():
    cluster = make_cluster(make_node("a", cpu=8), make_class(1, cpu=1), make_tasks([1], 1))
    assert certificate(cluster) == Blocking((), True, ())


def test_of_many_constraints_an_irreducible_set_is_named(monkeypatch):
    """Each node has two of three taints: any two of these block, no one does."""
    monkeypatch.setattr(module, "_TRIED", 1)
    taints = [Taint(f"t{i}", "", "NoSchedule") for i in range(3)]
    nodes = [make_node(f"n{i}", cpu=8, taints=[taints[i], taints[i - 1]]) for i in range(3)]
    cluster = make_cluster(*nodes, make_class(1, cpu=1), make_tasks([1], 1))
    found = certificate(cluster)
    assert ([each.detail for each in found.constraints], found.is_smallest) == (["t0", "t1"], False)


def test_what_alone_is_in_the_way_on_some_node_is_in_the_set_without_a_trial(monkeypatch):
    monkeypatch.setattr(module, "_TRIED", 2)
    nodes = [make_node(f"n{i}", cpu=8, taints=[Taint(f"t{i}", "", "NoSchedule")]) for i in range(40)]
    cluster = make_cluster(*nodes, make_class(1, cpu=1), make_tasks([1], 1))
    found = certificate(cluster)
    assert (len(found.constraints), found.is_smallest) == (40, True)


def test_taints_of_one_key_with_many_values_are_one_constraint():
    """Each node is dedicated to a user."""
    nodes = [make_node(f"n{i}", cpu=8, taints=[Taint("user", f"u{i}", "NoSchedule")]) for i in range(40)]
    cluster = make_cluster(*nodes, make_class(1, cpu=1), make_tasks([1], 1))
    found = certificate(cluster)
    assert found.constraints == (Constraint(TAINT, "user", "", 40, 0),)
    assert [(each.nodes, each.without) for each in found.remedies] == [(40, found.constraints)]


KEYS = ("x", "y")
AMOUNT = st.integers(1, 4)
TAINTS, LABELS = st.sets(st.sampled_from([GPU, OLD])), st.sets(st.sampled_from(KEYS))
NODES = st.lists(st.tuples(AMOUNT, AMOUNT, TAINTS, LABELS), min_size=1, max_size=5)


@examples(60)
@given(NODES, st.tuples(AMOUNT, AMOUNT), LABELS, TAINTS)
def test_beside_all_sets_of_constraints(nodes, requests, selected, tolerated):
    described = [
        make_node(f"n{i}", cpu=cpu, memory=memory, taints=sorted(taints, key=str), labels=dict.fromkeys(labels, ""))
        for i, (cpu, memory, taints, labels) in enumerate(nodes)
    ]
    cpu, memory = requests

    def asking(number: int, keys, taints, cpu: int, memory: int):
        demand = NodeDemand(
            selector=tuple(needs(key) for key in sorted(keys)),
            tolerations=tuple(Toleration(each.key, "Exists", "", "") for each in sorted(taints, key=str)),
        )
        return make_class(number, demand=demand, cpu=cpu, memory=memory)

    cluster = make_cluster(*described, asking(1, selected, tolerated, cpu, memory), make_tasks([1], 1))
    failures = [
        {f"taint {each.key}" for each in taints - tolerated}
        | {f"label {key}" for key in selected - labels}
        | ({"cpu"} if has_cpu < cpu else set())
        | ({"memory"} if has_memory < memory else set())
        for has_cpu, has_memory, taints, labels in nodes
    ]
    found = certificate(cluster)
    named = {name_of(each) for each in found.constraints}
    if not all(failures):
        assert found == Blocking((), True, ())
        return

    # it blocks, and nothing smaller does
    assert all(named & failed for failed in failures)
    every = sorted(set().union(*failures))
    for size in range(len(named)):
        assert not any(all(set(some) & failed for failed in failures) for some in combinations(every, size))

    # without any one of these and no others it fits
    for gone in named:
        assert any(not (named - {gone}) & failed for failed in failures)

    # what would have to go is what the nodes fail, smallest first; and it does help
    sizes = [len(each.without) for each in found.remedies]
    assert sizes[0] == min(map(len, failures))
    assert sizes == sorted(sizes)
    for each in found.remedies:
        removed = {name_of(constraint) for constraint in each.without}
        assert removed == failures[int(each.node[1:])]
        assert each.nodes == sum(removed == failed for failed in failures)
    without = found.remedies[0].without
    less = {each.detail: each.short for each in without if each.kind is SHORT}
    removed = {name_of(each) for each in without}
    changed = asking(
        2,
        {key for key in selected if f"label {key}" not in removed},
        tolerated | {each for each in (GPU, OLD) if f"taint {each.key}" in removed},
        cpu - less.get("cpu", 0),
        memory - less.get("memory", 0),
    )
    cluster.tell(changed, make_tasks([2], 2))
    assert 2 in cluster.round()


def name_of(constraint: Constraint) -> str:
    if constraint.kind is TAINT:
        return f"taint {constraint.detail}"
    return f"label {constraint.value}" if constraint.kind is SELECTOR else constraint.detail


@pytest.mark.parametrize(
    ("needed", "topology", "could"),
    [(3, "", True), (4, "", False), (2, "rack", True), (3, "rack", False)],
)
def test_a_bound_counts_places_on_emptied_nodes(needed, topology, could):
    """Two racks of nodes that take two and one; a daemon of one cpu stays on the third."""
    rack = [{"rack": name} for name in "xxy"]
    cluster = make_cluster(
        make_node("a", cpu=2, labels=rack[0]),
        make_node("b", cpu=2, labels=rack[1]),
        make_node("c", cpu=3, labels=rack[2]),
        make_class(1, cpu=2),
        make_class(2, cpu=1),
        make_tasks([9], 1, on="a"),
        make_tasks([10], 2, on="c", daemon=True),
        make_tasks([1, 2, 3, 4], 1),
    )
    rows = cluster.state.task_rows(np.array([1, 2, 3, 4], np.uint64))
    assert could_ever_fit(cluster.state, rows, needed, topology) == could

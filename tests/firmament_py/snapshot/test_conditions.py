"""What constraints say of a node once tasks on it are gone, against those of a cluster without these tasks."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.constraints import NodeDemand, PeerDemand, PeerTerm, Spread, Taint
from firmament_py.snapshot.intertask import IntertaskConstraints
from firmament_py.snapshot.running_tasks import RunningTasks
from tests.builders import make_class, make_cluster, make_label_set, make_node, make_tasks, needs, tasks_like

HOST, ZONE = "kubernetes.io/hostname", "zone"
SELECTORS = [tasks_like(needs("app", "In", "a")), tasks_like(needs("app", "In", "b")), tasks_like(needs("app"))]
terms = st.builds(PeerTerm, st.sampled_from(SELECTORS), st.sampled_from([HOST, ZONE]))
spreads = st.builds(
    Spread,
    st.sampled_from(SELECTORS),
    st.sampled_from([HOST, ZONE]),
    st.integers(1, 2),
    st.integers(1, 3),
    st.booleans(),
    st.booleans(),
)
peers = st.builds(
    PeerDemand,
    st.lists(terms, max_size=2).map(tuple),
    st.lists(terms, max_size=2).map(tuple),
    st.lists(spreads, max_size=2).map(tuple),
)
APPS = ["", "a", "b"]
NODES = ["n1", "n2", "n3", "n4"]


@st.composite
def worlds(draw):
    """Nodes of two zones or none, tasks on them, and task 1, which waits."""
    zones = draw(st.lists(st.sampled_from(["x", "y", ""]), min_size=4, max_size=4))
    tainted = draw(st.lists(st.booleans(), min_size=4, max_size=4))
    nodes = [
        make_node(
            name,
            labels={HOST: name, **({ZONE: zone} if zone else {})},
            taints=(Taint("t", "", "NoSchedule"),) if taint else (),
        )
        for name, zone, taint in zip(NODES, zones, tainted, strict=True)
    ]
    classes = [make_class(1, peers=draw(peers), demand=NodeDemand()), make_class(8), make_class(9, peers=draw(peers))]
    labels = [make_label_set(number, **({"app": app} if app else {})) for number, app in enumerate(APPS, 1)]
    running = [
        make_tasks(
            [uid],
            draw(st.sampled_from([8, 9])),
            on=draw(st.sampled_from(NODES)),
            label_set=draw(st.integers(1, 3)),
            leaving=draw(st.integers(0, 4)) == 0,
        )
        for uid in range(11, 11 + draw(st.integers(0, 8)))
    ]
    waiting = make_tasks([1], 1, label_set=draw(st.integers(1, 3)))
    return make_cluster(*nodes, *classes, *labels, *running, waiting)


def intertask(cluster, gone):
    state, nodes = cluster.state, cluster.state.present_nodes()
    row = state.task_row(1)
    classes, label_sets = state.tasks.cls[row : row + 1], state.tasks.label_set[row : row + 1]
    return IntertaskConstraints(state, nodes, classes, label_sets, RunningTasks(state, nodes, gone=gone))


@given(cluster=worlds(), seed=st.integers(0, 2**16))
def test_a_node_meets_all_conditions_if_it_is_allowed_without_the_tasks_that_are_gone(cluster, seed):
    state, nodes = cluster.state, cluster.state.present_nodes()
    conditions = intertask(cluster, np.zeros(0, np.int64)).conditions(0)
    tasks = state.tasks
    for at, node in enumerate(nodes.tolist()):
        there = np.flatnonzero((tasks.node == node) & tasks.on_nodes)
        gone = there[np.random.default_rng(seed).random(len(there)) < 0.6]
        counted = [each.counted(tasks.cls[gone], tasks.label_set[gone], tasks.leaving[gone]) for each in conditions]
        met = [
            bool(each.met(np.array([at]), np.array([of.sum()]))[0])
            for each, of in zip(conditions, counted, strict=True)
        ]
        assert all(met) == intertask(cluster, gone).allowed(0)[at]


@given(cluster=worlds())
def test_without_any_that_are_gone_the_nodes_are_those_allowed(cluster):
    found = intertask(cluster, np.zeros(0, np.int64))
    every = np.arange(len(NODES))
    met = np.ones(len(NODES), np.bool_)
    for condition in found.conditions(0):
        met &= condition.met(every, np.zeros(len(NODES), np.int64))
    assert met.tolist() == found.allowed(0).tolist()

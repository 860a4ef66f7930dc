"""The complete transition tables: listed transitions happen, others are refused and change nothing."""

import itertools

import numpy as np
import pytest

from firmament_py.model.events import Event, NodeRemoved, Outcome, PlacementRejected
from firmament_py.model.lifecycle import (
    ILLEGAL,
    NODE_TRANSITIONS,
    TASK_NEXT,
    TASK_TRANSITIONS,
    NodeEvent,
    NodeState,
    TaskEvent,
    TaskState,
)
from firmament_py.model.placed_by import PlacedBy
from tests.builders import Cluster, ended, make_class, make_cluster, make_node, make_tasks, removed

PAIRS = list(itertools.product(TaskState, TaskEvent))


@pytest.mark.parametrize(("state", "event"), [pytest.param(s, e, id=f"{s.name}-{e.name}") for s, e in PAIRS])
def test_the_matrix_is_the_table(state, event):
    assert TASK_NEXT[state, event] == TASK_TRANSITIONS.get((state, event), ILLEGAL)


def test_the_matrix_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        TASK_NEXT[TaskState.GONE, TaskEvent.PLACE] = TaskState.ASSUMED


def test_no_state_is_called_illegal():
    assert ILLEGAL not in {*TaskState}


def _cluster_with_task(state: TaskState) -> Cluster:
    """A cluster whose task 7 is in `state`, on node a if it has a node."""
    cluster = make_cluster(make_node("a", cpu=10), make_node("b", cpu=10), make_class(1, cpu=2))
    if state is TaskState.GONE:
        return cluster
    cluster.tell(make_tasks([7], 1, on="a" if state is TaskState.BOUND else None))
    if state is TaskState.ASSUMED:
        _place(cluster)
    if state is TaskState.ENDED:
        cluster.tell(ended(7))
    assert _state(cluster) is state
    return cluster


def _place(cluster: Cluster) -> None:
    rows, nodes = [cluster.state.task_row(7)], [cluster.state.node_row("id-a")]
    cluster.state.place(np.array(rows), np.array(nodes), np.array([PlacedBy.FLOW]))


def _state(cluster: Cluster) -> TaskState:
    row = cluster.state.task_row(7)
    return TaskState.GONE if row is None else TaskState(int(cluster.state.tasks.state[row]))


def _everything(cluster: Cluster) -> tuple:
    """All values that an event could change."""
    state = cluster.state
    tasks = {
        int(state.tasks.uid[r]): (int(state.tasks.state[r]), int(state.tasks.node[r]), int(state.tasks.cls[r]))
        for r in state.tasks.rows()
    }
    return tasks, state.nodes.used.tolist(), state.nodes.tasks.tolist(), state.classes.tasks.tolist()


EVENTS: dict[TaskEvent, Event] = {
    TaskEvent.OBSERVE_WAITING: make_tasks([7], 1),
    TaskEvent.OBSERVE_BOUND: make_tasks([7], 1, on="a"),
    TaskEvent.REJECT: PlacementRejected(7, "id-a"),
    TaskEvent.END: ended(7),
    TaskEvent.REMOVE: removed(7),
}
"""What has to be told for a TaskEvent; PLACE comes from a round instead."""


@pytest.mark.parametrize(
    ("state", "event"), [pytest.param(s, e, id=f"{s.name}-{e.name}") for s, e in PAIRS if e is not TaskEvent.PLACE]
)
def test_a_task_follows_the_table_or_nothing_changes(state, event):
    cluster = _cluster_with_task(state)
    before = _everything(cluster)
    (outcome,) = cluster.tell(EVENTS[event])
    target = TASK_TRANSITIONS.get((state, event))
    if target is None:
        assert outcome != Outcome(), "an event that changes nothing is not passed over in silence"
        assert _everything(cluster) == before
    else:
        assert outcome == Outcome()
        assert _state(cluster) is target


@pytest.mark.parametrize("state", [s for s in TaskState if s is not TaskState.GONE], ids=lambda s: s.name)
def test_only_a_waiting_task_is_placed(state):
    cluster = _cluster_with_task(state)
    before = _everything(cluster)
    if state is TaskState.WAITING:
        _place(cluster)
        assert _state(cluster) is TaskState.ASSUMED
    else:
        with pytest.raises(ValueError, match="only a waiting task"):
            _place(cluster)
        assert _everything(cluster) == before
    cluster.state.validate()


def test_a_task_is_placed_once():
    cluster = make_cluster(make_node("a"), make_class(1), make_tasks([7], 1))
    before = _everything(cluster)
    row = cluster.state.task_row(7)
    with pytest.raises(ValueError, match="and only once"):
        cluster.state.place(np.array([row, row]), np.array([0, 0]), np.array([PlacedBy.FLOW] * 2))
    assert _everything(cluster) == before


@pytest.mark.parametrize(
    ("state", "event", "reported"),
    [
        pytest.param(TaskState.BOUND, TaskEvent.OBSERVE_WAITING, "waiting, but it is bound", id="unbound"),
        pytest.param(TaskState.ENDED, TaskEvent.OBSERVE_WAITING, "waiting, but it is ended", id="revived"),
        pytest.param(TaskState.ENDED, TaskEvent.OBSERVE_BOUND, "bound to a node, but it is ended", id="revived-bound"),
    ],
)
def test_a_refusal_names_task_state_and_remedy(state, event, reported):
    (outcome,) = _cluster_with_task(state).tell(EVENTS[event])
    (refusal,) = outcome.refused
    assert (refusal.kind, refusal.id, refusal.field) == ("task", "task-7", "node")
    assert reported in refusal.reason
    assert "remove it first" in refusal.reason


def test_an_illegal_task_does_not_spoil_its_batch():
    cluster = _cluster_with_task(TaskState.BOUND)
    (outcome,) = cluster.tell(make_tasks([6, 7, 8], 1))
    assert [r.id for r in outcome.refused] == ["task-7"]
    assert cluster.waiting() == {6, 8}


def _node_state(cluster: Cluster) -> NodeState:
    row = cluster.state.nodes.row.get("id-n")
    return NodeState.GONE if row is None else NodeState(int(cluster.state.nodes.state[row]))


def test_a_node_goes_through_all_of_its_table():
    """REFER by a bound task, OBSERVE, REMOVE, REFER again, ABANDON by its last task: absent, present, gone."""
    cluster = make_cluster(make_class(1, cpu=1))
    steps: list[tuple[Event, NodeEvent | None, NodeState]] = [
        (make_tasks([1], 1, on="n"), NodeEvent.REFER, NodeState.ABSENT),
        (make_tasks([2], 1, on="n"), NodeEvent.REFER, NodeState.ABSENT),
        (make_node("n", cpu=9), NodeEvent.OBSERVE, NodeState.PRESENT),
        (make_node("n", cpu=8), NodeEvent.OBSERVE, NodeState.PRESENT),
        (make_tasks([3], 1, on="n"), NodeEvent.REFER, NodeState.PRESENT),
        (NodeRemoved("id-n"), NodeEvent.REMOVE, NodeState.ABSENT),
        (make_node("n", cpu=8), NodeEvent.OBSERVE, NodeState.PRESENT),
        (NodeRemoved("id-n"), NodeEvent.REMOVE, NodeState.ABSENT),
        (removed(1, 2), None, NodeState.ABSENT),
        (removed(3), NodeEvent.ABANDON, NodeState.GONE),
        (make_node("n", cpu=7), NodeEvent.OBSERVE, NodeState.PRESENT),
        (NodeRemoved("id-n"), None, NodeState.GONE),  # REMOVE, then ABANDON at once: it has no tasks
    ]
    walked = set()
    for event, kind, after in steps:
        before = _node_state(cluster)
        cluster.tell(event)
        assert _node_state(cluster) is after, (event, kind)
        if kind is not None:
            assert NODE_TRANSITIONS[before, kind] is after
            walked.add((before, kind))
    # GONE > PRESENT happens by way of ABSENT: the first mention makes the row
    assert walked | {(NodeState.GONE, NodeEvent.OBSERVE)} == set(NODE_TRANSITIONS)


@pytest.mark.parametrize("node_id", ["id-x", "", "id-absent"])
def test_removing_an_unknown_node_is_reported_and_changes_nothing(node_id):
    cluster = make_cluster(make_node("a", cpu=1), make_class(1, cpu=1), make_tasks([1], 1, on="absent"))
    before = _everything(cluster)
    (outcome,) = cluster.tell(NodeRemoved(node_id))
    assert outcome.unknown == [node_id]
    assert _everything(cluster) == before


@pytest.mark.parametrize(
    "observed",
    [
        pytest.param(("b", 1), id="another-node"),
        pytest.param(("b", 2), id="another-node-and-class"),
        pytest.param(("a", 2), id="another-class"),
    ],
)
@pytest.mark.parametrize("known", [True, False], ids=["node-known", "node-not-known"])
def test_the_resources_of_a_task_move_with_it(observed, known):
    """Its old node gets all resources back, and is removed if only this task referred to it."""
    name, cls = observed
    classes = make_class(1, cpu=2), make_class(2, cpu=3)
    cluster = make_cluster(make_node("other", cpu=1), *classes, make_tasks([7], 1, on="a"))
    if known:
        cluster.tell(make_node("a", cpu=10), make_node("b", cpu=10))
    cluster.tell(make_tasks([7], cls, on=name))
    state = cluster.state
    cpu = state.resources.column("cpu")
    in_use = {i: int(state.nodes.used[row, cpu]) for i, row in state.nodes.row.items()}
    amount = {1: 2, 2: 3}[cls]
    assert in_use[f"id-{name}"] == amount
    assert sum(in_use.values()) == amount
    assert set(in_use) == {"id-other", *(("id-a", "id-b") if known else (f"id-{name}",))}

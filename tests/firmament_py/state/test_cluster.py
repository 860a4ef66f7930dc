"""Single events of the cluster state: what they change, refusals, overlaps, names."""

import numpy as np
import pytest

from firmament_py.model.changes import NOTHING, Change
from firmament_py.model.constraints import NodeDemand, Taint, Term
from firmament_py.model.events import (
    ClassDefined,
    LabelSetDefined,
    NodeObserved,
    NodeRemoved,
    Outcome,
    PlacementRejected,
)
from firmament_py.model.lifecycle import ASSUMED, BOUND, WAITING
from firmament_py.state.classes import SPARE_ROWS
from firmament_py.state.cluster import ClusterState
from firmament_py.state.history import History
from firmament_py.state.label_sets import SPARE_ROWS as SPARE_LABEL_SETS
from firmament_py.state.table import UNKNOWN
from tests.builders import (
    NOW_US,
    any_of,
    ended,
    make_class,
    make_cluster,
    make_node,
    make_tasks,
    needs,
    removed,
    selecting,
)


def small_cluster():
    """Task 1 bound to a, task 2 waiting."""
    return make_cluster(
        make_node("a", cpu=4),
        make_class(1, cpu=1),
        make_class(2, cpu=2),
        make_tasks([1], 1, on="a"),
        make_tasks([2], 1),
    )


C = Change


@pytest.mark.parametrize(
    ("event", "changes", "due"),
    [
        pytest.param(make_tasks([2], 9), NOTHING, False, id="task-again"),
        pytest.param(make_tasks([2], 2), C.ARRIVAL | C.WITHDRAWAL, True, id="task-of-another-class"),
        pytest.param(make_tasks([3], 1), C.ARRIVAL, True, id="new-task"),
        pytest.param(make_tasks([3], 1, on="a"), NOTHING, False, id="new-task-with-a-node"),
        pytest.param(make_tasks([1], 1, on="b"), C.RELEASE, True, id="bound-task-moved"),
        pytest.param(make_node("a", cpu=4), NOTHING, False, id="node-again"),
        pytest.param(make_node("a", cpu=5), C.NODE_GROWS, True, id="node-grew"),
        pytest.param(make_node("a", cpu=3), C.NODE_SHRINKS, False, id="node-shrank"),
        pytest.param(make_node("a", cpu=4, labels={"k": "v"}), C.NODE_LABELS, False, id="node-labelled"),
        pytest.param(
            make_node("a", cpu=4, taints=[Taint("k", "", "NoSchedule")]), C.NODE_TAINTS, False, id="node-tainted"
        ),
        pytest.param(make_node("b"), C.NODE_ADDED, True, id="new-node"),
        pytest.param(NodeRemoved("id-a"), C.NODE_REMOVED, False, id="node-removed"),
        pytest.param(removed(1), C.RELEASE, True, id="room-freed"),
        pytest.param(ended(1), C.RELEASE, True, id="room-freed-by-an-end"),
        pytest.param(removed(2), C.WITHDRAWAL, False, id="waiting-task-gone"),
        pytest.param(make_class(3), NOTHING, False, id="class-alone"),
        pytest.param(PlacementRejected(2, "id-a"), NOTHING, False, id="rejection-of-nothing"),
    ],
)
def test_what_changes_and_whether_that_makes_a_round_due(event, changes, due):
    """Task 2 waits for 9 cpu, of which node a has 4: labels and taints of nodes are nothing to it."""
    cluster = make_cluster(
        *(make_node("a", cpu=4), make_class(1, cpu=1), make_class(2, cpu=2), make_class(9, cpu=9)),
        *(make_tasks([1], 1, on="a"), make_tasks([2], 9)),
    )
    assert cluster.round() == {}
    cluster.tell(event)
    assert Change(cluster.state.changes.happened) == changes
    assert cluster.scheduler.due(NOW_US) is due


def test_a_rejection_makes_a_round_due_at_once_or_later():
    cluster = small_cluster()
    cluster.run(NOW_US)
    cluster.tell(PlacementRejected(2, "id-a", NOW_US + 50))
    assert cluster.run(NOW_US + 1).stats.pending == 0
    assert cluster.scheduler.wake_us(NOW_US + 1) == NOW_US + 50
    assert not cluster.scheduler.due(NOW_US + 49)
    assert cluster.scheduler.due(NOW_US + 50)
    assert cluster.round(NOW_US + 50) == {2: "a"}
    assert cluster.scheduler.wake_us(NOW_US + 50) == 0


@pytest.mark.parametrize(
    ("event", "field", "reason"),
    [
        pytest.param(ClassDefined(0, {}), "id", "must not be 0", id="class-zero"),
        pytest.param(make_class(9, cpu=-1), "requests[cpu]", "is -1; give an amount of 0 or more", id="negative"),
        pytest.param(make_class(9, expected_us=-1), "expected_us", "give 0 for unknown", id="negative-expectation"),
        pytest.param(make_class(1, cpu=1, expected_us=3), "id", "use another id", id="other-expectation"),
        pytest.param(make_class(1, cpu=9), "id", "use another id", id="other-content"),
        pytest.param(make_class(1, cpu=1, priority=3), "id", "use another id", id="other-priority"),
        pytest.param(NodeObserved("", "a", {}), "id", "give the node's UUID", id="node-without-id"),
        pytest.param(make_node("a", cpu=-1), "allocatable[cpu]", "0 or more", id="node-negative"),
    ],
)
def test_invalid_events_are_refused_with_a_remedy_and_change_nothing(event, field, reason):
    cluster = small_cluster()
    before = cluster.state.changes.number
    (outcome,) = cluster.tell(event)
    (refusal,) = outcome.refused
    assert refusal.field == field
    assert reason in refusal.reason
    assert cluster.state.changes.number == before
    assert len(cluster.state.classes) == 2
    assert cluster.state.nodes.allocatable[cluster.state.node_row("id-a")].max() == 110


def test_a_class_can_be_described_twice():
    cluster = small_cluster()
    assert cluster.tell(make_class(1, cpu=1)) == [Outcome()]
    assert len(cluster.state.classes) == 2


def test_a_class_takes_one_task_slot_whatever_it_requests():
    cluster = make_cluster(make_node("a", pods=2), make_class(1, pods=50), make_tasks([1, 2, 3], 1))
    assert len(cluster.round()) == 2


def test_tasks_of_unknown_classes_are_left_out_and_the_others_are_not():
    cluster = small_cluster()
    (outcome,) = cluster.tell(make_tasks([5, 6, 7], [1, 77, 78]))
    assert outcome.unknown_classes == {77, 78}
    assert cluster.waiting() == {2, 5}


def test_of_a_repeated_uid_the_last_row_counts():
    cluster = small_cluster()
    cluster.tell(make_tasks([5, 6, 5], [1, 1, 2]))
    state = cluster.state
    assert int(state.classes.id[state.tasks.cls[state.task_row(5)]]) == 2
    assert len(state.tasks) == 4


def test_a_bound_task_counts_before_its_node_is_known():
    # 3 of 4 cpu are taken when the node comes, so one of two tasks fits
    cluster = make_cluster(
        make_class(1, cpu=3),
        make_class(2, cpu=1),
        make_tasks([1], 1, on="a"),
        make_tasks([2, 3], 2),
        make_node("a", cpu=4),
    )
    assert list(cluster.round().values()) == ["a"]


def test_a_node_that_comes_back_still_holds_its_tasks():
    cluster = make_cluster(make_node("a", cpu=4), make_class(1, cpu=3), make_tasks([1], 1, on="a"))
    cluster.tell(NodeRemoved("id-a"), make_node("a", cpu=4), make_tasks([2], 1))
    assert cluster.round() == {}
    cluster.tell(removed(1))
    assert cluster.round() == {2: "a"}


def test_a_node_that_shrinks_below_its_usage_takes_no_more_of_that_resource():
    cluster = make_cluster(
        make_node("a", cpu=4, memory=9),
        make_class(1, cpu=4),
        make_class(2, cpu=1),
        make_class(3, memory=1),
        make_tasks([1], 1, on="a"),
        make_node("a", cpu=2, memory=9),
        make_tasks([2], 2),
        make_tasks([3], 3),
    )
    assert cluster.round() == {3: "a"}


def test_a_confirmed_placement_cannot_be_rejected():
    cluster = small_cluster()
    assert cluster.round() == {2: "a"}
    (bound, rejected) = cluster.tell(make_tasks([2], 1, on="a"), PlacementRejected(2, "id-a"))
    assert bound == Outcome()
    assert rejected.unknown == [2]
    assert cluster.waiting() == set()


def test_a_rejection_of_another_node_is_ignored():
    cluster = make_cluster(make_node("a"), make_class(1), make_tasks([1], 1), make_node("b", pods=0))
    assert cluster.round() == {1: "a"}
    (outcome,) = cluster.tell(PlacementRejected(1, "id-b"))
    assert outcome.unknown == [1]
    assert cluster.waiting() == set()


@pytest.mark.parametrize(
    ("demand", "labels"),
    [
        pytest.param(selecting(needs("k", "Gt", "many")), {"k": "9"}, id="gt-a-word"),
        pytest.param(selecting(needs("k", "Lt")), {"k": "9"}, id="lt-nothing"),
        pytest.param(any_of(Term((needs("k", "Gt", "1", "2"),))), {"k": "9"}, id="gt-two"),
        pytest.param(selecting(needs("k", "Lt", "9" * 6000)), {"k": "9"}, id="lt-absurd"),
    ],
)
def test_a_bound_that_is_no_integer_matches_no_node(demand, labels):
    """Kubernetes also accepts such a pod, and finds no node for it."""
    cluster = make_cluster(make_node("a", labels=labels), make_class(1, demand=demand), make_tasks([1], 1))
    assert cluster.round() == {}


# -- what is forgotten --------------------------------------------------------------------------------------------


def known(state: ClusterState, *numbers: int) -> list[bool]:
    return [row >= 0 for row in state.classes.find(np.array(numbers, np.uint64)).tolist()]


def test_many_classes_unused_at_two_consecutive_sweeps_are_removed():
    state = make_cluster(make_class(1), make_tasks([1], 1)).state
    last = SPARE_ROWS + 2
    for number in range(2, last + 1):
        state.apply(make_class(number))
    state.sweep()
    assert known(state, 1, 2, last) == [True, True, True], "what was just described may be about to be used"
    state.apply(make_tasks([2], 2))
    state.apply(make_class(last + 1))
    state.sweep()
    state.validate()
    # 1 and 2 are in use; last + 1 has been unused for one sweep only
    assert known(state, 1, 2, 3, last, last + 1) == [True, True, False, False, True]
    assert state.apply(make_tasks([3], 3)).unknown_classes == {3}, "asked for again"


def test_few_unused_classes_are_kept():
    state = make_cluster(*(make_class(number) for number in range(1, SPARE_ROWS + 1))).state
    for _ in range(3):
        state.sweep()
    assert len(state.classes) == SPARE_ROWS


def test_a_round_sweeps():
    cluster = make_cluster(*(make_class(number) for number in range(1, SPARE_ROWS + 2)))
    cluster.round()
    assert len(cluster.state.classes) == SPARE_ROWS + 1
    cluster.round()
    assert len(cluster.state.classes) == 0


def test_unused_label_sets_are_removed_except_the_empty_one():
    state = make_cluster(make_class(1)).state
    count = SPARE_LABEL_SETS + 1
    for number in range(1, count + 1):
        state.apply(LabelSetDefined(number, "default", {"app": str(number)}))
    state.apply(make_tasks([1], 1, label_set=7))
    state.apply(LabelSetDefined(count + 1, "default", {}))
    state.sweep()
    assert len(state.label_sets) == count + 2
    state.sweep()
    state.validate()
    assert state.label_sets.find(np.array([0, 7, 8, count], np.uint64)).tolist()[2:] == [UNKNOWN, UNKNOWN]
    assert len(state.label_sets) == 2
    assert not state.apply(make_tasks([2], 1)).unknown_label_sets, "no labels need no description"
    assert state.apply(make_tasks([3], 1, label_set=8)).unknown_label_sets == {8}


def test_events_of_a_task_are_listed_in_order():
    cluster = small_cluster()
    cluster.round()
    cluster.tell(PlacementRejected(2, "id-a"))
    cluster.round()
    cluster.tell(make_tasks([2], 1, on="a"), ended(2))
    placed = "placed by cheapest slots on a"
    story = ["observed", placed, "rejected on a", placed, "observed on a", "succeeded"]
    assert cluster.state.history.story(2) == story
    cluster.tell(removed(2))
    assert cluster.state.history.story(2) == [*story, "removed"]
    assert cluster.state.history.story(99) == []


def test_events_name_a_removed_node():
    cluster = make_cluster(make_node("a"), make_class(1), make_tasks([1], 1))
    cluster.round()
    cluster.tell(NodeRemoved("id-a"))
    assert cluster.state.history.story(1) == ["observed", "placed by cheapest slots on a"]


def test_events_never_name_a_node_that_the_task_was_not_on():
    cluster = make_cluster(make_node("a"), make_class(1), make_tasks([1], 1))
    cluster.round()
    cluster.tell(PlacementRejected(1, "id-a"), NodeRemoved("id-a"), make_node("b"))
    assert "placed on b" not in cluster.state.history.story(1)


def test_the_history_is_bounded(monkeypatch):
    monkeypatch.setattr("firmament_py.state.history._MAX_ENTRIES", 10)
    history = History()
    for i in range(8):
        history.add(f"step {i}", np.array([7, 8], np.uint64))
    # a batch of two counts for three: at most three batches stay
    assert history.story(7) == ["step 5", "step 6", "step 7"]


def test_an_empty_state_is_valid():
    state = ClusterState()
    state.validate()
    assert state.present_nodes().tolist() == []
    assert (state.task_row(1), state.node_row("x")) == (None, None)
    assert state.apply(make_class(1, demand=NodeDemand())) == Outcome()


def test_the_sum_of_absurd_requests_does_not_overflow():
    """Tasks that others bound there: each counts for 2**50, so that the sum of 1025 stays below 2**61."""
    cluster = make_cluster(make_node("a", pods=5000, cpu=10), make_class(1, cpu=2**63 - 1), make_class(2, cpu=1))
    cluster.state.apply(make_tasks(range(1, 1026), 1, on="a"))
    cluster.state.apply(make_tasks([5000], 2))
    assert len(cluster.scheduler.run(NOW_US).tasks) == 0


@pytest.mark.parametrize("status", [WAITING, ASSUMED, BOUND], ids=["waiting", "assumed", "bound"])
@pytest.mark.parametrize("unevictable", [False, True], ids=["", "unevictable"])
@pytest.mark.parametrize("leaving", [False, True], ids=["", "leaving"])
def test_which_tasks_may_be_evicted(status, unevictable, leaving):
    fields = {"unevictable": unevictable, "leaving": leaving, "on": "a" if status == BOUND else None}
    cluster = make_cluster(make_class(1), make_node("a"), make_tasks([1], 1, **fields))
    if status == ASSUMED:
        cluster.round()
    tasks = cluster.state.tasks
    [row] = tasks.rows().tolist()
    assert tasks.state[row] == status
    assert tasks.evictable[row] == (status == BOUND and not unevictable and not leaving)

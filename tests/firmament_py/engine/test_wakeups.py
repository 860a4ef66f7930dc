"""Waiting tasks are tried again after whatever can end their wait, and after nothing else: explain/wakeups.py has the
table, docs/architecture.md shows it."""

import re
from pathlib import Path
from typing import Any

import pytest

from firmament_py.engine import wakeups
from firmament_py.explain.reason import ReasonKind
from firmament_py.explain.wakeups import ENDED_BY, Unreported
from firmament_py.model.changes import ANY, Change
from firmament_py.model.constraints import PeerDemand, PeerTerm, Spread, Taint
from firmament_py.model.events import NodeRemoved, PlacementRejected
from firmament_py.model.options import Preempting
from firmament_py.model.queues import Stop
from tests.builders import (
    NOW_US,
    SECOND_US,
    make_class,
    make_cluster,
    make_gang,
    make_label_set,
    make_node,
    make_tasks,
    needs,
    removed,
    selecting,
    tasks_like,
)
from tests.effort import THOROUGH, seeds
from tests.firmament_py.engine.reclaiming import A, B, cluster_of, cohort, running
from tests.firmament_py.engine.wake_kinds import KINDS, cpus, of_one_kind
from tests.firmament_py.engine.wake_worlds import World
from tests.firmament_py.queues.trees import queue, queue_id

CPU1 = make_class(1, cpu=1)


# -- the property -----------------------------------------------------------------------------------------------------

STEPS = 120 if THOROUGH else 25


@pytest.mark.slow
@seeds(8)
@pytest.mark.parametrize("name", KINDS)
def test_nothing_could_be_placed_when_no_round_is_due(name, seed, monkeypatch):
    """After each event the engine runs the rounds that it says are due; then one that knows nothing of earlier rounds,
    and considers everything, places and evicts nothing. Of the tasks that the first round serves, the event has woken
    some: a round is due if it wakes any, so others could hide that. Without the round that only refreshes reasons."""
    monkeypatch.setattr(wakeups, "REASONS_STEP_US", 10**15)
    world = World(KINDS[name], 100 * list(KINDS).index(name) + seed)
    world.rounds()
    for number in range(STEPS):
        event = world.step()
        if woken := world.woken():
            served = world.round()
            assert not served or served & woken, f"event {number}: {event}"
        world.rounds()
        assert not world.missed(), f"event {number}: {event}"


# -- events that were missed ------------------------------------------------------------------------------------------


def queued(uid: int, cls: int, name: str = "a", **fields: Any) -> Any:
    return make_tasks([uid], cls, queue=queue_id(name), created_us=NOW_US + uid, **fields)


FIFO = of_one_kind(queue("a", "", cpus(4), strict_fifo=True))
OLD_US = NOW_US - 1000 * SECOND_US


@pytest.mark.parametrize(
    ("events", "change", "placed"),
    [
        pytest.param(
            [make_node("n", cpu=9), FIFO, make_class(2, cpu=8), queued(1, 2), queued(2, 1)],
            removed(1),
            {2},
            id="the-head-of-a-fifo-queue-is-deleted",
        ),
        pytest.param(
            [make_node("n", cpu=9), FIFO, make_class(2, cpu=8), queued(1, 2), queued(2, 1)],
            queued(1, 2, "b"),
            {2},
            id="the-head-of-a-fifo-queue-goes-to-another",
        ),
        pytest.param(
            [make_node("n", cpu=9), FIFO, make_class(2, cpu=8), queued(1, 2), queued(2, 1)],
            PlacementRejected(1, "", NOW_US + SECOND_US),
            {2},
            id="the-head-of-a-fifo-queue-is-postponed",
        ),
        pytest.param(
            [
                *(make_node("n", cpu=4), make_class(2, cpu=4), make_class(3, cpu=3)),
                make_tasks([1], 3, on="n"),
                make_tasks([2], 2, created_us=OLD_US),
                make_tasks([3], 1),
            ],
            removed(2),
            {3},
            id="a-single-task-with-a-reservation-is-deleted",
        ),
        pytest.param(
            [
                *(make_node("n", cpu=4), make_class(3, cpu=3), make_gang(7, 2, created_us=OLD_US)),
                *(make_tasks([1], 3, on="n"), make_node("m", cpu=3), make_tasks([5], 3, on="m")),
                *(make_tasks([2, 3], 3, gang=7, created_us=OLD_US), make_tasks([4], 1)),
            ],
            removed(2),
            {4},
            id="a-member-of-a-gang-with-a-reservation-is-deleted",
        ),
        pytest.param(
            [
                make_node("n", cpu=2),
                make_gang(7, 1, maximum=1),
                make_tasks([1], 1, gang=7, on="n"),
                make_tasks([2], 1, gang=7),
            ],
            make_tasks([1], 1, gang=7, on="n", leaving=True),
            {2},
            id="a-member-of-a-full-gang-begins-to-leave",
        ),
        pytest.param(
            [make_node("n", cpu=2), make_class(3, cpu=3), make_tasks([1], 3)],
            make_node("n", cpu=3),
            {1},
            id="a-node-grows",
        ),
    ],
)
def test_what_waits_is_placed_after_an_event_that_frees_nothing_on_nodes(events, change, placed):
    """A queue that goes by age is blocked by its head alone, and a reservation lasts as long as its holder: Kueue's
    StrictFIFO, for one, takes the next workload at once when the head is deleted."""
    cluster = make_cluster(CPU1, *events)
    cluster.run()
    while cluster.scheduler.due(NOW_US):
        cluster.run()
    waits = cluster.waiting()
    assert placed <= waits
    cluster.tell(change)
    found: set[int] = set()
    while cluster.scheduler.due(NOW_US):
        found |= set(cluster.round())
    assert found == placed


def test_a_task_that_is_bound_may_be_evicted_for_another_queue():
    """A round that comes between its placement and its bind finds no victims; nothing else happens after the bind."""
    cluster = cluster_of(cohort(), running(range(1, 8), unevictable=True), make_tasks([8], 1, queue=B))
    assert cluster.round() == {8: "n"}
    cluster.tell(make_tasks([11], 1, queue=A))
    while cluster.scheduler.due(NOW_US):
        assert not cluster.preempted(cluster.run())
    cluster.tell(make_tasks([8], 1, queue=B, on="n"))
    assert cluster.scheduler.due(NOW_US)
    assert cluster.preempted(cluster.run()) == {8: 11}


def test_what_a_round_decides_is_followed_by_another_one_if_that_ends_a_wait():
    """A victim that leaves does not count for spreading any more: the bridge learns at once that a round is due."""
    even = PeerDemand(spread=(Spread(tasks_like(needs("app", "In", "a")), "zone"),))
    cluster = make_cluster(
        *(make_node("x", cpu=2, labels={"zone": "x"}), make_node("y", cpu=1, labels={"zone": "y"}, pods=1)),
        *(CPU1, make_class(2, cpu=1, peers=even), make_class(3, cpu=2, priority=5), make_label_set(1, app="a")),
        *(make_tasks([1], 1, on="x", label_set=1), make_tasks([9], 1, on="y", unevictable=True)),
        make_tasks([2], 2, label_set=1),
        preempting=Preempting.WITHIN_BUDGETS,
    )
    assert cluster.round() == {}
    cluster.tell(make_tasks([3], 3))
    assert cluster.preempted(cluster.run()) == {1: 3}
    assert cluster.scheduler.wake_us(NOW_US) == NOW_US


def test_a_task_that_no_node_took_is_considered_again_beside_what_a_round_has_placed():
    """Task 1 seeks a neighbour. Task 3 becomes one in a round in which task 2, which no node takes, has the rest of the
    quota: nothing happens after that."""
    seeking = PeerDemand(affinity=(PeerTerm(tasks_like(needs("app", "In", "b")), "zone"),))
    cluster = make_cluster(
        *(make_node("n", cpu=2, labels={"zone": "x"}), of_one_kind(queue("a", "", cpus(3)))),
        *(make_label_set(2, app="b"), make_class(2, cpu=1, peers=seeking), make_class(3, cpu=2, priority=5)),
        *(make_class(4, cpu=1, priority=9), queued(1, 2)),
    )
    assert cluster.round() == {}
    cluster.tell(queued(2, 3), queued(3, 4, label_set=2))
    assert cluster.round() == {3: "n"}
    assert cluster.scheduler.due(NOW_US)
    assert cluster.round() == {1: "n"}
    assert not cluster.scheduler.due(NOW_US)


def test_a_task_that_comes_last_in_its_queue_awaits_what_it_lacked_when_no_node_took_it():
    """Task 1 waits for quota that task 2 holds, which no node takes. Another scheduler binds its neighbour."""
    seeking = PeerDemand(affinity=(PeerTerm(tasks_like(needs("app", "In", "b")), "zone"),))
    cluster = make_cluster(
        *(make_node("n", cpu=3, labels={"zone": "x"}), of_one_kind(queue("a", "", cpus(2)))),
        *(make_label_set(2, app="b"), make_class(2, cpu=1, peers=seeking), CPU1, queued(1, 2)),
        *(make_class(3, cpu=2, priority=5, tokens=("port",)), make_class(4, cpu=0, tokens=("port",))),
        make_tasks([9], 4, on="n"),
    )
    assert cluster.round() == {}
    cluster.tell(queued(2, 3))
    while cluster.scheduler.due(NOW_US):
        assert cluster.round() == {}
    cluster.tell(make_tasks([10], 1, on="n", label_set=2))
    assert cluster.scheduler.due(NOW_US)
    assert cluster.round() == {1: "n"}


# -- events that end nothing ------------------------------------------------------------------------------------------

BIG = make_class(2, cpu=9)
CLOSED = of_one_kind(queue("a", "", cpus(4), stop=Stop.HOLD), queue("b", "", cpus(4)))
DISK = make_class(3, cpu=1, demand=selecting(needs("disk")))
NODE = make_node("n", cpu=4)
TAINT = (Taint("t", "", "NoSchedule"),)
MEMBERS = [make_gang(7, 3), make_tasks([1, 2], 1, gang=7)]


@pytest.mark.parametrize(
    ("events", "change"),
    [
        pytest.param([BIG, make_tasks([1], 2)], make_node("n", cpu=4, labels={"k": ""}), id="room-and-a-label"),
        pytest.param([BIG, make_tasks([1], 2)], make_node("n", cpu=4, taints=TAINT), id="room-and-a-taint"),
        pytest.param([BIG, make_tasks([1], 2)], make_node("n", cpu=3), id="room-and-a-node-that-shrinks"),
        pytest.param([BIG, make_tasks([1], 2)], make_tasks([5], 1, on="n"), id="room-and-a-task-bound-by-others"),
        pytest.param([BIG, make_tasks([1, 2], 2)], removed(2), id="room-and-another-that-waited"),
        pytest.param([BIG, make_tasks([1], 2)], NodeRemoved("id-m"), id="room-and-a-node-that-goes"),
        pytest.param([BIG, make_tasks([1], 2)], make_gang(8, 2), id="room-and-a-gang"),
        pytest.param([DISK, make_tasks([1], 3)], removed(9), id="a-selector-and-a-task-that-ends"),
        pytest.param([DISK, make_tasks([1], 3)], make_node("n", cpu=8), id="a-selector-and-a-node-that-grows"),
        pytest.param([CLOSED, queued(1, 1)], removed(9), id="a-closed-queue-and-a-task-that-ends"),
        pytest.param([CLOSED, queued(1, 1)], make_node("k", cpu=8), id="a-closed-queue-and-a-new-node"),
        pytest.param(MEMBERS, make_node("k", cpu=8), id="a-gang-that-lacks-members-and-a-new-node"),
        pytest.param(MEMBERS, removed(9), id="a-gang-that-lacks-members-and-a-task-that-ends"),
    ],
)
def test_an_event_that_ends_no_reason_wakes_nobody(events, change):
    cluster = make_cluster(NODE, make_node("m", cpu=1), CPU1, make_tasks([9], 1, on="n"), *events)
    while cluster.scheduler.due(NOW_US):
        cluster.run()
    cluster.tell(change)
    assert len(cluster.scheduler.wakeups.woken(NOW_US)) == 0
    assert not cluster.scheduler.due(NOW_US)
    # what is reported may have changed, for instance the number of nodes
    assert cluster.scheduler.wake_us(NOW_US) in (0, NOW_US + wakeups.REASONS_STEP_US)


def test_a_task_that_waits_for_one_reason_is_not_woken_for_another():
    cluster = make_cluster(NODE, CPU1, BIG, DISK, make_tasks([1], 2), make_tasks([2], 3))
    cluster.run()
    cluster.tell(make_node("n", cpu=4, labels={"k": ""}))
    assert cluster.state.tasks.uid[cluster.scheduler.wakeups.woken(NOW_US)].tolist() == [2]


@pytest.mark.parametrize("reason", ReasonKind)
def test_every_reason_names_what_ends_it(reason):
    assert ENDED_BY[reason]


# -- the documented table ---------------------------------------------------------------------------------------------

NAMES = {name for kind in (ReasonKind, Unreported) for name in kind.__members__}


def test_the_documentation_shows_the_table():
    """Rows of names of reasons, and of what ends them: names of changes, "all", "all but" some, or "time
    alone"."""
    text = (Path(__file__).parents[3] / "docs/architecture.md").read_text()
    rows = re.findall(r"^\| (`[A-Z_`, ]+`) \| (time alone|(?:all(?: but)?)? ?[A-Z_`, ]*) \|$", text, re.MULTILINE)
    shown: dict[str, Change] = {}
    for reasons, ends in rows:
        kinds = Change(0)
        for name in re.findall(r"`([A-Z_]+)`", ends):
            kinds |= Change[name]
        kinds = ANY & ~kinds if ends.startswith("all") else kinds
        shown |= dict.fromkeys(re.findall(r"`([A-Z_]+)`", reasons), kinds)
    assert shown == {reason.name: kinds for reason, kinds in ENDED_BY.items()}
    assert shown.keys() == NAMES

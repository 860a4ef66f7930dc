"""The ledger: the counts that a placement changes, and rollback of transactions."""

import numpy as np
import pytest

from firmament_py.model.constraints import PeerDemand, PeerTerm
from firmament_py.model.placed_by import PlacedBy
from firmament_py.placement.ledger import Ledger
from firmament_py.snapshot.expected_releases import FOREVER
from firmament_py.snapshot.snapshot import Snapshot, take_snapshot
from tests.builders import (
    NOW_US,
    SECOND_US,
    make_class,
    make_cluster,
    make_label_set,
    make_node,
    make_tasks,
    needs,
    tasks_like,
)

EVERYTHING = np.arange(4)


def snapshot() -> Snapshot:
    """Two nodes of 10 cpu; tasks 0 and 1 of 3 cpu run forever, tasks 2 and 3 of 2 cpu for a minute."""
    cluster = make_cluster(
        *(make_node("a", cpu=10), make_node("b", cpu=10)),
        make_class(1, cpu=3, traits={"kind": "long"}),
        make_class(2, cpu=2, expected_us=60 * SECOND_US, traits={"kind": "short"}),
        make_tasks([1, 2], 1),
        make_tasks([3, 4], 2),
    )
    return take_snapshot(cluster.state, NOW_US)


def counted(ledger: Ledger) -> list[object]:
    """All counts that a placement changes."""
    neighbours = ledger.snapshot.neighbour_counts.census("kind")[1]
    return [array.tolist() for array in (ledger.node_of, ledger.free, ledger.running, neighbours)]


def cpu(ledger: Ledger, free: np.ndarray) -> list[int]:
    amounts: list[int] = free[:, ledger.snapshot.resources.index("cpu")].tolist()
    return amounts


def test_placements_count_everywhere_and_removals_nowhere():
    ledger = Ledger(snapshot())
    before = counted(ledger)
    ledger.place(EVERYTHING, np.array([0, 1, 0, 0]), PlacedBy.FLOW)
    assert cpu(ledger, ledger.free) == [3, 7]
    assert ledger.running.tolist() == [3, 1]
    assert ledger.snapshot.neighbour_counts.census("kind")[1].tolist() == [[1, 2], [1, 0]]
    assert cpu(ledger, ledger.usage_of(EVERYTHING)) == [7, 3]
    ledger.remove(EVERYTHING)
    assert counted(ledger) == before


def test_a_transaction_rolls_back_only_its_placements():
    ledger = Ledger(snapshot())
    ledger.place(np.array([0]), np.array([1]), PlacedBy.FLOW)
    before = counted(ledger)
    with ledger.transaction():
        ledger.place(np.array([1, 2]), np.array([0, 1]), PlacedBy.FLOW)
        assert counted(ledger) != before
    assert counted(ledger) == before


def test_a_transaction_puts_back_what_was_removed_and_placed_elsewhere_within():
    """Also batches, by which the independent check orders placements, and which step has placed what."""
    ledger = Ledger(snapshot())
    ledger.place(np.array([0]), np.array([1]), PlacedBy.FLOW)
    ledger.place(np.array([1, 2]), np.array([0, 0]), PlacedBy.FLOW)
    ledger.reserve(NOW_US, np.full_like(ledger.free, 5), ledger.free, np.array([3]))
    before = counted(ledger), [part.tolist() for part in ledger.outcome()], ledger.unreserved.tolist()
    with ledger.transaction():
        ledger.remove(np.array([0, 1, 2]))
        ledger.place(np.array([0, 3]), np.array([0, 1]), PlacedBy.LISTS)
        ledger.place(np.array([1]), np.array([0]), PlacedBy.LISTS)
        assert counted(ledger) != before[0]
    assert (counted(ledger), [part.tolist() for part in ledger.outcome()], ledger.unreserved.tolist()) == before


def test_a_committed_transaction_stays_unless_the_outer_one_is_rolled_back():
    ledger = Ledger(snapshot())
    before = counted(ledger)
    with ledger.transaction() as outer:
        with ledger.transaction() as inner:
            ledger.place(np.array([2]), np.array([0]), PlacedBy.FLOW)
            inner.commit()
        assert ledger.node_of.tolist() == [-1, -1, 0, -1]
    assert inner.committed
    assert not outer.committed
    assert counted(ledger) == before


def test_an_error_rolls_back_placements():
    ledger = Ledger(snapshot())
    before = counted(ledger)

    def fail() -> None:
        with ledger.transaction():
            ledger.place(EVERYTHING, np.zeros(4, np.int64), PlacedBy.FLOW)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert counted(ledger) == before


def test_a_hypothesis_has_its_own_capacity_without_reservations_and_is_a_trial():
    ledger = Ledger(snapshot())
    ledger.reserve(NOW_US, np.zeros_like(ledger.free), ledger.free, np.array([0]))
    before = counted(ledger)
    with ledger.transaction(free=2 * ledger.free):
        assert ledger.trial
        assert not ledger.has_reservations
        assert cpu(ledger, ledger.unreserved) == [20, 20]
        ledger.place(np.array([0]), np.array([0]), PlacedBy.FLOW)
        assert cpu(ledger, ledger.free) == [17, 20]
    assert not ledger.trial
    assert ledger.has_reservations
    assert counted(ledger) == before


def test_a_hypothesis_cannot_be_committed():
    ledger = Ledger(snapshot())
    with (
        pytest.raises(RuntimeError, match="hypothetical capacity cannot be committed"),
        ledger.transaction(free=ledger.free) as transaction,
    ):
        transaction.commit()


def test_reserved_capacity_is_left_by_tasks_that_end_too_late():
    """4 cpu of each node are reserved in two minutes: tasks of a minute may use them until then."""
    ledger = Ledger(snapshot())
    demanded = np.zeros_like(ledger.free)
    demanded[:, ledger.snapshot.resources.index("cpu")] = 4
    number = ledger.reserve(NOW_US + 120 * SECOND_US, np.zeros_like(demanded), demanded, np.array([3]))
    assert ledger.horizons == [FOREVER, NOW_US + 120 * SECOND_US]
    assert cpu(ledger, ledger.free_for(np.array([0]))) == [6, 6]
    assert cpu(ledger, ledger.free_for(np.array([2, 3]))) == [10, 10]
    assert cpu(ledger, ledger.unreserved) == cpu(ledger, ledger.free_less_reserved) == [6, 6]
    assert cpu(ledger, ledger.unreserved_for(np.array([0]), 0)) == [6, 6]
    assert cpu(ledger, ledger.unreserved_for(np.array([0, 3]), 0)) == [10, 10]
    assert [holders.tolist() for holders in ledger.reserved_for(np.array([2, 3]))] == [[3]]
    assert ledger.reserved_for(np.array([0])) == []
    with ledger.limited_to(np.array([0])):
        assert cpu(ledger, ledger.free) == [6, 6]
        assert ledger.commit_counts(np.array([0]), np.array([1]), np.array([1])).tolist() == [1]
        ledger.assign(np.array([0]), np.array([0]), np.array([1]), PlacedBy.FLOW)
    assert cpu(ledger, ledger.free) == [10, 7]
    assert cpu(ledger, ledger.unreserved) == [6, 3]
    ledger.release(number)
    assert cpu(ledger, ledger.unreserved) == [10, 7]


def test_counts_that_intertask_constraints_forbid_are_trimmed_and_rolled_back():
    alone = PeerDemand(anti_affinity=(PeerTerm(tasks_like(needs("app", "In", "x")), "host"),))
    cluster = make_cluster(
        make_node("a", cpu=10, labels={"host": "a"}),
        make_label_set(1, app="x"),
        make_class(1, cpu=1, peers=alone),
        make_tasks([1, 2], 1, label_set=1),
    )
    ledger = Ledger(take_snapshot(cluster.state, NOW_US))
    with ledger.transaction():
        assert ledger.commit_counts(np.array([0]), np.array([0]), np.array([2])).tolist() == [1]
        ledger.assign(np.array([0]), np.array([0]), np.array([0]), PlacedBy.FLOW)
        assert ledger.snapshot.intertask.allowed(0).tolist() == [False]
    assert ledger.snapshot.intertask.allowed(0).tolist() == [True]


def test_what_evictions_release_is_reserved_from_the_less_important_alone():
    """14 cpu of each node are reserved, 10 are free: the first 4 that evictions release are the holder's."""
    cluster = make_cluster(
        *(make_node("a", cpu=10), make_node("b", cpu=10)),
        *(make_class(number, cpu=1, priority=priority) for number, priority in [(1, 9), (2, 5), (3, 0)]),
        *(make_tasks([number], number) for number in (1, 2, 3)),
        make_tasks([4], 2),
    )
    ledger = Ledger(take_snapshot(cluster.state, NOW_US))
    snapshot = ledger.snapshot
    high, middle, low = ([int(t) for t in np.flatnonzero(snapshot.task_class == c)] for c in range(3))
    demanded = np.zeros_like(ledger.free)
    demanded[:, snapshot.resources.index("cpu")] = 14
    holder, other = middle
    ledger.reserve(NOW_US, np.zeros_like(demanded), demanded, np.array([holder]))
    assert cpu(ledger, ledger.unreserved_for(np.array(low), 0)) == [-4, -4]
    assert cpu(ledger, ledger.unreserved_for(np.array([other]), 4)) == [-4, -4]
    assert cpu(ledger, ledger.unreserved_for(np.array([other]), 5)) == [0, 0]
    assert cpu(ledger, ledger.unreserved_for(np.array(high), 9)) == [10, 10]  # of lower priority
    assert cpu(ledger, ledger.unreserved_for(np.array(high), 99)) == [0, 0]  # a claim of a queue
    ledger.place(np.array([holder]), np.array([0]), PlacedBy.FLOW)
    assert cpu(ledger, ledger.unreserved_for(np.array(low), 0)) == [9, 10]

"""Moves that are under way count as if they were over: rounds in between neither repeat nor undo them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.engine.round_result import RoundResult
from firmament_py.policy import Policy
from policies.cpu_memory import CpuMemory
from policies.load_spreading import LoadSpreading
from tests.builders import make_class, make_node, make_tasks, migrating_cluster, removed
from tests.effort import examples

CLOSE = LoadSpreading(move_cost=1)
"""A task moves wherever there are two tasks fewer."""

POLICIES = pytest.mark.parametrize("policy", [CLOSE, CpuMemory(move_cost=1)], ids=["load-spreading", "cpu-memory"])


class Owner:
    """Tasks of one job, 1 to `tasks`, on node a of three equal nodes, and what becomes of them."""

    def __init__(self, tasks: int, policy: Policy) -> None:
        nodes = (make_node(name, cpu=20) for name in "abc")
        self.running = dict.fromkeys(range(1, tasks + 1), "a")
        self.cluster = migrating_cluster(*nodes, make_class(1, cpu=1), policy=policy)
        self.cluster.tell(*(self._task(uid, on="a") for uid in self.running))
        self.leaving: list[int] = []
        self.waiting: list[int] = []
        self.lacking, self.created = 0, tasks
        self.moves = 0

    def round(self) -> RoundResult:
        result = self.cluster.run()
        for uid in self.cluster.migrating(result):
            self.moves += 1
            self.leaving.append(uid)
        for uid, node in self.cluster.names(result).items():
            self.waiting.remove(uid)
            self.running[uid] = node
            self.cluster.tell(self._task(uid, on=node))
        return result

    def end(self) -> None:
        """A task that was evicted is gone from its node."""
        if self.leaving:
            uid = self.leaving.pop(0)
            del self.running[uid]
            self.cluster.tell(removed(uid))
            self.lacking += 1

    def replace(self) -> None:
        """The owner creates a successor of one that is gone."""
        if self.lacking:
            self.lacking -= 1
            self.created += 1
            self.waiting.append(self.created)
            self.cluster.tell(self._task(self.created))

    def settle(self) -> None:
        """Everything goes on until no task moves any more."""
        for _ in range(100):
            self.round()
            if not (self.leaving or self.waiting or self.lacking):
                return
            self.end()
            self.replace()
        raise AssertionError("moves without an end")

    def counts(self) -> list[int]:
        return sorted(list(self.running.values()).count(node) for node in "abc")

    def _task(self, uid, on=None):
        return make_tasks([uid], 1, on=on, job=7, movable=True)


@POLICIES
def test_rounds_while_tasks_leave_and_successors_are_expected_decide_on_no_further_move(policy):
    owner = Owner(6, policy)
    for _ in range(4):
        owner.round()
    assert owner.moves == 4
    while owner.leaving:
        assert owner.round().stats.trials == 0, "no task costs less elsewhere"
        owner.end()
    assert owner.moves == 4
    owner.settle()
    assert (owner.moves, owner.counts()) == (4, [2, 2, 2])


def test_a_successor_that_waits_counts_once():
    """Beside it node b takes another task, as the second one; node c has two."""
    cluster = migrating_cluster(make_node("a", cpu=20), make_node("b", cpu=20), make_class(1, cpu=1), policy=CLOSE)
    cluster.tell(make_tasks([1], 1, on="a", movable=True, job=7), make_tasks([2, 3, 4], 1, on="a"))
    assert cluster.migrating(cluster.run()) == {1: "b"}
    cluster.tell(removed(1), make_node("c", cpu=2_000), make_tasks([5, 6], 1, on="c"))
    cluster.tell(make_tasks([7], 1, on="a"), make_tasks([8], 1, job=7), make_tasks([9], 1))
    assert cluster.round() == {8: "b", 9: "b"}


@examples(25)
@POLICIES
@given(tasks=st.integers(4, 14), steps=st.lists(st.sampled_from([Owner.round, Owner.end, Owner.replace]), max_size=30))
def test_no_move_is_repeated_or_undone_whatever_happens_in_between(policy, tasks, steps):
    owner = Owner(tasks, policy)
    for step in steps:
        step(owner)
    owner.settle()
    even = [(tasks + i) // 3 for i in range(3)]
    assert owner.counts() == even
    assert owner.moves == tasks - max(even), "each moves once"


def test_what_leaves_a_node_does_not_make_staying_there_dearer():
    """Once the task of 4 cpu has left, node a has 14 of 20 in use with the task of 6, and node b would have 15."""
    cluster = migrating_cluster(
        *(make_node(name, cpu=20) for name in "ab"),
        *(make_class(cpu, cpu=cpu) for cpu in (1, 4, 6, 9)),
        make_tasks([1], 6, on="a", movable=True),
        make_tasks([2], 4, on="a", leaving=True),
        make_tasks(range(3, 11), 1, on="a"),
        make_tasks([11], 9, on="b"),
        policy=CpuMemory(move_cost=1),
    )
    result = cluster.run()
    assert result.stats.trials == 1, "by the mean request of node a's tasks it could gain"
    assert not cluster.migrating(result)

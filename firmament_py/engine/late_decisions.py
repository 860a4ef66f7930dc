"""What a search beside the rounds has decided: a list of decisions, of which those are carried out that still hold.

A search works on a copy of the state (engine/searches.py), and rounds go on meanwhile. So each decision has
preconditions: the tasks that it is for still wait, those that leave still run where they did, its nodes are what they
were; and together, the decisions pass the same independent check as those of a round, on the state as it is now. A
decision that does not hold any more is no defect: its tasks are searched for again.

A *decision* is what has to happen together: tasks and nodes that depend on each other. A preemptor depends on its node
and on its victims, these on their nodes, members of a gang on each other.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from firmament_py.engine.identity import NodeIdentity, TaskIdentity
from firmament_py.engine.round_result import RoundResult
from firmament_py.model.arrays import I64, NO_ROWS, U8, Bools
from firmament_py.model.lifecycle import WAITING
from firmament_py.model.placed_by import PlacedBy
from firmament_py.placement.migration import Migration
from firmament_py.preemption.outcome import NO_PREEMPTION, Preemption
from firmament_py.state.cluster import ClusterState
from firmament_py.state.gangs import NO_GANG

CHECKS = 32
"""Limit on the checks by which the decisions are found that hold together; the rest count as stale."""


@dataclass(frozen=True, slots=True)
class LateDecisions:
    """Rows of the tables. placed: task rows (K,) and their node rows (K,); placed_by (K,): PlacedBy; preemption: see
    there, with moved for waiting tasks. *_of: number of the decision that each belongs to, < count. cause: task rows
    (C,) that wait, for which the decisions cause_of (C,) are made."""

    placed: tuple[I64, I64]
    placed_by: U8
    placed_of: I64
    preemption: Preemption
    victims_of: I64
    nominated_of: I64
    unnominated_of: I64
    moved_of: I64
    cause: I64
    cause_of: I64
    count: int

    @classmethod
    def of(cls, result: RoundResult, copied: ClusterState, nominated: I64) -> "LateDecisions":
        """Those of a round on a copy of the state, which is as the round has left it. nominated: the column of the task
        table before it."""
        tasks, preemption = copied.tasks, result.preemption
        moved, (holders, chosen) = preemption.moved, preemption.nominated
        node_of, gang_of = tasks.capacity, tasks.capacity + copied.nodes.capacity
        origin = tasks.node[preemption.victims], tasks.node[moved.tasks]
        needed = moved.needed_by >= 0
        edges = [
            (result.tasks, node_of + result.nodes),
            (holders, node_of + chosen),
            (preemption.victims, preemption.preemptors),
            (preemption.victims, node_of + origin[0]),
            (moved.tasks, node_of + moved.nodes),
            (moved.tasks, node_of + origin[1]),
            (moved.tasks[needed], moved.needed_by[needed]),
        ]
        for rows in (holders, preemption.unnominated, result.tasks):  # what was kept for them before is for others
            had = rows[nominated[rows] >= 0]
            edges.append((had, node_of + nominated[had]))
        for rows in (result.tasks, holders, preemption.victims, preemption.unnominated):
            member = rows[tasks.gang[rows] != NO_GANG]
            edges.append((member, gang_of + tasks.gang[member]))
        label = _components(edges, gang_of + copied.gangs.capacity)
        cause = np.unique(np.concatenate([result.tasks, holders, preemption.preemptors, moved.needed_by[needed]]))
        parts = result.tasks, preemption.victims, holders, preemption.unnominated, moved.tasks, cause
        numbers, dense = np.unique(np.concatenate([label[rows] for rows in parts]), return_inverse=True)
        placed_of, victims_of, nominated_of, unnominated_of, moved_of, cause_of = np.split(
            dense.reshape(-1), np.cumsum([len(rows) for rows in parts])[:-1]
        )
        placed = result.tasks, result.nodes
        by = np.full(len(placed_of), PlacedBy.SEARCH, np.uint8)
        of = by, placed_of, preemption, victims_of, nominated_of, unnominated_of, moved_of
        return cls(placed, *of, cause, cause_of, len(numbers))

    @classmethod
    def of_placements(cls, rows: I64, nodes: I64, by: U8) -> "LateDecisions":
        """Each of task rows (K,) on node rows (K,), by steps (K,), a decision for itself."""
        number = np.arange(len(rows))
        none = NO_ROWS
        return cls((rows, nodes), by, number, NO_PREEMPTION, none, none, none, none, rows, number, len(rows))

    def only(self, chosen: Bools) -> "LateDecisions":
        """The decisions `chosen` (count,), with their numbers."""
        p, moved = self.preemption, self.preemption.moved
        placed, victims, nominated = chosen[self.placed_of], chosen[self.victims_of], chosen[self.nominated_of]
        unnominated, moves, cause = chosen[self.unnominated_of], chosen[self.moved_of], chosen[self.cause_of]
        columns = moved.tasks, moved.nodes, moved.needed_by, moved.saves
        preemption = Preemption(
            p.victims[victims],
            p.preemptors[victims],
            (p.nominated[0][nominated], p.nominated[1][nominated]),
            p.unnominated[unnominated],
            Migration(*(column[moves] for column in columns)),
            p.least_moves,
        )
        return LateDecisions(
            (self.placed[0][placed], self.placed[1][placed]),
            self.placed_by[placed],
            self.placed_of[placed],
            preemption,
            self.victims_of[victims],
            self.nominated_of[nominated],
            self.unnominated_of[unnominated],
            self.moved_of[moves],
            self.cause[cause],
            self.cause_of[cause],
            self.count,
        )

    def holding(self, now: ClusterState, then: ClusterState, nominated: I64, now_us: int) -> Bools:
        """(count,) decisions whose tasks and nodes are `now` what they were `then`, when the search began. nominated:
        the column of the task table then."""
        p, moved = self.preemption, self.preemption.moved
        holds = np.ones(self.count, np.bool_)
        waiting = (self.placed[0], self.placed_of), (p.nominated[0], self.nominated_of), (self.cause, self.cause_of)
        for rows, of in (*waiting, (p.unnominated, self.unnominated_of)):
            waits = (now.tasks.state[rows] == WAITING) & (now.tasks.not_before_us[rows] <= now_us)
            waits &= now.tasks.nominated[rows] == nominated[rows]
            holds[of[~(waits & TaskIdentity.of(then, rows).same(now))]] = False
        for rows, of in ((p.victims, self.victims_of), (moved.tasks, self.moved_of)):
            there = now.tasks.node[rows] == then.tasks.node[rows]
            holds[of[~(now.tasks.evictable[rows] & there & TaskIdentity.of(then, rows).same(now))]] = False
        targets = (self.placed[1], self.placed_of), (p.nominated[1], self.nominated_of), (moved.nodes, self.moved_of)
        for nodes, of in targets:
            holds[of[~NodeIdentity.of(then, nodes).same(now)]] = False
        return holds

    def sound(self, chosen: Bools, passes: Callable[["LateDecisions"], bool]) -> Bools:
        """(count,) those of the decisions `chosen` (count,) that pass a check together."""
        checks = 0

        def extended(base: Bools, numbers: I64) -> Bools:
            """`base`, with those of these decisions that can be added."""
            nonlocal checks
            if not len(numbers) or checks >= CHECKS:
                return base
            whole = base.copy()
            whole[numbers] = True
            checks += 1
            if passes(self.only(whole)):
                return whole
            if len(numbers) == 1:
                return base
            half = len(numbers) // 2
            return extended(extended(base, numbers[:half]), numbers[half:])

        return extended(np.zeros(self.count, np.bool_), np.flatnonzero(chosen))


def _components(edges: list[tuple[I64, I64]], count: int) -> I64:
    """(count,) the lowest vertex of the component of each."""
    one, other = (np.concatenate(ends) for ends in zip(*edges, strict=True))
    lowest = np.arange(count)
    while (lowest[one] != lowest[other]).any():
        low = np.minimum(lowest[one], lowest[other])
        np.minimum.at(lowest, one, low)
        np.minimum.at(lowest, other, low)
        lowest = lowest[lowest]
    return lowest

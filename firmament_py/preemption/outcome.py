"""What the preemption of a round changes: nominations and places in the ledger, victims, and tasks that move."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS
from firmament_py.model.placed_by import PlacedBy
from firmament_py.placement.ledger import Ledger
from firmament_py.placement.migration import NO_MIGRATION, Migration
from firmament_py.placement.running import positions_of
from firmament_py.preemption.decision import Decision
from firmament_py.preemption.precedence import Precedence
from firmament_py.preemption.residents import Kind


@dataclass(frozen=True, slots=True)
class Preemption:
    """Rows of the tables. victims (V,): tasks to evict; preemptors (V,): the most important task that needs each to
    leave. nominated: tasks (K,) that wait, with a new nomination, and their nodes (K,). unnominated (U,): tasks that
    wait and have lost theirs. moved: tasks to evict and to place on other nodes, so that waiting ones fit. least_moves:
    a lower bound on the number of moves by which these fit; 0: not known."""

    victims: I64
    preemptors: I64
    nominated: tuple[I64, I64]
    unnominated: I64
    moved: Migration = NO_MIGRATION
    least_moves: int = 0

    def nominating(self, tasks: I64, nodes: I64) -> "Preemption":
        """The same with further tasks (K,) nominated to nodes (K,)."""
        if not len(tasks):
            return self
        holders, there = self.nominated
        return replace(self, nominated=(np.concatenate([holders, tasks]), np.concatenate([there, nodes])))

    def after(self, other: "Preemption") -> "Preemption":
        """Both, of which the other comes first."""
        return replace(
            self,
            victims=np.concatenate([other.victims, self.victims]),
            preemptors=np.concatenate([other.preemptors, self.preemptors]),
            unnominated=np.setdiff1d(np.concatenate([other.unnominated, self.unnominated]), self.nominated[0]),
            moved=other.moved.followed_by(self.moved),
            least_moves=other.least_moves + self.least_moves,
        ).nominating(*other.nominated)

    @property
    def is_empty(self) -> bool:
        return not (len(self.victims) or len(self.nominated[0]) or len(self.unnominated) or len(self.moved.tasks))


NO_PREEMPTION = Preemption(NO_ROWS, NO_ROWS, (NO_ROWS, NO_ROWS), NO_ROWS)


class Outcome:
    """Of the tasks of one ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._snapshot = ledger.snapshot
        self._victims: list[I64] = [NO_ROWS]
        self._preemptors: list[I64] = [NO_ROWS]
        self._moved, self._least_moves = NO_MIGRATION, 0

    @property
    def victims(self) -> I64:
        """(V,) rows of the task table, by the decisions so far."""
        return np.concatenate(self._victims)

    @property
    def moves(self) -> int:
        """Number of tasks that move by the decisions so far."""
        return len(self._moved.tasks)

    @property
    def _is_empty(self) -> bool:
        """Whether nothing was decided."""
        return len(self._victims) == 1 and not self.moves

    def evict(self, victims: I64, preemptors: I64) -> None:
        """Rows (V,) of the task table leave for others, rows (V,)."""
        self._victims.append(victims)
        self._preemptors.append(preemptors)

    def preemption(self) -> Preemption:
        """All that changes by preemption."""
        ledger, snapshot = self._ledger, self._snapshot
        waits = (ledger.node_of < 0) & (ledger.nominated != snapshot.nominated)
        if not waits.any() and self._is_empty:
            return NO_PREEMPTION
        new, over = np.flatnonzero(waits & (ledger.nominated >= 0)), np.flatnonzero(waits & (ledger.nominated < 0))
        return Preemption(
            self.victims,
            np.concatenate(self._preemptors),
            (snapshot.tasks[new], snapshot.nodes[ledger.nominated[new]]),
            snapshot.tasks[over],
            self._moved,
            self._least_moves,
        )

    def carry_out(self, decision: Decision, precedence: Precedence, tasks: I64, gangs: Sequence[I64]) -> I64:
        """Removes the residents, and gives their capacity to the tasks. tasks (K,), ascending: those that were to be
        served; gangs: positions of tasks that are placed together or not yet. What waits for quota is nominated.
        Returns the tasks that lose their places."""
        ledger, snapshot, resident = self._ledger, self._snapshot, decision.resident
        kind, ident = resident.kind[decision.displaced], resident.id[decision.displaced]
        affected = np.zeros(len(ledger.free), np.bool_)
        affected[resident.node[decision.displaced]] = True
        affected[decision.origins] = affected[decision.targets] = True
        affected[decision.nodes[ledger.node_of[decision.tasks] != decision.nodes]] = True
        again = affected[decision.nodes]  # the tasks of the other nodes stay
        before = tasks[ledger.node_of[tasks] >= 0]
        removed = np.union1d(ident[kind == Kind.PLACED], np.setdiff1d(before, decision.tasks[~again]))
        ledger.remove(removed)
        for task in ident[kind == Kind.NOMINATED].tolist():
            ledger.nominate(task, -1)
        moved = snapshot.releases.state.classes.requests[snapshot.releases.state.tasks.cls[decision.movers]]
        ledger.expect(decision.targets, moved)
        together = np.full(len(ledger.node_of), -1)
        for i, gang in enumerate(gangs):
            together[gang] = i
        later = np.zeros(len(gangs) + 1, np.bool_)  # gangs of which some member has to wait
        left = ledger.unreserved_for(decision.tasks, precedence.lowest(snapshot, decision.tasks)).copy()
        served = [*zip(decision.tasks[again].tolist(), decision.nodes[again].tolist(), strict=True)]
        waits = set[int]()  # tasks that are not placed at once
        # what is free already goes to those that never preempt
        for task, node in sorted(served, key=lambda pair: self._evicts(pair[0])):
            requests = snapshot.requests[snapshot.task_class[task]]
            fits = (left[node] >= requests)[requests > 0].all()
            fits &= not snapshot.withheld[task]
            left[node] -= requests
            if fits and together[task] < 0:
                ledger.place(np.array([task]), np.array([node]), PlacedBy.PREEMPTION)
            else:
                ledger.nominate(task, node)
                waits.add(task)
                later[together[task]] |= not fits
        for gang in (gang for i, gang in enumerate(gangs) if not later[i]):
            nodes = ledger.nominated[gang]
            for task in gang.tolist():
                ledger.nominate(task, -1)
            ledger.place(gang, nodes, PlacedBy.PREEMPTION)
        self._note(decision, precedence, sorted(served, key=lambda pair: pair[0] not in waits))
        lost: I64 = removed[(ledger.node_of[removed] < 0) & (ledger.nominated[removed] < 0)]
        return lost

    def _evicts(self, task: int) -> bool:
        return not self._snapshot.never_preempts[self._snapshot.task_class[task]]

    def _note(self, decision: Decision, precedence: Precedence, served: list[tuple[int, int]]) -> None:
        """Records the preemptor of each victim and of each mover: of the tasks `served`, with their nodes, the first
        one on its node that may evict it, or else the first."""
        snapshot = self._snapshot
        state = snapshot.releases.state
        positions = positions_of(snapshot, state.nodes.capacity)

        def preemptors_of(rows: I64, able: list[tuple[int, int]]) -> tuple[I64, int]:
            first: dict[int, int] = {}
            for task, node in able:
                first.setdefault(node, task)
            highest = able[0][0] if able else -1
            nodes = positions[state.tasks.node[rows]].tolist()
            return np.array([first.get(node, highest) for node in nodes], np.int64), highest

        victims = decision.victims
        preemptors, highest = preemptors_of(victims, [pair for pair in served if self._evicts(pair[0])])
        # a member of a gang is evicted with it, also from a node that only gets less important tasks
        higher = precedence.waiting[snapshot.task_class[preemptors]] > precedence.running[victims]
        self.evict(victims, snapshot.tasks[np.where(higher, preemptors, highest)])
        if len(decision.movers):
            needed_by = snapshot.tasks[preemptors_of(decision.movers, served)[0]]
            targets = snapshot.nodes[decision.targets]
            self._moved = Migration(decision.movers, targets, needed_by, np.zeros_like(targets))
            self._least_moves = decision.least_moves

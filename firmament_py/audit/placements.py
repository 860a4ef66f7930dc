"""The independent check of placements and migrations: whether they break a constraint, from the state tables alone.

It shares no code with the network builder: used resources are summed again from the tasks (not read from the running
totals), and labels and taints are evaluated one node at a time with model/constraints.py. A placement that fails here
is a defect of the engine: it is logged, counted and dropped.
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.audit.affinity import IntertaskCheck
from firmament_py.audit.gangs import gang_problems
from firmament_py.audit.quotas import QuotaCheck
from firmament_py.model.arrays import I64, Bools
from firmament_py.model.constraints import NAME_FIELD
from firmament_py.model.lifecycle import ASSUMED, BOUND, PRESENT, WAITING
from firmament_py.model.resources import LINKS
from firmament_py.state.cluster import ClusterState

_FEW_NODES = 8


@dataclass(frozen=True, slots=True)
class CheckResult:
    """sound (K,): whether each placement is valid; complaints: one line for each reason why others are not."""

    sound: Bools
    complaints: list[str]


class Checker:
    """Checks placements; caches the result of each (class, node) pair until either changes."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._admitted: dict[tuple[object, int], tuple[object, bool]] = {}
        self._quotas: QuotaCheck | None = None

    def check(self, tasks: I64, nodes: I64, batch: I64) -> CheckResult:
        """Checks the placement of task rows `tasks` on node rows `nodes`, (K,) each.

        Placements of equal `batch` (K,) are made together, batches in ascending order; this matters to inter-task
        constraints only. If new tasks over-commit a node, all of its new tasks are refused.
        """
        state, complaints = self._state, []
        sound = np.ones(len(tasks), np.bool_)

        def refuse(bad: Bools, why: str) -> None:
            if bad.any() and (bad & sound).any():
                complaints.append(f"{int((bad & sound).sum())} placements: {why}")
                np.logical_and(sound, ~bad, out=sound)

        refuse(state.tasks.state[tasks] != WAITING, "the task is not waiting")
        refuse(state.nodes.state[nodes] != PRESENT, "the node is absent")
        if len(set(tasks.tolist())) < len(tasks):
            unique, counts = np.unique(tasks, return_counts=True)
            refuse(np.isin(tasks, unique[counts > 1]), "the task is placed more than once")
        refuse(
            self._unwelcome(state.tasks.cls[tasks], nodes, sound),
            "selector, affinity or a taint forbids the node",
        )
        refuse(self._off_required_node(tasks, nodes), "the task requires another node")
        refuse(self._unoffered(tasks), "the task requests a resource that no node has")
        refuse(self._overfull(tasks, nodes, sound), "the node would be over-committed")
        if state.tasks.queue[tasks].any():
            if self._quotas is None or self._quotas.queues is not state.queues:
                self._quotas = QuotaCheck(state.queues)
            for why, bad in self._quotas.problems(state, tasks, nodes).items():
                refuse(bad, why)
        left = -1
        while left != (still := int(np.count_nonzero(sound))):  # others may depend on a refused placement
            left = still
            if state.classes.has_intertask_constraints:
                together = np.ones(len(tasks), np.bool_)
                together[sound] = IntertaskCheck(state, tasks[sound], nodes[sound], batch[sound]).sound()
                refuse(~together, "other tasks forbid the node: affinity, anti-affinity or spread")
            for why, bad in gang_problems(state, tasks, nodes, sound).items():
                refuse(bad, why)
        return CheckResult(sound, complaints)

    def migration_problems(self, tasks: I64, nodes: I64, *, at_once: bool = True) -> list[str]:
        """What is wrong with the migration of task rows (K,) to node rows (K,); empty: nothing. at_once: the nodes must
        be able to take the tasks before any of them has left its own."""
        state = self._state
        table, everywhere = state.tasks, np.ones(len(tasks), np.bool_)
        present = state.nodes.state[nodes] == PRESENT
        allowances = state.allowances()
        counted = allowances.counted(table.label_set[tasks]).sum(axis=1)
        cls = table.cls[tasks]
        found = {
            "a task migrates twice": len(np.unique(tasks)) < len(tasks),
            "a task does not run, or may not migrate": bool(
                ((table.state[tasks] != BOUND) | ~table.movable[tasks] | table.unevictable[tasks]).any()
            ),
            "a task leaves already, or is in a gang": bool((table.leaving[tasks] | (table.gang[tasks] >= 0)).any()),
            "a node is absent, or the task's own": bool((~present | (table.node[tasks] == nodes)).any()),
            "a disruption budget does not permit it": bool((counted > allowances.left).any()),
        }
        if len(tasks) and present.all():
            unwelcome = bool(self._unwelcome(cls, nodes, everywhere).any())
            found["selector, affinity or a taint forbids the node"] = unwelcome
            overfull = at_once and bool(self._overfull(tasks, nodes, everywhere).any())
            found["a node would be over-committed"] = overfull
        return [why for why, wrong in found.items() if wrong]

    def _off_required_node(self, tasks: I64, nodes: I64) -> Bools:
        """Placements on another node than the one whose name the task requires."""
        required, names = self._state.tasks.required_node[tasks], self._state.tasks.required_names.names()
        bad = np.zeros(len(tasks), np.bool_)
        for i in np.flatnonzero(required >= 0).tolist():
            bad[i] = names[required[i]] != self._state.nodes.observed[int(nodes[i])].name
        return bad

    def _unoffered(self, tasks: I64) -> Bools:
        """Placements of classes that request a resource that is in none of the tables."""
        classes = self._state.tasks.cls[tasks]
        known = {*self._state.resources.names, *LINKS}
        bad = [
            cls
            for cls in set(classes.tolist())
            if any(
                amount and name not in known for name, amount in self._state.classes.definition(cls).requests.items()
            )
        ]
        return np.isin(classes, bad) if bad else np.zeros(len(classes), np.bool_)

    def _overfull(self, tasks: I64, nodes: I64, sound: Bools) -> Bools:
        table, requests = self._state.tasks, self._state.classes.requests
        capacity = self._state.nodes.capacity
        number = np.full(capacity, -1, np.int64)  # of each node that is asked
        number[nodes[sound]] = 0
        (asked_of,) = (number >= 0).nonzero()
        number[asked_of] = np.arange(len(asked_of))
        placed = (table.state == ASSUMED) | (table.state == BOUND)
        # to compare with a few nodes takes a fraction of looking all tasks up
        few = len(asked_of) <= _FEW_NODES
        there = np.isin(table.node, asked_of, kind="sort") if few else number[table.node] >= 0
        (holding,) = (placed & there).nonzero()
        to, on = number[nodes[sound]], number[table.node[holding]]
        wants, holds = requests[table.cls[tasks[sound]]], requests[table.cls[holding]]
        allocatable = self._state.nodes.allocatable[asked_of]
        overfull = np.zeros(len(asked_of) + 1, np.bool_)  # the last one for nodes that are not asked
        requested: Bools = np.logical_or.reduce(wants > 0)
        for r in requested.nonzero()[0].tolist():
            asked, used = _sums(to, wants[:, r], len(asked_of)), _sums(on, holds[:, r], len(asked_of))
            overfull[:-1] |= (asked > 0) & (used + asked > allocatable[:, r])
        return overfull[number[nodes]]

    def _unwelcome(self, classes: I64, nodes: I64, sound: Bools) -> Bools:
        bad = np.zeros(len(nodes), np.bool_)
        picky = {c for c in set(classes.tolist()) if self._state.classes.demand(c).picky}
        tainted = {row for row in set(nodes[sound].tolist()) if self._state.nodes.observed[row].taints}
        if not (picky or tainted):
            return bad
        inspected = np.flatnonzero(sound & (np.isin(classes, list(picky)) | np.isin(nodes, list(tainted))))
        for i, cls, node in zip(
            inspected.tolist(), classes[inspected].tolist(), nodes[inspected].tolist(), strict=True
        ):
            bad[i] = not self._welcome(cls, node)
        return bad

    def _welcome(self, cls: int, row: int) -> bool:
        demand, node = self._state.classes.demand(cls), self._state.nodes.observed[row]
        known = self._admitted.get((demand, row))
        if known is not None and known[0] is node:
            return known[1]
        answer = demand.untolerated(node.taints) is None and demand.selects(node.labels, {NAME_FIELD: node.name})
        if len(self._admitted) > 1_000_000:
            self._admitted.clear()
        self._admitted[demand, row] = (node, answer)
        return answer


def _sums(index: I64, amounts: I64, size: int) -> I64:
    """Sums of `amounts` by `index`, exact in int64 (a float bincount would round)."""
    sums = np.zeros(size, np.int64)
    np.add.at(sums, index, amounts)
    return sums

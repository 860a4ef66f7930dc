"""Placements, preemptions and migrations to be delivered as deltas of the original contract.

Its client never confirms a placement, so each counts as bound at once; and it refuses messages above 4 MiB, so deltas
that do not fit into one reply are delivered with the next.
"""

import numpy as np

from firmament_py.engine.round_result import RoundResult
from firmament_py.model.arrays import I64, U64
from firmament_py.model.events import LabelSetDefined, TasksObserved
from firmament_py.service.firmament_nodes import ProcessingUnits
from firmament_py.state.cluster import ClusterState
from protos.gen import firmament_pb2 as pb

MAX_DELTAS = 50_000
"""Deltas in one reply: each has at most 53 bytes."""


class PendingDeltas:
    """Preemptions, which go first, then migrations and placements, each in the order in which they were decided."""

    def __init__(self) -> None:
        kinds = pb.SchedulingDelta
        self._of_kind: dict[pb.SchedulingDelta.ChangeType, dict[int, tuple[str, str]]] = {
            kinds.PREEMPT: {},
            kinds.MIGRATE: {},
            kinds.PLACE: {},
        }
        """Each: uid -> ids of the node that the task is on and of the node that the delta names."""

    def add(self, state: ClusterState, result: RoundResult) -> None:
        """Adds the decisions of a round; tasks that it has placed become bound."""
        kinds, node = pb.SchedulingDelta, state.tasks.node
        victims, migration = result.preemption.victims, result.migration
        self._add(kinds.PREEMPT, state, victims, node[victims], node[victims])
        self._add(kinds.MIGRATE, state, migration.tasks, node[migration.tasks], migration.nodes)
        self._add(kinds.PLACE, state, result.tasks, result.nodes, result.nodes)
        if len(result.tasks):
            bind(state, state.tasks.uid[result.tasks], [state.nodes.id[row] for row in result.nodes.tolist()])

    def deliver(self, state: ClusterState, units: ProcessingUnits, reply: pb.SchedulingDeltas) -> None:
        """Moves as many deltas to a reply as fit. Drops obsolete ones: the client exits on a delta of a task or machine
        that it has removed."""
        for kind, decided in self._of_kind.items():
            while decided and len(reply.deltas) < MAX_DELTAS:
                uid = next(iter(decided))
                machine, named = decided.pop(uid)
                if _is_on(state, uid, machine) and state.node_row(named) is not None:
                    reply.deltas.add(task_id=uid, resource_id=units.first(named), type=kind)

    def _add(self, kind: pb.SchedulingDelta.ChangeType, state: ClusterState, rows: I64, on: I64, named: I64) -> None:
        """Adds deltas of task rows (K,) on node rows (K,) that name node rows (K,)."""
        ids = state.nodes.id
        nodes = [(ids[a], ids[b]) for a, b in zip(on.tolist(), named.tolist(), strict=True)]
        self._of_kind[kind].update(zip(state.tasks.uid[rows].tolist(), nodes, strict=True))


def bind(state: ClusterState, uids: U64, machines: list[str], label_set: LabelSetDefined | None = None) -> None:
    """Binds known tasks (K,) to their machines. label_set: the new one of the tasks; None: no change."""
    rows = np.array([state.task_row(uid) for uid in uids.tolist()], np.int64)
    nodes, index = np.unique(machines, return_inverse=True)
    gang = state.tasks.gang[rows]
    label_sets = state.label_sets.id[state.tasks.label_set[rows]]
    if label_set is not None:
        state.apply(label_set)
        label_sets = np.full(len(uids), label_set.id, np.uint64)
    state.apply(
        TasksObserved(
            uid=uids,
            class_id=state.classes.id[state.tasks.cls[rows]],
            job_id=state.tasks.job[rows],
            created_us=state.tasks.created_us[rows],
            node=index + 1,
            names=state.tasks.name[rows].tolist(),
            nodes=tuple(nodes.tolist()),
            label_set_id=label_sets,
            gang_id=np.where(gang >= 0, state.gangs.id[gang], 0).astype(np.uint64),
            role=state.tasks.role[rows],
            leaving=state.tasks.leaving[rows],
            movable=state.tasks.movable[rows],
        )
    )


def _is_on(state: ClusterState, uid: int, machine: str) -> bool:
    task, node = state.task_row(uid), state.node_row(machine)
    return task is not None and node is not None and int(state.tasks.node[task]) == node

"""Placements and preemptions to be delivered as deltas of the original contract.

Its client never confirms a placement, so each counts as bound at once; and it refuses messages above 4 MiB, so deltas
that do not fit into one reply are delivered with the next.
"""

import numpy as np

from firmament_py.engine.scheduler import RoundResult
from firmament_py.model.arrays import U64
from firmament_py.model.events import LabelSetDefined, TasksObserved
from firmament_py.service.firmament_nodes import ProcessingUnits
from firmament_py.state.cluster import ClusterState
from protos.gen import firmament_pb2 as pb

MAX_DELTAS = 50_000
"""Deltas in one reply: each has at most 53 bytes."""


class PendingDeltas:
    """Preemptions, which go first, and placements, each in the order in which they were decided."""

    def __init__(self) -> None:
        self._machine: dict[int, str] = {}  # uid -> node id
        self._victims: dict[int, str] = {}  # likewise

    def add(self, state: ClusterState, result: RoundResult) -> None:
        """Adds the decisions of a round; tasks that it has placed become bound."""
        victims = result.preemption.victims
        machines = [state.nodes.id[row] for row in state.tasks.node[victims].tolist()]
        self._victims.update(zip(state.tasks.uid[victims].tolist(), machines, strict=True))
        uids = state.tasks.uid[result.tasks]
        machines = [state.nodes.id[row] for row in result.nodes.tolist()]
        if machines:
            bind(state, uids, machines)
            self._machine.update(zip(uids.tolist(), machines, strict=True))

    def deliver(self, state: ClusterState, units: ProcessingUnits, reply: pb.SchedulingDeltas) -> None:
        """Moves as many deltas to a reply as fit. Drops obsolete ones: the client exits on a delta of a task or machine
        that it has removed."""
        for waiting, kind in ((self._victims, pb.SchedulingDelta.PREEMPT), (self._machine, pb.SchedulingDelta.PLACE)):
            while waiting and len(reply.deltas) < MAX_DELTAS:
                uid = next(iter(waiting))
                machine = waiting.pop(uid)
                if _is_on(state, uid, machine):
                    reply.deltas.add(task_id=uid, resource_id=units.first(machine), type=kind)


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

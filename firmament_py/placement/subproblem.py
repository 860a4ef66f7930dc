"""What one solve is about: the waiting tasks that may fit, as a policy's view, and the capacities for them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.model.resources import TOKEN
from firmament_py.network.build import slot_offsets
from firmament_py.network.capacities import Capacities, built_in
from firmament_py.placement.ledger import Ledger
from firmament_py.policy import Costs, View
from firmament_py.snapshot.domain_limits import DomainLimit
from firmament_py.snapshot.snapshot import Snapshot
from firmament_py.snapshot.solo_capacity import task_slots
from firmament_py.usage.usage import Reading


@dataclass(frozen=True, slots=True)
class Subproblem:
    """The classes of view, capacities and suitable (C', N) are numbered locally; classes (C',) and tasks (T',) hold
    their numbers in the snapshot."""

    view: View
    capacities: Capacities
    suitable: Bools
    classes: I64
    tasks: I64

    def next_batch(self, stage: I64) -> I64:
        """The tasks, ascending, of the classes with the highest priority and, of these, the lowest stage (C',)."""
        classes = np.unique(self.view.task_class)
        priority = self.view.priority[classes]
        classes = classes[priority == priority.max()]
        first = classes[stage[classes] == stage[classes].min()]
        return self.tasks[np.isin(self.view.task_class, first)]


def subproblem_of(
    ledger: Ledger, reading: Reading, tasks: I64, within: Bools | None = None, *, one_slot: bool = False
) -> Subproblem:
    """The subproblem of placing `tasks` (K,), ascending, on the nodes `within` (N,), None: any. Tasks that have no slot
    anywhere are left out. one_slot: costs are only needed for the next task on each node."""
    snapshot, free = ledger.snapshot, ledger.free
    classes, task_class = np.unique(snapshot.task_class[tasks], return_inverse=True)
    requests = snapshot.requests[classes]
    waiting = np.bincount(task_class, minlength=len(classes))
    suitable = snapshot.suitable[classes] if within is None else snapshot.suitable[classes] & within
    slots = task_slots(free, requests, suitable, np.full_like(waiting, len(tasks)))
    capacities = _capacities(snapshot, classes, waiting, slots)
    may_fit = (capacities.slots.max(axis=1, initial=0) > 0)[task_class]
    tasks, task_class = tasks[may_fit], task_class[may_fit]
    shown = [r for r, name in enumerate(snapshot.resources) if not name.startswith(TOKEN)]
    view = View(
        resources=tuple(snapshot.resources[r] for r in shown),
        requests=_read_only(requests[:, shown]),
        priority=_read_only(snapshot.priority[classes]),
        waiting=_read_only(waiting),
        allocatable=_read_only(snapshot.allocatable[:, shown]),
        free=_read_only(free[:, shown]),
        running=_read_only(ledger.running.copy()),
        slot_offsets=_read_only(np.zeros(1, np.int64) if one_slot else slot_offsets(len(tasks), capacities.depth)),
        task_class=_read_only(task_class),
        task_age_us=_read_only(snapshot.task_age_us[tasks]),
        depth=_read_only(capacities.depth),
        expected_us=_read_only(snapshot.expected_us[classes]),
        inputs=None if snapshot.inputs is None else snapshot.inputs.of_tasks(snapshot.inputs.of_task[tasks]),
        measured_load=_measured_load(snapshot, free, reading, shown),
        measured_usage=reading.usage,
        traits=tuple(snapshot.neighbour_counts.traits[c] for c in classes.tolist()),
        surroundings=snapshot.neighbour_counts,
    )
    return Subproblem(view, capacities, suitable, classes, tasks)


def with_preferences(snapshot: Snapshot, subproblem: Subproblem, costs: Costs) -> Costs:
    """The policy's costs and, on top, those of each class's preferences."""
    slots = subproblem.capacities.slots
    of_preferences = {
        i: added
        for i, c in enumerate(subproblem.classes.tolist())
        if snapshot.preferences.concerned[c] and (added := snapshot.preferences.costs(c, slots[i] > 0)) is not None
    }
    if not of_preferences:
        return costs
    place = np.broadcast_to(costs.place, slots.shape).copy()
    for i, added in of_preferences.items():
        place[i] += added
    return replace(costs, place=place)


def _capacities(snapshot: Snapshot, classes: I64, waiting: I64, slots: I64) -> Capacities:
    """For `waiting` (C',) tasks of each of `classes`, of which nodes could take slots (C', N) alone.

    All classes together send a node at most as many tasks as it could take of the smallest class alone, even if there
    are fewer of that class.
    """
    depth = slots.max(axis=0, initial=0)
    np.minimum(slots, waiting[:, None], out=slots)
    limits: dict[int, Sequence[DomainLimit]] = {}
    concerned = snapshot.intertask.concerned | snapshot.preferences.concerned
    for i in np.flatnonzero(concerned[classes]).tolist():
        c = int(classes[i])
        if snapshot.intertask.concerned[c]:
            slots[i], limits[i] = snapshot.intertask.limit(c, slots[i], int(waiting[i]))
        if slots[i].any():
            of_preferences = snapshot.preferences.limits(c, slots[i], int(waiting[i]))
            if of_preferences:
                limits[i] = [*limits.get(i, ()), *of_preferences]
        if i in limits:
            limits[i] = built_in(limits[i])
    return Capacities(slots, np.minimum(depth, slots.sum(axis=0)), limits)


def _measured_load(snapshot: Snapshot, free: I64, reading: Reading, shown: list[int]) -> I64 | None:
    """(N, R) the measured load and the requests of what was placed since; None: load follows from requests."""
    if reading.load is None:
        return None
    # on hypothetical capacity more can be free than at the start
    return _read_only(np.maximum(reading.load + (snapshot.free - free), 0)[:, shown])


def _read_only(array: I64) -> I64:
    """A view of the array that policies cannot write to."""
    view = array.view()
    view.flags.writeable = False
    return view

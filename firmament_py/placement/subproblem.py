"""What one solve sees: the waiting tasks that may find room, as a policy's view, and the room itself.

Classes are numbered anew, because a solve is about some of the round's only; see Look.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.model.resources import TOKEN
from firmament_py.network.build import slot_offsets
from firmament_py.network.capacities import Capacities, built_in
from firmament_py.policy import Costs, View
from firmament_py.snapshot.domain_limits import DomainLimit
from firmament_py.snapshot.snapshot import Snapshot
from firmament_py.snapshot.solo_capacity import task_slots
from firmament_py.usage.usage import Reading


@dataclass(frozen=True, slots=True)
class Subproblem:
    """Classes of view, room and suitable (C', N) are numbered locally; classes (C',) says which they are in the
    snapshot, tasks (T',) which tasks the view's are."""

    view: View
    room: Capacities
    suitable: Bools
    classes: I64
    tasks: I64

    def first_in_turn(self, turn: I64) -> I64:
        """The tasks, ascending, of the classes with the highest priority and, of these, the lowest turn (C',)."""
        classes = np.unique(self.view.task_class)
        priority = self.view.priority[classes]
        classes = classes[priority == priority.max()]
        first = classes[turn[classes] == turn[classes].min()]
        return self.tasks[np.isin(self.view.task_class, first)]


def subproblem_of(
    snapshot: Snapshot,
    free: I64,
    running: I64,
    reading: Reading,
    tasks: I64,
    within: Bools | None,
    *,
    at_once: bool = False,
) -> Subproblem:
    """What there is for `tasks` (K,), ascending, on the nodes `within` (N,), None: any, where `free` (N, R) is left
    and `running` (N,) tasks are. at_once: see View."""
    classes, task_class = np.unique(snapshot.task_class[tasks], return_inverse=True)
    requests = snapshot.requests[classes]
    waiting = np.bincount(task_class, minlength=len(classes))
    suitable = snapshot.suitable[classes] if within is None else snapshot.suitable[classes] & within
    room = _room(snapshot, classes, waiting, task_slots(free, requests, suitable, np.full_like(waiting, len(tasks))))
    hopeful = (room.slots.max(axis=1, initial=0) > 0)[task_class]
    tasks, task_class = tasks[hopeful], task_class[hopeful]
    told = [r for r, name in enumerate(snapshot.resources) if not name.startswith(TOKEN)]  # what can be used up
    view = View(
        resources=tuple(snapshot.resources[r] for r in told),
        requests=_read_only(requests[:, told]),
        priority=_read_only(snapshot.priority[classes]),
        waiting=_read_only(waiting),
        allocatable=_read_only(snapshot.allocatable[:, told]),
        free=_read_only(free[:, told]),
        running=_read_only(running.copy()),
        slot_offsets=_read_only(slot_offsets(len(tasks), room.depth)),
        task_class=_read_only(task_class),
        task_age_us=_read_only(snapshot.task_age_us[tasks]),
        depth=_read_only(room.depth),
        expected_us=_read_only(snapshot.expected_us[classes]),
        inputs=None if snapshot.inputs is None else snapshot.inputs.of_tasks(snapshot.inputs.of_task[tasks]),
        measured_load=_measured_load(snapshot, free, reading, told),
        measured_usage=reading.usage,
        traits=tuple(snapshot.neighbour_counts.traits[c] for c in classes.tolist()),
        surroundings=snapshot.neighbour_counts,
        at_once=at_once,
    )
    return Subproblem(view, room, suitable, classes, tasks)


def with_preferences(snapshot: Snapshot, look: Subproblem, costs: Costs) -> Costs:
    """The policy's costs and, on top, those of each class's preferences."""
    slots = look.room.slots
    of_preferences = {
        i: added
        for i, c in enumerate(look.classes.tolist())
        if (added := snapshot.preferences.costs(c, slots[i] > 0)) is not None
    }
    if not of_preferences:
        return costs
    place = np.broadcast_to(costs.place, slots.shape).copy()
    for i, added in of_preferences.items():
        place[i] += added
    return replace(costs, place=place)


def _room(snapshot: Snapshot, classes: I64, waiting: I64, slots: I64) -> Capacities:
    """For `waiting` (C',) tasks of each of `classes`, of which nodes could take slots (C', N) alone.

    Together a node is sent no more than it could take of the smallest class alone, however few tasks of any one class
    there are.
    """
    depth = slots.max(axis=0, initial=0)
    slots = np.minimum(slots, waiting[:, None])
    limits: dict[int, Sequence[DomainLimit]] = {}
    for i, c in enumerate(classes.tolist()):
        if snapshot.intertask.concerns(c):
            slots[i], limits[i] = snapshot.intertask.limit(c, slots[i], int(waiting[i]))
        if slots[i].any():
            wishes = snapshot.preferences.limits(c, slots[i], int(waiting[i]))
            if wishes:
                limits[i] = [*limits.get(i, ()), *wishes]
        if i in limits:
            limits[i] = built_in(limits[i])
    return Capacities(slots, np.minimum(depth, slots.sum(axis=0)), limits)


def _measured_load(snapshot: Snapshot, free: I64, reading: Reading, told: list[int]) -> I64 | None:
    """(N, R) the load at the start and the requests of what was placed since; None: requests say it all."""
    if reading.load is None:
        return None
    # where it is supposed that tasks have gone, more can be free than at the start
    return _read_only(np.maximum(reading.load + (snapshot.free - free), 0)[:, told])


def _read_only(array: I64) -> I64:
    """The same numbers for somebody who must not change them."""
    view = array.view()
    view.flags.writeable = False
    return view

"""What one solve is about: the waiting tasks that may fit, as a policy's view, and the capacities for them."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from firmament_py.model.arrays import I64, Bools, distinct, runs
from firmament_py.model.resources import TOKEN
from firmament_py.network.capacities import Capacities, built_in
from firmament_py.network.slot_runs import slot_offsets
from firmament_py.placement.ledger import Ledger
from firmament_py.policy import Costs, View
from firmament_py.snapshot.domain_limits import UNLIMITED, DomainLimit
from firmament_py.snapshot.snapshot import Snapshot
from firmament_py.snapshot.solo_capacity import SoloCapacity, task_slots
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
    task_class = snapshot.task_class[tasks]
    starts, number = runs(task_class)
    classes, task_class = task_class[starts], number
    requests = snapshot.requests[classes]
    waiting = np.bincount(task_class, minlength=len(classes))
    suitable = snapshot.suitable[classes] if within is None else snapshot.suitable[classes] & within
    first, like = distinct(snapshot.like[classes])
    slots = task_slots(free, requests[first], suitable[first], np.full(len(first), len(tasks)))
    capacities = _capacities(snapshot, classes, waiting, SoloCapacity(slots, like), suitable, free)
    may_fit = capacities.has_slots[task_class]
    tasks, task_class = tasks[may_fit], task_class[may_fit]
    shown = [r for r, name in enumerate(snapshot.resources) if not name.startswith(TOKEN)]
    view = View(
        resources=tuple(snapshot.resources[r] for r in shown),
        requests=_read_only(requests[:, shown]),
        priority=_read_only(snapshot.priority[classes]),
        waiting=_read_only(waiting),
        # by resource in memory, since policies ask for the scarcest one of each node, and whether some nodes lack one
        allocatable=_read_only(snapshot.allocatable.T[shown].T),
        free=_read_only(free.T[shown].T),
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
        if snapshot.preferences.has_costs[c] and (added := snapshot.preferences.costs(c, slots[i] > 0)) is not None
    }
    if not of_preferences:
        return costs
    place = np.broadcast_to(costs.place, slots.shape).copy()
    for i, added in of_preferences.items():
        place[i] += added
    return replace(costs, place=place)


def _capacities(
    snapshot: Snapshot, classes: I64, waiting: I64, alone: SoloCapacity, suitable: Bools, free: I64
) -> Capacities:
    """For `waiting` (C',) tasks of each of `classes`, of which nodes can take this many alone. suitable (C', N) as in
    Subproblem; free (N, R) amounts.

    All classes together send a node at most as many tasks as it could take of the smallest class alone, even if there
    are fewer of that class.
    """
    depth = alone.slots.max(axis=0, initial=0)
    slots = np.empty((len(classes), len(depth)), np.int64)
    for i, (row, tasks) in enumerate(zip(alone.of_class.tolist(), waiting.tolist(), strict=True)):
        np.minimum(alone.slots[row], tasks, out=slots[i])  # a row at a time, which the caches can hold
    limits: dict[int, list[DomainLimit]] = {}
    constrained = np.flatnonzero(snapshot.intertask.concerned[classes])
    for i, c in zip(constrained.tolist(), classes[constrained].tolist(), strict=True):
        if snapshot.intertask.may_be_first(c):
            slots[i] = task_slots(free, snapshot.requests[[c]], suitable[[i]], np.array([UNLIMITED]))[0]
        slots[i], limits[i] = snapshot.intertask.limit(c, slots[i], int(waiting[i]))
    if len(constrained):
        alone = _with_rows(alone, constrained, slots)
    some = np.flatnonzero(snapshot.preferences.has_limits[classes])
    if len(some):
        of_some = SoloCapacity(alone.slots, alone.of_class[some])
        for k, of_preferences in snapshot.preferences.limits(classes[some], of_some, waiting[some]).items():
            limits.setdefault(int(some[k]), []).extend(of_preferences)
    return Capacities(
        slots,
        np.minimum(depth, _of_all(alone, waiting)),
        {i: built_in(of_class) for i, of_class in limits.items()},
        alone=alone,
    )


def _of_all(alone: SoloCapacity, waiting: I64) -> I64:
    """(N,) the sum over classes of what nodes can take of their `waiting` (C',) tasks."""
    if len(waiting) == 1:
        of_one: I64 = np.minimum(alone.slots[alone.of_class[0]], waiting[0])
        return of_one
    total = np.zeros(alone.slots.shape[1], np.int64)
    for (row, tasks), times in Counter(zip(alone.of_class.tolist(), waiting.tolist(), strict=True)).items():
        total += np.minimum(alone.slots[row], tasks) * times
    return total


def _with_rows(alone: SoloCapacity, some: I64, slots: I64) -> SoloCapacity:
    """With rows of their own, those of slots (C', N), for some (K,) of the classes."""
    of_class = alone.of_class.copy()
    of_class[some] = len(alone.slots) + np.arange(len(some))
    return SoloCapacity(np.concatenate([alone.slots, slots[some]]), of_class)


def _measured_load(snapshot: Snapshot, free: I64, reading: Reading, shown: list[int]) -> I64 | None:
    """(N, R) the measured load and the requests of what was placed since; None: load follows from requests."""
    if reading.load is None:
        return None
    # on hypothetical capacity more can be free than at the start
    return _read_only(np.maximum(reading.load + (snapshot.free - free), 0).T[shown].T)


def _read_only(array: I64) -> I64:
    """A view of the array that policies cannot write to."""
    view = array.view()
    view.flags.writeable = False
    return view

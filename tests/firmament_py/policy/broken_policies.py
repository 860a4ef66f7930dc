"""Policies that break a rule each."""

from dataclasses import replace
from typing import Any

import numpy as np

from firmament_py.policy import API_VERSION, MOVING_MAX, AnywherePolicy, Costs, View, eviction_cost, waiting_cost
from firmament_py.policy.locality import DataCosts

FLAT = np.zeros((1, 1), np.int64)


class Broken(AnywherePolicy):
    """Anywhere, with a defect."""

    name = "broken"

    def good(self, view: View) -> Costs:
        return super().costs(view)


class NoName(Broken):
    name = ""


class NoCosts:
    name = "no-costs"


class TooNew(Broken):
    api_version = API_VERSION + 1


class WaivesTooMuch(Broken):
    waives = {"contract": "it cannot do better"}  # noqa: RUF012


class WaivesWithoutReasons(Broken):
    waives = {"favourites"}  # noqa: RUF012


class OneRackLabel(Broken):
    rack_labels = "topology.kubernetes.io/zone"


class Raises(Broken):
    def costs(self, view):
        return self.good(view) if len(view.allocatable) else 1 // 0


class Flat(Broken):
    """One dimension too few, and only in a view without nodes."""

    def costs(self, view):
        return replace(self.good(view), place=np.zeros((3, 2), np.int64)) if not len(view.requests) else self.good(view)


class NotANumber(Broken):
    def costs(self, view):
        return replace(self.good(view), place=np.full((1, 1), np.nan))


class Negative(Broken):
    def costs(self, view):
        return replace(self.good(view), place=FLAT - 1)


class OutOfRange(Broken):
    """Grows with what is free: too much where that is enormous."""

    def costs(self, view):
        return replace(self.good(view), place=np.maximum(view.free, 0).sum(axis=1)[None, :])


class Falling(Broken):
    def costs(self, view):
        return replace(self.good(view), slot=np.maximum(9 - view.slot_offsets, 0)[None, :])


class Unfair(Broken):
    """The older task goes first, whatever the priority."""

    def costs(self, view):
        flattened = replace(view, priority=np.zeros_like(view.priority))
        return replace(self.good(view), wait=waiting_cost(flattened))


class Divides(Broken):
    def costs(self, view):
        share = np.nan_to_num(view.free / view.allocatable, posinf=0, neginf=0)
        return replace(self.good(view), place=np.clip(share.sum(axis=1), 0, 9).astype(np.int64)[None, :])


class Writes(Broken):
    def costs(self, view):
        view.running[:] = 0
        return self.good(view)


class Forces(Broken):
    """Writes to a read-only array."""

    def costs(self, view):
        costs = self.good(view)
        view.task_age_us.flags.writeable = True
        view.task_age_us[:] = 0
        view.task_age_us.flags.writeable = False
        return costs


class Rolls(Broken):
    """Different costs in each call."""

    def __init__(self):
        self._random = np.random.default_rng()

    def costs(self, view):
        return replace(self.good(view), place=self._random.integers(0, 10**6, (1, len(view.allocatable))))


class Remembers(Broken):
    """Different costs after another view."""

    def __init__(self):
        self._last = 0

    def costs(self, view):
        last, self._last = self._last, len(view.task_class)
        return replace(self.good(view), slot=FLAT + last)


class Alphabetical(Broken):
    """The first node first."""

    def costs(self, view):
        return replace(self.good(view), place=np.arange(len(view.allocatable))[None, :])


class YoungestFirst(Broken):
    def costs(self, view):
        good = self.good(view)
        return replace(good, wait=good.wait + 3_000_000 - np.minimum(view.task_age_us // 10**6, 3_000_000))


class Starving(Broken):
    """Long tasks only if there are no others: they do not age."""

    def costs(self, view):
        long = view.expected_us >= 10**9
        return self.good(replace(view, task_age_us=np.where(long[view.task_class], 0, view.task_age_us)))


class Hungry(Broken):
    """Every class, node and slot at once."""

    def costs(self, view):
        shape = (len(view.requests), len(view.allocatable), len(view.slot_offsets))
        everything = np.empty(shape, np.int64)
        return replace(self.good(view), fill=everything.size < 0)


class Moving(Broken):
    """Near data costs nothing, other data costs something."""

    rack_labels = ("topology.kubernetes.io/zone",)

    def costs(self, view):
        inputs = view.inputs
        if inputs is None:
            return self.good(view)
        near, rack = np.zeros_like(inputs.near_set), np.full_like(inputs.rack_set, 3)
        data = DataCosts(
            inputs.of_task,
            np.full_like(inputs.total, 5),
            inputs.near_set,
            inputs.near_node,
            near,
            inputs.rack,
            inputs.rack_set,
            inputs.rack_id,
            rack,
        )
        return replace(self.good(view), data=self.changed(data))

    def changed(self, data):
        return data


class MovingToTheFirst(Moving):
    def changed(self, data):
        return replace(data, near_cost=data.near_node)


class MovingAnyhow(Moving):
    def __init__(self):
        self._asked = 0

    def changed(self, data):
        self._asked += 1
        return replace(data, rack_cost=np.full_like(data.rack_cost, self._asked))


class MovingInOtherWords(Moving):
    """Equal costs in each call, with sets and arcs in another order, and with redundant arcs."""

    def __init__(self):
        self._random = np.random.default_rng()

    def changed(self, data):
        number = self._random.permutation(len(data.anywhere))
        arcs = self._random.permutation(np.tile(np.arange(len(data.near_set)), 2))
        racks = self._random.permutation(len(data.rack_set))
        return replace(
            data,
            of_task=np.append(number, -1)[data.of_task],
            anywhere=data.anywhere[np.argsort(number)],
            near_set=number[data.near_set[arcs]],
            near_node=data.near_node[arcs],
            near_cost=data.near_cost[arcs],
            rack_set=number[data.rack_set[racks]],
            rack_id=data.rack_id[racks],
            rack_cost=data.rack_cost[racks],
        )


class Loads(Moving):
    """Writes to the data locations of the view."""

    def costs(self, view):
        if view.inputs is not None:
            view.inputs.total[:] = 0
        return self.good(view)


class Meters(Broken):
    """Writes to the measured usage of nodes."""

    def costs(self, view):
        view.usage.cpu[np.isnan(view.usage.cpu)] = 0
        return self.good(view)


class Asked(Broken):
    """Stores its views."""

    def __init__(self):
        self.seen = []

    def costs(self, view):
        self.seen.append(view.inputs)
        return self.good(view)


class AskedForData(Asked):
    rack_labels = ("topology.kubernetes.io/zone",)


class Sparing(Broken):
    """Tasks that lose much are evicted first."""

    def eviction_costs(self, victims):
        return 1 + 10**12 // (victims.lost_us + 10**7)


class Dicing(Broken):
    def __init__(self):
        self._random = np.random.default_rng()

    def eviction_costs(self, victims):
        return self._random.integers(1, 1000, len(victims.task_class))


class Free(Broken):
    def eviction_costs(self, victims):
        return np.zeros(len(victims.task_class), np.int64)


class Erasing(Broken):
    def eviction_costs(self, victims):
        victims.lost_us[:] = 0
        return eviction_cost(victims)


class Uprooting(Broken):
    """Tasks that lose much are moved first."""

    def moving_costs(self, victims):
        return 1 + 10**12 // (victims.lost_us + 10**7)


class Patient(Broken):
    """No task is ever placed at once."""

    def costs(self, view):
        return replace(super().costs(view), delay=np.full(len(view.task_class), -1))


class Merging(Broken):
    """Its costs differ by class, and it says that they do not."""

    def costs(self, view):
        costs = super().costs(view)
        return replace(costs, place=np.arange(len(view.requests))[:, None])

    def place_kinds(self, victims):
        return np.zeros(len(victims.requests), np.int64)


class Countless(Broken):
    def place_kinds(self, victims):
        return np.full(len(victims.requests), -1)


class Dear(Broken):
    def moving_costs(self, victims):
        return np.full(len(victims.task_class), MOVING_MAX + 1)


BROKEN: list[tuple[Any, str, str]] = [
    (NoName(), "identity", "its name is ''; give it an attribute `name`, a text"),
    (NoCosts(), "identity", "it has no method costs(view)"),
    (TooNew(), "identity", f"its api_version is {API_VERSION + 1}"),
    (WaivesTooMuch(), "identity", "it waives 'contract'; only these can be waived: favourites, starvation"),
    (WaivesWithoutReasons(), "identity", "its waives is {'favourites'}; give a mapping of rules to reasons"),
    (OneRackLabel(), "identity", "its rack_labels is 'topology.kubernetes.io/zone'; give a tuple of node labels"),
    (Raises(), "contract", "costs() raised ZeroDivisionError"),
    (Flat(), "contract", "place has shape (3, 2), not (0, 0)"),
    (NotANumber(), "contract", "place is float64, not an int64"),
    (Negative(), "contract", "place leaves the range 0 .. 1000000: -1 .. -1"),
    (OutOfRange(), "contract", "place leaves the range"),
    (Falling(), "contract", "slot falls along K"),
    (Unfair(), "contract", "wait lets a lower priority outweigh a higher one"),
    (Divides(), "warnings", "RuntimeWarning: "),
    (Writes(), "purity", "read-only"),
    (Forces(), "purity", "it changes view.task_age_us"),
    (Loads(), "purity", "read-only"),
    (Meters(), "purity", "read-only"),
    (Rolls(), "determinism", "place differs"),
    (MovingAnyhow(), "determinism", "data differs"),
    (MovingToTheFirst(), "favourites", "data depends on the order of nodes"),
    (Remembers(), "determinism", "slot differs"),
    (Alphabetical(), "favourites", "place depends on the order of nodes"),
    (YoungestFirst(), "age", "costs less at an age of"),
    (Starving(), "starvation", "costs no more than a new one"),
    (Sparing(), "eviction", "evicting a task costs less than evicting one like it that loses less work"),
    (Dicing(), "eviction", "differs from what it was for the same tasks"),
    (Free(), "contract", "eviction_costs() leaves the range 1 .. 1000000"),
    (Erasing(), "purity", "read-only"),
    (Uprooting(), "eviction", "moving a task costs less than moving one like it that loses less work"),
    (Patient(), "contract", "delay leaves the range 0 .. 3000000: -1 .. -1"),
    (Dear(), "contract", "moving_costs() leaves the range 1 .. 3000000"),
    (Merging(), "kinds", "place differs between classes of one number"),
    (Countless(), "contract", "place_kinds() leaves the range 0 .."),
    (Hungry(), "memory", "MiB at its peak"),
]

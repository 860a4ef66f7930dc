"""Which waiting tasks and gangs evictions and moves may serve: those for which an upper bound does not rule it out.

The bound (preemption/served_bound.py) takes some milliseconds, a search that finds nothing up to a second. It counts
what any decision could use: all residents of lower priority than the tasks that are served, all that leaves anyway, and
the places that the round has given away.
"""

from dataclasses import dataclass, field

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, Bools, add_rows
from firmament_py.model.lifecycle import BOUND
from firmament_py.placement.ledger import Ledger
from firmament_py.placement.running import positions_of, started_us
from firmament_py.preemption.gang_victims import Surplus, evictable_gangs
from firmament_py.preemption.movable_tasks import MovableNearby
from firmament_py.preemption.precedence import Precedence
from firmament_py.preemption.served_bound import Removable, ServedBound
from firmament_py.preemption.topology import SEARCHED
from firmament_py.snapshot.job_demand import JobDemand
from firmament_py.state.gangs import NO_GANG

_PRIORITIES = 8
"""Limit on the priorities for which a round collects what may be evicted; tasks of lower ones count as servable."""

_DOMAINS = 16
"""Limit on the domains of a gang's topology for which a bound is calculated."""

_LOWEST = np.iinfo(np.int64).min
"""The priority of tasks for which no resident is evicted."""


@dataclass(slots=True)
class KnownBounds:
    """Bounds of the last round and of this one, by a digest of all that they depend on."""

    last: dict[bytes, int] = field(default_factory=dict)
    current: dict[bytes, int] = field(default_factory=dict)

    def copy(self) -> "KnownBounds":
        return KnownBounds(self.last.copy(), self.current.copy())

    def next_round(self) -> None:
        self.last, self.current = self.current, {}


class Servable:
    """For the tasks of one ledger. precedence: who gives way to whom. evicts (C,): classes whose tasks may evict
    residents. movable (T,): tasks that may lose the places that the round gave them. nearby: which running tasks may
    move, None: none may."""

    def __init__(
        self,
        ledger: Ledger,
        precedence: Precedence,
        evicts: Bools,
        movable: Bools,
        spare: Surplus,
        nearby: MovableNearby | None,
        known: KnownBounds,
        *,
        beyond_budgets: bool,
    ) -> None:
        self._ledger = ledger
        self._snapshot = ledger.snapshot
        self._precedence = precedence
        self._evicts = evicts
        self._movable = movable
        self._spare = spare
        self._known = known
        self._beyond_budgets = beyond_budgets
        self._bounds: dict[int, _Bound] = {}
        self._movers = None if nearby is None else nearby.everywhere(ledger)
        self._moves = 0 if nearby is None else nearby.at_once
        self.at_best: dict[int, int] = {}
        """Rows of gangs that cannot be served -> how many of the members that they lack would fit at best."""
        self.within: dict[int, list[list[Bools]]] = {}
        """Rows of gangs with a topology -> for each of its levels, the narrowest first, domains (N,) that may serve
        them, the best by an estimate first."""

    def of(self, singles: I64, demands: list[JobDemand]) -> tuple[I64, list[JobDemand]]:
        """Those of the tasks (K,), ascending, and of the gangs that may be served."""
        task_class = self._snapshot.task_class
        classes, count = np.unique(task_class[singles], return_counts=True)
        cases = [
            (self._priority(np.array([c])), -1, np.array([c]), number, 1)
            for c, number in zip(classes, count, strict=True)
        ]
        for i, demand in enumerate(demands):
            some, number = np.unique(task_class[demand.members], return_counts=True)
            cases.append((self._priority(task_class[demand.core()]), i, some, number, demand.lacking))
        hopeless, served = np.zeros(len(self._snapshot.classes), np.bool_), set[int]()
        highest = _LOWEST  # what is evicted for one task may serve a less important one, too
        for priority, i, some, number, needed in sorted(cases, key=lambda case: -case[0]):
            bound, counts = self._bound(max(priority, highest)), np.atleast_1d(number)
            has_topology = i >= 0 and bool(demands[i].topology_key)
            if bound is None and has_topology:
                continue  # its domains are not known in this round
            if bound is None:
                at_best = needed
            elif has_topology:
                at_best = self._in_domains(bound, demands[i], some, counts)
            else:
                at_best = self._at_best(bound, some, counts, needed)
            if at_best >= needed:
                highest = max(highest, priority)
                served.add(i)
            elif i < 0:
                hopeless[some] = True
            else:
                self.at_best[demands[i].key] = at_best
        return singles[~hopeless[task_class[singles]]], [demand for i, demand in enumerate(demands) if i in served]

    def _priority(self, classes: I64) -> int:
        """Residents of lower priority may be evicted for tasks of these classes."""
        return int(self._precedence.waiting[classes[self._evicts[classes]]].max(initial=_LOWEST))

    def _in_domains(self, bound: "_Bound", demand: JobDemand, classes: I64, count: I64) -> int:
        """How many of `count` (C',) members of these classes could be served in one domain of the gang's topology, or
        anywhere if it is only preferred; if that is not less than it lacks, what it lacks. Notes the domains that may
        serve it."""
        levels = self._snapshot.levels_for(demand)
        found = [self._in_level(bound, demand, domain, classes, count) for domain in levels]
        self.within[demand.key] = [within for within, _ in found]
        if any(self.within[demand.key]):
            return demand.lacking
        required = demand.topology_required
        return found[-1][1] if required else self._at_best(bound, classes, count, demand.lacking)

    def _in_level(
        self, bound: "_Bound", demand: JobDemand, domain: I64, classes: I64, count: I64
    ) -> tuple[list[Bools], int]:
        """Those of the domains (N,) that may serve the gang, and how many members one of the others could at best."""
        of = self._snapshot.requests[classes], count, self._snapshot.suitable[classes]
        fitting, leaving = bound.served.of_domains(*of, domain)
        able = np.flatnonzero(fitting >= demand.lacking)
        newest_us = self._newest_us(self._priority(classes), domain, len(fitting))
        able = able[np.lexsort((-newest_us[able], leaving[able]))]
        at_best, within = int(fitting[fitting < demand.lacking].max(initial=0)), []
        for i, d in enumerate(able[: _DOMAINS + SEARCHED].tolist()):
            of_domain = self._at_best(bound, classes, count, demand.lacking, domain == d) if i < _DOMAINS else None
            if of_domain is None or of_domain >= demand.lacking:
                within.append(domain == d)
            else:
                at_best = max(at_best, of_domain)
        return within, at_best

    def _newest_us(self, priority: int, domain: I64, count: int) -> I64:
        """(D,) when the newest task of lower priority started that runs in each of so many domains of nodes (N,)."""
        state, found = self._snapshot.releases.state, np.zeros(count, np.int64)
        rows = np.flatnonzero((state.tasks.state == BOUND) & (self._precedence.running < priority))
        at = positions_of(self._snapshot, state.nodes.capacity)[state.tasks.node[rows]]
        rows, of_row = rows[at >= 0], domain[at[at >= 0]]
        np.maximum.at(found, of_row[of_row >= 0], started_us(state, rows)[of_row >= 0])
        return found

    def _at_best(self, bound: "_Bound", classes: I64, count: I64, needed: int, within: Bools | None = None) -> int:
        """How many of `count` (C',) tasks of these classes could be served on the nodes `within` (N,), None: any; if
        that is not less than `needed`, some bound."""
        suitable = self._snapshot.suitable[classes]
        of = self._snapshot.requests[classes], count, suitable if within is None else suitable & within
        digest = _digest(bound.digest, *of, needed)
        found = self._known.last.get(digest, self._known.current.get(digest))
        if found is None:
            found = bound.served.together(of[0], bound.served.each(*of), of[2], needed)
        self._known.current[digest] = found
        return found

    def _bound(self, priority: int) -> "_Bound | None":
        """With all residents of lower priority evictable; None: that has been collected too often."""
        if priority not in self._bounds:
            if len(self._bounds) == _PRIORITIES:
                return None
            self._bounds[priority] = self._collect(priority)
        return self._bounds[priority]

    def _collect(self, priority: int) -> "_Bound":
        ledger, snapshot = self._ledger, self._snapshot
        state = snapshot.releases.state
        tasks, requests = state.tasks, state.classes.requests
        position = positions_of(snapshot, state.nodes.capacity)
        there = (tasks.node >= 0) & (position[tasks.node] >= 0)
        whole = np.zeros(tasks.capacity, np.bool_)
        for gang in evictable_gangs(state, self._precedence.running, priority, NO_ROWS):
            whole[gang.members] = True
        able = there & tasks.evictable & (self._precedence.running < priority)
        able &= (tasks.gang == NO_GANG) | self._spare.evictable | whole
        residents, leaving = np.flatnonzero(able), np.flatnonzero(there & tasks.leaving)
        free = ledger.free + ledger.usage_of(np.flatnonzero(self._movable))
        add_rows(free, position[tasks.node[leaving]], requests[tasks.cls[leaving]])
        lower = self._movable & (ledger.node_of < 0) & (ledger.nominated >= 0)
        lower &= self._precedence.placed[snapshot.task_class] < priority
        add_rows(free, ledger.nominated[lower], snapshot.requests[snapshot.task_class[lower]])
        allowed, budget = self._budgets(residents)
        surplus = len(allowed) + self._spare.of_row[residents].T
        allowed = np.append(allowed, self._spare.limit)
        limit = np.full(len(residents), -1) if self._beyond_budgets else budget
        for column in np.where((self._spare.of_row[residents].T >= 0) & ~whole[residents], surplus, -1):
            limit = _tighter(limit, column, allowed)
        movers = self._movers
        if movers is None:
            none = np.zeros((0, len(free)), np.bool_)
            place = position[tasks.node[residents]], requests[tasks.cls[residents]], limit
            return _bound(free, Removable(*place, allowed, 0, NO_ROWS, none))
        budget = self._budgets(movers.row)[1]
        may_leave = ~able[movers.row] & (np.append(allowed, 1)[budget] > 0)  # the last one for no budget
        movers, budget = movers.only(may_leave), budget[may_leave]
        return _bound(
            free,
            Removable(
                np.append(position[tasks.node[residents]], movers.node),
                np.vstack([requests[tasks.cls[residents]], movers.requests[movers.kind]]),
                np.append(limit, budget),
                allowed,
                self._moves,
                movers.kind,
                movers.suitable,
            ),
        )

    def _budgets(self, rows: I64) -> tuple[I64, I64]:
        """How many evictions each disruption budget permits, and (K,) the tightest one that counts each of these rows
        of the task table, -1: none does."""
        state = self._snapshot.releases.state
        sets, of_row = np.unique(state.tasks.label_set[rows], return_inverse=True)
        allowances, found = state.allowances(), np.full(len(sets), -1)
        for b, counts in enumerate(allowances.counted(sets)):
            found = _tighter(found, np.where(counts, b, -1), allowances.left)
        return allowances.left, found[of_row.reshape(-1)]


@dataclass(frozen=True, slots=True)
class _Bound:
    served: ServedBound
    digest: bytes


def _bound(free: I64, removable: Removable) -> _Bound:
    parts = (getattr(removable, name) for name in removable.__dataclass_fields__)
    return _Bound(ServedBound(free, removable), _digest(free, *parts))


def _tighter(one: I64, other: I64, allowed: I64) -> I64:
    """(K,) of two limits, -1: none, the one that allows less."""
    limits = np.append(allowed, np.iinfo(np.int64).max)  # the last one for none
    return np.where(limits[other] < limits[one], other, one)


def _digest(*parts: object) -> bytes:
    from hashlib import blake2b  # loads OpenSSL: 4 MB that few engines need

    found = blake2b(digest_size=16)
    for part in parts:
        found.update(part if isinstance(part, bytes) else np.ascontiguousarray(part).tobytes())
    return found.digest()

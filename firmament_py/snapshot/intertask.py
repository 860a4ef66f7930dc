"""Inter-task constraints: affinity, anti-affinity in both directions, topology spread.

`IntertaskConstraints` counts the tasks on each node that the selectors of the waiting classes match, and updates these
counts while a round places tasks. From the counts follow

- `allowed`: the nodes that can take a further task of a class now;
- `limit`: how many tasks of a class that is matched by its own selectors each domain can take in one solve
  (capacities of the network: exact for one constraint, an upper bound for several with different domains);
- `trim`: the part of a solution for one class that meets all its constraints, given all earlier placements.

Classes are placed one after the other, so a class that depends on another is trimmed, or waits for the next solve of
the round, after the other is placed: the solves are stages, instead of one task at a time.

A nominated task waits for a node that others leave. As by kube-scheduler (RunFilterPluginsWithNominatedPods), tasks of
no higher priority respect it as if it ran: constraints hold beside what runs, and beside that and nominated tasks.
Nothing is placed that takes its node from it, either: what its own spread and affinity say must stay true. So what was
evicted for it and is created again cannot get in its way.

Semantics are those of kube-scheduler's InterPodAffinity and PodTopologySpread filters. C classes, N nodes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, Bools, distinct_rows, positions_in
from firmament_py.model.constraints import NO_PEERS
from firmament_py.snapshot.affinity import Affinity, Within
from firmament_py.snapshot.anti_affinity import AntiAffinity
from firmament_py.snapshot.domain_limits import UNLIMITED, DomainLimit
from firmament_py.snapshot.domains import Condition, Domains, keep_within
from firmament_py.snapshot.running_tasks import RunningTasks
from firmament_py.snapshot.spread import SpreadLimit, TopologySpread
from firmament_py.state.cluster import ClusterState


@dataclass(frozen=True, slots=True)
class Nominated:
    """K tasks for which nodes are kept. rows (K,) of the task table; where (K,): positions of their nodes in a list of
    nodes; cls, label_set (K,): rows of their tables."""

    rows: I64
    where: I64
    cls: I64
    label_set: I64

    def beside(self, state: ClusterState, rows: I64, where: I64) -> "Nominated":
        """These, and task rows (L,) at positions (L,)."""
        cls, label_set = state.tasks.cls[rows], state.tasks.label_set[rows]
        further = rows, where, cls, label_set
        return Nominated(
            *(
                np.concatenate(pair)
                for pair in zip((self.rows, self.where, self.cls, self.label_set), further, strict=True)
            )
        )


NONE_NOMINATED = Nominated(NO_ROWS, NO_ROWS, NO_ROWS, NO_ROWS)


def nominated_in(state: ClusterState, nodes: I64, but: I64 = NO_ROWS) -> Nominated:
    """All nominated tasks but task rows (K,), if they could matter to any. nodes (N,): rows of the nodes that are
    present."""
    tasks = state.tasks
    if not state.classes.has_intertask_constraints:
        return NONE_NOMINATED
    rows = np.setdiff1d(tasks.nominees, but, assume_unique=True)
    if not len(rows):
        return NONE_NOMINATED
    return NONE_NOMINATED.beside(state, rows, positions_in(nodes, state.nodes.capacity)[tasks.nominated[rows]])


RESPECTS_ALL = np.iinfo(np.int64).min
"""The priority by which tasks respect all nominated ones."""


def respecting(state: ClusterState, rows: I64) -> I64:
    """(K,) the least priority of the nominated tasks that task rows (K,) respect: their own. Those of queues respect
    all, since priorities of different queues do not compare."""
    tasks = state.tasks
    return np.where(tasks.queue[rows] != 0, RESPECTS_ALL, state.classes.priority[tasks.cls[rows]])


@dataclass(frozen=True, slots=True)
class _Beside:
    """The constraints of classes beside certain tasks."""

    affinity: Affinity
    anti_affinity: AntiAffinity
    spread: TopologySpread

    def copy(self) -> "_Beside":
        """One that counts further tasks on its own."""
        return _Beside(self.affinity.copy(), self.anti_affinity.copy(), self.spread.copy())

    def add(self, cls: I64, node: I64, count: I64) -> None:
        for part in (self.affinity, self.anti_affinity, self.spread):
            part.add(cls, node, count)

    def clear(self, c: int) -> Bools:
        """(N,) nodes that anti-affinity leaves, in both directions."""
        return self.anti_affinity.clear(c) & self.anti_affinity.clear_of_repelling(c)

    def allowed(self, c: int) -> Bools:
        """(N,) nodes that can take a further task of class c."""
        return self.affinity.allowed(c) & self.clear(c) & self.spread.allowed(c)

    def conditions(self, c: int) -> list[Condition]:
        """What `allowed` means, condition by condition."""
        parts = (self.affinity, self.anti_affinity, self.spread)
        return [condition for part in parts for condition in part.conditions(c)]

    def allowed_together(self, c: int) -> Bools:
        """(N,) nodes that can take one of several tasks of class c, as the others level its spread.

        Only with a single spread over its own tasks: with several, the final counts may meet all of them although no
        order of placements does. Not for the first tasks of an affinity, the first of which is placed alone.
        """
        own = self.spread.own(c)
        together = len(own) == 1 and not self.affinity.may_be_first(c)
        return self.affinity.allowed(c) & self.clear(c) & self.spread.allowed(c, own if together else ())

    def trim(self, c: int, node: I64, count: I64) -> I64:
        """(K,) how many of the count[i] tasks of class c on node[i] meet all constraints after earlier placements."""
        count = np.where(self.allowed_together(c)[node], count, 0)
        count = self.affinity.trim(c, node, count)
        count = self.anti_affinity.trim(c, node, count)
        return self.spread.trim(c, node, count)


class IntertaskConstraints:
    """nodes: (N,) rows of the node table; classes and label_sets: (C,) rows of their tables; running: see there.
    nominated: tasks that others respect; yields_to (C,): tasks of each class respect those of this priority and higher
    ones, None: of that of the class."""

    def __init__(
        self,
        state: ClusterState,
        nodes: I64,
        classes: I64,
        label_sets: I64,
        running: RunningTasks,
        nominated: Nominated = NONE_NOMINATED,
        yields_to: I64 | None = None,
    ) -> None:
        self._size, self._running = len(classes), running
        self._yields_to = state.classes.priority[classes] if yields_to is None else yields_to
        # the kinds of nominated tasks are further classes, behind those of the round: some may not be among these
        first, kind = distinct_rows(np.column_stack([nominated.cls, nominated.label_set]))
        classes = np.concatenate([classes, nominated.cls[first]])
        label_sets = np.concatenate([label_sets, nominated.label_set[first]])
        self._priority = state.classes.priority[classes]
        self._demands = [state.classes.definition(row).peers for row in classes.tolist()]
        self._of = state, classes, label_sets, Domains(state.node_index, nodes)
        places = zip((self._size + kind).tolist(), nominated.where.tolist(), strict=True)
        self._nominated = dict(zip(nominated.rows.tolist(), places, strict=True))  # row -> its class and node
        demanding = np.array([self._demands_more(self._size + k) for k in range(len(first))], np.bool_)
        self._demanding = {row: self._nominated[row] for row in nominated.rows[demanding[kind]].tolist()}
        self._with_nominated: dict[int, _Beside] = {}  # those of at least a priority
        self._summarise()

    def _summarise(self) -> None:
        self._possible = any(demand != NO_PEERS for demand in self._demands) or self._repelled_by_running
        """False: no class says anything of other tasks, so there is nothing to count, as in most rounds; the parts
        below are only made if they are asked."""
        self.any = False
        size, demands = self._size, self._demands[: self._size]
        self.terms: I64 = np.zeros(size, np.int64)
        """(C,) number of constraints that apply to a further task of each class."""
        self.counted: Bools = np.zeros(size, np.bool_)
        """(C,) whether tasks of each class count for constraints of others, or of their own."""
        if self._possible:
            parts = self._beside
            self.any = parts.anti_affinity.any or parts.spread.any or any(demand.affinity for demand in self._demands)
            own = [len(demand.affinity) + len(demand.anti_affinity) + len(demand.spread) for demand in demands]
            self.terms = np.array(own, np.int64) + parts.anti_affinity.repelling[:size]
            self.counted = (parts.affinity.counted | parts.anti_affinity.counted | parts.spread.counted)[:size]
        self._note_concerned()

    def _note_concerned(self) -> None:
        self.concerned: Bools = self.terms > 0
        """(C,) whether each class has constraints on other tasks, or others on it."""
        if self._demanding and self._possible:
            for c in np.flatnonzero(self.counted & ~self.concerned).tolist():
                self.concerned[c] = bool(self._limiting(c))

    @property
    def _repelled_by_running(self) -> bool:
        """Whether running tasks repel any others."""
        return bool(self._running.classes_that(self._of[0].classes.repels))

    @cached_property
    def _beside(self) -> _Beside:
        """Beside what runs and was placed."""
        state, classes, label_sets, domains = self._of
        return _Beside(
            Affinity(self._demands, label_sets, state.label_sets, self._running, domains),
            AntiAffinity(self._demands, label_sets, state.label_sets, self._running, state.classes, domains),
            TopologySpread(state, classes, self._demands, label_sets, self._running, domains),
        )

    @contextmanager
    def beside(self, running: RunningTasks) -> Iterator[None]:
        """Within, these tasks run, some of those that do, none was placed before, and none is nominated."""
        before = dict(vars(self))
        vars(self).pop("_beside", None)
        self._running, self._nominated, self._demanding, self._with_nominated = running, {}, {}, {}
        self._summarise()
        try:
            yield
        finally:
            vars(self).clear()
            vars(self).update(before)

    @property
    def shrinking(self) -> Bools:
        """(C,) classes that can only go to fewer nodes the more tasks are placed, whatever these are."""
        without = [not (demand.affinity or demand.spread) for demand in self._demands[: self._size]]
        return np.array(without, np.bool_) & ((self.terms > 0) | ~self.concerned)

    def affine_keys(self, c: int) -> list[str]:
        """Topology keys of the domains that tasks of class c must share with others."""
        return self._beside.affinity.keys(c)

    def add(self, cls: I64, node: I64, count: I64) -> None:
        """Counts count[i] more tasks (below 0: fewer) of class cls[i] on node[i], (K,) each."""
        if self._possible:
            self._beside.add(cls, node, count)
            for beside in self._with_nominated.values():
                beside.add(cls, node, count)

    # -- nominated tasks --------------------------------------------------------------------------------------

    def nominate(self, row: int, c: int, node: int) -> None:
        """A node is kept for a task, row of the task table, of class c from now on; -1: none."""
        for places in (self._nominated, self._demanding) if self._demands_more(c) else (self._nominated,):
            places.pop(row, None)
            if node >= 0:
                places[row] = c, node
        self._with_nominated.clear()
        if self._demands_more(c):
            self._note_concerned()

    def _demands_more(self, c: int) -> bool:
        """Whether a nominated task of class c could lose its node to tasks that do not repel it."""
        return bool(self._demands[c].spread or self._demands[c].affinity)

    def respected(self, c: int) -> Nominated:
        """The nominated tasks that those of class c respect."""
        _, classes, label_sets, _ = self._of
        some = {row: at for row, at in self._nominated.items() if self._priority[at[0]] >= self._yields_to[c]}
        kind, where = np.array([*some.values()], np.int64).reshape(-1, 2).T
        return Nominated(np.array([*some], np.int64), where, classes[kind], label_sets[kind])

    def _all_of(self, c: int) -> list[_Beside]:
        """What a task of class c must be allowed beside: what runs, and that and the nominated tasks it respects."""
        beside = self._beside_nominated(c)
        return [self._beside] if beside is None else [self._beside, beside]

    def _beside_nominated(self, c: int) -> _Beside | None:
        """Beside the nominated tasks that those of class c respect, too; None: there are none."""
        if not self._nominated:
            return None
        level = int(self._yields_to[c])
        beside = self._with_nominated.get(level)
        if beside is None:
            places = [at for at in self._nominated.values() if self._priority[at[0]] >= level]
            if not places:
                return None
            kind, where = np.array(places, np.int64).T
            beside = self._with_nominated[level] = self._beside.copy()
            beside.add(kind, where, np.ones(len(kind), np.int64))
        return beside

    def _limiting(self, c: int) -> list[tuple[int, int]]:
        """Class and node of the nominated tasks that those of class c respect, and for whose spread or affinity, which
        count themselves, too, they count."""
        level, spread, affinity = self._yields_to[c], self._beside.spread, self._beside.affinity
        places = {at for at in self._demanding.values() if self._priority[at[0]] >= level}
        return [(h, node) for h, node in sorted(places) if spread.counts_with(c, h) or affinity.may_come_before(c, h)]

    def _spread_limits(self, c: int) -> list[SpreadLimit]:
        """What nominated tasks admit of class c in their domains."""
        beside = self._beside_nominated(c)
        if beside is None or not self._demanding or not self.counted[c]:
            return []
        return [spread_limit for h, node in self._limiting(c) for spread_limit in beside.spread.limits_for(c, h, node)]

    def _leaving_first(self, c: int) -> Bools:
        """(N,) nodes on which tasks of class c leave nominated ones what these must be near."""
        ok, beside = np.ones(len(self._of[3].nodes), np.bool_), self._beside_nominated(c)
        if beside is not None and self._demanding and self.counted[c]:
            for h, node in self._limiting(c):
                ok &= beside.affinity.leaves_first(c, h, node)
        return ok

    # -- where a further task may go --------------------------------------------------------------------------

    def allowed(self, c: int) -> Bools:
        """(N,) nodes that can take a further task of class c."""
        ok = self._leaving_first(c)
        for beside in self._all_of(c):
            ok &= beside.allowed(c)
        nodes = np.arange(len(ok))
        for spread_limit in self._spread_limits(c):
            ok &= spread_limit.met(nodes, np.zeros(len(ok), np.int64))
        return ok

    def conditions(self, c: int) -> list[Condition]:
        """What `allowed` means beside nominated tasks, condition by condition: it follows what is allowed once tasks of
        a node are gone."""
        nothing = np.zeros(self._of[0].label_sets.capacity, np.bool_)
        within = Within(np.where(self._leaving_first(c), 0, -1), np.zeros(2, np.int64), nothing)
        return [*self._all_of(c)[-1].conditions(c), *self._spread_limits(c), within]

    def conceivable(self, c: int) -> Bools:
        """(N,) nodes that placing other tasks can make allowed for class c: peers of its affinity or of its spread.

        Anti-affinity still applies, and so does affinity to tasks of which none waits.
        """
        ok = self._beside.affinity.conceivable(c) & self._beside.spread.labelled(c) & self._leaving_first(c)
        for beside in self._all_of(c):
            ok &= beside.clear(c)
        return ok

    def failures(self, c: int) -> dict[str, Bools]:
        """(N,) each: the nodes that fail each constraint of class c, in kube-scheduler's order: a node counts for the
        first that it fails."""
        unlabelled, uneven, unmet, repelling, repelled = np.zeros((5, len(self._of[3].nodes)), np.bool_)
        for beside in self._all_of(c):
            unlabelled, uneven_here = beside.spread.failures(c)
            uneven |= uneven_here
            unmet |= ~beside.affinity.allowed(c)
            repelling |= ~beside.anti_affinity.clear(c)
            repelled |= ~beside.anti_affinity.clear_of_repelling(c)
        repelled |= ~self.allowed(c)  # also what a nominated task must not lose
        return {
            "label": unlabelled,
            "spread": uneven,
            "affinity": unmet,
            "anti_affinity": repelling,
            "others": repelled,
        }

    # -- how many may go in one solve -------------------------------------------------------------------------

    def may_be_first(self, c: int) -> bool:
        """Whether class c has affinity that no placed task meets, but its own tasks do."""
        return self._beside.affinity.may_be_first(c)

    def limit(self, c: int, slots: I64, waiting: int) -> tuple[I64, list[DomainLimit]]:
        """slots (N,) for `waiting` tasks of class c, 0 on nodes that these cannot use, and what each domain can take in
        one solve. If they `may_be_first`, the slots are those for any number: theirs is the domain that takes most of
        them, since of the pods of one owner the others often come a moment later."""
        slots = np.where(self._leaving_first(c), slots, 0)
        for beside in self._all_of(c):
            slots = np.where(beside.allowed_together(c), slots, 0)
        limits = self._beside.anti_affinity.limits(c)
        if self._beside.affinity.may_be_first(c):
            apart = [
                *limits,
                *(limit for beside in self._all_of(c) for limit in beside.spread.limits(c, slots, waiting)),
            ]
            slots = np.minimum(np.where(self._beside.affinity.first_domain(c, slots, apart), slots, 0), waiting)
        levels = [beside.spread.limits(c, slots, waiting) for beside in self._all_of(c)]
        limits += [_both(*of_spread) for of_spread in zip(*levels, strict=True)]
        limits += [spread_limit.limit for spread_limit in self._spread_limits(c)]
        for limit in limits:
            slots = np.minimum(slots, np.append(limit.maximum, UNLIMITED)[limit.domain])
        return slots, limits

    def trim(self, c: int, node: I64, count: I64) -> I64:
        """(K,) how many of the count[i] tasks of class c on node[i] meet all constraints after earlier placements."""
        every, spread_limits = self._all_of(c), self._spread_limits(c)
        count = np.where(self._leaving_first(c)[node], count, 0)
        while True:
            before = count
            for beside in every:
                count = beside.trim(c, node, count)
            for spread_limit in spread_limits:
                count = keep_within(spread_limit.domain[node], count, spread_limit.limit.maximum)
            if len(every) == 1 or (count == before).all():  # trimming for one can break another
                return count


def _both(limit: DomainLimit, *others: DomainLimit) -> DomainLimit:
    """The limit, and others on the same domains."""
    for other in others:
        maximum = np.minimum(limit.maximum, other.maximum)
        limit = replace(limit, maximum=maximum, soft_limit=np.minimum(other.soft_limit, maximum))
    return limit

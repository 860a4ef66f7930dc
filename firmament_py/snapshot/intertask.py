"""Demands between tasks: affinity, anti-affinity in both directions, spread.

`IntertaskConstraints` counts, for each selector of the waiting classes, the tasks on each node that it matches, and
keeps these counts current while a round places tasks. From the counts follow

- `allowed`: on which nodes a further task of a class may go as things stand;
- `limit`: how many tasks of a class that is matched by its own selectors each domain may take in one solve
  (capacities of the network: exact for one demand, an upper bound for several that cross);
- `trim`: the part of a solution for one class that keeps all its demands, given all that was placed before it.

Classes are placed one after the other, so a class that depends on another is trimmed, or waits for the next solve
of the round, when the other has been placed: stages, never one task at a time.

Semantics are kube-scheduler's InterPodAffinity and PodTopologySpread filters. C classes, N nodes, S selectors,
D domains of a topology key; domain -1 means that the node lacks the label.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from firmament_py.model.arrays import I64, Bools, mix
from firmament_py.model.constraints import NodeDemand, PeerSelector, PeerTerm, Spread
from firmament_py.model.lifecycle import TaskState
from firmament_py.policy import COST_MAX
from firmament_py.snapshot.domain_limits import UNLIMITED, DomainLimit
from firmament_py.snapshot.preferences import water_level
from firmament_py.snapshot.running_tasks import Numbering, RunningTasks, of_classes, per_domain
from firmament_py.state.classes import carried
from firmament_py.state.cluster import ClusterState


class IntertaskConstraints:
    """See the module. classes and label sets: (C,) rows of the class and label set tables."""

    def __init__(self, state: ClusterState, nodes: I64, classes: I64, label_sets: I64, placed: RunningTasks) -> None:
        self._state = state
        self._nodes = nodes
        self._demands = [state.classes.definition(row).peers for row in classes.tolist()]
        self._node_demands = [state.classes.demand(row) for row in classes.tolist()]
        self._domains: dict[str, I64] = {}
        self._eligible: dict[tuple[int, bool, bool], Bools] = {}

        self._selectors = Numbering[tuple[PeerSelector, ...]]()
        self._spreads = Numbering[PeerSelector]()
        self._held = Numbering[PeerTerm]()
        repelling = placed.classes_that(state.classes.repels)
        held_by = [state.classes.definition(row).peers.anti_affinity for row in repelling]
        for terms in held_by:
            for term in terms:
                self._held.number(term)
        for demand in self._demands:
            for term in demand.anti_affinity:
                self._held.number(term)
                self._selectors.number((term.selector,))
            for spread in demand.spread:
                self._spreads.number(spread.selector)
        self._affine = [self._selectors.number(_all_of(d.affinity)) if d.affinity else -1 for d in self._demands]
        """Number of the selector of each class's affinity, -1: it has none."""
        parts = Numbering[tuple[NodeDemand, tuple[str, ...]]]()
        self._part = [
            parts.number((of_node, tuple(s.topology_key for s in demand.spread)))
            for of_node, demand in zip(self._node_demands, self._demands, strict=True)
        ]
        """By class: equal where the same nodes may take part in its spreads."""
        self.any = bool(len(self._selectors) or len(self._spreads) or len(self._held))

        # which label sets each selector matches, and from it which classes and how many placed tasks a node
        matching = state.label_sets.matching
        by_selector = [np.logical_and.reduce([matching(s) for s in group]) for group in self._selectors]
        by_spread = [matching(selector) for selector in self._spreads]
        by_held = [matching(term.selector) for term in self._held]
        self._matched = of_classes(by_selector, label_sets)  # (S, C)
        self._spread_matched = of_classes(by_spread, label_sets)
        self._repelled = of_classes(by_held, label_sets)  # (H, C) by whose anti-affinity a class is kept away
        self._carries = np.zeros((len(self._held), len(classes)), np.bool_)
        for c, demand in enumerate(self._demands):
            self._carries[[self._held.number(term) for term in demand.anti_affinity], c] = True
        self._count = placed.by_node(m[placed.label_set] for m in by_selector)  # (S, N)
        # an empty selector matches what is placed, but kube-scheduler counts nothing for it
        self._spread_count = placed.by_node(
            m[placed.label_set] & ~placed.leaving & (s.labels != ())
            for m, s in zip(by_spread, self._spreads, strict=True)
        )
        carrier = np.zeros((len(self._held), state.classes.capacity), np.bool_)
        for row, terms in zip(repelling, held_by, strict=True):
            carrier[[self._held.number(term) for term in terms], row] = True
        self._holders = placed.by_node(c[placed.cls] for c in carrier)  # (H, N)

    def concerns(self, c: int) -> bool:
        """Whether class c demands anything of other tasks or they of it."""
        demand = self._demands[c]
        return bool(demand.affinity or demand.anti_affinity or demand.spread or self._repelled[:, c].any())

    def terms(self, c: int) -> int:
        """How many demands are looked at to tell where one more task of class c may go."""
        demand = self._demands[c]
        own = len(demand.affinity) + len(demand.anti_affinity) + len(demand.spread)
        return own + int(self._repelled[:, c].sum())

    def add(self, c: int, node: I64, count: I64) -> None:
        """Takes note that count[i] > 0 tasks of class c are on node[i], no node twice."""
        for counts, hit in (
            (self._count, self._matched[:, c]),
            (self._holders, self._carries[:, c]),
        ):
            for s in np.flatnonzero(hit).tolist():
                counts[s, node] += count
        for s in np.flatnonzero(self._spread_matched[:, c]).tolist():
            if self._spreads[s].labels != ():
                self._spread_count[s, node] += count

    # -- where a further task may go --------------------------------------------------------------------------

    def allowed(self, c: int) -> Bools:
        """(N,): where one more task of class c may go."""
        return self._allowed_but_for(c, ())

    def affine_keys(self, c: int) -> list[str]:
        """Keys of the domains that tasks of class c have to share with others."""
        return list(dict.fromkeys(term.topology_key for term in self._demands[c].affinity))

    def conceivable(self, c: int) -> Bools:
        """(N,): where a task of class c may go if others come: tasks that it wants near it, or that level its spread.

        Whom it keeps away from, and who keeps it away, stays. And so do those that it wants near it if nobody who waits
        is one of them.
        """
        ok = self._clear_of_others(c) & self._clear_of_repelling(c) & self._has_spread_labels(c)
        if self._demands[c].affinity and not self._matched[self._affine[c]].any():
            return ok & self._near_affine(c)
        for key in self.affine_keys(c):
            ok &= self._domain(key) >= 0
        return ok

    def _allowed_together(self, c: int) -> Bools:
        """(N,): where one of several tasks of class c may go: beside others that level what it is to be spread over.

        Only where it is spread in one way alone: with several, what they come to can be right with no way there. And
        not while it looks for a home: the first goes there with nobody beside it.
        """
        own = self._own_spreads(c)
        homeless = bool(self._demands[c].affinity) and self._is_first(c)
        return self._allowed_but_for(c, own if len(own) == 1 and not homeless else ())

    def _allowed_but_for(self, c: int, waived: Sequence[Spread]) -> Bools:
        ok = self._near_affine(c) & self._clear_of_others(c) & self._clear_of_repelling(c) & self._has_spread_labels(c)
        for spread in self._demands[c].spread:
            if spread not in waived:
                ok &= self._even(c, spread)
        return ok

    def _own_spreads(self, c: int) -> list[Spread]:
        """The spreads of class c that count its own tasks."""
        return [
            spread
            for spread in self._demands[c].spread
            if self._spread_matched[self._spreads.number(spread.selector), c] and spread.selector.labels != ()
        ]

    def failures(self, c: int) -> dict[str, Bools]:
        """(N,) each: which nodes fail which demand, in kube-scheduler's order: who fails several fails for the first.

        `label` and `spread` are of the first of several spreads that a node fails.
        """
        label, uneven = np.zeros((2, len(self._nodes)), np.bool_)
        for spread in self._demands[c].spread:
            label |= (self._domain(spread.topology_key) < 0) & ~uneven
            uneven |= ~self._even(c, spread) & ~label
        return {
            "label": label,
            "spread": uneven,
            "affinity": ~self._near_affine(c),
            "anti_affinity": ~self._clear_of_others(c),
            "others": ~self._clear_of_repelling(c),
        }

    def _near_affine(self, c: int) -> Bools:
        ok = np.ones(len(self._nodes), np.bool_)
        if not self._demands[c].affinity:
            return ok
        first, counts = self._is_first(c), self._count[self._affine[c]]
        for key in self.affine_keys(c):
            domain = self._domain(key)
            ok &= domain >= 0
            if not first:
                ok &= per_domain(domain, counts)[domain] > 0
        return ok

    def _is_first(self, c: int) -> bool:
        """Nobody meets its affinity anywhere, but it would itself: then it may go first."""
        s = self._affine[c]
        if not self._matched[s, c]:
            return False
        labelled = np.zeros(len(self._nodes), np.bool_)
        for key in self.affine_keys(c):
            labelled |= self._domain(key) >= 0
        return not self._count[s][labelled].any()

    def _clear_of_others(self, c: int) -> Bools:
        ok = np.ones(len(self._nodes), np.bool_)
        for term in self._demands[c].anti_affinity:
            domain = self._domain(term.topology_key)
            ok &= (per_domain(domain, self._count[self._selectors.number((term.selector,))])[domain] == 0) | (
                domain < 0
            )
        return ok

    def _clear_of_repelling(self, c: int) -> Bools:
        ok = np.ones(len(self._nodes), np.bool_)
        for h in np.flatnonzero(self._repelled[:, c]).tolist():
            if not self._holders[h].any():
                continue
            domain = self._domain(self._held[h].topology_key)
            ok &= (per_domain(domain, self._holders[h])[domain] == 0) | (domain < 0)
        return ok

    def _has_spread_labels(self, c: int) -> Bools:
        ok = np.ones(len(self._nodes), np.bool_)
        for spread in self._demands[c].spread:
            ok &= self._domain(spread.topology_key) >= 0
        return ok

    def _even(self, c: int, spread: Spread) -> Bools:
        """(N,): where one more task of class c keeps max_skew; true where the label is missing."""
        s, domain, counts, eligible = self._spread_counts(c, spread)
        room = _emptiest(counts, eligible, spread) + spread.max_skew - int(self._spread_matched[s, c])
        even: Bools = (np.append(counts, 0)[domain] <= room) | (domain < 0)
        return even

    def _spread_counts(self, c: int, spread: Spread) -> tuple[int, I64, I64, Bools]:
        """Number of the selector, (N,) domains, (D,) matching tasks on eligible nodes, (D,) domains that count."""
        s = self._spreads.number(spread.selector)
        domain = self._domain(spread.topology_key)
        eligible = self._eligible_nodes(c, spread)
        size = int(domain.max(initial=-1)) + 1
        counts = np.bincount(domain[eligible], self._spread_count[s][eligible], minlength=size).astype(np.int64)
        return s, domain, counts, np.bincount(domain[eligible], minlength=size) > 0

    def _eligible_nodes(self, c: int, spread: Spread) -> Bools:
        key = (self._part[c], spread.honor_affinity, spread.honor_taints)
        found = self._eligible.get(key)
        if found is None:
            found = self._has_spread_labels(c)
            demand = replace(self._node_demands[c], further=())
            selected, taint = self._state.node_index.evaluate(demand, self._nodes)
            if spread.honor_affinity:
                found &= selected
            if spread.honor_taints:
                found &= taint < 0
            self._eligible[key] = found
        return found

    # -- how many may go in one solve -------------------------------------------------------------------------

    def limit(self, c: int, slots: I64, waiting: int) -> tuple[I64, list[DomainLimit]]:
        """Reduces slots (N,) of class c to where it may go, and says what each domain may take at once."""
        slots = np.where(self._allowed_together(c), slots, 0)
        limits: list[DomainLimit] = []
        demand = self._demands[c]
        if demand.affinity and self._is_first(c):
            slots = np.where(self._best_home(c, slots), slots, 0)
        for term in demand.anti_affinity:
            if self._matched[self._selectors.number((term.selector,)), c]:
                domain = self._domain(term.topology_key)
                size = int(domain.max(initial=-1)) + 1
                limits.append(DomainLimit(domain, np.ones(size, np.int64), np.zeros(size, np.int64), 0))
        for spread in self._own_spreads(c):
            _, domain, counts, eligible = self._spread_counts(c, spread)
            room = np.bincount(domain[domain >= 0], slots[domain >= 0], minlength=len(counts)).astype(np.int64)
            level = _reachable_level(counts, room, eligible, waiting, spread)
            most = np.maximum(level + spread.max_skew - counts, 0)
            limits.append(DomainLimit(domain, most, np.clip(level - counts, 0, most), COST_MAX))
        for limit in limits:
            slots = np.minimum(slots, np.append(limit.most, UNLIMITED)[limit.domain])
        return slots, limits

    def _best_home(self, c: int, slots: I64) -> Bools:
        """Nodes of the joint domain with the most room: tasks that want to be near each other start there."""
        joint = self._joint_domain(c)
        best = np.flatnonzero((room := np.bincount(joint, slots)) == room.max(initial=0))
        # classes that look for a home in one solve go different ways where it makes no difference
        return np.equal(joint, best[c % len(best)] if len(best) else -1)

    def _joint_domain(self, c: int) -> I64:
        stacked = np.stack([self._domain(key) for key in self.affine_keys(c)])
        return np.unique(stacked, axis=1, return_inverse=True)[1].reshape(-1)

    # -- what of a solution may be kept -----------------------------------------------------------------------

    def trim(self, c: int, node: I64, count: I64) -> I64:
        """(K,): how many of the count[i] tasks of class c on node[i] keep all demands, placed after all before."""
        if not self.concerns(c):
            return count
        count = np.where(self._allowed_together(c)[node], count, 0)
        demand = self._demands[c]
        if demand.affinity and self._is_first(c) and count.any():
            joint = self._joint_domain(c)[node]
            count = np.where(joint == np.bincount(joint, count).argmax(), count, 0)
        for term in demand.anti_affinity:
            if self._matched[self._selectors.number((term.selector,)), c]:
                domain = self._domain(term.topology_key)
                count = _keep(domain[node], count, np.ones(int(domain.max(initial=-1)) + 1, np.int64))
        own = self._own_spreads(c)
        while own:
            before = count
            for spread in own:
                count = self._trim_spread(c, spread, node, count)
            if (count == before).all():  # keeping one demand can break another: until all hold
                break
        return count

    def _trim_spread(self, c: int, spread: Spread, node: I64, count: I64) -> I64:
        _, domain, counts, eligible = self._spread_counts(c, spread)
        inside = self._eligible_nodes(c, spread)[node]
        after = counts + np.bincount(domain[node[inside]], count[inside], minlength=len(counts)).astype(np.int64)
        most = np.maximum(_emptiest(after, eligible, spread) + spread.max_skew - counts, 0)
        return _keep(domain[node], count, most)

    def _domain(self, key: str) -> I64:
        domain = self._domains.get(key)
        if domain is None:
            domain = self._domains[key] = self._state.node_index.domains(key, self._nodes)
        return domain


def by_class(state: ClusterState, rows: I64, apart: I64 | None = None) -> tuple[I64, I64]:
    """Waiting task rows (K,) reordered by class, and where each class begins (C,).

    Tasks of one class of the state are apart here if a demand tells their labels apart, or `apart` (K,) does.
    """
    cls = state.tasks.cls[rows]
    signature = _signatures(state, cls, state.tasks.label_set[rows])
    keys = (signature, cls) if apart is None else (apart, signature, cls)
    order = np.lexsort(keys)
    changes = np.logical_or.reduce([np.diff(key[order]) != 0 for key in keys])
    starts = np.flatnonzero(np.r_[True, changes][: len(cls)])
    return rows[order], starts


def _signatures(state: ClusterState, classes: I64, label_sets: I64) -> I64:
    """(K,) numbers for pairs of class and label set rows (K,) each: equal for tasks that no demand tells apart.

    Only selectors of waiting classes, and anti-affinity and wishes of placed tasks matter; other labels do not.
    """
    if not state.classes.has_intertask_terms:
        return np.zeros(len(classes), np.int64)
    placed = (state.tasks.state == TaskState.ASSUMED) | (state.tasks.state == TaskState.BOUND)
    selectors: set[PeerSelector] = set()
    for row in np.unique(classes).tolist():
        definition = state.classes.definition(row)
        peers, wishes = definition.peers, definition.preferences
        selectors.update(term.selector for term in (*peers.affinity, *peers.anti_affinity))
        selectors.update(term.selector for _, term in wishes.peers)
        selectors.update(spread.selector for spread in (*peers.spread, *wishes.spread))
    of_placed = state.tasks.cls[placed]
    for row in np.unique(of_placed[(state.classes.repels | state.classes.wishes)[of_placed]]).tolist():
        selectors.update(term.selector for term in state.classes.definition(row).peers.anti_affinity)
        selectors.update(term.selector for _, term in carried(state.classes.definition(row)))
    if not selectors:
        return np.zeros(len(classes), np.int64)
    rows, index = np.unique(label_sets, return_inverse=True)
    # sorted, since the order of a set differs from process to process
    bits: Bools = np.unique([state.label_sets.matching(s)[rows] for s in selectors], axis=0)
    return np.unique(mix(bits, seed=4), return_inverse=True)[1][index]


def _all_of(terms: tuple[PeerTerm, ...]) -> tuple[PeerSelector, ...]:
    return tuple(term.selector for term in terms)


def _emptiest(counts: I64, eligible: Bools, spread: Spread) -> int:
    """How many matching tasks the emptiest domain counts for."""
    if int(eligible.sum()) < spread.min_domains:
        return 0
    return int(counts[eligible].min(initial=UNLIMITED)) if eligible.any() else UNLIMITED


def _reachable_level(counts: I64, room: I64, eligible: Bools, waiting: int, spread: Spread) -> int:
    """The highest count that the emptiest domain can be raised to with `waiting` tasks and `room` in each domain."""
    if int(eligible.sum()) < spread.min_domains:
        return 0
    if not eligible.any():
        return UNLIMITED
    return water_level(counts[eligible], room[eligible], waiting)


def _keep(domain: I64, count: I64, most: I64) -> I64:
    """Cuts count (K,) so that no domain (K,) keeps more than most (D,); domain -1 keeps all."""
    order = np.argsort(domain, kind="stable")
    of, sorted_count = domain[order], count[order]
    total = np.cumsum(sorted_count) - sorted_count
    first = np.searchsorted(of, of)  # where each entry's domain begins
    before = total - total[first] if len(of) else total
    kept = np.clip(np.append(most, UNLIMITED)[of] - before, 0, sorted_count)
    result = np.empty_like(count)
    result[order] = kept
    return result

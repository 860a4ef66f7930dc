"""Soft preferences of classes, as costs that are added to the costs of any policy.

The scores and their weights are kube-scheduler's defaults, each score from 0 to 100:

    weight 3   PreferNoSchedule taints        weight 2   preferred node affinity
    weight 2   preferred pod (anti-)affinity  weight 2   ScheduleAnyway spread
    weight 1   images that are already on the node

A node costs UNIT for each point by which its weighted score is below the best possible. UNIT is the cost of a running
task in the load-spreading policy, so that one point of a score of weight 1 equals one more task on a node. A node that
asks to be avoided costs as much as all preferences together.

A task that decides where others run, as they have to be near it or to share its volume, may come before them: of nodes
that cost the same it takes that in whose domain most of its class have room, at less than UNIT.

Scores depend on other tasks, so they are computed again for each solve of a round. If the tasks of one class repel each
other or prefer to be spread, `limits` bounds what a domain takes at no extra cost: so a batch spreads in one solve.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, Bools
from firmament_py.model.constraints import NO_PREFERENCES, NodeDemand, PeerSelector, PreferenceSet
from firmament_py.model.events import ClassDefined
from firmament_py.snapshot.domain_limits import UNLIMITED, DomainLimit
from firmament_py.snapshot.domains import Domains, domain_count, per_domain
from firmament_py.snapshot.running_tasks import RunningTasks
from firmament_py.snapshot.solo_capacity import SoloCapacity
from firmament_py.snapshot.task_counts import Numbering, SparseCounts, incidence, of_classes
from firmament_py.snapshot.unreserved import unreserved
from firmament_py.snapshot.water_level import fill_level, fill_levels
from firmament_py.state.classes import carried
from firmament_py.state.cluster import ClusterState
from firmament_py.state.node_index import NodeIndex

UNIT = 100
FULL = 100  # the best score
_TAINTS, _NODES, _AFFINITY, _SPREAD, _IMAGES = 3, 2, 2, 2, 1
_AVOIDED = UNIT * FULL * (_TAINTS + _NODES + _AFFINITY + _SPREAD + _IMAGES)
_MIB = 2**20
_IMAGES_FROM, _IMAGES_TO = 23 * _MIB, 1000 * _MIB  # bytes that count as none and as all of an image


class Preferences:
    """nodes: (N,) rows of the node table; classes and label_sets: (C,) rows of their tables."""

    def __init__(self, state: ClusterState, nodes: I64, classes: I64, label_sets: I64, running: RunningTasks) -> None:
        self._state = state
        self._nodes = nodes
        self._rows: list[int] = classes.tolist()
        attracting = running.classes_that(state.classes.wishes)
        discouraged = state.node_index.discouraging(NodeDemand(), nodes) is not None
        self._preferred: list[PreferenceSet] = [
            _of_class(state.node_index, state.classes.definition(row)) for row in self._rows
        ]
        self._possible = bool(attracting) or discouraged or bool(state.classes.wishes[classes].any())
        self._possible |= any(preferred != NO_PREFERENCES for preferred in self._preferred)
        """False: no class prefers anything, as in many rounds, and there is nothing to count."""
        self.has_costs: Bools = np.zeros(len(classes), np.bool_)
        """(C,) classes that may prefer some nodes; for others `costs` is None."""
        self.has_limits: Bools = np.zeros(len(classes), np.bool_)
        """(C,) classes that may have `limits`."""
        if self._possible:
            self._summarise(label_sets, running, attracting, discouraged=discouraged)

    def _summarise(self, label_sets: I64, running: RunningTasks, attracting: list[int], *, discouraged: bool) -> None:
        """attracting: class rows of running tasks that attract or repel later tasks. discouraged: whether some nodes
        ask to be avoided."""
        state, nodes = self._state, self._nodes
        self._domains = Domains(state.node_index, nodes)
        self._static: dict[int, _StaticParts] = {}

        selectors = Numbering[PeerSelector]()
        self._peers = [[(w, t, selectors.number(t.selector)) for w, t in p.peers] for p in self._preferred]
        """(C,) weights, terms, and numbers of their selectors."""
        self._spreads = [[(s, selectors.number(s.selector)) for s in p.spread] for p in self._preferred]
        matching = [state.label_sets.rows_matching(selector) for selector in selectors]
        matched = incidence(matching, label_sets, state.label_sets.capacity)
        self._matched = set(zip(*(numbers.tolist() for numbers in matched), strict=True))  # selectors and classes
        kind, node = running.matched(matching, ~running.leaving) if matching else (NO_ROWS, NO_ROWS)
        self._counts = SparseCounts(kind, node, len(nodes), matched, len(self._rows))

        of_running = {row: carried(state.classes.definition(row)) for row in attracting}
        of_waiting = [carried(state.classes.definition(row)) for row in self._rows]
        self._terms, self._carriers = running.holders(of_running, of_waiting)
        self._attracted = of_classes(  # (H, C)
            [state.label_sets.matching(term.selector) for _, term in self._terms], label_sets
        )

        own = [
            bool(p.nodes or p.images or p.avoided_as or p.peers or p.capacity)
            or any((s, c) not in self._matched for _, s in spreads)
            for c, (p, spreads) in enumerate(zip(self._preferred, self._spreads, strict=True))
        ]
        self.has_costs = np.array(own, np.bool_) | np.logical_or.reduce(self._attracted) | discouraged
        self.has_limits = np.array([bool(p.peers or p.spread) for p in self._preferred], np.bool_)

    def add(self, cls: I64, node: I64, count: I64) -> None:
        """Counts count[i] more tasks (below 0: fewer) of class cls[i] on node[i], (K,) each."""
        if self._possible:
            self._counts.add(cls, node, count)
            self._carriers.add(cls, node, count)

    def depends(self, c: int) -> bool:
        """Whether the costs of class c follow from where other tasks are, or its own."""
        if not self._possible:
            return False
        return bool(self._peers[c] or self._spreads[c]) or bool(self._attracted[:, c].any())

    def costs(self, c: int, feasible: Bools) -> I64 | None:
        """(N,) costs >= 0 of class c on nodes, None if they are 0 everywhere.

        Scores are relative to the best and worst of the `feasible` (N,) nodes.
        """
        if not self._possible:
            return None
        static = self._static_costs(c, feasible)
        raw = self._intertask_scores(c)
        if raw is None and not self._spreads[c]:
            return static
        total = np.zeros(len(self._nodes), np.int64) if static is None else static.copy()
        if raw is not None:
            low, high = _range(raw, feasible)
            if high > low:
                total += _short_of(_AFFINITY, (raw - low) * FULL // (high - low))
        for spread, s in self._spreads[c]:
            if (s, c) not in self._matched:
                counts = self._domain_counts(s, spread.topology_key)
                _, high = _range(counts, feasible)
                if high > 0:
                    total += _short_of(_SPREAD, FULL - FULL * counts // high)
        return total if total.any() else None

    def limits(self, classes: I64, alone: SoloCapacity, waiting: I64) -> dict[int, list[DomainLimit]]:
        """Limits beyond which a domain costs more, for preferences of `classes` (K,) about their own tasks, by position
        in `classes`; those without limits are left out.

        alone: what nodes can take of each class (K,); waiting (K,) > 0: number of its waiting tasks.
        """
        by_key: dict[str, list[_Level]] = {}
        for i, c in enumerate(classes.tolist()):
            for order, (spread, s) in enumerate(self._spreads[c]):
                if (s, c) in self._matched:
                    by_key.setdefault(spread.topology_key, []).append(_Level(i, order, s, spread.max_skew))
        ordered: dict[int, list[tuple[int, DomainLimit]]] = {}
        for key, levels in by_key.items():
            even = self._even_nodes if self._domains.is_per_node(key) else self._even_domains
            for level, limit in even(self._domains[key], levels, alone, waiting):
                ordered.setdefault(level.of, []).append((level.order, limit))
        found = {
            i: _nodes_last([limit for _, limit in sorted(limits, key=itemgetter(0))]) for i, limits in ordered.items()
        }
        for i, c in enumerate(classes.tolist()):
            for weight, term, s in self._peers[c]:
                if weight < 0 and (s, c) in self._matched:
                    domain = self._domains[term.topology_key]
                    counts = per_domain(domain, self._counts[s])[:-1]
                    unlimited, cost = np.full(len(counts), UNLIMITED), -weight * _AFFINITY * UNIT
                    found.setdefault(i, []).append(DomainLimit(domain, unlimited, np.maximum(1 - counts, 0), cost))
        return found

    # Both of the following yield the limits that fill domains evenly, of classes whose tasks can exceed them. As in
    # kube-scheduler, an emptier domain is always better; a larger max_skew only makes that weigh less.

    def _even_domains(
        self, domain: I64, levels: list["_Level"], alone: SoloCapacity, waiting: I64
    ) -> Iterator[tuple["_Level", DomainLimit]]:
        """Of domains that nodes share."""
        some, size = np.array([level.of for level in levels]), domain_count(domain)
        kind, tasks = alone.of_class[some], waiting[some]
        position, node, count = self._counts.entries(np.array([level.selector for level in levels]))
        counts = np.zeros((len(levels), size + 1), np.int64)
        np.add.at(counts, (position, domain[node]), count)  # the last: nodes without a domain
        counts = counts[:, :-1]
        pairs = Numbering[tuple[int, int]]()
        of_pair = [pairs.number(pair) for pair in zip(kind.tolist(), tasks.tolist(), strict=True)]
        capacity = np.array([per_domain(domain, np.minimum(alone.slots[k], n))[:-1] for k, n in pairs])[of_pair]
        soft_limit = np.maximum(fill_levels(counts, capacity, tasks)[:, None] - counts, 0)
        limited = (soft_limit < np.minimum(capacity, tasks[:, None])).any(axis=1)
        unlimited = np.full(size, UNLIMITED)
        for k in np.flatnonzero(limited).tolist():
            yield levels[k], DomainLimit(domain, unlimited, soft_limit[k], levels[k].cost, per_node=False)

    def _even_nodes(
        self, domain: I64, levels: list["_Level"], alone: SoloCapacity, waiting: I64
    ) -> Iterator[tuple["_Level", DomainLimit]]:
        """Of domains with one node each: nodes take their place, since most have none of the few tasks of a class."""
        labelled = domain >= 0
        domain = np.where(labelled, np.arange(len(domain)), -1)
        unlimited = np.full(len(domain), UNLIMITED)
        some = np.array([level.of for level in levels])
        kind, tasks = alone.of_class[some], waiting[some]
        is_open = (alone.slots > 0) & labelled
        selectors = np.array([level.selector for level in levels])
        position, node, _ = self._counts.entries(selectors)
        busy = np.bincount(position[is_open[kind[position], node]], minlength=len(levels))
        one_each = is_open.sum(axis=1)[kind] - busy >= tasks  # the nodes without a task of the class suffice
        several = np.where(labelled, alone.slots, 0).max(axis=1, initial=0)[kind] > 1
        start = np.searchsorted(position, np.arange(len(levels) + 1)).tolist()
        for k in np.flatnonzero(~one_each | (busy > 0) | (several & (tasks > 1))).tolist():
            if one_each[k]:
                soft_limit = np.ones(len(domain), np.int64)
                soft_limit[node[start[k] : start[k + 1]]] = 0
            else:
                counts, capacity = self._counts[int(selectors[k])], np.minimum(alone.slots[kind[k]], tasks[k])
                capacity = capacity * labelled
                soft_limit = np.maximum(fill_level(counts, capacity, int(tasks[k])) - counts, 0)
                if (soft_limit >= capacity).all():
                    continue
            yield levels[k], DomainLimit(domain, unlimited, soft_limit, levels[k].cost, per_node=True)

    def _static_costs(self, c: int, feasible: Bools) -> I64 | None:
        """What does not depend on other tasks. Its parts are the same for the whole round, their scale is not: a gang
        is tried on the nodes of one domain at a time."""
        if c not in self._static:
            self._static[c] = self._static_parts(c)
        discouraged, preferred, fixed = self._static[c]
        total = np.zeros(len(self._nodes), np.int64) if fixed is None else fixed.copy()
        if discouraged is not None:
            _, high = _range(discouraged, feasible)
            if high:
                total += _short_of(_TAINTS, FULL - FULL * discouraged // high)
        if preferred is not None:
            _, high = _range(preferred, feasible)
            if high:
                total += _short_of(_NODES, FULL * preferred // high)
        return total if total.any() else None

    def _static_parts(self, c: int) -> "_StaticParts":
        preferred, node_index = self._preferred[c], self._state.node_index
        weights, fixed = np.zeros((2, len(self._nodes)), np.int64)
        for weight, term in preferred.nodes:
            weights += weight * node_index.preferred(term, self._nodes)
        if preferred.images:
            fixed += _short_of(_IMAGES, self._image_scores(preferred.images))
        if preferred.avoided_as:
            fixed += _AVOIDED * node_index.avoiding(preferred.avoided_as, self._nodes)
        if preferred.capacity:
            capacity = self._capacity(self._rows[c])
            fixed += (UNIT - 1) * (FULL - FULL * capacity // max(int(capacity.max(initial=0)), 1)) // FULL
        discouraged = node_index.discouraging(self._state.classes.demand(self._rows[c]), self._nodes)
        return _StaticParts(discouraged, weights if preferred.nodes else None, fixed if fixed.any() else None)

    def _capacity(self, row: int) -> I64:
        """(N,) for how many tasks of class row `row` the domain of each node has room as the round begins: the domain
        of its first affinity, or the node alone."""
        free, requests = unreserved(self._state)[self._nodes], self._state.classes.requests[row]
        asked = requests > 0  # at least a task slot
        capacity: I64 = np.maximum(free[:, asked] // requests[asked], 0).min(axis=1)
        for term in self._state.classes.definition(row).peers.affinity[:1]:
            domain = self._domains[term.topology_key]
            return per_domain(domain, capacity)[domain]
        return capacity

    def _image_scores(self, images: tuple[str, ...]) -> I64:
        """kube-scheduler's ImageLocality: bytes of images on a node, scaled by the share of nodes that have each."""
        present = np.zeros(len(self._nodes))
        for image in images:
            size = self._state.node_index.image_sizes(image, self._nodes)
            present += size * ((size > 0).sum() / max(len(size), 1))
        full = _IMAGES_TO * len(images)
        share = (np.clip(present, _IMAGES_FROM, full) - _IMAGES_FROM) / (full - _IMAGES_FROM)
        return (FULL * share).astype(np.int64)

    def _intertask_scores(self, c: int) -> I64 | None:
        attracted = np.flatnonzero(self._attracted[:, c])
        if not self._peers[c] and not len(attracted):
            return None
        raw = np.zeros(len(self._nodes), np.int64)
        for weight, term, s in self._peers[c]:
            counts = self._domain_counts(s, term.topology_key)
            if weight > 0 and (s, c) in self._matched and not self._counts[s].any():
                # no matching task yet: its own tasks start together
                domain = self._domains[term.topology_key]
                counts = np.equal(domain, c % max(domain_count(domain), 1)).astype(np.int64)
            raw += weight * counts
        for h in attracted.tolist():
            weight, term = self._terms[h]
            domain = self._domains[term.topology_key]
            raw += weight * per_domain(domain, self._carriers[h])[domain]
        return raw

    def _domain_counts(self, selector: int, key: str) -> I64:
        domain = self._domains[key]
        return per_domain(domain, self._counts[selector])[domain]


def _of_class(node_index: NodeIndex, definition: ClassDefined) -> PreferenceSet:
    """The preferences without images that no node has: they distinguish no nodes, and most images are new at first
    With that for room if its tasks have to be near some, which may be of its own."""
    preferred = definition.preferences
    if preferred.images and not any(node_index.has_image(image) for image in preferred.images):
        preferred = replace(preferred, images=())
    return replace(preferred, capacity=True) if definition.peers.affinity and not preferred.capacity else preferred


class _StaticParts(NamedTuple):
    """Of a class, (N,) each: number of taints that it does not tolerate, weights of the terms that nodes match, and
    costs; None: 0 everywhere."""

    discouraged: I64 | None
    preferred: I64 | None
    fixed: I64 | None


@dataclass(frozen=True, slots=True)
class _Level:
    """A spread that counts the tasks of its own class: position of the class, place among its spreads, number of the
    selector."""

    of: int
    order: int
    selector: int
    max_skew: int

    @property
    def cost(self) -> int:
        """Of each task above the level."""
        return _SPREAD * FULL * UNIT // self.max_skew


def _nodes_last(limits: list[DomainLimit]) -> list[DomainLimit]:
    """The limits, of which those per node cost less than those that nodes share.

    kube-scheduler adds up the counts of all domains of a node. Here a task pays for some of them, and if it paid for a
    node as much as for a zone, zones with few nodes would stay the emptier ones.
    """
    shared = [limit.soft_limit_cost for limit in limits if not limit.is_per_node]
    highest = min(shared, default=UNLIMITED) // 2
    return [
        replace(limit, soft_limit_cost=highest) if limit.is_per_node and limit.soft_limit_cost > highest else limit
        for limit in limits
    ]


def _short_of(weight: int, scores: I64) -> I64:
    return UNIT * weight * (FULL - np.clip(scores, 0, FULL))


def _range(raw: I64, feasible: Bools) -> tuple[int, int]:
    values = raw[feasible]
    return (int(values.min()), int(values.max())) if len(values) else (0, 0)

"""Soft preferences of classes, as costs that are added to the costs of any policy.

The scores and their weights are kube-scheduler's defaults, each score from 0 to 100:

    weight 3   PreferNoSchedule taints        weight 2   preferred node affinity
    weight 2   preferred pod (anti-)affinity  weight 2   ScheduleAnyway spread
    weight 1   images that are already on the node

A node costs UNIT for each point by which its weighted score is below the best possible. UNIT is the cost of a running
task in the load-spreading policy, so that one point of a score of weight 1 equals one more task on a node. A node that
asks to be avoided costs as much as all preferences together.

Scores depend on other tasks, so they are computed again for each solve of a round. If the tasks of one class repel each
other or prefer to be spread, `limits` bounds what a domain takes at no extra cost: so a batch spreads in one solve.
"""

from dataclasses import replace

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.model.constraints import NodeDemand, PeerSelector, PeerTerm, PreferenceSet, Spread
from firmament_py.snapshot.domain_limits import UNLIMITED, DomainLimit
from firmament_py.snapshot.domains import Domains, domain_count, per_domain
from firmament_py.snapshot.running_tasks import RunningTasks
from firmament_py.snapshot.task_counts import Numbering, TaskCounts, membership, of_classes
from firmament_py.snapshot.water_level import fill_level
from firmament_py.state.classes import carried
from firmament_py.state.cluster import ClusterState

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
        self._domains = Domains(state.node_index, nodes)
        self._preferred: list[PreferenceSet] = [state.classes.definition(row).preferences for row in self._rows]
        self._static: dict[int, I64 | None] = {}

        self._selectors = Numbering[PeerSelector]()
        for preferred in self._preferred:
            for _, term in preferred.peers:
                self._selectors.number(term.selector)
            for spread in preferred.spread:
                self._selectors.number(spread.selector)
        matching = [state.label_sets.matching(selector) for selector in self._selectors]
        self._matched = of_classes(matching, label_sets)  # (S, C)
        self._counts = TaskCounts(
            running.by_node(m[running.label_set] & ~running.leaving for m in matching), self._matched
        )

        # preferences of running tasks, which attract and repel later tasks
        rows = running.classes_that(state.classes.wishes)
        of_running = [carried(state.classes.definition(row)) for row in rows]
        of_waiting = [carried(state.classes.definition(row)) for row in self._rows]
        terms = Numbering[tuple[int, PeerTerm]](term for of_one in (*of_running, *of_waiting) for term in of_one)
        self._terms = list(terms)
        self._attracted = of_classes(  # (H, C)
            [state.label_sets.matching(term.selector) for _, term in terms], label_sets
        )
        carriers = np.zeros((len(terms), state.classes.capacity), np.bool_)
        carriers[:, rows] = membership([[terms.number(t) for t in of_one] for of_one in of_running], len(terms))
        self._carriers = TaskCounts(
            running.by_node(carries[running.cls] for carries in carriers),
            membership([[terms.number(t) for t in of_one] for of_one in of_waiting], len(terms)),
        )

        own = [bool(p.nodes or p.images or p.avoided_as or p.peers or p.spread) for p in self._preferred]
        discouraged = state.node_index.discouraging(NodeDemand(), nodes) is not None
        self.concerned: Bools = np.array(own, np.bool_) | np.logical_or.reduce(self._attracted) | discouraged
        """(C,) classes that may prefer some nodes; others have neither costs nor limits."""

    def add(self, cls: I64, node: I64, count: I64) -> None:
        """Counts count[i] more tasks (below 0: fewer) of class cls[i] on node[i], (K,) each."""
        self._counts.add(cls, node, count)
        self._carriers.add(cls, node, count)

    def depends(self, c: int) -> bool:
        """Whether the costs of class c follow from where other tasks are, or its own."""
        preferred = self._preferred[c]
        return bool(preferred.peers or preferred.spread) or bool(self._attracted[:, c].any())

    def costs(self, c: int, feasible: Bools) -> I64 | None:
        """(N,) costs >= 0 of class c on nodes, None if they are 0 everywhere.

        Scores are relative to the best and worst of the `feasible` (N,) nodes.
        """
        static = self._static_costs(c, feasible)
        raw = self._intertask_scores(c)
        if raw is None and not self._preferred[c].spread:
            return static
        total = np.zeros(len(self._nodes), np.int64) if static is None else static.copy()
        if raw is not None:
            low, high = _range(raw, feasible)
            if high > low:
                total += _short_of(_AFFINITY, (raw - low) * FULL // (high - low))
        for spread in self._preferred[c].spread:
            if not self._matched[self._selectors.number(spread.selector), c]:
                counts = self._domain_counts(spread.selector, spread.topology_key)
                _, high = _range(counts, feasible)
                if high > 0:
                    total += _short_of(_SPREAD, FULL - FULL * counts // high)
        return total if total.any() else None

    def limits(self, c: int, slots: I64, waiting: int) -> list[DomainLimit]:
        """Limits beyond which a domain costs more, for preferences of class c about its own tasks.

        slots (N,): tasks of the class that nodes can take; waiting: number of its waiting tasks.
        """
        spreads = [s for s in self._preferred[c].spread if self._matched[self._selectors.number(s.selector), c]]
        found = _nodes_last([limit for spread in spreads for limit in self._level(spread, slots, waiting)])
        for weight, term in self._preferred[c].peers:
            if weight < 0 and self._matched[self._selectors.number(term.selector), c]:
                domain = self._domains[term.topology_key]
                counts = per_domain(domain, self._counts[self._selectors.number(term.selector)])[:-1]
                cost = -weight * _AFFINITY * UNIT
                found.append(DomainLimit(domain, np.full(len(counts), UNLIMITED), np.maximum(1 - counts, 0), cost))
        return found

    def _level(self, spread: Spread, slots: I64, waiting: int) -> list[DomainLimit]:
        """The limit that fills domains evenly; none if the tasks cannot exceed it.

        As in kube-scheduler, an emptier domain is always better; a larger max_skew only makes that weigh less.
        """
        domain = self._domains[spread.topology_key]
        counts = per_domain(domain, self._counts[self._selectors.number(spread.selector)])[:-1]
        capacity = per_domain(domain, slots)[:-1]
        soft_limit = np.maximum(fill_level(counts, capacity, waiting) - counts, 0)
        if (soft_limit >= np.minimum(capacity, waiting)).all():
            return []
        cost = _SPREAD * FULL * UNIT // spread.max_skew
        return [DomainLimit(domain, np.full(len(counts), UNLIMITED), soft_limit, cost)]

    def _static_costs(self, c: int, feasible: Bools) -> I64 | None:
        if c in self._static:
            return self._static[c]
        preferred, row = self._preferred[c], self._rows[c]
        node_index = self._state.node_index
        total = np.zeros(len(self._nodes), np.int64)
        discouraged = node_index.discouraging(self._state.classes.demand(row), self._nodes)
        if discouraged is not None:
            _, high = _range(discouraged, feasible)
            if high:
                total += _short_of(_TAINTS, FULL - FULL * discouraged // high)
        if preferred.nodes:
            raw = np.zeros(len(self._nodes), np.int64)
            for weight, term in preferred.nodes:
                raw += weight * node_index.preferred(term, self._nodes)
            _, high = _range(raw, feasible)
            if high:
                total += _short_of(_NODES, FULL * raw // high)
        if preferred.images:
            total += _short_of(_IMAGES, self._image_scores(preferred.images))
        if preferred.avoided_as:
            total += _AVOIDED * node_index.avoiding(preferred.avoided_as, self._nodes)
        self._static[c] = total if total.any() else None
        return self._static[c]

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
        if not self._preferred[c].peers and not len(attracted):
            return None
        raw = np.zeros(len(self._nodes), np.int64)
        for weight, term in self._preferred[c].peers:
            s = self._selectors.number(term.selector)
            counts = self._domain_counts(term.selector, term.topology_key)
            if weight > 0 and self._matched[s, c] and not self._counts[s].any():
                # no matching task yet: its own tasks start together
                domain = self._domains[term.topology_key]
                counts = np.equal(domain, c % max(domain_count(domain), 1)).astype(np.int64)
            raw += weight * counts
        for h in attracted.tolist():
            weight, term = self._terms[h]
            domain = self._domains[term.topology_key]
            raw += weight * per_domain(domain, self._carriers[h])[domain]
        return raw

    def _domain_counts(self, selector: PeerSelector, key: str) -> I64:
        domain = self._domains[key]
        return per_domain(domain, self._counts[self._selectors.number(selector)])[domain]


def _nodes_last(limits: list[DomainLimit]) -> list[DomainLimit]:
    """The limits, of which those per node cost less than those that nodes share.

    kube-scheduler adds up the counts of all domains of a node. Here a task pays for some of them, and if it paid for a
    node as much as for a zone, zones with few nodes would stay the emptier ones.
    """
    shared = [limit.soft_limit_cost for limit in limits if not limit.is_per_node]
    highest = min(shared, default=UNLIMITED) // 2
    return [
        replace(limit, soft_limit_cost=min(limit.soft_limit_cost, highest)) if limit.is_per_node else limit
        for limit in limits
    ]


def _short_of(weight: int, scores: I64) -> I64:
    return UNIT * weight * (FULL - np.clip(scores, 0, FULL))


def _range(raw: I64, feasible: Bools) -> tuple[int, int]:
    values = raw[feasible]
    return (int(values.min()), int(values.max())) if len(values) else (0, 0)

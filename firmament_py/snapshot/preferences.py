"""Soft preferences of classes, as costs beside every policy's.

The scores and their weights are kube-scheduler's defaults, each from 0 to 100:

    weight 3   PreferNoSchedule taints        weight 2   preferred node affinity
    weight 2   preferred pod (anti-)affinity  weight 2   ScheduleAnyway spread
    weight 1   images that are there already

A node's cost is UNIT for each point of weighted score that it falls short of the best possible. UNIT is what the
load-spreading policy charges for a running task: a node that is better by one point of a score of weight 1 is worth
one task more on it. A node that asks to be avoided costs as much as all preferences together.

Scores look at other tasks, so they are computed anew for each solve of a round; and where the tasks of one class
repel each other or want to be spread, what a domain may take cheaply is limited (`limits`), so that a batch spreads
within one solve.
"""

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.model.constraints import PeerSelector, PeerTerm, PreferenceSet, Spread
from firmament_py.snapshot.domain_limits import UNLIMITED, DomainLimit
from firmament_py.snapshot.running_tasks import Numbering, RunningTasks, of_classes, per_domain
from firmament_py.state.classes import carried
from firmament_py.state.cluster import ClusterState

UNIT = 100
FULL = 100  # the best score
_TAINTS, _NODES, _PEERS, _SPREAD, _IMAGES = 3, 2, 2, 2, 1
_AVOIDED = UNIT * FULL * (_TAINTS + _NODES + _PEERS + _SPREAD + _IMAGES)
_MIB = 2**20
_IMAGES_FROM, _IMAGES_TO = 23 * _MIB, 1000 * _MIB  # what counts as nothing and as all of an image


class Preferences:
    """classes and label sets: (C,) rows of the class and label set tables; nodes: (N,) rows of the node table."""

    def __init__(self, state: ClusterState, nodes: I64, classes: I64, label_sets: I64, placed: RunningTasks) -> None:
        self._state = state
        self._nodes = nodes
        self._rows = classes.tolist()
        self._wishes: list[PreferenceSet] = [state.classes.definition(row).preferences for row in self._rows]
        self._static: dict[int, I64 | None] = {}
        self._domains: dict[str, I64] = {}

        self._selectors = Numbering[PeerSelector]()
        for wish in self._wishes:
            for _, term in wish.peers:
                self._selectors.number(term.selector)
            for spread in wish.spread:
                self._selectors.number(spread.selector)
        # what placed tasks wish of their neighbours counts for those who come
        self._carried = Numbering[tuple[int, PeerTerm]]()
        wishing = placed.classes_that(state.classes.wishes)
        for row in [*wishing, *self._rows]:
            for wish_of_other in carried(state.classes.definition(row)):
                self._carried.number(wish_of_other)
        by_selector = [state.label_sets.matching(s) for s in self._selectors]
        by_carried = [state.label_sets.matching(term.selector) for _, term in self._carried]
        self._matched = of_classes(by_selector, label_sets)  # (S, C)
        self._wished_for = of_classes(by_carried, label_sets)  # (H, C)
        self._carries = np.zeros((len(self._carried), len(self._rows)), np.bool_)
        for c, row in enumerate(self._rows):
            self._carries[[self._carried.number(w) for w in carried(state.classes.definition(row))], c] = True
        self._count = placed.by_node(m[placed.label_set] & ~placed.leaving for m in by_selector)  # (S, N)
        carrier = np.zeros((len(self._carried), state.classes.capacity), np.bool_)
        for row in wishing:
            carrier[[self._carried.number(w) for w in carried(state.classes.definition(row))], row] = True
        self._carriers = placed.by_node(c[placed.cls] for c in carrier)  # (H, N)

    def add(self, c: int, node: I64, count: I64) -> None:
        """Takes note that count[i] > 0 tasks of class c are on node[i], no node twice."""
        for counts, hit in ((self._count, self._matched[:, c]), (self._carriers, self._carries[:, c])):
            for s in np.flatnonzero(hit).tolist():
                counts[s, node] += count

    def costs(self, c: int, feasible: Bools) -> I64 | None:
        """(N,) 0 or more, by which class c likes some nodes less than others; None if it does not care.

        Scores are relative to the best and worst of the `feasible` (N,) nodes.
        """
        static = self._static_costs(c, feasible)
        raw = self._peer_scores(c)
        if raw is None and not self._wishes[c].spread:
            return static
        total = np.zeros(len(self._nodes), np.int64) if static is None else static.copy()
        if raw is not None:
            low, high = _range(raw, feasible)
            if high > low:
                total += _short_of(_PEERS, (raw - low) * FULL // (high - low))
        for spread in self._wishes[c].spread:
            if not self._matched[self._selectors.number(spread.selector), c]:
                counts = self._domain_counts(spread.selector, spread.topology_key)
                _, high = _range(counts, feasible)
                if high > 0:
                    total += _short_of(_SPREAD, FULL - FULL * counts // high)
        return total if total.any() else None

    def limits(self, c: int, slots: I64, waiting: int) -> list[DomainLimit]:
        """Limits beyond which a domain costs more, for wishes of class c about its own tasks."""
        found = []
        for spread in self._wishes[c].spread:
            if self._matched[self._selectors.number(spread.selector), c]:
                found.append(self._level(spread, slots, waiting))
        for weight, term in self._wishes[c].peers:
            if weight < 0 and self._matched[self._selectors.number(term.selector), c]:
                domain = self._domain(term.topology_key)
                counts = per_domain(domain, self._count[self._selectors.number(term.selector)])[:-1]
                beyond = -weight * _PEERS * UNIT
                found.append(DomainLimit(domain, np.full(len(counts), UNLIMITED), np.maximum(1 - counts, 0), beyond))
        return found

    def _level(self, spread: Spread, slots: I64, waiting: int) -> DomainLimit:
        domain = self._domain(spread.topology_key)
        counts = per_domain(domain, self._count[self._selectors.number(spread.selector)])[:-1]
        room = per_domain(domain, slots)[:-1]
        level = water_level(counts, room, waiting)
        wanted = np.clip(level + spread.max_skew - 1 - counts, 0, UNLIMITED)
        return DomainLimit(domain, np.full(len(counts), UNLIMITED), wanted, _SPREAD * FULL * UNIT)

    def _static_costs(self, c: int, feasible: Bools) -> I64 | None:
        if c in self._static:
            return self._static[c]
        wish, row = self._wishes[c], self._rows[c]
        node_index = self._state.node_index
        total = np.zeros(len(self._nodes), np.int64)
        discouraged = node_index.discouraging(self._state.classes.demand(row), self._nodes)
        if discouraged is not None:
            _, high = _range(discouraged, feasible)
            if high:
                total += _short_of(_TAINTS, FULL - FULL * discouraged // high)
        if wish.nodes:
            raw = np.zeros(len(self._nodes), np.int64)
            for weight, term in wish.nodes:
                raw += weight * node_index.preferred(term, self._nodes)
            _, high = _range(raw, feasible)
            if high:
                total += _short_of(_NODES, FULL * raw // high)
        if wish.images:
            total += _short_of(_IMAGES, self._image_scores(wish.images))
        if wish.avoided_as:
            total += _AVOIDED * node_index.avoiding(wish.avoided_as, self._nodes)
        self._static[c] = total if total.any() else None
        return self._static[c]

    def _image_scores(self, images: tuple[str, ...]) -> I64:
        """kube-scheduler's ImageLocality: sizes that are there, scaled by how many nodes have the image."""
        present = np.zeros(len(self._nodes))
        for image in images:
            size = self._state.node_index.image_sizes(image, self._nodes)
            present += size * ((size > 0).sum() / max(len(size), 1))
        most = _IMAGES_TO * len(images)
        share = (np.clip(present, _IMAGES_FROM, most) - _IMAGES_FROM) / (most - _IMAGES_FROM)
        return (FULL * share).astype(np.int64)

    def _peer_scores(self, c: int) -> I64 | None:
        wished = np.flatnonzero(self._wished_for[:, c])
        if not self._wishes[c].peers and not len(wished):
            return None
        raw = np.zeros(len(self._nodes), np.int64)
        for weight, term in self._wishes[c].peers:
            s = self._selectors.number(term.selector)
            counts = self._domain_counts(term.selector, term.topology_key)
            if weight > 0 and self._matched[s, c] and not self._count[s].any():
                # nobody to be near yet: its own tasks start together
                domain = self._domain(term.topology_key)
                counts = np.equal(domain, c % (int(domain.max(initial=0)) + 1)).astype(np.int64)
            raw += weight * counts
        for h in wished.tolist():
            weight, term = self._carried[h]
            domain = self._domain(term.topology_key)
            raw += weight * per_domain(domain, self._carriers[h])[domain]
        return raw

    def _domain_counts(self, selector: PeerSelector, key: str) -> I64:
        domain = self._domain(key)
        return per_domain(domain, self._count[self._selectors.number(selector)])[domain]

    def _domain(self, key: str) -> I64:
        domain = self._domains.get(key)
        if domain is None:
            domain = self._domains[key] = self._state.node_index.domains(key, self._nodes)
        return domain


def water_level(counts: I64, room: I64, waiting: int) -> int:
    """The highest count to which the emptiest domains can be raised with `waiting` tasks and `room` (D,) in each."""
    if not len(counts):
        return 0
    low, high = int(counts.min()), int((counts + room).min())
    while low < high:  # the tasks that a level takes rise with it
        level = (low + high + 1) // 2
        if int(np.maximum(level - counts, 0).sum()) <= waiting:
            low = level
        else:
            high = level - 1
    return low


def _short_of(weight: int, scores: I64) -> I64:
    return UNIT * weight * (FULL - np.clip(scores, 0, FULL))


def _range(raw: I64, feasible: Bools) -> tuple[int, int]:
    values = raw[feasible]
    return (int(values.min()), int(values.max())) if len(values) else (0, 0)

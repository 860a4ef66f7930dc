"""The independent check of inter-task constraints: batch by batch, in the order in which the round placed them.

Shares no code with snapshot/intertask.py. Selectors are evaluated one task label set at a time with
model/constraints.py, domains are read from the nodes' labels, and constraints are checked on the state *after* a batch
(tasks of one class that are placed together), which is the state that placing them one at a time ends in.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from firmament_py.model.arrays import I64, Bools, runs
from firmament_py.model.constraints import NAME_FIELD, PeerDemand, PeerSelector, PeerTerm, Spread
from firmament_py.model.lifecycle import ASSUMED, BOUND
from firmament_py.state.cluster import ClusterState
from firmament_py.state.label_sets import NO_LABELS


class IntertaskCheck:
    """Replays the placements of task rows on node rows, (K,) each, made in ascending batch (K,), on the tables."""

    def __init__(self, state: ClusterState, tasks: I64, nodes: I64, batch: I64) -> None:
        self._state = state
        table = state.tasks
        before = np.flatnonzero((table.state == ASSUMED) | (table.state == BOUND))
        before = before[np.isin(table.node[before], list(state.nodes.observed))]
        self._order = np.argsort(batch, kind="stable")
        self._batch = batch[self._order]
        self._before = len(before)
        rows = np.concatenate([before, tasks[self._order]])
        # one entry per task, those already placed first: the tasks placed so far are a prefix, which grows
        self._node = np.concatenate([table.node[before], nodes[self._order]])
        self._cls, self._label_set, self._leaving = table.cls[rows], table.label_set[rows], table.leaving[rows]
        self._refused = np.zeros(len(rows), np.bool_)
        self._tallies: dict[object, _Tally] = {}
        self._domain: dict[str, tuple[dict[str, int], I64]] = {}
        self._eligible: dict[tuple[int, bool, bool], I64] = {}
        self._matches: dict[tuple[PeerSelector, int], bool] = {}
        self._classes: dict[int, _Demands] = {}
        self._repelling = self._terms_that_repel()

    def sound(self) -> Bools:
        """(K,) whether each placement is valid. A batch that breaks a constraint is refused as a whole."""
        starts = runs(self._batch)[0]
        for low, high in pairwise([*starts.tolist(), len(self._batch)]):
            low, high = low + self._before, high + self._before
            # counts before the batch are read first: tallies only advance
            kinds = [(*kind, self._founds(low, *kind[:2])) for kind in self._kinds(low, high)]
            if not all(
                self._keeps(low, high, cls, label_set, founds, np.unique(self._node[low:high][mine]))
                for cls, label_set, mine, founds in kinds
            ):
                self._refused[low:high] = True
                self._tallies.clear()
        sound = np.ones(len(self._order), np.bool_)
        sound[self._order] = ~self._refused[self._before :]
        return sound

    def _kinds(self, low: int, high: int) -> list[tuple[int, int, Bools]]:
        """Class, label set and members of each kind of task among entries low .. high - 1."""
        pairs = np.unique(np.stack([self._cls[low:high], self._label_set[low:high]]), axis=1)
        return [
            (cls, label_set, (self._cls[low:high] == cls) & (self._label_set[low:high] == label_set))
            for cls, label_set in pairs.T.tolist()
        ]

    def _keeps(self, low: int, high: int, cls: int, label_set: int, founds: bool, nodes: I64) -> bool:
        demands = self._demands(cls)
        for term in demands.peers.anti_affinity:
            near = self._tally_of_term(term).at(high, nodes)
            if (near > self._match(term.selector, label_set)).any():
                return False
        for term, carriers in self._repelling.items():
            if self._match(term.selector, label_set):
                near = self._tally_of_carriers(term, carriers).at(high, nodes)
                if (near > (term in demands.anti_affinity)).any():
                    return False
        return self._is_affine(low, high, demands, label_set, founds, nodes) and all(
            self._is_even(high, cls, spread, label_set, nodes) for spread in demands.peers.spread
        )

    def _founds(self, low: int, cls: int, label_set: int) -> bool:
        """Whether tasks can go to any domain together: no entry before `low` meets their affinity, but they do."""
        demands = self._demands(cls)
        return self._match_all(demands, label_set) and not any(
            tally.total(low) for tally in self._tallies_of_affinity(demands)
        )

    def _is_affine(self, low: int, high: int, demands: "_Demands", label_set: int, founds: bool, nodes: I64) -> bool:
        itself = self._match_all(demands, label_set)
        tallies = self._tallies_of_affinity(demands)
        if not all(tally.has_domain(nodes).all() for tally in tallies):
            return False
        if founds:  # all of the batch in one domain of each key
            return all(len(np.unique(tally.domain[self._node[low:high]])) == 1 for tally in tallies)
        return all((tally.at(high, nodes) > itself).all() for tally in tallies)

    def _is_even(self, high: int, cls: int, spread: Spread, label_set: int, nodes: I64) -> bool:
        part = (cls, spread.honor_affinity, spread.honor_taints)
        eligible = self._eligible.get(part)
        if eligible is None:
            eligible = self._eligible[part] = self._taking_part(cls, spread)
        tally = self._tally_of_spread(spread, part, eligible)
        if not tally.has_domain(nodes).all():
            return False
        counts = tally.counts(high)
        domains = set(tally.domain[eligible].tolist())
        emptiest = min((counts[d] for d in domains), default=0)
        if len(domains) < spread.min_domains:
            emptiest = 0
        if spread.selector.labels == ():  # nothing is counted for an empty selector
            return bool(
                (tally.at(high, nodes) + self._match(spread.selector, label_set) - emptiest <= spread.max_skew).all()
            )
        if not self._match(spread.selector, label_set):
            return bool((tally.at(high, nodes) - emptiest <= spread.max_skew).all())
        return not domains or bool((tally.at(high, nodes) - emptiest <= spread.max_skew).all())

    def _taking_part(self, cls: int, spread: Spread) -> I64:
        """Rows of the nodes that count for a spread of class row `cls`: those with the keys of all its spreads."""
        demands, demand = self._demands(cls), self._state.classes.demand(cls)
        labelled = np.zeros(self._state.nodes.capacity, np.bool_)
        labelled[list(self._state.nodes.observed)] = True
        for key in demands.spread_keys:
            labelled &= np.greater_equal(self._domains(key)[1], 0)
        own = replace(demand, further=())  # the task's own selector and affinity, without further demands on its node
        rows = []
        for row in np.flatnonzero(labelled).tolist():
            node = self._state.nodes.observed[row]
            selected = not spread.honor_affinity or own.selects(node.labels, {NAME_FIELD: node.name})
            if selected and not (spread.honor_taints and demand.untolerated(node.taints)):
                rows.append(row)
        return np.array(rows, np.int64)

    # -- tallies ----------------------------------------------------------------------------------------------

    def _tally_of_term(self, term: PeerTerm) -> "_Tally":
        return self._tally(
            (term.selector, term.topology_key),
            term.topology_key,
            lambda low, high: self._matched(low, high, lambda p: self._match(term.selector, p)),
        )

    def _tallies_of_affinity(self, demands: "_Demands") -> list["_Tally"]:
        """By topology key of the affinity: the tally of tasks that meet all of its selectors."""
        return [
            self._tally(
                (demands.cls, key),
                key,
                lambda low, high: self._matched(low, high, lambda p: self._match_all(demands, p)),
            )
            for key in demands.affine_keys
        ]

    def _tally_of_carriers(self, term: PeerTerm, carriers: frozenset[int]) -> "_Tally":
        return self._tally(
            term,
            term.topology_key,
            lambda low, high: np.isin(self._cls[low:high], list(carriers)) & ~self._refused[low:high],
        )

    def _tally_of_spread(self, spread: Spread, part: object, eligible: I64) -> "_Tally":
        inside = np.zeros(self._state.nodes.capacity, np.bool_)
        inside[eligible] = True

        def counted(low: int, high: int) -> Bools:
            if spread.selector.labels == ():
                return np.zeros(high - low, np.bool_)
            matched: Bools = self._matched(low, high, lambda p: self._match(spread.selector, p))
            matched &= ~self._leaving[low:high] & inside[self._node[low:high]]
            return matched

        return self._tally((spread.selector, spread.topology_key, part), spread.topology_key, counted)

    def _tally(self, name: object, key: str, counts: Callable[[int, int], Bools]) -> "_Tally":
        tally = self._tallies.get(name)
        if tally is None:
            values, domain = self._domains(key)
            tally = self._tallies[name] = _Tally(self._node, domain, len(values), counts)
        return tally

    def _domains(self, key: str) -> tuple[dict[str, int], I64]:
        found = self._domain.get(key)
        if found is None:
            values: dict[str, int] = {}
            domain = np.full(self._state.nodes.capacity, -1, np.int64)
            for row, node in self._state.nodes.observed.items():
                if key in node.labels:
                    domain[row] = values.setdefault(node.labels[key], len(values))
            found = self._domain[key] = (values, domain)
        return found

    def _matched(self, low: int, high: int, of_label_set: Callable[[int], bool]) -> Bools:
        label_sets, index = np.unique(self._label_set[low:high], return_inverse=True)
        hit = np.array([of_label_set(p) for p in label_sets.tolist()], np.bool_)
        return hit[index] & ~self._refused[low:high] if len(label_sets) else np.zeros(0, np.bool_)

    def _match(self, selector: PeerSelector, label_set: int) -> bool:
        known = self._matches.get((selector, label_set))
        if known is None:
            known = label_set != NO_LABELS and selector.matches(*self._state.label_sets.describe(label_set))
            self._matches[selector, label_set] = known
        return known

    def _match_all(self, demands: "_Demands", label_set: int) -> bool:
        """Whether a label set meets all selectors of an affinity."""
        known = demands.met_by.get(label_set)
        if known is None:
            known = all(self._match(term.selector, label_set) for term in demands.peers.affinity)
            demands.met_by[label_set] = known
        return known

    def _demands(self, cls: int) -> "_Demands":
        found = self._classes.get(cls)
        if found is None:
            found = self._classes[cls] = _Demands(cls, self._state.classes.definition(cls).peers)
        return found

    def _terms_that_repel(self) -> dict[PeerTerm, frozenset[int]]:
        carriers: dict[PeerTerm, set[int]] = {}
        for cls in np.unique(self._cls).tolist():
            for term in self._state.classes.definition(cls).peers.anti_affinity:
                carriers.setdefault(term, set()).add(cls)
        return {term: frozenset(classes) for term, classes in carriers.items()}


class _Demands:
    """The inter-task constraints of a class row, looked up once for all of its terms."""

    def __init__(self, cls: int, peers: PeerDemand) -> None:
        self.cls = cls
        self.peers = peers
        self.anti_affinity = frozenset(peers.anti_affinity)
        self.affine_keys = tuple(dict.fromkeys(term.topology_key for term in peers.affinity))
        self.spread_keys = tuple(dict.fromkeys(spread.topology_key for spread in peers.spread))
        self.met_by: dict[int, bool] = {}  # label set row -> whether it meets all selectors of the affinity


class _Tally:
    """Number of counted entries in each domain before entry `reached`; must be read with ascending `high`."""

    def __init__(self, node: I64, domain: I64, domains: int, counted: Callable[[int, int], Bools]) -> None:
        self.domain = domain  # (node capacity,), -1 without the label
        self._node = node
        self._counted = counted
        self._reached = 0
        self._counts = np.zeros(domains + 1, np.int64)  # the last element is for nodes without the label

    def counts(self, high: int) -> I64:
        if high > self._reached:
            hit = self._counted(self._reached, high)
            np.add.at(self._counts, self.domain[self._node[self._reached : high][hit]], 1)
            self._reached = high
        counts = self._counts.copy()
        counts[-1] = 0
        return counts

    def at(self, high: int, nodes: I64) -> I64:
        """Entries before `high` in the domain of each of `nodes`; 0 without the label."""
        return self.counts(high)[self.domain[nodes]]

    def total(self, high: int) -> int:
        return int(self.counts(high).sum())

    def has_domain(self, nodes: I64) -> Bools:
        return np.greater_equal(self.domain[nodes], 0)

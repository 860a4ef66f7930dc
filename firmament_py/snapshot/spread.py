"""Required topology spread: the matching tasks of a domain must not exceed those of the emptiest by over max_skew."""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.model.constraints import NodeDemand, PeerDemand, PeerSelector, Spread
from firmament_py.policy import COST_MAX
from firmament_py.snapshot.domain_limits import UNLIMITED, DomainLimit
from firmament_py.snapshot.domains import Condition, Domains, domain_count, keep_within
from firmament_py.snapshot.running_tasks import RunningTasks
from firmament_py.snapshot.task_counts import Numbering, TaskCounts, of_classes
from firmament_py.snapshot.water_level import water_level
from firmament_py.state.cluster import ClusterState


@dataclass(frozen=True, slots=True, kw_only=True)
class Even(Condition):
    """Topology spread: with the task the domain has at most max_skew more than the emptiest one. eligible (N,): nodes
    whose tasks it counts; domains (D,): those that have such nodes; itself: whether it counts the task."""

    eligible: Bools
    domains: Bools
    min_domains: int
    max_skew: int
    itself: bool

    def met(self, node: I64, less: I64) -> Bools:
        domain = self.domain[node]
        here = self.counts[domain] - np.where(self.eligible[node], less, 0)
        met: Bools = (here + self.itself <= self._emptiest(domain, here) + self.max_skew) & (domain >= 0)
        return met

    def _emptiest(self, domain: I64, here: I64) -> I64:
        """(K,) the count of the emptiest domain if domain[k] has here[k]."""
        if int(self.domains.sum()) < self.min_domains:
            return np.zeros(len(domain), np.int64)
        counts = np.where(self.domains, self.counts[:-1], UNLIMITED)
        two = np.sort(np.append(counts, [UNLIMITED, UNLIMITED]))[:2]
        # of the others: the second least where the domain itself is the emptiest
        of_others = np.where(np.append(counts, UNLIMITED)[domain] == two[0], two[1], two[0])
        counts_itself = np.append(self.domains, False)[domain]
        emptiest: I64 = np.where(counts_itself, np.minimum(of_others, here), of_others)
        return emptiest


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadLimit(Condition):
    """Of another task's spread: with one more task a domain has no more than that one admits. maximum (D,)."""

    maximum: I64

    def met(self, node: I64, less: I64) -> Bools:
        domain = self.domain[node]
        met: Bools = (domain < 0) | (self.counts[domain] - less < np.append(self.maximum, 0)[domain])
        return met

    @property
    def limit(self) -> DomainLimit:
        """How many more tasks its domains admit."""
        left = np.maximum(self.maximum - self.counts[:-1], 0)
        return DomainLimit(self.domain, left, left, 0)


class TopologySpread:
    """Topology spread of C classes, rows of the class table, with these demands and label sets (C,)."""

    def __init__(
        self,
        state: ClusterState,
        classes: I64,
        demands: list[PeerDemand],
        label_sets: I64,
        running: RunningTasks,
        domains: Domains,
    ) -> None:
        self._node_index = state.node_index
        self._domains = domains
        self._spreads = [demand.spread for demand in demands]
        self._node_demands = [state.classes.demand(row) for row in classes.tolist()]
        eligibility = Numbering[tuple[NodeDemand, tuple[str, ...]]]()
        self._eligibility = [
            eligibility.number((of_node, tuple(s.topology_key for s in spreads)))
            for of_node, spreads in zip(self._node_demands, self._spreads, strict=True)
        ]
        """By class: equal if the same nodes count for their spreads."""
        self._eligible: dict[tuple[int, bool, bool], Bools] = {}
        self._selectors = Numbering[PeerSelector](s.selector for spreads in self._spreads for s in spreads)
        matching = [state.label_sets.matching(selector) for selector in self._selectors]
        self._matched = of_classes(matching, label_sets)  # (S, C)
        # an empty selector matches its own task, but kube-scheduler counts nothing for it
        counts = np.array([selector.labels != () for selector in self._selectors], np.bool_)
        self._counted = self._matched & counts[:, None]
        self._counting = [m & counted for m, counted in zip(matching, counts, strict=True)]
        self._counts = TaskCounts(
            running.by_node(m[running.label_set] & ~running.leaving for m in self._counting), self._counted
        )

    @property
    def any(self) -> bool:
        return bool(len(self._selectors))

    @property
    def counted(self) -> Bools:
        """(C,) whether a selector matches the tasks of each class."""
        counted: Bools = np.logical_or.reduce(self._matched)
        return counted

    def copy(self) -> "TopologySpread":
        """One that counts further tasks on its own."""
        other = copy(self)
        other._counts = self._counts.copy()
        return other

    def add(self, cls: I64, node: I64, count: I64) -> None:
        self._counts.add(cls, node, count)

    def own(self, c: int) -> list[Spread]:
        """The spreads of class c that count its own tasks."""
        return [s for s in self._spreads[c] if self._counted[self._selectors.number(s.selector), c]]

    def allowed(self, c: int, waived: Sequence[Spread] = ()) -> Bools:
        """(N,) nodes on which a further task of class c keeps its spreads, except waived ones."""
        ok = self.labelled(c)
        for spread in self._spreads[c]:
            if spread not in waived:
                ok &= self._even(c, spread)
        return ok

    def conditions(self, c: int) -> Iterator[Condition]:
        """Those that `allowed` means."""
        for spread in self._spreads[c]:
            domain, counts, domains = self._counts_of(c, spread)
            number = self._selectors.number(spread.selector)
            yield Even(
                domain,
                np.append(counts, 0),
                self._counting[number],
                staying=True,
                eligible=self._eligible_nodes(c, spread),
                domains=domains,
                min_domains=spread.min_domains,
                max_skew=spread.max_skew,
                itself=bool(self._matched[number, c]),
            )

    def counts_with(self, c: int, h: int) -> bool:
        """Whether a spread of class h counts its own tasks and those of class c."""
        return any(self._counted[self._selectors.number(spread.selector), c] for spread in self.own(h))

    def limits_for(self, c: int, h: int, node: int) -> list[SpreadLimit]:
        """What a task of class h on `node` admits of class c in its own domains, by its spreads, which count both."""
        found = []
        for spread in self.own(h):
            number = self._selectors.number(spread.selector)
            domain, counts, eligible = self._counts_of(h, spread)
            if self._counted[number, c] and domain[node] >= 0:
                maximum = np.full(len(counts), _emptiest(counts, eligible, spread) + spread.max_skew)
                own = self._eligible_nodes(h, spread) & (domain == domain[node])
                in_own = np.where(own, domain, -1)
                found.append(
                    SpreadLimit(in_own, np.append(counts, 0), self._counting[number], staying=True, maximum=maximum)
                )
        return found

    def labelled(self, c: int) -> Bools:
        """(N,) whether nodes have the labels of all spreads of class c."""
        ok = np.ones(len(self._domains.nodes), np.bool_)
        for spread in self._spreads[c]:
            ok &= self._domains[spread.topology_key] >= 0
        return ok

    def failures(self, c: int) -> tuple[Bools, Bools]:
        """(N,) each: nodes that lack the label, and nodes beyond max_skew, by the first spread that fails on each."""
        unlabelled, uneven = np.zeros((2, len(self._domains.nodes)), np.bool_)
        for spread in self._spreads[c]:
            unlabelled |= (self._domains[spread.topology_key] < 0) & ~uneven
            uneven |= ~self._even(c, spread) & ~unlabelled
        return unlabelled, uneven

    def limits(self, c: int, slots: I64, waiting: int) -> list[DomainLimit]:
        """Number of `waiting` tasks of class c that each domain can take in one solve, with slots (N,) on nodes.

        Above the level that the emptiest domain can reach, each task has a cost, so that others are filled first.
        """
        found = []
        for spread in self.own(c):
            domain, counts, eligible = self._counts_of(c, spread)
            capacity = np.bincount(domain[domain >= 0], slots[domain >= 0], minlength=len(counts)).astype(np.int64)
            level = _reachable_level(counts, capacity, eligible, waiting, spread)
            limit = np.maximum(level + spread.max_skew - counts, 0)
            found.append(DomainLimit(domain, limit, np.clip(level - counts, 0, limit), COST_MAX))
        return found

    def trim(self, c: int, node: I64, count: I64) -> I64:
        """count (K,) of tasks of class c on node (K,), reduced to those that keep its spreads."""
        own = self.own(c)
        while own:
            before = count
            for spread in own:
                count = self._trim_one(c, spread, node, count)
            if (count == before).all():  # trimming for one can break another: repeat until all hold
                break
        return count

    def _trim_one(self, c: int, spread: Spread, node: I64, count: I64) -> I64:
        domain, counts, eligible = self._counts_of(c, spread)
        inside = self._eligible_nodes(c, spread)[node]
        after = counts + np.bincount(domain[node[inside]], count[inside], minlength=len(counts)).astype(np.int64)
        limit = np.maximum(_emptiest(after, eligible, spread) + spread.max_skew - counts, 0)
        return keep_within(domain[node], count, limit)

    def _even(self, c: int, spread: Spread) -> Bools:
        """(N,) nodes on which a further task of class c keeps max_skew; true if the label is missing."""
        domain, counts, eligible = self._counts_of(c, spread)
        itself = int(self._matched[self._selectors.number(spread.selector), c])
        highest = _emptiest(counts, eligible, spread) + spread.max_skew - itself
        even: Bools = (np.append(counts, 0)[domain] <= highest) | (domain < 0)
        return even

    def _counts_of(self, c: int, spread: Spread) -> tuple[I64, I64, Bools]:
        """(N,) domains, (D,) matching tasks on eligible nodes, (D,) whether domains have eligible nodes."""
        domain = self._domains[spread.topology_key]
        eligible = self._eligible_nodes(c, spread)
        size = domain_count(domain)
        counts = self._counts[self._selectors.number(spread.selector)]
        in_domain = np.bincount(domain[eligible], counts[eligible], minlength=size).astype(np.int64)
        return domain, in_domain, np.bincount(domain[eligible], minlength=size) > 0

    def _eligible_nodes(self, c: int, spread: Spread) -> Bools:
        """(N,) whether nodes count for a spread of class c."""
        key = (self._eligibility[c], spread.honor_affinity, spread.honor_taints)
        found = self._eligible.get(key)
        if found is None:
            found = self.labelled(c)
            demand = replace(self._node_demands[c], further=())
            selected, taint = self._node_index.evaluate(demand, self._domains.nodes)
            if spread.honor_affinity:
                found &= selected
            if spread.honor_taints:
                found &= taint < 0
            self._eligible[key] = found
        return found


def _emptiest(counts: I64, eligible: Bools, spread: Spread) -> int:
    """Number of matching tasks that counts for the emptiest domain."""
    if int(eligible.sum()) < spread.min_domains:
        return 0
    return int(counts[eligible].min(initial=UNLIMITED)) if eligible.any() else UNLIMITED


def _reachable_level(counts: I64, capacity: I64, eligible: Bools, waiting: int, spread: Spread) -> int:
    """The highest count that the emptiest domain can reach with `waiting` tasks and `capacity` in each domain."""
    if int(eligible.sum()) < spread.min_domains:
        return 0
    if not eligible.any():
        return UNLIMITED
    return water_level(counts[eligible], capacity[eligible], waiting)

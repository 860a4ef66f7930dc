"""The constraints of one task on others as conditions on counts by domain.

From these follows what the constraints say of a node once some of the tasks on that node are gone: only the counts of
the node's own domains are lower then. N nodes, D domains, K questions: the task is on node[k], and of the tasks that a
condition counts less[k] on that node are gone.
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.snapshot.domain_limits import UNLIMITED


@dataclass(frozen=True, slots=True)
class Condition:
    """domain (N,): that of each node, -1: none. counts (D + 1,): tasks that it counts, the last is 0. label_sets,
    classes: rows of these tables whose tasks it counts; None: of all. staying: tasks that are leaving do not count."""

    domain: I64
    counts: I64
    label_sets: Bools | None = None
    classes: Bools | None = None
    staying: bool = False

    def counted(self, cls: I64, label_set: I64, leaving: Bools) -> Bools:
        """(P,) whether it counts tasks of these classes and label sets."""
        counted = ~leaving if self.staying else np.ones(len(cls), np.bool_)
        if self.label_sets is not None:
            counted &= self.label_sets[label_set]
        if self.classes is not None:
            counted &= self.classes[cls]
        return counted

    def met(self, node: I64, less: I64) -> Bools:
        """(K,) whether it is met."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Absent(Condition):
    """Anti-affinity, of the task or of others: nothing that it counts is in the domain."""

    def met(self, node: I64, less: I64) -> Bools:
        domain = self.domain[node]
        met: Bools = (self.counts[domain] - less <= 0) | (domain < 0)
        return met


@dataclass(frozen=True, slots=True, kw_only=True)
class Near(Condition):
    """Affinity: something that it counts is in the domain. total: of what it counts on nodes with any of the labels;
    itself: whether it counts the task, which may then be the first."""

    total: int
    itself: bool

    def met(self, node: I64, less: I64) -> Bools:
        domain = self.domain[node]
        met = self.counts[domain] - less > 0
        if self.itself:
            met |= self.total - less <= 0
        met &= domain >= 0
        return met


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

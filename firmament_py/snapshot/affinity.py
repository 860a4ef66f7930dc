"""Required affinity between tasks: the domains of the tasks that a task must be near.

One task must meet all terms of a class, as in kube-scheduler. If no task meets them but the tasks of the class itself
do, its first tasks can go to any one domain.
"""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, Bools, distinct_rows
from firmament_py.model.constraints import PeerDemand, PeerSelector
from firmament_py.snapshot.domain_limits import UNLIMITED, DomainLimit
from firmament_py.snapshot.domains import Condition, Domains, per_domain
from firmament_py.snapshot.running_tasks import RunningTasks
from firmament_py.snapshot.task_counts import Numbering, TaskCounts, of_classes
from firmament_py.state.label_sets import LabelSetTable


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


@dataclass(frozen=True, slots=True)
class Within(Condition):
    """The node is in one of the domains other than -1, whatever runs there."""

    def met(self, node: I64, less: I64) -> Bools:
        met: Bools = self.domain[node] >= 0
        return met


class Affinity:
    """Affinity of C classes with these demands and label sets (C,). running: the tasks that count at the start."""

    def __init__(
        self,
        demands: list[PeerDemand],
        label_sets: I64,
        table: LabelSetTable,
        running: RunningTasks,
        domains: Domains,
    ) -> None:
        self._domains, self._running = domains, running
        groups = Numbering[tuple[PeerSelector, ...]]()
        self._group = [groups.number(tuple(t.selector for t in d.affinity)) if d.affinity else -1 for d in demands]
        """Number of each class's set of selectors, all of which a task must match to count; -1: none."""
        self._keys = [list(dict.fromkeys(term.topology_key for term in d.affinity)) for d in demands]
        self._matching = [np.logical_and.reduce([table.matching(s) for s in group]) for group in groups]
        self._matched = of_classes(self._matching, label_sets)  # (groups, C)
        self._counts = TaskCounts(running.by_node(m[running.label_set] for m in self._matching), self._matched)

    @property
    def counted(self) -> Bools:
        """(C,) whether a selector matches the tasks of each class."""
        counted: Bools = np.logical_or.reduce(self._matched)
        return counted

    def copy(self) -> "Affinity":
        """One that counts further tasks on its own."""
        other = copy(self)
        other._counts = self._counts.copy()
        return other

    def add(self, cls: I64, node: I64, count: I64) -> None:
        self._counts.add(cls, node, count)

    def keys(self, c: int) -> list[str]:
        """Topology keys of the domains that tasks of class c share with those that they must be near."""
        return self._keys[c]

    def allowed(self, c: int) -> Bools:
        """(N,) nodes on which a further task of class c meets its affinity, or can be the first."""
        ok = np.ones(len(self._domains.nodes), np.bool_)
        if self._group[c] < 0:
            return ok
        first, counts = self.may_be_first(c), self._counts[self._group[c]]
        for key in self._keys[c]:
            domain = self._domains[key]
            ok &= domain >= 0
            if not first:
                ok &= per_domain(domain, counts)[domain] > 0
        return ok

    def conditions(self, c: int) -> Iterator[Condition]:
        """Those that `allowed` means."""
        group = self._group[c]
        for key in self._keys[c]:
            domain = self._domains[key]
            total = int(self._counts[group][self._labelled(c)].sum())
            counts = per_domain(domain, self._counts[group])
            itself = bool(self._matched[group, c])
            yield Near(domain, counts, self._matching[group], total=total, itself=itself)

    def conceivable(self, c: int) -> Bools:
        """(N,) nodes that can become allowed for class c by placing others; `allowed` if no waiting task meets its
        terms."""
        if self._group[c] >= 0 and not self._matched[self._group[c]].any():
            return self.allowed(c)
        ok = np.ones(len(self._domains.nodes), np.bool_)
        for key in self._keys[c]:
            ok &= self._domains[key] >= 0
        return ok

    def may_be_first(self, c: int) -> bool:
        """Whether class c has affinity that no placed task meets, but its own tasks do."""
        group = self._group[c]
        if group < 0 or not self._matched[group, c]:
            return False
        return not self._counts[group][self._labelled(c)].any()

    def may_come_before(self, c: int, h: int) -> bool:
        """Whether tasks of class h can be the first of their kind, and tasks of class c could be that instead."""
        group = self._group[h]
        return group >= 0 and bool(self._matched[group, h] and self._matched[group, c])

    def leaves_first(self, c: int, h: int, node: int) -> Bools:
        """(N,) the nodes on which a task of class c leaves one of class h, which is to run on `node`, what it must be
        near. It may be the first of its kind there, once all that meets its terms elsewhere is gone: then no other may
        begin elsewhere."""
        ok = np.ones(len(self._domains.nodes), np.bool_)
        if self.may_come_before(c, h):
            group, joint, running = self._group[h], self._joint_domain(h), self._running
            other_domains = self._labelled(h) & (joint != joint[node])
            (leaving,) = running.by_node([self._matching[group][running.label_set] & running.leaving])
            if not (self._counts[group] - leaving)[other_domains].any():
                ok = ~other_domains
        return ok

    def _labelled(self, c: int) -> Bools:
        """(N,) nodes with any of the labels of class c's affinity."""
        labelled = np.zeros(len(self._domains.nodes), np.bool_)
        for key in self._keys[c]:
            labelled |= self._domains[key] >= 0
        return labelled

    def first_domain(self, c: int, slots: I64, limits: list[DomainLimit]) -> Bools:
        """(N,) nodes of the joint domain that takes the most tasks with slots (N,) and within limits, for the first
        tasks of class c."""
        joint = self._joint_domain(c)
        total = np.bincount(joint, slots)
        for limit in limits:
            # of each domain of the limit, the part that is in each joint one
            first, part = distinct_rows(np.column_stack([joint, limit.domain]))
            maximum = np.append(limit.maximum, UNLIMITED)[limit.domain[first]]
            taken = np.minimum(np.bincount(part, slots), maximum)
            total = np.minimum(total, np.bincount(joint[first], taken, minlength=len(total)))
        best = np.flatnonzero(total == total.max(initial=0))
        # several classes that start in one solve choose different ones of equally good domains
        return np.equal(joint, best[c % len(best)] if len(best) else -1)

    def trim(self, c: int, node: I64, count: I64) -> I64:
        """count (K,) of tasks on node (K,), reduced for first tasks to the joint domain that has the most of them."""
        if not self.may_be_first(c) or not count.any():
            return count
        joint = self._joint_domain(c)[node]
        return np.where(joint == np.bincount(joint, count).argmax(), count, 0)

    def _joint_domain(self, c: int) -> I64:
        """(N,) equal numbers for nodes that share a domain of every key."""
        return distinct_rows(np.column_stack([self._domains[key] for key in self._keys[c]]))[1]

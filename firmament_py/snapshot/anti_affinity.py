"""Required anti-affinity between tasks, in both directions: of a task to others, and of others to it."""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.model.constraints import PeerDemand, PeerSelector
from firmament_py.snapshot.domain_limits import DomainLimit
from firmament_py.snapshot.domains import Condition, Domains, domain_count, keep_within, per_domain
from firmament_py.snapshot.running_tasks import RunningTasks
from firmament_py.snapshot.task_counts import Numbering, TaskCounts, of_classes
from firmament_py.state.classes import ClassTable
from firmament_py.state.label_sets import LabelSetTable


@dataclass(frozen=True, slots=True)
class Absent(Condition):
    """Anti-affinity, of the task or of others: nothing that it counts is in the domain."""

    def met(self, node: I64, less: I64) -> Bools:
        domain = self.domain[node]
        met: Bools = (self.counts[domain] - less <= 0) | (domain < 0)
        return met


class AntiAffinity:
    """Anti-affinity of C classes with these demands and label sets (C,). running: the tasks that count at the start."""

    def __init__(
        self,
        demands: list[PeerDemand],
        label_sets: I64,
        table: LabelSetTable,
        running: RunningTasks,
        running_classes: ClassTable,
        domains: Domains,
    ) -> None:
        self._domains = domains
        self._own = [demand.anti_affinity for demand in demands]
        # tasks that the terms of a class match
        self._selectors = Numbering[PeerSelector](term.selector for terms in self._own for term in terms)
        self._matching = [table.matching(selector) for selector in self._selectors]
        self._matched = of_classes(self._matching, label_sets)  # (S, C)
        self._counts = TaskCounts(running.by_node(m[running.label_set] for m in self._matching), self._matched)
        # tasks with terms that match a class
        rows = running.classes_that(running_classes.repels)
        self._of_running = {row: running_classes.definition(row).peers.anti_affinity for row in rows}
        self._class_rows = running_classes.capacity
        self._terms, self._holders = running.holders(self._of_running, self._own)
        self._repelled = of_classes([table.matching(term.selector) for term in self._terms], label_sets)  # (H, C)

    @property
    def any(self) -> bool:
        return bool(self._terms)

    @property
    def repelling(self) -> I64:
        """(C,) number of terms of waiting and running tasks that repel each class."""
        terms: I64 = self._repelled.sum(axis=0)
        return terms

    @property
    def counted(self) -> Bools:
        """(C,) whether a selector matches the tasks of each class."""
        counted: Bools = np.logical_or.reduce(self._matched)
        return counted

    def copy(self) -> "AntiAffinity":
        """One that counts further tasks on its own."""
        other = copy(self)
        other._counts, other._holders = self._counts.copy(), self._holders.copy()
        return other

    def add(self, cls: I64, node: I64, count: I64) -> None:
        self._counts.add(cls, node, count)
        self._holders.add(cls, node, count)

    def clear(self, c: int) -> Bools:
        """(N,) nodes without tasks that class c must not be near."""
        ok = np.ones(len(self._domains.nodes), np.bool_)
        for term in self._own[c]:
            domain = self._domains[term.topology_key]
            counts = self._counts[self._selectors.number(term.selector)]
            ok &= (per_domain(domain, counts)[domain] == 0) | (domain < 0)
        return ok

    def clear_of_repelling(self, c: int) -> Bools:
        """(N,) nodes without tasks that repel class c."""
        ok = np.ones(len(self._domains.nodes), np.bool_)
        for number in np.flatnonzero(self._repelled[:, c]).tolist():
            holders = self._holders[number]
            if holders.any():
                domain = self._domains[self._terms[number].topology_key]
                ok &= (per_domain(domain, holders)[domain] == 0) | (domain < 0)
        return ok

    def conditions(self, c: int) -> Iterator[Condition]:
        """Those that `clear` and `clear_of_repelling` mean."""
        for term in self._own[c]:
            domain, number = self._domains[term.topology_key], self._selectors.number(term.selector)
            yield Absent(domain, per_domain(domain, self._counts[number]), self._matching[number])
        for number in np.flatnonzero(self._repelled[:, c]).tolist():
            term = self._terms[number]
            domain, classes = self._domains[term.topology_key], np.zeros(self._class_rows, np.bool_)
            classes[[row for row, terms in self._of_running.items() if term in terms]] = True
            yield Absent(domain, per_domain(domain, self._holders[number]), classes=classes)

    def limits(self, c: int) -> list[DomainLimit]:
        """One task in each domain of the terms by which tasks of class c repel each other."""
        found = []
        for domain in self._own_domains(c):
            size = domain_count(domain)
            found.append(DomainLimit(domain, np.ones(size, np.int64), np.zeros(size, np.int64), 0))
        return found

    def trim(self, c: int, node: I64, count: I64) -> I64:
        """count (K,) of tasks of class c on node (K,), reduced to those that do not repel each other."""
        for domain in self._own_domains(c):
            count = keep_within(domain[node], count, np.ones(domain_count(domain), np.int64))
        return count

    def _own_domains(self, c: int) -> list[I64]:
        terms = [t for t in self._own[c] if self._matched[self._selectors.number(t.selector), c]]
        return [self._domains[term.topology_key] for term in terms]

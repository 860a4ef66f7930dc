"""A retelling of kube-scheduler's rules of preemption (its plugin DefaultPreemption), pod by pod.

Pods are handled by priority, then age. One that fits somewhere goes to the node where the largest share is left free.
Else nodes are searched from a random one on, until a tenth of them, or 100, are candidates. On each, all pods of lower
priority are removed and, if the pod fits then, put back one after the other as long as it still does: first those whose
eviction violates a budget, the most important first, then the others. What is kept for pods that were handled before
counts as used, and budgets as spent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.loads.preemption import NOWHERE, PreemptionLoad, Result
from firmament_py.model.arrays import I64

_LEAST_CANDIDATES, _SHARE_OF_CANDIDATES = 100, 0.1
_LIFT = 2**31
"""Added to priorities, so that of equal ones fewer have the lower sum."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node, and pods to evict there, the most important first. violations: how many of these no budget permits."""

    node: int
    victims: list[int]
    violations: int


class KubePreemption:
    """beyond_budgets: as kube-scheduler does; else nodes that take an eviction which no budget permits are no
    candidates."""

    def __init__(self, load: PreemptionLoad, *, beyond_budgets: bool = True) -> None:
        self._load = load
        self._beyond_budgets = beyond_budgets
        self._free = load.free
        self._allowed: list[int] = load.allowed.tolist()
        self._evicted = np.zeros(len(load.node), np.bool_)
        self._priority: list[int] = load.priority.tolist()
        self._run_s: list[int] = load.run_s.tolist()
        self._budget: list[int] = load.budget.tolist()
        self._requests: list[list[int]] = load.requests.tolist()
        self._on_node: list[list[int]] = [[] for _ in load.allocatable]
        for pod in np.lexsort((-load.run_s, -load.priority)).tolist():  # the most important first
            self._on_node[int(load.node[pod])].append(pod)
        self._below: dict[int, I64] = {}
        for level in np.unique(load.waiting_priority).tolist():
            lower = load.priority < level
            self._below[level] = np.zeros_like(load.allocatable)
            np.add.at(self._below[level], load.node[lower], load.requests[lower])

    def run(self) -> Result:
        """Handles all waiting pods."""
        load, rng = self._load, np.random.default_rng(self._load.seed)
        node_of = np.full(len(load.waiting), NOWHERE, np.int64)
        for pod in load.queue().tolist():
            c = int(load.waiting[pod])
            node = self._least_allocated(c)
            if node == NOWHERE:
                found = self.candidates(c, int(rng.integers(0, len(load.allocatable))))
                if not found:
                    continue
                chosen = best_candidate(found, self._priority, self._run_s)
                self._evict(chosen)
                node = chosen.node
            self._free[node] -= load.waiting_requests[c]
            node_of[pod] = node
        return Result(node_of, self._evicted)

    def candidates(self, c: int, offset: int) -> list[Candidate]:
        """Nodes that a pod of class c could get by evictions, from the node `offset` on."""
        load = self._load
        level = int(load.waiting_priority[c])
        possible = load.suitable[c] & (self._free + self._below[level] >= load.waiting_requests[c]).all(axis=1)
        nodes = np.flatnonzero(possible)
        limit = max(int(len(load.allocatable) * _SHARE_OF_CANDIDATES), _LEAST_CANDIDATES)
        found: list[Candidate] = []
        lawful = False
        for node in np.roll(nodes, -int(np.searchsorted(nodes, offset))).tolist():
            candidate = self.victims_on(node, c)
            if candidate.violations and not self._beyond_budgets:
                continue
            found.append(candidate)
            lawful |= candidate.violations == 0
            if lawful and len(found) >= limit:
                break
        return found

    def victims_on(self, node: int, c: int) -> Candidate:
        """The victims of a pod of class c on a node that could take it without all pods of lower priority."""
        load = self._load
        level = int(load.waiting_priority[c])
        lower = [pod for pod in self._on_node[node] if self._priority[pod] < level]
        cpu, memory = (self._free[node] + self._below[level][node] - load.waiting_requests[c]).tolist()
        spent: dict[int, int] = {}
        violating: list[int] = []
        others: list[int] = []
        for pod in lower:
            budget = self._budget[pod]
            spent[budget] = spent.get(budget, 0) + 1
            (violating if budget >= 0 and spent[budget] > self._allowed[budget] else others).append(pod)
        victims: list[int] = []
        violations = 0
        for pods in (violating, others):
            violations = len(victims)
            for pod in pods:
                one_cpu, one_memory = self._requests[pod]
                if one_cpu <= cpu and one_memory <= memory:
                    cpu, memory = cpu - one_cpu, memory - one_memory
                else:
                    victims.append(pod)
        victims.sort(key=lambda pod: (-self._priority[pod], -self._run_s[pod]))
        return Candidate(node, victims, violations)

    def _least_allocated(self, c: int) -> int:
        """The node where a pod of class c leaves the largest share free; NOWHERE: it fits on none."""
        load = self._load
        left = self._free - load.waiting_requests[c]
        nodes = np.flatnonzero(load.suitable[c] & (left >= 0).all(axis=1))
        if not len(nodes):
            return NOWHERE
        return int(nodes[np.argmax((left[nodes] / load.allocatable[nodes]).mean(axis=1))])

    def _evict(self, chosen: Candidate) -> None:
        self._evicted[chosen.victims] = True
        for pod in chosen.victims:
            self._on_node[chosen.node].remove(pod)
            self._free[chosen.node] += self._load.requests[pod]
            if self._budget[pod] >= 0:
                self._allowed[self._budget[pod]] = max(self._allowed[self._budget[pod]] - 1, 0)
            for level, below in self._below.items():
                if self._priority[pod] < level:
                    below[chosen.node] -= self._load.requests[pod]


def best_candidate(candidates: list[Candidate], priority: list[int], run_s: list[int]) -> Candidate:
    """The first with the fewest violations of budgets, then the lowest of the highest priorities, then the lowest sum
    of priorities, then the fewest victims, then those that started last: the longest run time counts, of the victims of
    the highest priority. priority, run_s: of each pod."""

    def cost(candidate: Candidate) -> tuple[int, int, int, int, int]:
        highest = priority[candidate.victims[0]]
        return (
            candidate.violations,
            highest,
            sum(priority[pod] + _LIFT for pod in candidate.victims),
            len(candidate.victims),
            max(run_s[pod] for pod in candidate.victims if priority[pod] == highest),
        )

    return min(candidates, key=cost)

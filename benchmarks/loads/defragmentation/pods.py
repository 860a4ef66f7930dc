"""Clusters of pods that may move, some of them guarded by disruption budgets, and outcomes of moves.

`underused`: many nodes are nearly empty, and fewer nodes could run all. `scattered`: GPUs are free, but on too many
nodes, and pods wait that need several on one node.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, Bools

NOWHERE = -1
UNGUARDED = -1

_SHAPES = np.array([(250, 512), (500, 1024), (500, 2048), (1000, 2048), (1000, 4096), (2000, 8192)], np.int64)
_NODE = (16_000, 65_536)
"""Millicores, MiB."""
_EMPTIEST, _FULLEST = 0.03, 0.7
"""Shares of the cpu or memory, whichever is scarcer, that the pods of a node request."""

_GPUS = 8
_GPU_SHAPES, _GPU_SHARES = (1, 2, 4), (0.6, 0.25, 0.15)
_GUARDED = 0.6
_BUDGETS = 12
_ALLOWED = (0, 1, 2, 5)


@dataclass(frozen=True, slots=True)
class Pods:
    """N nodes, P running pods, the oldest first, W waiting pods, R resources, B budgets.

    allocatable (N, R), node (P,), requests (P, R); budget (P,): the one that guards each, UNGUARDED: none. allowed
    (B,): evictions that each permits before the successors of evicted pods run. waiting (W, R): requests.
    """

    allocatable: I64
    node: I64
    requests: I64
    budget: I64
    allowed: I64
    waiting: I64

    @classmethod
    def underused(cls, seed: int, nodes: int) -> Pods:
        """Nodes of 16 cores whose use is uniform between 3 and 70 %."""
        rng = np.random.default_rng(seed)
        allocatable = np.tile(np.array(_NODE, np.int64), (nodes, 1))
        shapes = _SHAPES[rng.integers(0, len(_SHAPES), (nodes, 64))]
        share = (shapes.cumsum(axis=1) / allocatable[:, None]).max(axis=2)
        chosen = share <= rng.uniform(_EMPTIEST, _FULLEST, nodes)[:, None]
        node = np.repeat(np.arange(nodes), chosen.sum(axis=1))
        return cls._guarded(rng, allocatable, node, shapes[chosen], np.zeros((0, 2), np.int64))

    @classmethod
    def scattered(cls, seed: int, nodes: int, used: float, waiting: int, each: int) -> Pods:
        """Nodes of 8 GPUs, a share `used` of which pods of 1, 2 and 4 use on random nodes, and pods of `each`."""
        rng = np.random.default_rng(seed)
        free = np.full(nodes, _GPUS)
        node: list[int] = []
        gpus: list[int] = []
        while sum(gpus) < used * nodes * _GPUS:
            size = int(rng.choice(_GPU_SHAPES, p=_GPU_SHARES))
            if not len(fits := np.flatnonzero(free >= size)):
                continue
            node.append(int(rng.choice(fits)))
            gpus.append(size)
            free[node[-1]] -= size
        asked = np.full((waiting, 1), each, np.int64)
        allocatable = np.full((nodes, 1), _GPUS, np.int64)
        return cls._guarded(rng, allocatable, np.array(node, np.int64), np.array(gpus, np.int64)[:, None], asked)

    @classmethod
    def _guarded(cls, rng: np.random.Generator, allocatable: I64, node: I64, requests: I64, waiting: I64) -> Pods:
        """Three fifths of the pods have one of twelve budgets; pods are of any age."""
        order = rng.permutation(len(node))
        guarded = rng.random(len(node)) < _GUARDED
        budget = np.where(guarded, rng.integers(0, _BUDGETS, len(node)), UNGUARDED)
        allowed = rng.choice(_ALLOWED, _BUDGETS).astype(np.int64)
        return cls(allocatable, node[order], requests[order], budget, allowed, waiting)

    @property
    def evictable(self) -> Bools:
        """(P,) pods whose budget, if any, permits evictions at all."""
        protected = np.append(self.allowed == 0, False)  # the last is that of UNGUARDED
        evictable: Bools = ~protected[self.budget]
        return evictable

    def free(self, node: I64, placed: I64) -> I64:
        """(N, R) what pods on nodes (P,), and waiting pods on nodes (W,), leave; NOWHERE: they use nothing."""
        free = self.allocatable.copy()
        for requests, on in ((self.requests, node), (self.waiting, placed)):
            np.subtract.at(free, on[on != NOWHERE], requests[on != NOWHERE])
        return free

    def unserved(self) -> I64:
        """(W,) NOWHERE for each waiting pod."""
        return np.full(len(self.waiting), NOWHERE)


@dataclass(frozen=True, slots=True)
class Run:
    """The outcome of a run. evictions (K, 3): cycle, pod, and the node where its successor runs, in order. In each
    cycle budgets permit as many evictions as at first, since the successors of the last cycle run. placed (W,): nodes
    of the waiting pods, NOWHERE: they wait."""

    evictions: I64
    placed: I64

    def nodes(self, load: Pods) -> I64:
        """(P,) where pods or their successors are in the end."""
        node = load.node.copy()
        node[self.evictions[:, 1]] = self.evictions[:, 2]  # the last counts
        return node

    def returned(self, load: Pods) -> int:
        """How many successors run on the node that their pod has left."""
        node, count = load.node.copy(), 0
        for _, pod, to in self.evictions.tolist():
            count += int(node[pod] == to)
            node[pod] = to
        return count

    def broken(self, load: Pods) -> int:
        """How many evictions exceed budgets."""
        cycle, budget = self.evictions[:, 0], load.budget[self.evictions[:, 1]]
        guarded = budget != UNGUARDED
        kinds, count = np.unique(np.column_stack([cycle, budget])[guarded], axis=0, return_counts=True)
        return int(np.maximum(count - load.allowed[kinds[:, 1]], 0).sum())

    def emptied(self, load: Pods) -> int:
        """How many nodes have lost all of their pods."""
        used = [
            np.bincount(on[on != NOWHERE], minlength=len(load.allocatable)) > 0 for on in (load.node, self.end(load))
        ]
        return int((used[0] & ~used[1]).sum())

    def end(self, load: Pods) -> I64:
        """(P + W,) nodes of all pods in the end."""
        return np.append(self.nodes(load), self.placed)

    def served(self) -> int:
        """How many of the waiting pods run."""
        return int((self.placed != NOWHERE).sum())

    def violations(self, load: Pods) -> list[str]:
        """What is wrong with it, budgets apart; empty: nothing."""
        found = []
        nodes = self.nodes(load)
        if (nodes < 0).any() or (nodes >= len(load.allocatable)).any():
            found.append("a pod is on no node")
        elif (load.free(nodes, self.placed) < 0).any():
            found.append("a node is over-committed")
        return found

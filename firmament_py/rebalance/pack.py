"""Moves after which more nodes are empty, or a task of some shape fits more often: an integer program.

On a large cluster only the nodes that promise most are considered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from firmament_py.eviction.clearing import clearing_costs
from firmament_py.model.arrays import I64, Bools, add_rows, distinct_rows
from firmament_py.model.constraints import NO_DEMAND
from firmament_py.model.plan import Win
from firmament_py.model.resources import TASK_SLOTS
from firmament_py.preemption.movable_tasks import Candidates
from firmament_py.rebalance.joining import Joining, Takes
from firmament_py.rebalance.moves import Gain, Moves
from firmament_py.rebalance.what_if import PlanError
from firmament_py.snapshot.snapshot import Snapshot
from firmament_py.state.cluster import ClusterState

_VARIABLES = 60_000
"""About so many integers are solved for: a few seconds."""

_LEAST_NODES = 100
_TREE_NODES = 20_000
_SECONDS = 20.0


def pack(
    state: ClusterState, snapshot: Snapshot, found: Candidates, shape: Mapping[str, int], moves: int, per_win: int
) -> Gain:
    """The best of at most so many moves of the tasks found. shape: requests of the task that should fit more often;
    empty: nodes should be empty. per_win: at most so many moves for each win, 0: any number. Raises PlanError if no
    node has a resource of the shape."""
    kind, requests, suitable = _alike(found)
    pieces = _Pieces.of(state, snapshot, found, shape)
    used = np.zeros_like(snapshot.free)
    add_rows(used, found.node, requests[kind])
    limit = max(_LEAST_NODES, _VARIABLES // max(len(requests), 1))
    chosen = pieces.promising(found, requests[kind], np.maximum(snapshot.free, 0) + used, limit)
    there = np.zeros((len(requests), len(snapshot.free)), np.int64)
    np.add.at(there, (kind, found.node), 1)
    joining = _joining(
        requests, suitable[:, chosen], there[:, chosen], snapshot.free[chosen], used[chosen], pieces, chosen
    )
    before = int(pieces.before[chosen].sum())
    joined = joining.best(moves, before, per_win, _TREE_NODES, _SECONDS)
    if joined is None:
        raise PlanError("no plan was found in time; give fewer --moves")
    shaped = len(requests), len(chosen)
    leave, arrive = joined.leave.reshape(shaped), joined.arrive.reshape(shaped)
    after = np.zeros_like(pieces.before)
    after[chosen[pieces.nodes_of(chosen)]] = joined.pieces
    gained = np.flatnonzero(after > pieces.before)
    picked, targets = _picked(found, kind, chosen, leave, arrive)
    win = np.full(len(snapshot.free), -1)
    win[gained] = np.arange(len(gained))
    order = np.lexsort((found.node[picked], leave.sum(axis=0)[np.searchsorted(chosen, found.node[picked])]))
    picked, targets = picked[order], targets[order]
    others = int(pieces.before.sum()) - before
    return Gain(
        Moves(
            tasks=found.row[picked],
            origins=snapshot.nodes[found.node[picked]],
            targets=snapshot.nodes[targets],
            saves=np.zeros(len(picked), np.int64),
            win=win[found.node[picked]],
        ),
        tuple(Win(state.nodes.id[int(snapshot.nodes[n])], int((after - pieces.before)[n])) for n in gained.tolist()),
        int(pieces.before.sum()),
        others + int(joined.pieces.sum()),
        joined.bound if len(chosen) == len(snapshot.free) else None,
    )


def _alike(found: Candidates) -> tuple[I64, I64, Bools]:
    """(M,) the kind of each task: those of equal requests that suit the same nodes; and requests (D, R), suitable
    (D, N) of each."""
    same = np.hstack([found.requests, np.packbits(found.suitable, axis=1)])
    first, kind = distinct_rows(same)
    return kind[found.kind], found.requests[first], found.suitable[first]


@dataclass(frozen=True, slots=True)
class _Pieces:
    """What should fit: asked (N, R) by one piece on each node, 0 if it never fits there; number (N,) of pieces at most;
    before (N,); empty: whether a piece is a node without other tasks."""

    asked: I64
    number: I64
    before: I64
    empty: bool

    @classmethod
    def of(cls, state: ClusterState, snapshot: Snapshot, found: Candidates, shape: Mapping[str, int]) -> _Pieces:
        movable = np.zeros_like(snapshot.free)
        add_rows(movable, found.node, found.requests[found.kind])
        free = np.maximum(snapshot.free, 0)
        if not shape:
            tasks, nodes = state.tasks, snapshot.nodes
            there = tasks.on_nodes
            count = np.bincount(tasks.node[there & ~tasks.daemon], minlength=state.nodes.capacity)[nodes]
            possible = count == np.bincount(found.node, minlength=len(nodes))
            # what is left over whatever tasks request is no part of a piece: so the amounts of a row have a divisor
            unit = np.maximum(np.gcd.reduce(found.requests, axis=0), 1)
            asked = np.where(possible[:, None], (free + movable) // unit * unit, 0)
            return cls(asked, possible & asked.any(axis=1), (possible & (count == 0)).astype(np.int64), True)
        names = list(snapshot.resources)
        unknown = sorted(name for name in shape if name not in names)
        if unknown:
            raise PlanError(f"no node has {', '.join(unknown)}; correct --for")
        row = np.zeros(len(names), np.int64)
        for name, amount in {TASK_SLOTS: 1, **shape}.items():
            row[names.index(name)] = amount
        selected, taint = state.node_index.evaluate(NO_DEMAND, snapshot.nodes)
        open_to = selected & (taint < 0)
        before, number = (_fitting(row, amounts) * open_to for amounts in (free, free + movable))
        return cls(np.where((number > 0)[:, None], row, 0), number, before, False)

    def nodes_of(self, chosen: I64) -> I64:
        """Positions in chosen (K,) of the nodes that can have a piece."""
        return np.flatnonzero(self.number[chosen] > 0)

    def promising(self, found: Candidates, requests: I64, everything: I64, limit: int) -> I64:
        """(K,) nodes, ascending: at most `limit`, those where a piece costs the fewest moves and those with the most
        capacity that no piece uses. everything (N, R): free, without the tasks found, which request (M, R)."""
        count = len(everything)
        if count <= limit:
            return np.arange(count)
        by_node = np.lexsort((found.row, found.node))
        first, of_node = distinct_rows(self.asked)
        asked = self.asked[first]
        suitable = (of_node == np.arange(len(asked))[:, None]) & (self.number > self.before)
        cost = np.ones(len(found.row))
        clearing = clearing_costs(asked, suitable, found.node[by_node], requests[by_node], cost, everything)
        sources = np.argsort(clearing.min(axis=0), kind="stable")[: limit // 2]
        used = np.zeros_like(everything)
        add_rows(used, found.node, requests)
        left = everything - used - (0 if self.empty else self.before[:, None] * self.asked)
        useless = (left / np.maximum(everything.max(axis=0), 1)).min(
            axis=1, where=self._counted(everything), initial=1.0
        )
        useless[self.empty * self.before > 0] = 0.0
        targets = np.setdiff1d(np.argsort(-useless, kind="stable")[:limit], sources, assume_unique=True)
        by_use = targets[np.argsort(-useless[targets], kind="stable")]
        return np.sort(np.concatenate([sources, by_use[: limit - len(sources)]]))

    def _counted(self, everything: I64) -> Bools:
        """(R,) resources that limit pieces."""
        counted: Bools = np.asarray((self.asked > 0).any(axis=0) & (everything > 0).any(axis=0))
        return counted


def _fitting(row: I64, free: I64) -> I64:
    """(N,) how often requests (R,) fit into free (N, R)."""
    asked = row > 0
    often: I64 = (free[:, asked] // row[asked]).min(axis=1)
    return np.maximum(often, 0)


def _joining(requests: I64, suitable: Bools, there: I64, free: I64, used: I64, pieces: _Pieces, chosen: I64) -> Joining:
    """The program. requests (D, R), suitable (D, K), there (D, K), free (K, R), used (K, R) by tasks that may move."""
    kinds, resources = requests.shape
    nodes = len(chosen)
    d, n, r = np.nonzero(np.broadcast_to(requests[:, None, :] > 0, (kinds, nodes, resources)))
    capacity = np.maximum(free, 0) + used
    often = np.full((kinds, nodes), np.iinfo(np.int64).max)
    for k in range(kinds):
        often[k] = _fitting(requests[k], capacity)
    places = pieces.nodes_of(chosen)
    asked = pieces.asked[chosen[places]]
    p, q = np.nonzero(asked)
    clears = np.zeros((2, 0), np.int64)
    if pieces.empty:
        at, way = np.nonzero(there[:, places].T)
        clears = np.stack([at, way * nodes + places[at]])
    return Joining(
        free=np.maximum(free, 0).reshape(-1),
        kind=np.repeat(np.arange(kinds), nodes),
        ways=Takes(d * nodes + n, n * resources + r, requests[d, r]),
        there=there.reshape(-1),
        may_arrive=np.where(suitable, often, 0).reshape(-1),
        pieces=Takes(p, places[p] * resources + q, asked[p, q]),
        number=pieces.number[chosen[places]].astype(np.int64),
        clears=clears,
    )


def _picked(found: Candidates, kind: I64, chosen: I64, leave: I64, arrive: I64) -> tuple[I64, I64]:
    """Positions (M,) of the tasks that move, of each kind (D,) on each node those that cost least, and the nodes (M,)
    that they go to. leave, arrive (D, K): how many do."""
    by_cost = np.lexsort((found.row, found.cost, found.node, kind))
    place = kind[by_cost] * (int(found.node.max(initial=0)) + 1) + found.node[by_cost]
    number = np.arange(len(place)) - np.searchsorted(place, place)  # of each among those of its kind on its node
    at = np.full(int(found.node.max(initial=0)) + 1, -1)
    inside = chosen < len(at)
    at[chosen[inside]] = np.flatnonzero(inside)
    there = at[found.node[by_cost]]
    goes = (there >= 0) & (number < np.where(there >= 0, leave[kind[by_cost], there], 0))
    picked = by_cost[goes]
    to = np.repeat(np.tile(chosen, len(arrive)), arrive.reshape(-1))
    return picked, to

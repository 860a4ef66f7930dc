"""Keeps what queues used in the past up to date, and says what follows for shares and for the order of tasks.

`settle` is called before each change of the state: what tasks use is constant between two calls, so the means are
exact. Without a half-life nothing is kept.
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import F64, I64
from firmament_py.model.lifecycle import ASSUMED
from firmament_py.queues.past_use import decayed, newness, past_share, usage_score
from firmament_py.queues.past_use_table import CAPACITY, Column
from firmament_py.queues.tree import Queues
from firmament_py.sharing.use import QueueUse
from firmament_py.state.cluster import ClusterState

_SECOND_US = 1e6
_SKEW_US = 60_000_000
"""By how much clocks may differ: what was kept until a later time than this counts until now."""
_STEP, _LONGEST_S = 1 / 16, 60.0
"""Shares are divided again after this part of a half-life, and so many seconds at most."""


@dataclass(frozen=True, slots=True)
class Past:
    """Decayed means: queues (Q, V), without those below them; local_queues (L, V); offered (V,): what nodes offer."""

    queues: F64
    local_queues: F64
    offered: F64


def settle(state: ClusterState, now_us: int) -> None:
    """Counts what tasks have used since the last call; `now_us`: microseconds since the epoch."""
    tree, table = state.queues.tree, state.past_use
    if tree.usage_half_life_s <= 0.0:
        if table.at_us:
            table.clear()
        table.confirmed = []
        return
    confirmed = np.array(table.confirmed, np.uint64)
    elapsed_s = max(now_us - table.at_us, 0) / _SECOND_US if table.at_us else 0.0
    in_future = table.at_us > now_us + _SKEW_US
    if table.at_us and not (elapsed_s or in_future or len(confirmed)):
        return
    use = QueueUse(state)
    ids, columns = _keys(use.queues)
    rates = np.vstack([use.running(leaving=True), use.local_queues_running(), use.offered[None]])
    past = table.of(ids, columns)
    if elapsed_s or not table.at_us:
        past = decayed(past, rates, elapsed_s, tree.usage_half_life_s)
    if len(confirmed):
        rows = state.task_rows(confirmed)
        start = use.queues.count
        past = past.copy()
        past[start:-1] += _entry(use.queues) * use.of_local_queues(rows[rows >= 0])
    table.keep(max(now_us, min(table.at_us, now_us + _SKEW_US)), ids, columns, past)


def past_of(state: ClusterState, queues: Queues) -> Past | None:
    """Until the last call of `settle`; None: past use does not count. `queues`: those of the state, or completed."""
    if queues.tree.usage_half_life_s <= 0.0:
        return None
    ids, columns = _keys(queues)
    past = state.past_use.of(ids, columns)
    return Past(past[: queues.count], past[queues.count : -1], past[-1])


def shares_change_us(state: ClusterState, now_us: int) -> int:
    """When what was used counts noticeably less than at `now_us`, 0: never."""
    half_life_s = state.queues.tree.usage_half_life_s
    return now_us + round(_SECOND_US * min(max(half_life_s * _STEP, 1.0), _LONGEST_S)) if half_life_s > 0.0 else 0


def parts_of_capacity(queues: Queues, past: Past | None) -> F64 | None:
    """(Q, V) what queues and those below them used in the past, as a part of what nodes offered; None: it does not
    count."""
    return None if past is None else past_share(queues, past.queues, past.offered)


def local_scores(state: ClusterState, use: QueueUse, past: Past) -> F64:
    """(L,) by which local queues are served, the lowest first. Tasks that were placed, and are not confirmed, count as
    admitted."""
    queues, tasks = use.queues, state.tasks
    assumed = np.flatnonzero((tasks.state == ASSUMED) & (tasks.local_queue != 0))
    penalty: F64 = _entry(queues) * use.of_local_queues(assumed).astype(np.float64)
    return score(queues, past.local_queues, penalty, local_weights(queues))


def score(queues: Queues, used: F64, penalty: F64, weight: F64) -> F64:
    """(K,) weighted sums over resources of amounts (K, V), over weights (K,)."""
    shape = len(queues.flavors), len(queues.resources)
    by_resource = [each.reshape(len(each), *shape).sum(axis=1) for each in (used, penalty)]
    return usage_score(by_resource[0], by_resource[1], resource_weights(queues), weight)


def entry_scores(queues: Queues, request: I64, weight: F64) -> F64:
    """(K,) by how much the admission of requests (K, R) raises the scores of local queues of these weights (K,)."""
    entry: F64 = _entry(queues) * request.astype(np.float64)
    return usage_score(entry, np.zeros(request.shape), resource_weights(queues), weight)


def local_weights(queues: Queues) -> F64:
    """(L,)"""
    return np.array([each.weight for each in queues.tree.local_queues], np.float64)


def resource_weights(queues: Queues) -> F64:
    """(R,) what a unit of each resource counts."""
    weights = queues.tree.resource_weights
    return np.array([weights.get(resource, 1.0) for resource in queues.resources], np.float64)


def _entry(queues: Queues) -> float:
    """What part of its request the admission of a task counts."""
    return newness(queues.tree.usage_sampling_s, queues.tree.usage_half_life_s)


def _keys(queues: Queues) -> tuple[list[int], list[Column]]:
    ids = [queue.id for queue in queues.definitions] + [each.id for each in queues.tree.local_queues] + [CAPACITY]
    return ids, [(flavor, resource) for flavor in queues.flavors for resource in queues.resources]

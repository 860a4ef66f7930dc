"""What queues have and use, for status and inspection."""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import F64, I64, Bools
from firmament_py.model.events import PastUse
from firmament_py.model.lifecycle import WAITING
from firmament_py.queues.dominant import dominant_shares
from firmament_py.queues.past_use import past_total
from firmament_py.queues.quota import borrowed, capacity, counted_usage, total_usage
from firmament_py.queues.shares import fair_shares
from firmament_py.queues.tree import Queues
from firmament_py.sharing.past_use import Past, local_scores, parts_of_capacity, past_of
from firmament_py.sharing.use import QueueUse
from firmament_py.state.cluster import ClusterState


@dataclass(frozen=True, slots=True)
class LocalQueueReport:
    """L local queues. running, pending (L,): tasks; used, past (L, V): what tasks on nodes request, and what was used
    in the past; score (L,): by which they are served, the lowest first, 0 if past use does not count."""

    running: I64
    pending: I64
    used: I64
    past: F64
    score: F64


@dataclass(frozen=True, slots=True)
class QueueReport:
    """Q queues, each with those below it; V columns. running, pending, nominated (Q,): tasks. (Q, V): used, what tasks
    on nodes request; demand, what pending ones request, on the first flavor of the queue; borrowed, what is used beyond
    the nominal quota and that of queues below; fair, the share of each. share (Q,): dominant share of what is borrowed,
    in thousandths by weight; past, what was used in the past. shown (Q, V): what a description states, or tasks use or
    request of what any states; of all resources if none states any."""

    queues: Queues
    running: I64
    pending: I64
    nominated: I64
    used: I64
    demand: I64
    borrowed: I64
    fair: I64
    share: F64
    past: F64
    shown: Bools
    local_queues: LocalQueueReport
    past_use: PastUse | None
    """What a restarted engine is told; None: past use does not count."""


def queue_report(state: ClusterState) -> QueueReport:
    use, tasks = QueueUse(state), state.tasks
    queues = use.queues
    queued = np.flatnonzero(tasks.queue != 0)
    queue = use.queue_of(queued)
    queued, queue = queued[queue >= 0], queue[queue >= 0]
    waits = tasks.state[queued] == WAITING
    nominated = tasks.nominated[queued] >= 0
    own, quota = use.running(leaving=True), capacity(queues)
    demand = use.demand()
    used, requested = total_usage(queues, own), total_usage(queues, demand)
    stated = _stated(queues, state.queues)
    past = past_of(state, queues)
    relevant = stated.any(axis=0) | (not stated.any())
    return QueueReport(
        queues=queues,
        running=_counts(queues, queue[tasks.node[queued] >= 0]),
        pending=_counts(queues, queue[waits]),
        nominated=_counts(queues, queue[nominated]),
        used=used,
        demand=requested,
        borrowed=borrowed(queues, quota, own),
        fair=fair_shares(queues, use.offered, own + demand, parts_of_capacity(queues, past)),
        share=dominant_shares(queues, quota, counted_usage(queues, quota, own)).ratio / np.maximum(queues.weight, 1e-9),
        past=np.zeros(used.shape) if past is None else past_total(queues, past.queues),
        shown=stated | (((used > 0) | (requested > 0)) & relevant),
        local_queues=_local_queues(state, use, past),
        past_use=None if past is None else state.past_use.value(),
    )


def _local_queues(state: ClusterState, use: QueueUse, past: Past | None) -> LocalQueueReport:
    tasks, count = state.tasks, len(use.queues.tree.local_queues)
    rows = np.flatnonzero(tasks.local_queue)
    local = use.local_queue_of(rows)
    rows, local = rows[local >= 0], local[local >= 0]
    used = use.local_queues_running()
    return LocalQueueReport(
        running=np.bincount(local[tasks.node[rows] >= 0], minlength=count),
        pending=np.bincount(local[tasks.state[rows] == WAITING], minlength=count),
        used=used,
        past=np.zeros(used.shape) if past is None else past.local_queues,
        score=np.zeros(count) if past is None else local_scores(state, use, past),
    )


def _stated(queues: Queues, described: Queues) -> Bools:
    """(Q, V) of which amounts the descriptions have a quota; both have the same rows."""
    stated = np.zeros(queues.nominal.shape, np.bool_)
    for row, definition in enumerate(described.definitions):
        columns = [queues.column(quota.flavor, quota.resource) for quota in definition.quotas]
        stated[row, columns] = True
    return stated


def _counts(queues: Queues, queue: I64) -> I64:
    """(Q,) how many of `queue` (K,) are of each, or below it."""
    counts = np.bincount(queue, minlength=queues.count).astype(np.int64)
    for level in reversed(queues.levels):
        np.add.at(counts, level.parents, counts[level.rows])
    return counts

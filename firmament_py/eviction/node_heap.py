"""A binary heap of nodes by cost; of those that cost the same the first comes first."""

from firmament_py.model.arrays import F64, I64
from firmament_py.numba_cache import inner


@inner
def build(heap: I64, cost: F64) -> None:
    """Orders the nodes in the heap (N,), all of them in any order, by cost (N,)."""
    for i in range(len(heap) // 2 - 1, -1, -1):
        sift_down(heap, cost, i)


@inner
def sift_down(heap: I64, cost: F64, i: int) -> None:
    """Restores the order after the cost of the node at i, 0 being the top, has risen."""
    n = heap[i]
    while True:
        child = 2 * i + 1
        if child >= len(heap):
            break
        if child + 1 < len(heap) and _comes_first(heap[child + 1], heap[child], cost):
            child += 1
        if not _comes_first(heap[child], n, cost):
            break
        heap[i] = heap[child]
        i = child
    heap[i] = n


@inner
def _comes_first(n: int, other: int, cost: F64) -> bool:
    return bool(cost[n] < cost[other] or (cost[n] == cost[other] and n < other))

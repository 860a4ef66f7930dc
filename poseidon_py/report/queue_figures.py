"""What the metrics show of queues, from what the engine reports of them and their descriptions. Pure."""

import math
from collections.abc import Callable, Collection, Iterator, Sequence

from poseidon_py.describe.queues.model import Queue, Tree
from poseidon_py.kube.quantity import CPU
from poseidon_py.metrics.queue_metrics import FlavorFigures, KueueFigures, QueueFigures
from poseidon_py.report.queue_amounts import QueueAmount, QueueAmounts, share_of
from poseidon_py.report.queue_types import type_of

_MILLI = 1000.0
_OF_KUEUE = ("clusterqueue", "cohort")
"""Kinds in keys of queues."""


def figures_of(tree: Tree, amounts: QueueAmounts, taking: Collection[int]) -> Iterator[QueueFigures]:
    """`taking`: the ids of queues that take pods."""
    by_key = {queue.key: queue for queue in tree.queues}
    for queue in tree.queues:
        state = amounts.states.get(queue.id)
        if state is None:
            continue
        of = amounts.of(queue.id)
        yield QueueFigures(
            queue.name,
            type_of(queue.key),
            state.pending,
            state.running,
            share_of(state),
            _sums(of, lambda each: each.used),
            _sums(of, lambda each: each.guarantee),
            _sums(of, lambda each: each.borrowed),
            _of_kueue(queue, by_key, of, queue.id in taking),
        )


def _of_kueue(
    queue: Queue, by_key: dict[str, Queue], amounts: Sequence[QueueAmount], active: bool
) -> KueueFigures | None:
    kind = queue.key.partition("/")[0]
    if kind not in _OF_KUEUE:
        return None
    parent = root = by_key.get(queue.parent)
    while root is not None and root.parent in by_key:
        root = by_key[root.parent]
    used = {(each.flavor, each.resource): each.used for each in amounts}
    flavors = tuple(
        FlavorFigures(
            each.flavor,
            each.resource,
            _scaled(each.resource, used.get((each.flavor, each.resource), 0)),
            _scaled(each.resource, each.nominal),
            _scaled(each.resource, each.borrowing_limit),
            _scaled(each.resource, each.lending_limit),
        )
        for each in queue.quotas
        if kind == "clusterqueue" and not each.implied
    )
    top = root.name if root is not None else queue.name if kind == "cohort" else ""
    return KueueFigures(parent.name if parent is not None else "", top, active, flavors)


def _sums(amounts: Sequence[QueueAmount], field: Callable[[QueueAmount], int | None]) -> dict[str, float]:
    """The amounts of all flavors together, by resource; infinite: without a limit."""
    sums: dict[str, float] = {}
    for each in amounts:
        sums[each.resource] = sums.get(each.resource, 0.0) + _scaled(each.resource, field(each))
    return sums


def _scaled(resource: str, amount: int | None) -> float:
    """Cores, bytes, pieces; None: infinite."""
    if amount is None:
        return math.inf
    return amount / _MILLI if resource == CPU else float(amount)

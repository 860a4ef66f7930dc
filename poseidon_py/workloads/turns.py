"""Which suspended workloads are resumed: queue by queue, in the order of priority and age. Pure.

Pods of resumed workloads wait in their queue like all others, and its rules decide. So that thousands of workloads do
not become pods long before there is quota for them, only a bounded number of pods of a queue is pending at a time.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class SuspendedWorkload(NamedTuple):
    """A workload that waits for its turn."""

    uid: str
    queue: int
    """Id; 0: none."""
    priority: int
    created_us: int
    pods: int
    """That it will have at a time."""


class PendingPods(NamedTuple):
    """Those of a queue, with those that resumed workloads are about to have."""

    pods: int = 0
    priority: int = -(2**31)
    """The highest."""


def turns(
    waiting: Iterable[SuspendedWorkload], pending: Mapping[int, PendingPods], limit: int
) -> list[SuspendedWorkload]:
    """The workloads that are resumed now, in this order. `limit`: pods of a queue that are pending at a time.

    A workload that is larger than the limit is resumed once nothing is pending. One of a higher priority than all that
    is pending does not wait. None overtakes another one of its queue, so that none starves. Without a queue nothing
    waits.
    """
    found: list[SuspendedWorkload] = []
    now = dict(pending)
    closed: set[int] = set()
    for each in sorted(waiting, key=lambda each: (-each.priority, each.created_us, each.uid)):
        before = now.get(each.queue, PendingPods())
        if each.queue:
            in_turn = not before.pods or before.pods + each.pods <= limit or each.priority > before.priority
            if each.queue in closed or not in_turn:
                closed.add(each.queue)
                continue
            now[each.queue] = PendingPods(before.pods + each.pods, max(before.priority, each.priority))
        found.append(each)
    return found

"""What a scheduler is in a replay: it learns what changes, and acts on the cluster."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Protocol

from benchmarks.loads.openi.cluster import Cluster, State


class Timeline:
    """Completions and deadlines, in virtual time."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, str, int, int]] = []

    def at(self, time_us: int, what: str, job: int, attempt: int) -> None:
        heapq.heappush(self._heap, (time_us, what, job, attempt))

    @property
    def next_us(self) -> int | None:
        return self._heap[0][0] if self._heap else None

    def pop(self) -> tuple[int, str, int, int]:
        return heapq.heappop(self._heap)


class Scheduler(Protocol):
    """Acts on the cluster that it was created for. Jobs are numbers."""

    every_us: int
    """Least time between two rounds, unless an urgent job arrives or what it has put on the timeline is due."""

    def arrived(self, jobs: Sequence[int]) -> None: ...
    def ended(self, jobs: Sequence[int]) -> None: ...

    def due(self, what: str, job: int) -> None:
        """A time that it has put on the timeline has come; the job has not been interrupted since then."""
        ...

    def round(self) -> int | None:
        """Decides and acts. When the next round is due if nothing changes before; None: none is."""
        ...


def replay(cluster: Cluster, timeline: Timeline, scheduler: Scheduler, end_us: int) -> None:
    """Events and rounds until the end."""
    arrivals, arrived = cluster.load.arrival_us.tolist(), 0
    urgent = cluster.measures.urgent.tolist()
    next_round_us, changed = 0, False
    wake_us: int | None = None
    while True:
        times = [timeline.next_us, arrivals[arrived] if arrived < len(arrivals) else None]
        times.append(max(next_round_us, cluster.now_us) if changed else wake_us)
        now_us = min((time for time in times if time is not None), default=end_us + 1)
        if now_us > end_us:
            break
        cluster.advance(now_us)
        ended = []
        while timeline.next_us is not None and timeline.next_us <= now_us:
            _, what, job, attempt = timeline.pop()
            if cluster.attempt[job] != attempt or cluster.state[job] != State.RUNNING:
                continue
            if what == "end":
                cluster.end(job)
                ended.append(job)
            else:
                scheduler.due(what, job)
                changed, next_round_us = True, now_us
        if ended:
            scheduler.ended(ended)
        first = arrived
        while arrived < len(arrivals) and arrivals[arrived] <= now_us:
            cluster.arrive(arrived)
            arrived += 1
        if arrived > first:
            scheduler.arrived(range(first, arrived))
            if any(urgent[first:arrived]):
                next_round_us = now_us
        changed |= bool(ended) or arrived > first or (wake_us is not None and wake_us <= now_us)
        if changed and now_us >= next_round_us:
            changed, next_round_us = False, now_us + scheduler.every_us
            wake_us = scheduler.round()
            wake_us = None if wake_us is None else max(wake_us, next_round_us)
    cluster.advance(end_us)

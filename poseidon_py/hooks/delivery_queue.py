"""The order of the deliveries of one hook, without I/O.

Records are sent one after the other within a job, and in any order between jobs. A job is in one of three states: its
first record may be sent now (ready), later (waiting), or is being sent (in flight).

    add -> ready <-> waiting         take: ready -> in flight
             ^          ^            sent: in flight -> ready, with the next record
             +- in flight            retry: in flight -> waiting, with the same one
"""

import heapq
from collections import deque
from itertools import count

from poseidon_py.hooks.records import Record


class DeliveryQueue:
    """Times are those of a monotonic clock, in seconds."""

    def __init__(self) -> None:
        self._jobs: dict[str, deque[Record]] = {}
        self._ready: deque[str] = deque()
        self._waiting: list[tuple[float, int, str]] = []
        self._in_flight: set[str] = set()
        self._discarded: set[str] = set()
        self._numbers = count()
        self._paused_until = 0.0

    def __len__(self) -> int:
        """Records, without discarded ones."""
        return sum(map(len, self._jobs.values())) - len(self._discarded)

    def add(self, record: Record, due: float = 0.0) -> None:
        """Put a record behind those of its job. `due`: not before this time, if it is the first one."""
        records = self._jobs.setdefault(record.order, deque())
        records.append(record)
        if len(records) == 1:
            self._schedule(record.order, due)

    def discard(self, record: Record) -> None:
        """Never send a record that is queued and not in flight."""
        self._discarded.add(record.key)

    def take(self, now: float) -> Record | None:
        """The next record to send, which is in flight from now on; None: there is none yet."""
        if now < self._paused_until:
            return None
        while self._waiting and self._waiting[0][0] <= now:
            self._ready.append(heapq.heappop(self._waiting)[2])
        while self._ready:
            job = self._ready.popleft()
            records = self._jobs[job]
            while records and records[0].key in self._discarded:
                self._discarded.discard(records.popleft().key)
            if records:
                self._in_flight.add(job)
                return records[0]
            del self._jobs[job]
        return None

    def sent(self, record: Record) -> None:
        """The record needs no further attempt; the next one of its job is ready."""
        job = record.order
        self._in_flight.remove(job)
        records = self._jobs[job]
        records.popleft()
        if records:
            self._schedule(job, 0.0)
        else:
            del self._jobs[job]

    def retry(self, record: Record, due: float) -> None:
        """The record is sent again, not before `due`."""
        self._in_flight.remove(record.order)
        self._schedule(record.order, due)

    def pause(self, until: float) -> None:
        """Send nothing before that time."""
        self._paused_until = max(self._paused_until, until)

    def in_flight(self, record: Record) -> bool:
        return record.order in self._in_flight and self._jobs[record.order][0] is record

    def next_due(self) -> float | None:
        """The time at which `take` may have a record; None: not before `add`, `sent` or `retry`."""
        if self._ready:
            return self._paused_until
        return max(self._waiting[0][0], self._paused_until) if self._waiting else None

    def _schedule(self, job: str, due: float) -> None:
        if due > 0:
            heapq.heappush(self._waiting, (due, next(self._numbers), job))
        else:
            self._ready.append(job)

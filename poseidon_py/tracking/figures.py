"""Statistics that can be added up: of tasks, jobs, queues and users."""

import math
from collections.abc import Iterable, Mapping

BUCKETS = tuple(2.0 ** (exponent / 2) for exponent in range(45))
"""Upper bounds of the buckets of durations in seconds: 1 to 4,194,304 (48 days), by factors of the square root of 2."""
_LN = 2 / math.log(2)

Requests = tuple[tuple[str, float], ...]
"""Resources and amounts: cores, bytes, pieces."""


class Durations:
    """A histogram of durations that merges exactly; memory only for buckets in use."""

    __slots__ = ("count", "counts", "largest", "sum")

    def __init__(self) -> None:
        self.count = 0
        self.sum = 0.0
        self.largest = 0.0
        self.counts: dict[int, int] = {}
        """Position in BUCKETS -> number; len(BUCKETS): longer ones."""

    def add(self, seconds: float) -> None:
        at = 0 if seconds <= 1.0 else min(math.ceil(math.log(seconds) * _LN - 1e-9), len(BUCKETS))
        self.counts[at] = self.counts.get(at, 0) + 1
        self.count += 1
        self.sum += seconds
        self.largest = max(self.largest, seconds)

    def merge(self, other: "Durations") -> None:
        for at, count in other.counts.items():
            self.counts[at] = self.counts.get(at, 0) + count
        self.count += other.count
        self.sum += other.sum
        self.largest = max(self.largest, other.largest)

    @property
    def mean(self) -> float | None:
        """None: there are none."""
        return self.sum / self.count if self.count else None

    def quantile(self, share: float) -> float | None:
        """The least bound of a bucket, or the largest duration if that is less, that this share does not exceed: at
        most the square root of 2 too large. None: there are none."""
        if not self.count:
            return None
        rank, seen = math.ceil(share * self.count), 0
        for at in sorted(self.counts):
            seen += self.counts[at]
            if seen >= rank:
                return min(BUCKETS[at], self.largest) if at < len(BUCKETS) else self.largest
        return self.largest


class Figures:
    """Counts and sums since they began. Times in seconds."""

    __slots__ = (
        "created", "deleted", "evicted", "failed", "lost", "migrated", "preempted", "resource_seconds", "retries",
        "run", "succeeded", "waits",
    )  # fmt: skip

    COUNTS = ("created", "succeeded", "failed", "evicted", "deleted", "preempted", "migrated", "retries")

    def __init__(self) -> None:
        self.created = 0
        """Of queues and users: those of them that were bound or are gone."""
        self.succeeded = 0
        self.failed = 0
        self.evicted = 0
        """With those preempted and migrated."""
        self.deleted = 0
        """Before they ended."""
        self.preempted = 0
        self.migrated = 0
        self.retries = 0
        """Pods that failed or were evicted, and after which others of their task were created."""
        self.waits = Durations()
        """From creation until bound."""
        self.run = 0.0
        """From the start until the end, of pods that ended or are gone."""
        self.lost = 0.0
        """Of evicted pods: from the start, or the last checkpoint, until the end."""
        self.resource_seconds: dict[str, float] = {}
        """From bound until the end, likewise."""

    def merge(self, other: "Figures") -> None:
        for name in (*self.COUNTS, "run", "lost"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.waits.merge(other.waits)
        for resource, amount in other.resource_seconds.items():
            self.resource_seconds[resource] = self.resource_seconds.get(resource, 0.0) + amount

    def occupied(self, seconds: float, requests: Requests) -> None:
        """A pod had its resources for that time."""
        sums = self.resource_seconds
        for resource, amount in requests:
            sums[resource] = sums.get(resource, 0.0) + amount * seconds


def merged(figures: Iterable[Figures]) -> Figures:
    """A new sum."""
    total = Figures()
    for each in figures:
        total.merge(each)
    return total


def as_json(figures: Figures) -> dict[str, object]:
    """Times in seconds; resources in cores, bytes, pieces."""
    waits = figures.waits
    return {
        **{name: getattr(figures, name) for name in Figures.COUNTS},
        "waits": {
            "count": waits.count,
            "mean": _rounded(waits.mean),
            "p50": _rounded(waits.quantile(0.5)),
            "p99": _rounded(waits.quantile(0.99)),
            "longest": _rounded(waits.largest) if waits.count else None,
            "buckets": {("inf" if at >= len(BUCKETS) else f"{BUCKETS[at]:.6g}"): waits.counts[at]
                        for at in sorted(waits.counts)},
        },
        "run_seconds": _rounded(figures.run),
        "lost_seconds": _rounded(figures.lost),
        "resource_seconds": _amounts(figures.resource_seconds),
    }  # fmt: skip


def _amounts(amounts: Mapping[str, float]) -> dict[str, float]:
    return {resource: round(amounts[resource], 3) for resource in sorted(amounts)}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)

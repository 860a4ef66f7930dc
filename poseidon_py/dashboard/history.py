"""What was: the last rounds and evictions, and totals over time. All of it is bounded, in memory alone, and begins with
the process."""

import itertools
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from poseidon_py.app.status import round_json
from poseidon_py.preempt.decisions import Decisions
from protos.gen import flow_pb2

Json = dict[str, Any]

ROUNDS = 1000
EVICTIONS = 500
SERIES = 2000
"""Lines over time at most; further ones are left out, and counted."""
FINE_SECONDS, FINE_SAMPLES = 10.0, 360
"""The last hour."""
COARSE = 30
"""Samples that become one of the last week: five minutes."""
COARSE_SAMPLES = 2016


@dataclass(frozen=True, slots=True)
class EndedRound:
    """A round with pending pods."""

    number: int
    """Of this process, from 1."""
    call_seconds: float
    """Until the bridge had the reply."""
    stats: flow_pb2.RoundStats

    def json(self) -> Json:
        """With all figures."""
        return {"number": self.number, "call_seconds": self.call_seconds, **round_json(self.stats)}


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod that a round evicts, or takes back before it was bound."""

    at: float
    pod: str
    node: str
    how: str
    """preempted or moved."""
    needed_by: str
    """The pod that needs it to leave; empty: it costs less on the other node."""
    target: str
    """The other node of one that moves."""


class RoundHistory:
    """Listens to rounds (rounds/listener.py)."""

    def __init__(self) -> None:
        self._ended: deque[EndedRound] = deque(maxlen=ROUNDS)
        self._evictions: deque[Eviction] = deque(maxlen=EVICTIONS)
        self.count = 0
        """Rounds so far; the number of the last one."""

    def round_ended(self, stats: flow_pb2.RoundStats, seconds: float) -> None:
        self.count += 1
        self._ended.append(EndedRound(self.count, seconds, stats))

    def decided(self, decisions: Decisions) -> None:
        at = self._ended[-1].stats.started_us / 1e6 if self._ended else 0.0
        for victim in decisions.victims:
            pod = victim.known
            found = Eviction(at, pod.full_name, pod.node, "preempted", victim.preemptor.full_name, "")
            self._evictions.append(found)
        for move in decisions.migrations:
            pod = move.known
            self._evictions.append(Eviction(at, pod.full_name, pod.node, "moved", move.needed_by, move.target))

    def newest(self, limit: int, before: int = 0) -> list[EndedRound]:
        """The newest first; `before`: those with smaller numbers; 0: all."""
        found = (each for each in reversed(self._ended) if not before or each.number < before)
        return list(itertools.islice(found, limit))

    def since(self, number: int) -> list[EndedRound]:
        """Those after a number, the newest first."""
        return list(itertools.takewhile(lambda each: each.number > number, reversed(self._ended)))

    def evictions(self) -> list[Eviction]:
        """The newest first."""
        return list(reversed(self._evictions))


class Series:
    """Named values over time: one sample every ten seconds for an hour, one of five minutes for a week.

    A name that has no value at a time is None then. A coarse sample is the mean of its fine ones.
    """

    def __init__(self) -> None:
        self._fine = _Samples(FINE_SAMPLES)
        self._coarse = _Samples(COARSE_SAMPLES)
        self._collected: list[tuple[float, Mapping[str, float]]] = []
        self.left_out = 0
        """Names beyond the limit, in the last sample."""

    def add(self, at: float, values: Mapping[str, float]) -> None:
        """`at`: seconds since the epoch."""
        self.left_out = max(len(values) - SERIES, 0)
        if self.left_out:
            values = dict(itertools.islice(values.items(), SERIES))
        self._fine.add(at, values)
        self._collected.append((at, values))
        if len(self._collected) == COARSE:
            self._coarse.add(at, _means(each for _, each in self._collected))
            self._collected.clear()

    def json(self, *, fine: bool, prefix: str = "") -> Json:
        """{"times": [seconds since the epoch], "values": {name: [number or null]}} of the names with a prefix."""
        return (self._fine if fine else self._coarse).json(prefix)


class _Samples:
    def __init__(self, limit: int) -> None:
        self._samples: deque[tuple[float, Mapping[str, float]]] = deque(maxlen=limit)

    def add(self, at: float, values: Mapping[str, float]) -> None:
        self._samples.append((at, values))

    def json(self, prefix: str) -> Json:
        names = sorted({name for _, values in self._samples for name in values if name.startswith(prefix)})
        return {
            "times": [at for at, _ in self._samples],
            "values": {name: [values.get(name) for _, values in self._samples] for name in names},
        }


def _means(samples: Iterable[Mapping[str, float]]) -> dict[str, float]:
    sums: dict[str, tuple[float, int]] = {}
    for values in samples:
        for name, value in values.items():
            total, count = sums.get(name, (0.0, 0))
            sums[name] = total + value, count + 1
    return {name: total / count for name, (total, count) in sums.items()}

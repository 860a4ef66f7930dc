"""Faults on demand: slow answers, refusals, broken connections, lost answers, disturbed watches.

Deterministic: every decision comes from one seeded generator, in the order in which requests arrive. Rules
can be replaced at any time, from Python or by POST /_faults.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Rule:
    """Faults of requests with one of these verbs on one of these resources (empty: all).

    Rates are probabilities. Resources are plural names, with the subresource as in "pods/binding".
    """

    verbs: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    latency_ms: float = 0.0
    """Added to every answer."""
    latency_p99_ms: float = 0.0
    """If above `latency_ms`: the latency is log-normal with that median and this 99th percentile."""
    rate_429: float = 0.0
    rate_500: float = 0.0
    rate_503: float = 0.0
    rate_reset: float = 0.0
    """The connection breaks before the request is executed."""
    rate_lost: float = 0.0
    """The request is executed, then the connection breaks instead of an answer."""
    retry_after_s: int = 1
    """Of 429 and 503."""
    first: int = 0
    """If above 0, the rule ends after this number of hits."""


@dataclass(frozen=True)
class WatchFaults:
    """Faults of watches."""

    drop_every_s: float = 0.0
    """Break each watch after a random time of this mean; 0: never."""
    delay_ms: float = 0.0
    """Deliver changes this much later."""
    gone_as_status: bool = False
    """Answer a compacted version with HTTP 410 rather than with an ERROR event in the stream."""


@dataclass(frozen=True)
class Fate:
    """The faults of one request."""

    latency_s: float = 0.0
    code: int = 0
    retry_after_s: int = 1
    reset: bool = False
    lost: bool = False


NO_FAULT = Fate()
_Z99 = 2.3263478740408408  # 99th percentile of the standard normal distribution


@dataclass
class Faults:
    """The current rules, and counts of their hits."""

    seed: int = 0
    rules: list[Rule] = field(default_factory=list)
    watch: WatchFaults = field(default_factory=WatchFaults)
    counts: dict[str, int] = field(default_factory=dict)
    on_command: Callable[[str, Any], None] | None = None
    """Carries out one-off commands: `compact` and `drop_watches`."""

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._hits: dict[int, int] = {}

    def set(self, *rules: Rule, watch: WatchFaults | None = None) -> None:
        """Replace the rules (and the watch faults, if given)."""
        self.rules = list(rules)
        self._hits = {}
        if watch is not None:
            self.watch = watch

    def clear(self) -> None:
        """Remove all faults."""
        self.set(watch=WatchFaults())

    def fate(self, verb: str, resource: str) -> Fate:
        """Decide about one request: the first rule that matches and hits."""
        for at, rule in enumerate(self.rules):
            if (rule.verbs and verb not in rule.verbs) or (rule.resources and resource not in rule.resources):
                continue
            if rule.first and self._hits.get(at, 0) >= rule.first:
                continue
            fate = self._roll(rule)
            if fate is not NO_FAULT:
                self._hits[at] = self._hits.get(at, 0) + 1
                return fate
        return NO_FAULT

    def _roll(self, rule: Rule) -> Fate:
        roll = self._random.random()
        latency = rule.latency_ms
        if rule.latency_p99_ms > rule.latency_ms:
            sigma = math.log(rule.latency_p99_ms / max(rule.latency_ms, 0.001)) / _Z99
            latency = max(rule.latency_ms, 0.001) * math.exp(self._random.gauss(0.0, sigma))
        for rate, name, code in (
            (rule.rate_429, "429", 429),
            (rule.rate_500, "500", 500),
            (rule.rate_503, "503", 503),
            (rule.rate_reset, "reset", 0),
            (rule.rate_lost, "lost", 0),
        ):
            if roll < rate:
                self.counts[name] = self.counts.get(name, 0) + 1
                return Fate(latency / 1000, code, rule.retry_after_s, name == "reset", name == "lost")
            roll -= rate
        if latency <= 0:
            return NO_FAULT
        self.counts["latency"] = self.counts.get("latency", 0) + 1
        return Fate(latency / 1000)

    def watch_life_s(self) -> float:
        """The lifetime of the next watch."""
        mean = self.watch.drop_every_s
        return self._random.expovariate(1 / mean) if mean > 0 else math.inf

    def json(self) -> Json:
        """The rules and counts as JSON, for GET /_faults."""
        return {"rules": [asdict(rule) for rule in self.rules], "watch": asdict(self.watch), "counts": self.counts}

    def take(self, order: Any) -> None:
        """Apply the body of a POST /_faults. Raises ValueError for an invalid body, and changes nothing then."""
        if not isinstance(order, Mapping):
            raise ValueError("expected an object with any of: rules, watch, compact, drop_watches, clear")
        unknown = set(order) - {"rules", "watch", "compact", "drop_watches", "clear"}
        if unknown:
            raise ValueError(f"unknown key {sorted(unknown)[0]!r}: use rules, watch, compact, drop_watches, clear")
        rules = [_rule(given) for given in _list(order.get("rules", ()))]
        watch = WatchFaults(**_checked(WatchFaults, order["watch"])) if "watch" in order else None
        if order.get("clear"):
            self.clear()
        if "rules" in order:
            self.set(*rules)
        if watch is not None:
            self.watch = watch
        for command in ("compact", "drop_watches"):
            if order.get(command) and self.on_command is not None:
                self.on_command(command, order[command])


def _list(given: Any) -> Sequence[Any]:
    if not isinstance(given, (list, tuple)):
        raise ValueError("rules must be a list")
    return given


def _rule(given: Any) -> Rule:
    checked = _checked(Rule, given)
    for name in ("verbs", "resources"):
        if name in checked:
            if not isinstance(checked[name], list) or not all(isinstance(one, str) for one in checked[name]):
                raise ValueError(f"{name} must be a list of strings")
            checked[name] = tuple(checked[name])
    for name, value in checked.items():
        if name.startswith("rate_") and not 0 <= value <= 1:
            raise ValueError(f"{name} must be between 0 and 1")
    return Rule(**checked)


def _checked(type_: type[Rule] | type[WatchFaults], given: Any) -> Json:
    if not isinstance(given, Mapping):
        raise ValueError(f"expected an object, not {type(given).__name__}")
    defaults = {one.name: one.default for one in fields(type_)}
    for name, value in given.items():
        if name not in defaults:
            raise ValueError(f"unknown key {name!r}: use one of {', '.join(sorted(defaults))}")
        if isinstance(defaults[name], tuple):
            continue
        if isinstance(defaults[name], bool):
            if not isinstance(value, bool):
                raise ValueError(f"{name} must be true or false")
        elif isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
            raise ValueError(f"{name} must be a number, 0 or more")
        elif isinstance(defaults[name], int) and not isinstance(value, int):
            raise ValueError(f"{name} must be a whole number")
    return dict(given)

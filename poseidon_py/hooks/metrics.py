"""Prometheus metrics of hooks, in the registry of the process that has them."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5, 10, 20, 40, 80, 160, 320)


class HookMetrics:
    """All metrics of hooks."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        registry = registry or CollectorRegistry()
        self.registry = registry
        self.attempts = Counter(
            "poseidon_hook_attempts_total",
            "Attempts to deliver, by outcome: delivered, failed (to be repeated), dead (the last one, or permanent).",
            ("hook", "outcome"),
            registry=registry,
        )
        self.duration = Histogram(
            "poseidon_hook_attempt_duration_seconds",
            "Duration of attempts.",
            ("hook",),
            buckets=_SECONDS,
            registry=registry,
        )
        self.latency = Histogram(
            "poseidon_hook_delivery_latency_seconds",
            "Time from the report of a transition until its delivery was acknowledged.",
            ("hook",),
            buckets=_SECONDS,
            registry=registry,
        )
        self.pending = Gauge("poseidon_hook_pending", "Deliveries that wait.", ("hook",), registry=registry)
        self.oldest = Gauge(
            "poseidon_hook_oldest_pending_seconds",
            "Time since the report of the oldest delivery that waits; 0: none waits.",
            ("hook",),
            registry=registry,
        )
        self.dead = Gauge("poseidon_hook_dead_letters", "Dead letters.", ("hook",), registry=registry)
        self.overflow = Counter(
            "poseidon_hook_overflow_total",
            "Deliveries that became dead letters because too many were waiting.",
            ("hook",),
            registry=registry,
        )
        self.dropped = Counter(
            "poseidon_hook_dead_letters_dropped_total",
            "Dead letters that were dropped because there were too many.",
            ("hook",),
            registry=registry,
        )
        self.lost = Counter(
            "poseidon_hook_transitions_lost_total",
            "Transitions that were not taken: the hooks had been stopped, or the store could not be read for too long.",
            registry=registry,
        )
        self.writes = Counter(
            "poseidon_hook_store_writes_total", "Writes of the store by result.", ("result",), registry=registry
        )

    def watch(
        self, hook: str, pending: Callable[[], float], oldest: Callable[[], float], dead: Callable[[], float]
    ) -> None:
        """The gauges of a hook follow these functions."""
        self.pending.labels(hook).set_function(pending)
        self.oldest.labels(hook).set_function(oldest)
        self.dead.labels(hook).set_function(dead)
        for outcome in ("delivered", "failed", "dead"):
            self.attempts.labels(hook, outcome)
        self.overflow.labels(hook)
        self.dropped.labels(hook)

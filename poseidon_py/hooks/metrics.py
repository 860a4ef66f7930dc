"""Prometheus metrics of hooks, in the registry of the process that has them."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry

from poseidon_py.metrics.instruments import Instruments


class HookMetrics:
    """All metrics of hooks."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        make = Instruments(self.registry)
        self.attempts = make.counter("poseidon_hook_attempts_total")
        self.duration = make.histogram("poseidon_hook_attempt_duration_seconds")
        self.latency = make.histogram("poseidon_hook_delivery_latency_seconds")
        self.pending = make.gauge("poseidon_hook_pending")
        self.oldest = make.gauge("poseidon_hook_oldest_pending_seconds")
        self.dead = make.gauge("poseidon_hook_dead_letters")
        self.overflow = make.counter("poseidon_hook_overflow_total")
        self.dropped = make.counter("poseidon_hook_dead_letters_dropped_total")
        self.lost = make.counter("poseidon_hook_transitions_lost_total")
        self.writes = make.counter("poseidon_hook_store_writes_total")

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

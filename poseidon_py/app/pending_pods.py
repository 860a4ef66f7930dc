"""Counts pods and devices for metrics: pending pods by kube-scheduler's queues, and by what refuses them."""

from collections import Counter

from poseidon_py.app.devices.answers import count_devices
from poseidon_py.metrics.metrics import Metrics
from poseidon_py.report import plugins
from poseidon_py.state.pod_lifecycle import PodState
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store


def count_pods(store: Store, metrics: Metrics, now_us: int) -> None:
    """Sets the gauges. `now_us`: microseconds since the epoch."""
    queues = dict.fromkeys(("active", "backoff", "unschedulable", "gated"), 0)
    refused: Counter[tuple[str, str]] = Counter()
    on_nodes = assumed = invalid = 0
    for known in store.pods.values():
        observed = known.observed
        if known.node:
            on_nodes += 1
        elif known.state is PodState.ASSUMED:
            assumed += 1
        elif observed.scheduler and not observed.deleting:
            queue, by = _queue_of(known, now_us)
            queues[queue] += 1
            invalid += by == plugins.INVALID
            refused.update((plugin, observed.scheduler) for plugin in by)
    for queue, count in queues.items():
        metrics.pending.labels(queue).set(count)
    metrics.unschedulable.clear()
    for (plugin, profile), count in refused.items():
        metrics.unschedulable.labels(plugin, profile).set(count)
    metrics.devices.clear()
    for (driver, state), count in count_devices(store.devices.book).items():
        metrics.devices.labels(driver, state).set(count)
    nodes = len(store.nodes)
    for kind, count in (("nodes", nodes), ("pods", on_nodes + assumed), ("assumed_pods", assumed)):
        metrics.cache_size.labels(kind).set(count)
    waiting = sum(queues.values())
    metrics.former_pending.labels("active").set(waiting - queues["gated"] - invalid + assumed)
    metrics.former_pending.labels("gated").set(queues["gated"])
    metrics.former_pending.labels("invalid").set(invalid)
    metrics.former_pods.set(len(store.pods))
    metrics.former_nodes.set(nodes)


def _queue_of(known: PodRecord, now_us: int) -> tuple[str, tuple[str, ...]]:
    """The queue of a pending pod, and what refuses it."""
    if known.observed.gated:
        return "gated", ()
    if known.described.problem:
        return "unschedulable", plugins.INVALID
    if known.blocked:
        return "unschedulable", plugins.VOLUMES if known.volumes.blocked else plugins.DEVICE_CLAIMS
    if known.gang.blocked:
        return "unschedulable", plugins.GANG
    if known.not_before_us > now_us:
        return "backoff", ()
    if known.unschedulable_by:
        return "unschedulable", known.unschedulable_by
    return "active", ()

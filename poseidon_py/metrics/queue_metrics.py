"""Metrics of queues. The samples are made when they are asked for, from the newest figures."""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from poseidon_py.metrics.declarations import BOUND, OTHER
from poseidon_py.metrics.instruments import Samples

_LEADER = "leader"
"""The value of Kueue's label `replica_role`: only the leader has figures of queues."""
_DRS = 1000.0
"""Kueue has shares in thousandths."""
_BY_RESOURCE = ("used", "guaranteed", "borrowed")


@dataclass(frozen=True, slots=True)
class FlavorFigures:
    """One resource on the nodes of a flavor, as Kueue has it: cores, bytes, pieces; infinite: no limit."""

    flavor: str
    resource: str
    used: float
    nominal: float
    borrowing_limit: float
    lending_limit: float


@dataclass(frozen=True, slots=True)
class KueueFigures:
    """What Kueue's metrics show of a ClusterQueue or a Cohort beyond those of all queues. `flavors`: none of a Cohort;
    `root`: the topmost Cohort, empty: none."""

    parent: str
    root: str
    active: bool
    flavors: tuple[FlavorFigures, ...] = ()


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """Of one queue with those below it. `type`: the kind of object; amounts by resource: cores, bytes, pieces. `kueue`:
    None: it is no queue of Kueue, or Kueue's controller decides by it and has these metrics."""

    name: str
    type: str
    pending: int
    running: int
    share: float
    used: Mapping[str, float]
    guaranteed: Mapping[str, float]
    borrowed: Mapping[str, float]
    kueue: KueueFigures | None = None


class QueueMetrics(Collector):
    """`show` the figures of all queues."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._largest: list[QueueFigures] = []
        self._others: list[QueueFigures] = []
        registry.register(self)

    def show(self, figures: Iterable[QueueFigures]) -> None:
        """Replaces the figures. Of more than BOUND queues, those with the largest number of pods have a name, and the
        others are added up under that of OTHER, without those of Kueue."""
        ranked = heapq.nsmallest(len(all_of := list(figures)), all_of, key=_by_size)
        self._largest, self._others = ranked[:BOUND], ranked[BOUND:]

    def describe(self) -> list[Metric]:
        """Names of the metrics without figures."""
        return [samples.family() for samples in (*_samples().values(), *_kueue_samples().values())]

    def collect(self) -> list[Metric]:
        """The samples; called by the client library."""
        samples, of_kueue = _samples(), _kueue_samples()
        for figures, named in ((self._largest, True), (self._others, False)):
            for each in figures:
                of = (each.name if named else OTHER, each.type)
                for what in _BY_RESOURCE:
                    for resource, amount in getattr(each, what).items():
                        samples[what].add((*of, resource), amount)
                samples["pending_pods"].add(of, each.pending)
                samples["running_pods"].add(of, each.running)
                if named:  # shares do not add up
                    samples["share"].add(of, each.share)
                    if each.kueue is not None:
                        _add_kueue(of_kueue, each, each.kueue)
        return [each.family() for each in (*samples.values(), *of_kueue.values())]


def _by_size(figures: QueueFigures) -> tuple[int, str]:
    return -figures.running - figures.pending, figures.name


def _samples() -> dict[str, Samples]:
    names = (*_BY_RESOURCE, "pending_pods", "running_pods", "share")
    return {name: Samples(f"poseidon_queue_{name}") for name in names}


def _kueue_samples() -> dict[str, Samples]:
    of_queue = (
        "resource_usage",
        "nominal_quota",
        "borrowing_limit",
        "lending_limit",
        "weighted_share",
        "status",
        "info",
    )
    names = (*(f"cluster_queue_{name}" for name in of_queue), "cohort_weighted_share", "cohort_info")
    return {name: Samples(f"kueue_{name}") for name in names}


def _add_kueue(samples: dict[str, Samples], figures: QueueFigures, kueue: KueueFigures) -> None:
    name, share = figures.name, figures.share * _DRS
    if figures.type == "Cohort":
        samples["cohort_weighted_share"].add((name, _LEADER), share)
        samples["cohort_info"].add((name, kueue.parent, kueue.root, _LEADER), 1)
        return
    samples["cluster_queue_weighted_share"].add((name, kueue.parent, _LEADER), share)
    samples["cluster_queue_info"].add((name, kueue.parent, kueue.root, _LEADER), 1)
    for status in ("active", "pending"):
        samples["cluster_queue_status"].add((name, status, _LEADER), kueue.active == (status == "active"))
    for each in kueue.flavors:
        of = (kueue.parent, name, each.flavor, each.resource, _LEADER)
        samples["cluster_queue_resource_usage"].add(of, each.used)
        samples["cluster_queue_nominal_quota"].add(of, each.nominal)
        samples["cluster_queue_borrowing_limit"].add(of, each.borrowing_limit)
        samples["cluster_queue_lending_limit"].add(of, each.lending_limit)

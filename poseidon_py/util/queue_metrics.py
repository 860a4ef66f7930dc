"""Prometheus metrics of queues. The samples are made when they are asked for, from the newest figures."""

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

LARGEST = 1000
"""Queues that are shown: each is a value of labels, which cost memory in Prometheus."""
_OF_QUEUE = ("queue", "type")


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """Of one queue with those below it. `type`: the kind of object; amounts by resource: cores, bytes, pieces."""

    name: str
    type: str
    pending: int
    running: int
    share: float
    used: Mapping[str, float]
    guaranteed: Mapping[str, float]
    borrowed: Mapping[str, float]


class QueueMetrics(Collector):
    """`show` the figures of all queues."""

    def __init__(self, prefix: str, registry: CollectorRegistry) -> None:
        self._prefix = prefix
        self._shown: list[QueueFigures] = []
        registry.register(self)

    def show(self, figures: Iterable[QueueFigures]) -> None:
        """Replaces the figures. Of more than LARGEST queues, those with the largest number of pods are kept."""
        self._shown = heapq.nsmallest(LARGEST, figures, key=lambda each: (-each.running - each.pending, each.name))

    def describe(self) -> list[GaugeMetricFamily]:
        """Names of the metrics without figures."""
        return list(self._families())

    def collect(self) -> list[GaugeMetricFamily]:
        """The samples; called by the client library."""
        families = list(self._families())
        for each in self._shown:
            labels = (each.name, each.type)
            for family, amounts in zip(families, (each.used, each.guaranteed, each.borrowed), strict=False):
                for resource, amount in amounts.items():
                    family.add_metric((*labels, resource), amount)
            for family, value in zip(families[3:], (each.pending, each.running, each.share), strict=True):
                family.add_metric(labels, value)
        return families

    def _families(self) -> Iterator[GaugeMetricFamily]:
        for name, text in (
            ("used", "Requests of the pods of a queue that are on nodes: cores, bytes, pieces."),
            ("guaranteed", "Guaranteed amount of a queue: cores, bytes, pieces."),
            ("borrowed", "What the pods of a queue use above its guarantee: cores, bytes, pieces."),
        ):
            yield self._family(name, text, *_OF_QUEUE, "resource")
        yield self._family("pending_pods", "Pending pods of a queue.", *_OF_QUEUE)
        yield self._family("running_pods", "Pods of a queue that are on nodes.", *_OF_QUEUE)
        yield self._family("share", "Dominant share of what a queue borrows, by weight; 1: all.", *_OF_QUEUE)

    def _family(self, name: str, text: str, *labels: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"{self._prefix}queue_{name}", text, labels=labels)

"""Makes metrics from the table, and in no other way.

An open label, such as the name of a queue, has a bounded number of values in a process: what comes later counts as
OTHER, so that no user can fill the memory of Prometheus. Sums over the label stay right, and counters never fall.
"""

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from poseidon_py.metrics.declarations import OTHER, Declaration
from poseidon_py.metrics.table import TABLE

_Values = tuple[str, ...]


class BoundedLabels:
    """`limited` gives the values under which a sample counts."""

    def __init__(self, declared: Declaration) -> None:
        self._open = tuple(not label.values for label in declared.labels)
        self._seen: set[_Values] | None = set() if any(self._open) else None
        self._bound = declared.bound

    def limited(self, values: _Values) -> _Values:
        """`values`, in which those of open labels are OTHER if the bound is reached."""
        if self._seen is None:
            return values
        key = tuple(value for value, is_open in zip(values, self._open, strict=True) if is_open)
        if key not in self._seen:
            if len(self._seen) >= self._bound:
                return tuple(OTHER if is_open else value for value, is_open in zip(values, self._open, strict=True))
            self._seen.add(key)
        return values


class _Bounded(MetricWrapperBase):
    """A metric whose `labels` are bounded."""

    limits: BoundedLabels | None = None

    def labels(self, *labelvalues: Any, **labelkwargs: Any) -> Any:
        limits = self.limits
        if limits is not None:
            labelvalues = limits.limited(tuple(map(str, labelvalues)))
        return super().labels(*labelvalues, **labelkwargs)


class _Counter(_Bounded, Counter):
    pass


class _Gauge(_Bounded, Gauge):
    pass


class _Histogram(_Bounded, Histogram):
    pass


Made = TypeVar("Made", bound=MetricWrapperBase)


class Instruments:
    """Makes metrics in a registry. Raises KeyError for a name that is not in the table."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry

    def counter(self, name: str) -> Counter:
        return self._registered(_Counter, name)

    def gauge(self, name: str) -> Gauge:
        return self._registered(_Gauge, name)

    def histogram(self, name: str) -> Histogram:
        return self._registered(_Histogram, name, buckets=TABLE[name].buckets)

    def info(self, name: str) -> Info:
        """Its labels are those that its samples have."""
        return Info(TABLE[name].family, TABLE[name].meaning, registry=self.registry)

    def _registered(self, kind: type[Made], name: str, **options: Any) -> Made:
        declared = TABLE[name]
        if declared.type != kind.__name__.strip("_").lower():
            raise TypeError(f"{name} is declared as a {declared.type}")
        instrument = kind(declared.family, declared.meaning, declared.label_names, registry=self.registry, **options)
        if isinstance(instrument, _Bounded) and declared.labels:
            instrument.limits = BoundedLabels(declared)
        if declared.replaces:
            self.registry.register(_FormerNames(instrument, declared))
        return instrument


class Samples:
    """A metric whose samples are made when they are asked for. Values of equal labels are added."""

    def __init__(self, name: str, limits: BoundedLabels | None = None) -> None:
        """`limits`: those of a counter, which outlive the request."""
        self._declared = TABLE[name]
        self._limits = limits or BoundedLabels(self._declared)
        self._values: dict[_Values, float] = {}
        self._buckets: dict[_Values, tuple[list[tuple[str, float]], float]] = {}

    def add(self, values: Iterable[str], amount: float) -> None:
        key = self._limits.limited(tuple(values))
        self._values[key] = self._values.get(key, 0.0) + amount

    def add_buckets(self, values: Iterable[str], buckets: list[tuple[str, float]], total: float) -> None:
        """`buckets`: upper bounds and cumulative counts; `total`: the sum of what was measured."""
        key = self._limits.limited(tuple(values))
        if before := self._buckets.get(key):
            buckets = [(bound, so_far + n) for (bound, so_far), (_, n) in zip(before[0], buckets, strict=True)]
            total += before[1]
        self._buckets[key] = buckets, total

    def family(self) -> Metric:
        """For the client library."""
        declared = self._declared
        if declared.type == "histogram":
            histogram = HistogramMetricFamily(declared.family, declared.meaning, labels=declared.label_names)
            for key, (buckets, total) in self._buckets.items():
                histogram.add_metric(key, buckets, total)
            return histogram
        kind = CounterMetricFamily if declared.type == "counter" else GaugeMetricFamily
        family = kind(declared.family, declared.meaning, labels=declared.label_names)
        for key, value in self._values.items():
            family.add_metric(key, value)
        return family


class _FormerNames(Collector):
    """The samples of a metric under the names that it had before."""

    def __init__(self, current: MetricWrapperBase, declared: Declaration) -> None:
        self._current = current
        self._declared = declared

    def describe(self) -> list[Metric]:
        return [Metric(each.family, "", each.type) for each in self._declared.former]

    def collect(self) -> Iterator[Metric]:
        (family,) = self._current.collect()
        for former in self._declared.former:
            renamed = Metric(former.family, f"Deprecated, use {self._declared.name}. {former.meaning}", former.type)
            names = {*former.label_names, "le"}
            sums: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
            for sample in family.samples:
                suffix = sample.name.removeprefix(self._declared.family)
                if suffix != "_created":
                    key = suffix, tuple((name, value) for name, value in sample.labels.items() if name in names)
                    sums[key] = sums.get(key, 0.0) + sample.value
            for (suffix, values), total in sums.items():
                renamed.add_sample(former.family + suffix, dict(values), total)
            yield renamed

"""The table of metrics: by the rules of `promtool check metrics`, and as the processes export it."""

import ast
import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from poseidon_py.metrics.declarations import OTHER, Declaration, Exporter, Origin, Stability, catalogue, exponential
from poseidon_py.metrics.table import TABLE
from tests.paths import ROOT
from tests.poseidon_py.metrics.exported import families, of_jobs, of_scheduler

_UNITS = (
    "milliseconds|ms|microseconds|nanoseconds|minutes|hours|days|kilobytes|megabytes|kb|mb|gb|percent|millicores|sec"
)
_TYPES = "counter|gauge|histogram|summary|info_total"


@pytest.mark.parametrize("declared", TABLE.values(), ids=lambda each: each.name)
def test_a_declaration_passes_what_promtool_checks(declared: Declaration):
    name = declared.name
    assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)+", name)
    assert name.endswith("_total") == (declared.type == "counter")
    assert not name.endswith(("_bucket", "_count", "_sum", "_created"))
    assert not re.search(rf"_({_UNITS}|{_TYPES})(_|$)", name), "not a base unit, or a type in the name"
    assert declared.meaning.endswith(".")
    assert bool(declared.buckets) == (declared.type == "histogram")
    assert list(declared.buckets) == sorted(set(declared.buckets))
    assert not {"le", "quantile"} & set(declared.label_names)
    assert OTHER not in [value for label in declared.labels for value in label.values]


@pytest.mark.parametrize("declared", TABLE.values(), ids=lambda each: each.name)
def test_a_metric_is_named_after_whose_meaning_it_has(declared: Declaration):
    prefixes: dict[Origin, tuple[str, ...]] = {
        Origin.OWN: ("poseidon_",),
        Origin.KUBERNETES: ("scheduler_", "leader_election_"),
        Origin.KUEUE: ("kueue_",),
        Origin.PYTHON: ("process_", "python_", "poseidon_firmament_process_"),
    }
    assert declared.name.startswith(prefixes[declared.origin])
    assert (declared.stability is Stability.DEPRECATED) == bool(declared.instead)
    for instead in declared.instead.split(" and ") if declared.instead else ():
        family = instead.removesuffix("_count")
        assert TABLE[family].stability is not Stability.DEPRECATED


@pytest.mark.parametrize(("metrics", "other"), [(of_scheduler, Exporter.JOBS), (of_jobs, Exporter.SCHEDULER)])
def test_a_process_exports_its_metrics_and_no_others(metrics, other):
    declared = {each.family: each.type for each in TABLE.values() if each.exporter is not other}
    own = {
        name: kind for name, kind in declared.items() if not name.startswith(("process_", "poseidon_firmament_process"))
    }
    found = families(metrics())
    assert {name: kind for name, kind in found.items() if not name.startswith("process_")} == own
    assert {name for name in found if name.startswith("process_")} <= set(declared)


def test_an_exposition_is_valid_and_tells_each_metric_once():
    metrics = of_scheduler()
    metrics.attempts.labels("scheduled", "a").inc()
    names = [family.name for family in text_string_to_metric_families(metrics.exposition().decode())]
    assert len(names) == len(set(names)) > 60


def test_buckets_are_those_of_kube_scheduler():
    # ExponentialBuckets(0.001, 2, 15), (0.01, 2, 20), (1, 2, 5) and (1, 2, 7) in pkg/scheduler/metrics/metrics.go
    bounds = {
        name: (len(each.buckets), each.buckets[0], each.buckets[-1]) for name, each in TABLE.items() if each.buckets
    }
    assert bounds["scheduler_scheduling_attempt_duration_seconds"] == (15, 0.001, 16.384)
    assert bounds["scheduler_pod_scheduling_sli_duration_seconds"] == (20, 0.01, 5242.88)
    assert bounds["scheduler_pod_scheduling_attempts"] == (5, 1, 16)
    assert bounds["scheduler_preemption_victims"] == (7, 1, 64)
    assert exponential(0.001, 2, 3) == (0.001, 0.002, 0.004)


def test_two_metrics_cannot_have_one_name():
    with pytest.raises(ValueError, match="poseidon_x_total is declared twice"):
        catalogue(
            [Declaration("poseidon_x_total", "counter", "One.")], [Declaration("poseidon_x_total", "counter", "Two.")]
        )


def test_metrics_are_made_in_one_package():
    """So that none is missing in the table."""
    made = {"Counter", "Gauge", "Histogram", "Summary", "Info", "Enum", "CounterMetricFamily", "GaugeMetricFamily",
            "HistogramMetricFamily", "InfoMetricFamily", "SummaryMetricFamily"}  # fmt: skip
    calls = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for package in ("poseidon_py", "firmament_py", "policies")
        for path in (ROOT / package).rglob("*.py")
        if path.parent != ROOT / "poseidon_py" / "metrics" and "prometheus_client" in (text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in made
    ]
    assert calls == []

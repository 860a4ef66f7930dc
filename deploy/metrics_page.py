"""docs/metrics.md, from the table of metrics."""

from __future__ import annotations

from collections.abc import Iterator

from poseidon_py.metrics.declarations import BOUND, OF_RESOURCES, OTHER, Declaration, Exporter, Origin, Stability
from poseidon_py.metrics.table import SECTIONS

_HEAD = f"""# Metrics

<!-- Generated from poseidon_py/metrics/ by `make deploy`. -->

The secure port serves `/metrics` to users that RBAC allows to `get` that path ([by hand](operations.md)), the health
port to clients on the same machine. `serviceMonitor.enabled`, `grafanaDashboards.enabled` and
`prometheusRule.enabled` of the [chart](install.md) install what scrapes, shows and watches them. Seconds, bytes,
cores; counters end in `_total`.

**Names.** A metric that means the same as one of kube-scheduler or Kueue has its name, its labels and its buckets, so
that their dashboards work; select Poseidon's by `job`, or join them as the dashboards here do: `... and on
(namespace, pod) poseidon_build_info`. `profile` is the scheduler name of the pod. All others begin with `poseidon_`.

**Stability.** Metrics are stable unless the tables say *alpha*: a stable one keeps its name, type, labels and meaning
until a minor version changes that, and then its former name remains for one more minor version ([former
names](#former-names)).

**Bounds.** A label whose values the tables do not list is open. Together, the open labels of a metric have at most
{BOUND:,} combinations of values in a process ({OF_RESOURCES:,} for metrics by resource); whatever comes later counts
under `{OTHER}`, so that sums stay right and no number of queues, hooks or extended resources fills the memory of
Prometheus. Of the gauges of queues, those with the most pods keep their names. No metric has a label for pods, nodes,
namespaces, jobs or users.
"""
_NOT_EXPORTED = """## Not exported

These of kube-scheduler and Kueue would mean something else here:

| metric | why not | instead |
| --- | --- | --- |
| `scheduler_preemption_attempts_total` | a round considers all pods together, and tries none by itself | `scheduler_preemption_victims_count` |
| `scheduler_queue_incoming_pods_total` | pods are not moved between queues by events: a round considers all that wait | `scheduler_pending_pods`, `scheduler_schedule_attempts_total` |
| `scheduler_scheduling_algorithm_duration_seconds` | the algorithm runs for all pods of a round, not for each | `poseidon_round_duration_seconds` |
| `scheduler_framework_extension_point_duration_seconds`, `scheduler_plugin_execution_duration_seconds`, `scheduler_goroutines` | there are no plug-ins and no goroutines | `poseidon_round_stage_seconds` |
| `workqueue_*` | workers take batches of keys | `poseidon_workqueue_*` |
| `kueue_pending_workloads`, `kueue_admitted_workloads_total`, `kueue_admission_wait_time_seconds`, `kueue_evicted_workloads_total` | they count workloads; pods are counted here | `poseidon_queue_pending_pods`, `poseidon_queue_pod_wait_seconds`, `poseidon_queue_pod_events_total` |
"""  # noqa: E501
_EXPORTERS = {
    Exporter.SCHEDULER: "",
    Exporter.JOBS: "`poseidon jobs run` only",
    Exporter.BOTH: "also `poseidon jobs run`",
}


def metrics_page() -> str:
    lines = [_HEAD]
    for title, declared in SECTIONS.items():
        lines += [f"## {title}", "", "| metric | type | labels | meaning |", "| --- " * 4 + "|"]
        lines += [_row(each) for each in declared if each.stability is not Stability.DEPRECATED]
        lines.append("")
    lines += [
        "## Former names",
        "",
        "They go with the next minor version.",
        "",
        "| metric | labels | use |",
        "| --- " * 3 + "|",
    ]
    lines += [f"| `{each.name}` | {_labels(each)} | {_code(each.instead)} |" for each in _former()]
    lines += ["", _NOT_EXPORTED]
    return "\n".join(lines)


def _former() -> Iterator[Declaration]:
    for declared in (each for section in SECTIONS.values() for each in section):
        if declared.stability is Stability.DEPRECATED:
            yield declared
        yield from declared.former


def _row(declared: Declaration) -> str:
    notes = [
        "alpha" if declared.stability is Stability.ALPHA else "",
        f"as in {declared.origin}" if declared.origin in (Origin.KUBERNETES, Origin.KUEUE) else "",
        _EXPORTERS[declared.exporter],
        f"since {declared.since}" if declared.since != "0.1.0" else "",
    ]
    told = ", ".join(filter(None, notes))
    meaning = declared.meaning.replace("|", "\\|") + (f" *({told})*" if told else "")
    return f"| `{declared.name}` | {declared.type} | {_labels(declared)} | {meaning} |"


def _labels(declared: Declaration) -> str:
    return "; ".join(
        f"`{label.name}`" + (f": {', '.join(f'`{value}`' for value in label.values)}" if label.values else "")
        for label in declared.labels
    )


def _code(text: str) -> str:
    return " and ".join(f"`{name}`" for name in text.split(" and "))

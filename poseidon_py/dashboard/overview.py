"""/dashboard/api/overview: use, what waits and why, evictions, rounds.

{"at": seconds since the epoch, "survey": int
 "scheduler": {"version", "policy", "leading", "not_ready", "names", "server"}
 "nodes": int, "pods": {"placed", "pending", "leaving", "hidden"}     hidden: in namespaces that the asker may not see
 "resources": [{"resource", "used", "allocatable", "requested"}]      engine's units; requested: by pods that wait
 "pools": {"label": str, "labels": [str]
           "pools": [{"pool", "nodes", "pods", "resources": {resource: [used, allocatable]}}]}
 "pending": [{"waits", "text", "action", "pods", "oldest_seconds", "reasons": [{"message", "pods", "example"}]}]
 "waits": {"now": {"p50", "p95", "max"}, "until_bound": {"p50", "p95", "count"}}     seconds; null: there are none
 "evictions": {"totals": {what: {outcome: count}}, "recent": [...]}
 "rounds": {"count", "seconds": {"p50", "p95", "max"}, "gap": int, "last": {...} or null}
}
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from prometheus_client.metrics import MetricWrapperBase

from poseidon_py.app.serving.http_endpoints import first_problem
from poseidon_py.dashboard.history import RoundHistory
from poseidon_py.dashboard.node_labels import grouped, grouping_labels
from poseidon_py.dashboard.scope import Scope
from poseidon_py.dashboard.survey import NodeUse, Survey, Waiting
from poseidon_py.dashboard.wait_reasons import WAIT_REASONS
from poseidon_py.dashboard.watched import Watched
from poseidon_py.metrics.metrics import Metrics
from poseidon_py.state.records import PodRecord

Json = dict[str, Any]

_REASONS = 10
"""Of a verdict."""
_RECENT = 30
_POOL_LABELS = (
    "pool", "node-pool", "nodepool", "cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup",
    "karpenter.sh/nodepool", "kubernetes.azure.com/agentpool", "node.kubernetes.io/instance-type",
)  # fmt: skip
"""Labels that name pools of nodes, in the order in which one is taken if none is asked for."""


def overview_json(
    watched: Watched, survey: Survey, history: RoundHistory, scope: Scope, *, policy: str, label: str
) -> Json:
    """See the module. `label`: of nodes, by which pools are formed; empty: one that clusters use for that."""
    identity = watched.serves()
    return {
        "at": survey.at,
        "survey": survey.number,
        "scheduler": {
            "version": identity["version"],
            "server": identity["server"],
            "names": identity["scheduler_names"],
            "policy": policy,
            "leading": watched.leads,
            "not_ready": first_problem(watched.checks()),
        },
        "nodes": len(survey.nodes),
        "pods": {
            "placed": survey.placed,
            "pending": survey.pending,
            "leaving": survey.leaving,
            "hidden": sum(count for name, count in survey.namespaces.items() if not scope.shows(name)),
        },
        "resources": [
            {
                "resource": name,
                "used": used,
                "allocatable": allocatable,
                "requested": survey.requested.get(name, 0),
            }
            for name, (used, allocatable) in survey.totals().items()
        ],
        "pools": survey.derived(("pools", label), lambda: _pools(survey, label)),
        "pending": survey.derived("pending", lambda: pending_json(survey, scope))
        if scope.all
        else pending_json(survey, scope),
        "waits": {
            "now": survey.derived("waits", lambda: waits_now(survey)),
            "until_bound": until_bound(watched.metrics),
        },
        "evictions": evictions_json(watched.metrics, history, scope),
        "rounds": rounds_summary(history),
    }


def _pools(survey: Survey, label: str) -> Json:
    labels = survey.derived("labels", lambda: grouping_labels(survey.nodes.values()))
    chosen = label or next((each for each in _POOL_LABELS if each in labels), next(iter(labels), ""))
    groups = grouped(survey.nodes.values(), chosen)
    return {
        "label": chosen,
        "labels": list(labels),
        "pools": [{"pool": name, "nodes": len(nodes), **_use(nodes)} for name, nodes in groups.items()],
    }


def _use(nodes: Sequence[NodeUse]) -> Json:
    found: dict[str, list[int]] = {}
    for node in nodes:
        for resource, amount in node.allocatable.items():
            total = found.setdefault(resource, [0, 0])
            total[0] += node.used.get(resource, 0)
            total[1] += amount
    resources = {name: found[name] for name in sorted(found) if found[name][1]}
    return {"pods": sum(node.pods for node in nodes), "resources": resources}


def pending_json(survey: Survey, scope: Scope) -> list[Json]:
    """By reason, those that end by themselves first. Messages and examples are of pods that the asker may see."""
    by_reason: dict[str, list[Waiting]] = {}
    for group in survey.waiting.values():
        by_reason.setdefault(group.reason.key, []).append(group)
    found = []
    for wait_reason in WAIT_REASONS:
        groups = by_reason.get(wait_reason.key)
        if not groups:
            continue
        reasons = [reason for group in groups if (reason := _reason(group, scope)) is not None]
        reasons.sort(key=lambda each: (-each["pods"], each["message"]))
        found.append(
            {
                "waits": wait_reason.key,
                "text": wait_reason.text,
                "action": wait_reason.action,
                "pods": sum(len(group.pods) for group in groups),
                "oldest_seconds": max(_age(pod, survey.at) for group in groups for pod in group.pods),
                "reasons": reasons[:_REASONS],
                "more_reasons": len(reasons[_REASONS:]),
            }
        )
    return found


def _reason(group: Waiting, scope: Scope) -> Json | None:
    pods = group.pods if scope.all else [pod for pod in group.pods if scope.shows(pod.namespace)]
    if not pods:
        return None
    return {"message": group.message, "pods": len(pods), "example": min(pod.full_name for pod in pods)}


def _age(pod: PodRecord, at: float) -> int:
    return max(int(at - pod.created_us / 1e6), 0) if pod.created_us else 0


def waits_now(survey: Survey) -> Json | None:
    """How long pods have waited that still do."""
    ages = sorted(_age(pod, survey.at) for group in survey.waiting.values() for pod in group.pods)
    return {"p50": at_quantile(ages, 0.5), "p95": at_quantile(ages, 0.95), "max": ages[-1]} if ages else None


def at_quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that is at least as large as that share of the values. `ordered`: not empty."""
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]


def until_bound(metrics: Metrics) -> Json | None:
    """From when a pod could be scheduled until it was bound, interpolated within the buckets of the histogram."""
    counts: dict[float, float] = {}
    for sample in _samples(metrics.sli):
        if sample.name.endswith("_bucket"):
            bound = float(sample.labels["le"])
            counts[bound] = counts.get(bound, 0.0) + sample.value
    buckets = sorted(counts.items())
    if not buckets or not buckets[-1][1]:
        return None
    return {
        "p50": of_buckets(buckets, 0.5),
        "p95": of_buckets(buckets, 0.95),
        "count": int(buckets[-1][1]),
    }


def of_buckets(buckets: Sequence[tuple[float, float]], share: float) -> float:
    """A quantile of cumulative (upper bound, count), as Prometheus interpolates it."""
    target, below, low = share * buckets[-1][1], 0.0, 0.0
    for bound, count in buckets:
        if count >= target:
            if math.isinf(bound):
                return low
            return low + (bound - low) * (target - below) / (count - below) if count > below else bound
        below, low = count, bound
    return low


def _samples(metric: Any) -> Iterable[Any]:
    collected: Callable[[], Iterable[Any]] = metric.collect
    return (sample for family in collected() for sample in family.samples)


def evictions_json(metrics: Metrics, history: RoundHistory, scope: Scope) -> Json:
    """Totals by outcome, and the last ones that the asker may see."""
    counters: dict[str, MetricWrapperBase] = {
        "preempted": metrics.victims,
        "moved": metrics.migrations,
        "drained": metrics.drains,
        "suspended": metrics.suspensions,
    }
    totals: dict[str, dict[str, int]] = {}
    for what, counter in counters.items():
        by_outcome: dict[str, int] = {}
        for sample in _samples(counter):
            if sample.name.endswith("_total") and sample.value:
                outcome = sample.labels.get("outcome") or sample.labels.get("result") or "done"
                by_outcome[outcome] = by_outcome.get(outcome, 0) + int(sample.value)
        if by_outcome:
            totals[what] = dict(sorted(by_outcome.items()))
    recent = [each for each in history.evictions() if scope.shows_object(each.pod)]
    return {"totals": totals, "recent": [asdict(each) for each in recent[:_RECENT]]}


def rounds_summary(history: RoundHistory) -> Json:
    """Of the rounds that are remembered. `gap`: the largest number of further pods that could have been placed in one
    of the last 100, at most."""
    rounds = history.newest(1000)
    seconds = sorted(each.stats.seconds for each in rounds)
    return {
        "count": history.count,
        "seconds": {"p50": at_quantile(seconds, 0.5), "p95": at_quantile(seconds, 0.95), "max": seconds[-1]}
        if seconds
        else None,
        "gap": max((each.stats.gap for each in rounds[:100]), default=0),
        "last": rounds[0].json() if rounds else None,
    }

"""The figures of a run: pods, times, utilisation, balance, and the reasons for which pods wait."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.demo.checks import Check, condition, is_waiting, offers, replayed, requested
from benchmarks.demo.evidence import Evidence
from benchmarks.demo.progress import Progress, percentiles

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Summary:
    """Everything that the demo reports at its end; docs/demo.md describes its JSON."""

    result: str
    seconds: float
    nodes: int
    pods: int
    bound: int
    ended: int
    waiting: int
    scheduler: str
    policy: str
    usage: Json
    seed: int
    kinds: dict[str, dict[str, int]]
    reasons: list[Json]
    rounds: Json
    network: Json
    bind_seconds: dict[str, float]
    utilisation: dict[str, dict[str, float]]
    balance: dict[str, float]
    preemption: Json
    moves: Json
    complaints: list[str]
    checks: list[Json]

    def json(self) -> Json:
        """JSON values, rounded to four significant digits."""
        found: Json = _rounded(asdict(self))
        return found


def summarise(
    evidence: Evidence,
    progress: Progress,
    checks: Sequence[Check],
    preemption: Json,
    moves: Json,
    network: Mapping[str, int],
    *,
    seconds: float,
    scheduler: str,
    policy: str,
    usage: Json,
    seed: int,
) -> Summary:
    """The summary of a run that took `seconds`."""
    mine = [pod for pod in evidence.pods if pod["spec"].get("schedulerName") == scheduler]
    kinds = {kind: dict(count) for kind, count in sorted(progress.counts().items())}
    return Summary(
        result="passed" if all(check.ok for check in checks) else "failed",
        seconds=seconds,
        nodes=len(evidence.nodes),
        pods=len(mine),
        bound=sum(bool(pod["spec"].get("nodeName")) for pod in mine),
        ended=sum(count.get("ended", 0) for count in kinds.values()),
        waiting=sum(map(is_waiting, mine)),
        scheduler=scheduler,
        policy=policy,
        usage=usage,
        seed=seed,
        kinds=kinds,
        reasons=reasons(filter(is_waiting, mine)),
        rounds=rounds_of(evidence),
        network=dict(network),
        bind_seconds=percentiles(progress.bind_seconds()),
        utilisation=utilisation(evidence),
        balance=balance(evidence),
        preemption=preemption,
        moves=moves,
        complaints=list(evidence.complaints),
        checks=[asdict(check) for check in checks],
    )


def reasons(waiting: Iterable[Json]) -> list[Json]:
    """Why pods wait, most frequent first: equal conditions are counted together."""
    groups: dict[tuple[str, str], list[str]] = {}
    for pod in waiting:
        found = condition(pod)
        key = (found.get("reason", ""), found.get("message", "no condition"))
        groups.setdefault(key, []).append(f"{pod['metadata'].get('namespace', 'default')}/{pod['metadata']['name']}")
    return [
        {"pods": len(names), "reason": reason, "message": message, "example": min(names)}
        for (reason, message), names in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    ]


def utilisation(evidence: Evidence) -> dict[str, dict[str, float]]:
    """By resource: the total offered, the total requested at the end, and the final and the highest share requested."""
    offered: Counter[str] = Counter()
    used: Counter[str] = Counter()
    for amounts in offers(evidence).values():
        offered.update(amounts)
    for amounts in requested(evidence).values():
        used.update(amounts)
    peak = _peak(evidence)
    return {
        name: {
            "offered": total,
            "requested": used[name],
            "share": used[name] / total,
            "peak_share": max(peak.get(name, 0), used[name]) / total,
        }
        for name, total in sorted(offered.items())
        if total and max(peak.get(name, 0), used[name])
    }


def balance(evidence: Evidence) -> dict[str, float]:
    """How evenly the cpu of nodes without taints is requested: shares of what each offers, and pods per node."""
    used = requested(evidence)
    open_nodes = [node for node in evidence.nodes if not (node.get("spec") or {}).get("taints")]
    offered = offers(evidence)
    shares = [
        used[name].get("cpu", 0) / offered[name]["cpu"]
        for name in (node["metadata"]["name"] for node in open_nodes)
        if offered[name].get("cpu")
    ]
    if not shares:
        return {}
    pods = [used[node["metadata"]["name"]].get("pods", 0) for node in open_nodes]
    return {
        "nodes": len(shares),
        "cpu_mean": statistics.fmean(shares),
        "cpu_min": min(shares),
        "cpu_max": max(shares),
        "cpu_stddev": statistics.pstdev(shares),
        "pods_min": min(pods),
        "pods_max": max(pods),
    }


def rounds_of(evidence: Evidence) -> Json:
    """The number of rounds and their durations, from the scheduler's metrics."""
    name = "poseidon_round_duration_seconds"
    count = evidence.metric(f"{name}_count")
    return {
        "total": int(evidence.metric("poseidon_rounds_total")),
        "placed": int(evidence.metric("poseidon_rounds_total", result="placed")),
        "mean_seconds": evidence.metric(f"{name}_sum") / count if count else 0.0,
        "seconds": {f"p{p}": quantile(evidence.metrics, name, p / 100) for p in (50, 90, 99)} if count else {},
    }


def quantile(metrics: Mapping[str, float], histogram: str, q: float) -> float:
    """A quantile of a Prometheus histogram, by linear interpolation within its bucket; 0 if it is empty."""
    buckets = []
    for sample, value in metrics.items():
        bound = re.fullmatch(re.escape(histogram) + r'_bucket\{le="([^"]+)"\}', sample)
        if bound:
            buckets.append((float(bound[1]), value))
    buckets.sort()
    if not buckets or not buckets[-1][1]:
        return 0.0
    rank, low, below = q * buckets[-1][1], 0.0, 0.0
    for high, count in buckets:
        if count >= rank:
            return low if high == float("inf") else low + (high - low) * (rank - below) / max(count - below, 1)
        low, below = high, count
    return low


def _peak(evidence: Evidence) -> dict[str, int]:
    """By resource: the highest total of requests on all nodes at any moment, from the audit."""
    now: Counter[str] = Counter()
    peak: dict[str, int] = {}
    for _, requests, sign in replayed(evidence):
        for name, amount in requests.items():
            now[name] += sign * amount
            peak[name] = max(peak.get(name, 0), now[name])
    return peak


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list) else value

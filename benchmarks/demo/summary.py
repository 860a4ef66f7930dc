"""The figures of a run: how many pods, how fast, how full, how even, and why the others wait."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.demo.checks import Check, condition, held, is_waiting, offers, replayed
from benchmarks.demo.evidence import Evidence
from benchmarks.demo.progress import Progress, percentiles

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Summary:
    """Everything that the demo says at its end; docs/demo.md describes the JSON that it becomes."""

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
    checks: list[Json]

    def json(self) -> Json:
        """As JSON values, rounded to what is meaningful."""
        found: Json = _rounded(asdict(self))
        return found


def summarise(
    evidence: Evidence,
    progress: Progress,
    checks: Sequence[Check],
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
        checks=[asdict(check) for check in checks],
    )


def reasons(waiting: Iterable[Json]) -> list[Json]:
    """Why pods wait, most frequent first: conditions that say the same are counted together."""
    groups: dict[tuple[str, str], list[str]] = {}
    for pod in waiting:
        found = condition(pod)
        key = (found.get("reason", ""), found.get("message", "nobody has said why"))
        groups.setdefault(key, []).append(f"{pod['metadata'].get('namespace', 'default')}/{pod['metadata']['name']}")
    return [
        {"pods": len(names), "reason": reason, "message": message, "example": min(names)}
        for (reason, message), names in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    ]


def utilisation(evidence: Evidence) -> dict[str, dict[str, float]]:
    """By resource: what all nodes offer, what is requested of that now, and the most that ever was, as shares."""
    offered: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    for amounts in offers(evidence).values():
        offered.update(amounts)
    for amounts in held(evidence).values():
        taken.update(amounts)
    most = _peak(evidence)
    return {
        name: {
            "offered": total,
            "requested": taken[name],
            "share": taken[name] / total,
            "peak_share": max(most.get(name, 0), taken[name]) / total,
        }
        for name, total in sorted(offered.items())
        if total and max(most.get(name, 0), taken[name])
    }


def balance(evidence: Evidence) -> dict[str, float]:
    """How evenly the cpu of the nodes that repel nobody is requested: shares of what each offers."""
    taken = held(evidence)
    open_nodes = [node for node in evidence.nodes if not (node.get("spec") or {}).get("taints")]
    offered = offers(evidence)
    shares = [
        taken[name].get("cpu", 0) / offered[name]["cpu"]
        for name in (node["metadata"]["name"] for node in open_nodes)
        if offered[name].get("cpu")
    ]
    if not shares:
        return {}
    pods = [taken[node["metadata"]["name"]].get("pods", 0) for node in open_nodes]
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
    """How many rounds there were and how long they took, as the scheduler tells."""
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
    wanted, low, below = q * buckets[-1][1], 0.0, 0.0
    for high, upto in buckets:
        if upto >= wanted:
            return low if high == float("inf") else low + (high - low) * (wanted - below) / max(upto - below, 1)
        low, below = high, upto
    return low


def _peak(evidence: Evidence) -> dict[str, int]:
    """The most that was requested of all nodes together at any moment, by the audit."""
    now: Counter[str] = Counter()
    most: dict[str, int] = {}
    for _, wants, sign in replayed(evidence):
        for name, amount in wants.items():
            now[name] += sign * amount
            most[name] = max(most.get(name, 0), now[name])
    return most


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list) else value

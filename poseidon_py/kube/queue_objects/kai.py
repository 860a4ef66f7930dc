"""KAI's kinds Queue (scheduling.run.ai/v2) and SchedulingShard (kai.scheduler/v1).

CPU is given in millicores, memory in megabytes (10^6 bytes), GPUs in devices; -1 means unlimited. What is not set is 0,
as in KAI itself.
"""

import math
from dataclasses import dataclass

from poseidon_py.kube.queue_objects.fields import LARGEST, Fields, Problems, QueueObject, spec_of
from poseidon_py.kube.queue_objects.keys import KAI_POOL, queue_labels

GPU = "nvidia.com/gpu"
_UNITS = {"gpu": (GPU, 1), "cpu": ("cpu", 1), "memory": ("memory", 10**6)}
"""Field -> resource, and its unit in the engine's units."""
DEFAULT_PRIORITY = 100
_LIMITS_NOTHING = ("spec.priority", *(f"spec.resources.{each}.overQuotaWeight" for each in _UNITS))
_WEEK = 7 * 86_400.0
_LARGE = 700.0
"""Of which the exponential is still a number."""


@dataclass(frozen=True, slots=True)
class Share:
    """One resource, in the engine's units. `quota`, `limit`: None: unlimited."""

    quota: int | None
    limit: int | None


@dataclass(frozen=True, slots=True)
class KaiQueue:
    name: str
    parent: str
    priority: int
    shares: dict[str, Share]
    weight: float
    preempt_min_runtime: float | None
    reclaim_min_runtime: float | None
    """Seconds; None: that of the closest queue above it that has one, or of the shard."""
    problems: tuple[str, ...]
    closed_by: str
    """The problem that closes it; empty: none does."""
    node_pool: str = ""
    """The pool of nodes that it belongs to; empty: those without one."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Of a SchedulingShard what concerns queues. `node_pool`: empty: all nodes; `half_life`: seconds, 0: past use does
    not count."""

    name: str
    node_pool: str
    weight: float
    half_life: float
    preempt_min_runtime: float
    reclaim_min_runtime: float
    """Seconds, of queues that give none."""
    problems: tuple[str, ...]


def shard(item: QueueObject) -> Shard:
    problems = Problems()
    spec = spec_of(item, problems)
    half_life = _half_life(spec.part("usageDBConfig").part("usageParams")) if "usageDBConfig" in spec else 0.0
    weight = spec.number("kValue", 1.0)
    least = spec.part("minRuntime")
    runtimes = least.duration("preemptMinRuntime"), least.duration("reclaimMinRuntime")
    pool = spec.text("partitionLabelValue")
    return Shard(item.metadata.name, pool, weight, half_life, *runtimes, problems.all)


def _half_life(given: Fields) -> float:
    """Seconds of the decay without a window in which use has the same mean age as with the window that is given."""
    if given.choice("windowType", ("sliding", "tumbling", "cron"), "sliding") != "sliding":
        given.remark("windowType", "counts as sliding; give sliding, and halfLifePeriod")
    window, half_life = given.duration("windowSize", _WEEK), given.duration("halfLifePeriod")
    if window <= 0.0:
        given.remark("windowSize", "counts as one week; give a longer one than 0")
        window = _WEEK
    if half_life <= 0.0:
        return math.log(2.0) * window / 2.0
    cut_off = window / math.expm1(min(math.log(2.0) * window / half_life, _LARGE))
    return half_life - math.log(2.0) * cut_off


def kai_queue(item: QueueObject) -> KaiQueue:
    problems = Problems(_LIMITS_NOTHING)
    spec = spec_of(item, problems)
    resources = spec.part("resources")
    shares: dict[str, Share] = {}
    weights: dict[str, float] = {}
    for field, (resource, unit) in _UNITS.items():
        given = resources.part(field)
        if "limit" not in given:
            given.remark("limit", "is missing and counts as 0, so nothing may be used; give -1 for no limit")
        quota, limit = _amount(given, "quota", unit, 0), _amount(given, "limit", unit, 0)
        shares[resource] = Share(quota, limit)
        weights[field] = given.number("overQuotaWeight", 0.0)
    weight = next((weight for weight in weights.values() if weight), 0.0)
    if len({each for each in weights.values() if each}) > 1:
        field = next(field for field, each in weights.items() if each)
        resources.remark("overQuotaWeight", f"differs by resource; that of {field} counts for all resources")
    return KaiQueue(
        item.metadata.name,
        spec.text("parentQueue"),
        spec.whole("priority", DEFAULT_PRIORITY),
        shares,
        weight,
        spec.duration("preemptMinRuntime") if "preemptMinRuntime" in spec else None,
        spec.duration("reclaimMinRuntime") if "reclaimMinRuntime" in spec else None,
        problems.all,
        problems.closing,
        dict(queue_labels(item.metadata.labels)).get(KAI_POOL, ""),
    )


def _amount(given: Fields, name: str, unit: int, default: int | None) -> int | None:
    """None: unlimited. Fractions of the engine's units are rounded down."""
    if name not in given:
        return default
    number = given.number(name, -2.0, least=-1.0, largest=LARGEST // unit)
    if number == -2.0:  # invalid: what is missing
        return default
    if number < 0:
        return None
    if unit == 1 and number != int(number):
        given.remark(name, f"{number:g} is rounded down to {int(number)}; pods request whole units")
    return int(number * unit)

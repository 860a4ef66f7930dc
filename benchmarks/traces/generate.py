"""Traces from presets: deterministic for a preset, a size and a seed."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from benchmarks.traces.distributions import draw
from benchmarks.traces.form import (
    BANDWIDTH,
    DATA_BYTES,
    DATA_MACHINES,
    FOREVER,
    HOUR,
    INTERFERENCE,
    LINK,
    NO_LABELS,
    SECOND,
    MachineEvent,
    Shape,
    Trace,
    TraceBuilder,
    TraceError,
)
from benchmarks.traces.presets import PRESETS, RACK, ZONE, Preset, Tier
from firmament_py.model.arrays import F64, I64

_TASKS_A_MACHINE = 5
"""Maximum number of tasks of a job per machine, so that a cluster of 100 has no job made for 12,500."""

_GRID = math.sqrt(2)
"""Requests are rounded to powers of this, so that there are few shapes, as clusters have few pod templates."""

_MAX_STANDING = 0.9
_REPLICAS = 3
_CLASSES = (("sheep", 0.4), ("rabbit", 0.25), ("devil", 0.2), ("turtle", 0.15))


def preset(name: str) -> Preset:
    """The preset of that name. Raises TraceError, which lists all names."""
    if name not in PRESETS:
        raise TraceError(f"unknown preset {name!r}; choose one of: {', '.join(PRESETS)}")
    return PRESETS[name]


def generate(
    chosen: Preset,
    machines: int,
    hours: float,
    seed: int = 0,
    load: float | None = None,
    *,
    labels: bool = False,
    link_kbps: int | None = None,
) -> Trace:
    """A trace of this number of machines and hours.

    load: mean request of the contended resource over time, if each task started at its submission, relative to the
    capacity; it determines the job rate and the standing tasks. None: the preset's. labels: jobs have labels for input
    data, traffic and interference class. link_kbps: capacity of a machine's link; None: no label.
    """
    if machines < 1 or hours <= 0:
        raise TraceError(
            f"cannot generate {machines} machines and {hours:g} hours; give at least 1 machine and more than 0 hours"
        )
    rng = np.random.default_rng([seed, *chosen.name.encode()])
    builder = TraceBuilder(chosen.name)
    capacity = _machines(builder, chosen, machines, hours, rng, link_kbps)
    rate, standing = chosen.jobs_per_machine_hour * machines, chosen.standing
    if load is not None:
        rate, standing = _for_load(chosen, capacity, rate, hours, load, machines)
    if chosen.standing_tier is not None:
        _standing(builder, chosen, chosen.standing_tier, standing * capacity, machines, rng, labels)
    arrivals = _arrivals(chosen, rate, hours, rng)
    tiers = rng.choice(len(chosen.tiers), len(arrivals), p=[t.share for t in chosen.tiers])
    for i, tier in enumerate(chosen.tiers):
        _jobs(builder, tier, arrivals[tiers == i], _limit(machines), rng, labels, machines)
    return builder.build()


def offered_load(trace: Trace, resource: str) -> float:
    """The mean request of a resource over the trace's span, each task running from its submission on, relative to the
    capacity of the machines present at the start."""
    r, span = trace.resources.index(resource), _span(trace)
    duration = np.where(trace.task_duration_us == FOREVER, span, trace.task_duration_us)
    inside = np.minimum(trace.task_us + duration, span) - trace.task_us
    amounts = trace.requests[trace.task_shape, r].astype(np.float64)
    return float(amounts @ inside.astype(np.float64)) / max(float(trace.capacity[r]) * span, 1.0)


def _span(trace: Trace) -> int:
    return int(max(trace.task_us.max(initial=0), trace.event_us.max(initial=0), 1))


def _limit(machines: int) -> int:
    return _TASKS_A_MACHINE * machines


def _machines(
    builder: TraceBuilder,
    chosen: Preset,
    count: int,
    hours: float,
    rng: np.random.Generator,
    link_kbps: int | None,
) -> float:
    """Adds machines with racks and zones, and their outages. Returns the capacity of the contended resource."""
    shares = np.array([kind.share for kind in chosen.kinds])
    exact = shares / shares.sum() * count
    counts = np.floor(exact).astype(np.int64)
    counts[np.argsort(counts - exact, kind="stable")[: count - int(counts.sum())]] += 1  # the largest-remainder method
    kind_of = rng.permutation(np.repeat(np.arange(len(shares)), counts))
    end_us = int(hours * HOUR)
    between_us = 24 * HOUR / chosen.removals_per_machine_day if chosen.removals_per_machine_day else math.inf
    capacity = 0.0
    for i, k in enumerate(kind_of.tolist()):
        kind, rack = chosen.kinds[k], i // chosen.rack_machines
        place = {RACK: f"rack-{rack:03d}", ZONE: f"zone-{rack % chosen.zones}"}
        link = {} if link_kbps is None else {LINK: str(link_kbps)}
        row = builder.machine(f"m{i:05d}", {**kind.labels, **place, **link})
        builder.event(0, row, MachineEvent.ADD, kind.allocatable)
        capacity += kind.allocatable[chosen.contended]
        us = rng.exponential(between_us) if math.isfinite(between_us) else math.inf
        while us < end_us:
            back = us + float(draw(chosen.outage_min, rng, 1)[0]) * 60 * SECOND
            builder.event(int(us), row, MachineEvent.REMOVE)
            if back >= end_us:
                break
            builder.event(int(back), row, MachineEvent.ADD, kind.allocatable)
            us = back + SECOND + rng.exponential(between_us)
    return capacity


def _standing(
    builder: TraceBuilder,
    chosen: Preset,
    tier: Tier,
    amount: float,
    machines: int,
    rng: np.random.Generator,
    labels: bool,
) -> None:
    """Adds standing tasks, which run from start to end: jobs that request `amount` of the contended resource."""
    requested, number = 0.0, 0
    while requested < amount:
        [size] = _sizes(tier, rng, 1, _limit(machines)).tolist()
        [shape] = _shapes(tier, rng, 1)
        each = dict(shape.requests)[chosen.contended]
        size = min(size, max(1, round((amount - requested) / each)))
        [described] = _labels(rng, 1, machines) if labels else [NO_LABELS]
        job = builder.job(f"{tier.name}-{number:05d}", 0, described)
        s, count = builder.shape(shape), size
        zeros = np.zeros(count, np.int64)
        builder.tasks(zeros, zeros + job, np.full(count, FOREVER), zeros + s)
        requested, number = requested + size * each, number + 1


def _arrivals(chosen: Preset, rate: float, hours: float, rng: np.random.Generator) -> I64:
    """Times of submission, ascending: a Poisson process whose rate has a daily cycle and a random factor per hour."""
    begins = np.arange(math.ceil(hours))
    parts = np.minimum(1.0, hours - begins)
    swing = 1 + chosen.daily_swing * np.sin(2 * np.pi * (begins + parts / 2) / 24)
    swing *= parts.sum() / (swing * parts).sum()  # the mean rate is the preset's for any part of the day
    found = []
    for hour, part, factor in zip(begins.tolist(), parts.tolist(), swing.tolist(), strict=True):
        burst = math.exp(rng.normal(-(chosen.burst_sigma**2) / 2, chosen.burst_sigma))
        count = rng.poisson(rate * part * factor * burst)
        found.append(np.sort(((hour + part * rng.random(count)) * HOUR).astype(np.int64)))
    return np.concatenate(found)


def _jobs(
    builder: TraceBuilder,
    tier: Tier,
    arrivals: I64,
    limit: int,
    rng: np.random.Generator,
    labels: bool,
    machines: int,
) -> None:
    """Adds the jobs of a tier at their times."""
    count = len(arrivals)
    sizes = _sizes(tier, rng, count, limit)
    shapes = np.array([builder.shape(shape) for shape in _shapes(tier, rng, count)], np.int64)
    durations = np.maximum(np.rint(draw(tier.duration_s, rng, count) * 1000), 1).astype(np.int64) * 1000
    gang = (rng.random(count) < tier.gang) & (sizes > 1)
    described = _labels(rng, count, machines) if labels else [NO_LABELS] * count
    minima = np.where(gang, sizes, 0).tolist()
    rows = np.array([builder.job(f"{tier.name}-{i:05d}", minima[i], described[i]) for i in range(count)], np.int64)
    builder.tasks(*(np.repeat(column, sizes) for column in (arrivals, rows, durations, shapes)))


def _sizes(tier: Tier, rng: np.random.Generator, count: int, limit: int) -> I64:
    return np.minimum(np.floor(draw(tier.tasks, rng, count) + 1e-9).astype(np.int64), limit)


def _shapes(tier: Tier, rng: np.random.Generator, count: int) -> list[Shape]:
    """The shapes of `count` jobs: requests, priority and selector."""
    amounts = {name: _rounded(draw(of, rng, count)) for name, of in tier.requests.items()}
    constrained = rng.random(count) < tier.constrained
    weights = np.array([weight for weight, _ in tier.selectors]) if tier.selectors else np.ones(1)
    which = rng.choice(len(weights), count, p=weights / weights.sum())
    return [
        Shape.of(
            {name: int(column[i]) for name, column in amounts.items()},
            tier.priority,
            (tier.selectors[which[i]][1],) if constrained[i] else (),
        )
        for i in range(count)
    ]


def _rounded(values: F64) -> I64:
    """The nearest powers of the grid; at most eight distinct values are kept."""
    whole = np.rint(values)
    if len(np.unique(whole)) <= 8:
        return whole.astype(np.int64)
    return np.maximum(np.rint(_GRID ** np.rint(np.log(values) / math.log(_GRID))), 1).astype(np.int64)


def _labels(rng: np.random.Generator, count: int, machines: int) -> list[Mapping[str, str]]:
    """Input data with its replicas, traffic, and interference class of each job."""
    sizes = np.rint(np.exp(rng.normal(math.log(256 * 2**20), 1.5, count))).astype(np.int64)
    kbps = np.rint(np.exp(rng.normal(math.log(20_000), 1.2, count))).astype(np.int64)
    where = rng.integers(0, machines, (count, _REPLICAS))
    kinds = rng.choice(len(_CLASSES), count, p=[share for _, share in _CLASSES])
    return [
        {
            DATA_BYTES: str(sizes[i]),
            DATA_MACHINES: " ".join(f"m{m:05d}" for m in sorted(set(where[i].tolist()))),
            BANDWIDTH: str(kbps[i]),
            INTERFERENCE: _CLASSES[kinds[i]][0],
        }
        for i in range(count)
    ]


def _for_load(
    chosen: Preset, capacity: float, rate: float, hours: float, load: float, machines: int
) -> tuple[float, float]:
    """The job rate and the share of standing tasks for a load: both in proportion, with a maximum for the latter."""
    if load <= 0:
        raise TraceError(f"the load is {load:g}; give more than 0")
    shares = (np.arange(4096) + 0.5) / 4096
    seconds = hours * 3600
    demand = 0.0  # mean amount times seconds of a job within the trace, if submitted at a random time
    for tier in chosen.tiers:
        if chosen.contended not in tier.requests:
            continue
        stays = np.minimum(tier.duration_s.at(shares), seconds)
        stays = stays - stays**2 / (2 * seconds)  # truncated by the end of the trace
        tasks = np.minimum(np.floor(tier.tasks.at(shares) + 1e-9), _limit(machines)).mean()
        demand += tier.share * float(tasks) * tier.requests[chosen.contended].mean() * float(stays.mean())
    published = rate / 3600 * demand / capacity
    standing = min(chosen.standing * load / (chosen.standing + published), _MAX_STANDING)
    return rate * (load - standing) / published, standing

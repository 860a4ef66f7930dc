"""Presets of clusters and workloads, after published analyses, with the source of every figure.

"as published" marks figures that the source states; "approximates" marks ours, chosen to match what the source
describes in words or plots. Sources:

    google2011    Reiss, Tumanov, Ganger, Katz, Kozuch: Heterogeneity and dynamicity of clouds at scale (SoCC 2012);
                  Wilkes, Reiss: the clusterdata-2011-2 trace
    google2019    Tirmazi et al.: Borg: the next generation (EuroSys 2020)
    alibaba-gpu   Weng et al.: MLaaS in the wild (NSDI 2022); the cluster-trace-gpu-v2020
    philly        Jeon et al.: Analysis of large-scale multi-tenant GPU clusters (ATC 2019); the philly-traces
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.traces.distributions import Distribution, Fixed, Lognormal, Mixture, Pareto, choices
from firmament_py.model.constraints import Operator, Requirement

CPU_UNIT = 64_000
"""Millicores assumed for 1.0 of cpu in the Google traces (the largest machine), which do not state it."""
MEMORY_UNIT = 256 * 2**30
"""Bytes assumed for their 1.0 of memory."""

GPU = "nvidia.com/gpu"
GPU_MILLI = "alibabacloud.com/gpu-milli"
"""Thousandths of GPUs, which may be shared. A node's GPUs form one pool: free parts of two GPUs add up."""
GPU_TYPE = "gpu-type"
PLATFORM = "platform"
ZONE, RACK = "topology.kubernetes.io/zone", "topology.kubernetes.io/rack"

_GIB = 2**30
_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class MachineKind:
    """share: weight relative to the other kinds."""

    share: float
    allocatable: Mapping[str, int]
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Tier:
    """A class of jobs. The tasks of a job are equal.

    share: of all jobs. gang: share of the jobs of several tasks that start together. constrained: share of jobs with
    one of `selectors`, drawn by weight.
    """

    name: str
    share: float
    priority: int
    tasks: Distribution
    duration_s: Distribution
    requests: Mapping[str, Distribution]
    gang: float = 0.0
    constrained: float = 0.0
    selectors: tuple[tuple[float, Requirement], ...] = ()


@dataclass(frozen=True, slots=True)
class Preset:
    """contended: the resource that fills first. standing: share of it used by tasks of tier `standing_tier`, which run
    from start to end. daily_swing: amplitude of the arrival rate over the day. burst_sigma: sigma of the lognormal
    factor on each hour's rate. removals_per_machine_day: rate of outages; outage_min: their duration. sources:
    parameter -> source."""

    name: str
    summary: str
    kinds: tuple[MachineKind, ...]
    rack_machines: int
    zones: int
    jobs_per_machine_hour: float
    daily_swing: float
    burst_sigma: float
    tiers: tuple[Tier, ...]
    contended: str
    standing: float
    standing_tier: Tier | None
    removals_per_machine_day: float
    outage_min: Distribution
    sources: Mapping[str, str]


def _normalised(share: float, cpu: float, memory: float, platform: str) -> MachineKind:
    return MachineKind(
        share,
        {"cpu": round(cpu * CPU_UNIT), "memory": round(memory * MEMORY_UNIT)},
        {PLATFORM: platform},
    )


def _google(
    name: str,
    share: float,
    priority: int,
    tasks: Distribution,
    duration_s: Distribution,
    cpu: float,
    memory: float,
    platforms: tuple[tuple[float, Requirement], ...] = (),
) -> Tier:
    """Requests by their medians, in the traces' units; at most half of the largest machine. 6 % of the jobs with
    platforms to choose from select one."""
    requests = {
        "cpu": Lognormal(cpu * CPU_UNIT, 0.8, 0.002 * CPU_UNIT, 0.5 * CPU_UNIT),
        "memory": Lognormal(memory * MEMORY_UNIT, 1.0, 0.001 * MEMORY_UNIT, 0.45 * MEMORY_UNIT),
    }
    constrained = 0.06 if platforms else 0.0
    return Tier(name, share, priority, tasks, duration_s, requests, constrained=constrained, selectors=platforms)


def _on_platform(*weights: tuple[float, str]) -> tuple[tuple[float, Requirement], ...]:
    return tuple((weight, Requirement(PLATFORM, Operator.IN, (platform,))) for weight, platform in weights)


_2011_SIZES = Mixture(((0.75, Fixed(1)), (0.25, Pareto(0.4, 2, 5000))))
_2011_DURATION = Lognormal(180, 1.91, 5, 29 * _DAY_S)
_2011_PLATFORMS = _on_platform((0.7, "B"), (0.3, "C"))

GOOGLE_2011 = Preset(
    name="google2011",
    summary="Google's cell of 2011: many short jobs beside long-running services",
    kinds=(
        _normalised(6732, 0.50, 0.50, "B"),
        _normalised(3863, 0.50, 0.25, "B"),
        _normalised(1001, 0.50, 0.75, "B"),
        _normalised(795, 1.00, 1.00, "C"),
        _normalised(126, 0.25, 0.25, "A"),
        _normalised(52, 0.50, 0.12, "B"),
        _normalised(5, 0.50, 0.03, "B"),
        _normalised(5, 0.50, 0.97, "B"),
        _normalised(3, 1.00, 0.50, "C"),
        _normalised(1, 0.50, 0.06, "B"),
    ),
    rack_machines=40,
    zones=3,
    jobs_per_machine_hour=964 / 12_583,
    daily_swing=0.2,
    burst_sigma=0.4,
    tiers=(
        _google("free", 0.45, 0, _2011_SIZES, _2011_DURATION, 0.02, 0.012, _2011_PLATFORMS),
        _google("other", 0.45, 4, _2011_SIZES, _2011_DURATION, 0.03, 0.016, _2011_PLATFORMS),
        _google("production", 0.10, 9, _2011_SIZES, _2011_DURATION, 0.05, 0.03, _2011_PLATFORMS),
    ),
    contended="cpu",
    standing=0.6,
    standing_tier=_google("service", 1, 9, Pareto(0.8, 1, 1000), Fixed(1), 0.05, 0.03, _2011_PLATFORMS),
    removals_per_machine_day=0.025,
    outage_min=Lognormal(15, 1.2, 1, 24 * 60),
    sources={
        "kinds": "as published: machines by platform, cpu and memory (Reiss et al., table 1)",
        "jobs_per_machine_hour": "approximates: 964 jobs an hour (Tirmazi et al. on 2011) over 12,583 machines",
        "tasks": "approximates: 75 % of the jobs have one task, the mean is 38 (25.4 M tasks, 672,000 jobs); the "
        "others are a bounded Pareto, alpha 0.4, 2 to 5,000",
        "duration_s": "approximates: median 3 min, a fifth over 15 min; lognormal, sigma 1.91",
        "requests": "approximates: lognormal, medians 0.02 to 0.05 of the largest machine's cpu, 0.012 to 0.03 of its "
        "memory",
        "tiers": "groups of priorities as published; approximates their shares of jobs: 45, 45, 10 %",
        "constrained": "approximates: 6 % of the tasks select a platform",
        "standing": "long-running tasks hold most of what is used as published; approximates: 60 % of the cpu",
        "removals": "approximates 0.025 a machine and day, for 15 minutes in the median",
        "arrivals": "approximates: a daily swing of 20 %, each hour's rate times a lognormal factor, sigma 0.4",
    },
)

_2019_PRODUCTION = Mixture(((0.9, Fixed(1)), (0.1, Pareto(0.9, 2, 500))))
_2019_DURATION = Pareto(0.69, 20, 31 * _DAY_S)
_2019_PLATFORMS = _on_platform((0.5, "P1"), (0.5, "P2"))

GOOGLE_2019 = Preset(
    name="google2019",
    summary="a Google cell of 2019: 3.5 times the jobs of 2011, more batch, heavier tails",
    kinds=(
        _normalised(23.3, 1.0, 0.5, "P1"),
        _normalised(19.3, 0.591797, 0.333496, "P2"),
        _normalised(14.7, 0.259277, 0.166748, "P3"),
        _normalised(10.5, 0.708984, 0.333496, "P2"),
        _normalised(6.8, 0.386719, 0.333496, "P3"),
        _normalised(5.85, 0.958984, 0.5, "P1"),
        _normalised(5.56, 0.708984, 0.666992, "P2"),
    ),
    rack_machines=40,
    zones=3,
    jobs_per_machine_hour=3360 / 12_000,
    daily_swing=0.15,
    burst_sigma=0.3,
    tiers=(
        _google("free", 0.15, 25, Pareto(0.97, 1, 500), _2019_DURATION, 0.01, 0.006),
        _google("best-effort-batch", 0.55, 112, Pareto(0.404, 1, 5000), _2019_DURATION, 0.01, 0.006),
        _google("mid", 0.05, 117, Pareto(0.69, 1, 2000), _2019_DURATION, 0.015, 0.01, _2019_PLATFORMS),
        _google("production", 0.25, 200, _2019_PRODUCTION, _2019_DURATION, 0.03, 0.02, _2019_PLATFORMS),
    ),
    contended="cpu",
    standing=0.5,
    standing_tier=_google("service", 1, 200, Pareto(0.8, 1, 1000), Fixed(1), 0.05, 0.03),
    removals_per_machine_day=0.03,
    outage_min=Lognormal(15, 1.2, 1, 24 * 60),
    sources={
        "kinds": "approximates: the seven commonest machine shapes of the eight cells",
        "jobs_per_machine_hour": "approximates: 3,360 jobs an hour in a cell of 12,000 machines",
        "tasks": "approximates: 95th percentiles of tasks a job 498 (best-effort batch), 67 (mid), 21 (free), 3 "
        "(production); bounded Paretos through them",
        "duration_s": "approximates: bounded Pareto from 20 s, with the exponent 0.69 of the cpu-hours of jobs",
        "requests": "approximates: lognormal, medians 0.01 to 0.05 of the largest machine's cpu, 0.006 to 0.03 of its "
        "memory",
        "tiers": "tiers as published; approximates their shares of jobs: 15, 55, 5, 25 %",
        "standing": "approximates 50 % of the cpu",
        "removals": "approximates 0.03 a machine and day",
        "arrivals": "approximates: a daily swing of 15 %, each hour's rate times a lognormal factor, sigma 0.3",
    },
)


def _gpu_machine(share: float, gpus: int, cpus: int, gib: int, kind: str) -> MachineKind:
    return MachineKind(
        share,
        {"cpu": 1000 * cpus, "memory": gib * _GIB, GPU_MILLI: 1000 * gpus},
        {GPU_TYPE: kind},
    )


_PAI_DURATION = Lognormal(23 * 60, 1.92, 5, 30 * _DAY_S)
_PAI_SIZES = Mixture(((0.5, Fixed(1)), (0.5, Pareto(1.0, 2, 1000))))
_PAI_TYPES = tuple(
    (weight, Requirement(GPU_TYPE, Operator.IN, values))
    for weight, values in ((0.5, ("V100", "V100M32")), (0.25, ("T4",)), (0.25, ("P100",)))
)


def _pai(name: str, share: float, gpu: Distribution | None, constrained: float) -> Tier:
    requests: dict[str, Distribution] = {
        "cpu": Lognormal(6_000, 0.42, 500, 60_000),
        "memory": Lognormal(29 * _GIB, 0.43, _GIB, 300 * _GIB),
    }
    if gpu is not None:
        requests[GPU_MILLI] = gpu
    return Tier(name, share, 0, _PAI_SIZES, _PAI_DURATION, requests, 0.85, constrained, _PAI_TYPES)


ALIBABA_GPU = Preset(
    name="alibaba-gpu",
    summary="Alibaba PAI, 2020: training and inference, shared GPUs, gangs, several GPU types",
    kinds=(
        _gpu_machine(798, 2, 64, 512, "P100"),
        _gpu_machine(497, 2, 96, 512, "T4"),
        _gpu_machine(280, 8, 96, 512, "MISC"),
        _gpu_machine(135, 8, 96, 384, "V100M32"),
        _gpu_machine(104, 8, 96, 512, "V100"),
    ),
    rack_machines=20,
    zones=2,
    jobs_per_machine_hour=0.39,
    daily_swing=0.3,
    burst_sigma=0.3,
    tiers=(
        _pai("cpu", 0.4, None, 0),
        _pai("shared", 0.3, choices({250: 0.35, 500: 0.65}), 0.1),
        _pai("whole", 0.27, Fixed(1000), 0.2),
        _pai("several", 0.03, choices({2000: 0.8, 4000: 0.1, 8000: 0.1}), 0.0),
    ),
    contended=GPU_MILLI,
    standing=0.0,
    standing_tier=None,
    removals_per_machine_day=0.01,
    outage_min=Lognormal(60, 1.0, 5, 48 * 60),
    sources={
        "kinds": "as published: 6,742 GPUs of five types, machines with 2 or 8",
        "jobs_per_machine_hour": "approximates: 1.06 M jobs in two months on 1,814 machines",
        "tasks": "approximates 7 instances a job (7.5 M instances): half of the jobs have one, the others a bounded "
        "Pareto, alpha 1, 2 to 1,000",
        "duration_s": "approximates: median 23 min, 90th percentile 4.5 h; lognormal, sigma 1.92",
        "requests": "approximates: medians of 6 cores and 29 GiB, 95th percentiles of 12 cores and 59 GiB; 40 % of the "
        "jobs no GPU, 30 % a quarter or a half, 27 % one, 3 % two to eight",
        "gang": "approximates: 85 % of the jobs of several tasks start together",
        "constrained": "approximates: 10 to 20 % of the jobs that use up to one GPU select a type, half of them a V100",
        "removals": "approximates 0.01 a machine and day",
        "arrivals": "a daily pattern as published; approximates its swing with 30 %",
    },
)


def _philly(gpus: int, workers: int, share: float, median_min: float) -> Tier:
    """Jobs of `workers` tasks with `gpus` GPUs each, which start together."""
    requests = {"cpu": Fixed(4_000 * gpus), "memory": Fixed(48 * _GIB * gpus), GPU: Fixed(gpus)}
    duration = Lognormal(60 * median_min, 2.4, 30, 60 * _DAY_S)
    return Tier(f"{gpus * workers}-gpu", share, 0, Fixed(workers), duration, requests, 1.0)


PHILLY = Preset(
    name="philly",
    summary="Microsoft Philly, 2017: deep learning jobs of 1 to 32 GPUs that run all at once, for minutes to weeks",
    kinds=(
        MachineKind(321, {"cpu": 16_000, "memory": 256 * _GIB, GPU: 2}, {GPU_TYPE: "2-gpu"}),
        MachineKind(231, {"cpu": 48_000, "memory": 512 * _GIB, GPU: 8}, {GPU_TYPE: "8-gpu"}),
    ),
    rack_machines=20,
    zones=1,
    jobs_per_machine_hour=96_260 / (75 * 24 * 552),
    daily_swing=0.3,
    burst_sigma=0.3,
    tiers=(
        _philly(1, 1, 0.78, 13),
        _philly(2, 1, 0.06, 20),
        _philly(4, 1, 0.05, 30),
        _philly(8, 1, 0.08, 60),
        _philly(8, 2, 0.02, 90),
        _philly(8, 4, 0.01, 120),
    ),
    contended=GPU,
    standing=0.0,
    standing_tier=None,
    removals_per_machine_day=0.01,
    outage_min=Lognormal(60, 1.0, 5, 48 * 60),
    sources={
        "kinds": "approximates: 321 servers of 2 and 231 of 8 GPUs; cpu and memory are ours",
        "jobs_per_machine_hour": "96,260 jobs in 75 days as published, over 552 servers",
        "tasks": "GPUs of a job 1 to 32; approximates their shares 78, 6, 5, 8, 2, 1 % (1, 2, 4, 8, 16, 32 GPUs)",
        "duration_s": "approximates: minutes to weeks, longer with more GPUs, about 0.5 % over a week; lognormals, "
        "medians of 13 min to 2 h, sigma 2.4",
        "requests": "approximates: 4 cores and 48 GiB a GPU",
        "gang": "as published: all tasks of a job start together",
        "removals": "approximates 0.01 a machine and day",
        "arrivals": "approximates: a daily swing of 30 %",
    },
)

PRESETS: Mapping[str, Preset] = {p.name: p for p in (GOOGLE_2011, GOOGLE_2019, ALIBABA_GPU, PHILLY)}

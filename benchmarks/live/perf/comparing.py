"""A case on a live server: our scheduler, and then, if it is asked for, another one on the same nodes."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.demo.children import ChildError
from benchmarks.demo.stack import Stack
from benchmarks.harness.results import Sample
from benchmarks.harness.runner import CannotMeasureError, Options
from benchmarks.harness.series import Series, cdf, timeline
from benchmarks.live import session
from benchmarks.live.perf.phase import Outcome, Phase, figures
from benchmarks.live.perf.sizes import ClaimSizes, PerfSizes, parse
from benchmarks.live.perf.templates import NODES
from benchmarks.live.processes import cpu_seconds, family
from poseidon_py.kube.client import KubeError
from poseidon_py.kube.credentials import CredentialsError
from poseidon_py.util.process.child_process import PYTHON

SCHEDULER = "poseidon"
BLIND = "blind"
_QUEUE_FLAGS = "--queues", "kueue", "--suspend-workloads", "on"


@dataclass(frozen=True, slots=True)
class Rivalry:
    """Where to measure, and against whom. kubeconfig: None: a synthetic cluster. against: the schedulerName of another
    scheduler; start: the command that starts it, None: it runs."""

    sizes: PerfSizes
    seed: int
    kubeconfig: Path | None = None
    against: str | None = None
    start: str | None = None


def measure_compared(sizes: Mapping[str, Any], options: Options) -> Sample:
    """A case with these sizes. Raises CannotMeasureError, SpecError."""
    extra = options.extra
    kubeconfig, against, start = (extra.get(name) for name in ("kubeconfig", "against", "start"))
    if start and not against:
        raise CannotMeasureError("--start needs --against: the schedulerName of the pods of what it starts")
    if against and not kubeconfig and not start:
        raise CannotMeasureError("--against needs --kubeconfig, the cluster in which that scheduler runs, or --start")
    if against in (SCHEDULER, BLIND):
        raise CannotMeasureError(f"--against {against} is what is measured anyway; give another scheduler")
    where = Path(kubeconfig) if kubeconfig else None
    return executed(compare(Rivalry(parse(sizes, options), options.seed, where, against, start)))


def executed(measuring: Coroutine[None, None, Sample]) -> Sample:
    """Runs a measurement on an event loop of its own. Raises CannotMeasureError."""
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(measuring)
    except (ChildError, KubeError, CredentialsError) as error:
        raise CannotMeasureError(str(error)) from error


async def compare(run: Rivalry) -> Sample:
    """Our figures, those of the other one, and the ratio of their rates; where pods claim devices, those of the blind
    writer as well."""
    shape = NODES[run.sizes.node]
    async with Stack() as stack:
        if run.kubeconfig is None:
            await stack.start_cluster(run.sizes.nodes, (shape,), run.seed)
            return await _phases(stack, stack.kubeconfig, run)
        await stack.connect(run.kubeconfig, 100)
        await session.remove(stack.kube)
        try:
            await session.add_nodes(stack.kube, run.sizes.nodes, shape)
            return await _phases(stack, run.kubeconfig, run)
        finally:
            await session.remove(stack.kube)


async def _phases(stack: Stack, kubeconfig: Path, run: Rivalry) -> Sample:
    mine = await _phase(stack, kubeconfig, run, SCHEDULER)
    found = dict(figures(mine))
    metrics = {"bound_per_s": found.pop("per_s"), **{_named(name): value for name, value in found.items()}}
    checks = list(mine.checks)
    recorded = _series(SCHEDULER, mine)
    if run.sizes.claims is not None:
        blind = await _phase(stack, kubeconfig, run, BLIND, _blind_command(kubeconfig, run.sizes.claims))
        metrics |= _beside_blind(mine, blind)
        checks += blind.checks
    if run.against is not None:
        command = shlex.split(run.start.replace("{kubeconfig}", str(kubeconfig))) if run.start is not None else None
        other = await _phase(stack, kubeconfig, run, run.against, command)
        if run.sizes.claims is not None and command is not None:
            metrics["other_us_per_pod"] = sum(other.cpu) / run.sizes.pods * 1e6
        metrics |= {f"other_{_named(name)}": value for name, value in figures(other)}
        metrics["times_other"] = mine.per_second / other.per_second
        checks += other.checks
        recorded += _series(run.against, other)
    return Sample(metrics, {"pods": run.sizes.pods, "nodes": run.sizes.nodes}, checks, recorded)


def _named(figure: str) -> str:
    return figure.replace("per_s_", "window_") if figure.startswith("per_s_") else figure


def _blind_command(kubeconfig: Path, claims: ClaimSizes) -> list[str]:
    arguments = ["--kubeconfig", str(kubeconfig), "--scheduler-name", BLIND]
    arguments += ["--kind", claims.kind, "--devices", str(claims.devices)]
    return [*PYTHON, "-m", "benchmarks.live.blind_claims", *arguments]


def _beside_blind(mine: Outcome, blind: Outcome) -> dict[str, float]:
    """Rates, and CPU time a pod."""
    pods = len(mine.binds)
    bridge, engine = mine.cpu
    return {
        "ratio": mine.per_second / blind.per_second,
        "blind_per_s": blind.per_second,
        "cpu_ratio": (bridge + engine) / max(sum(blind.cpu), 1e-3),
        "bridge_us_per_pod": bridge / pods * 1e6,
        "engine_us_per_pod": engine / pods * 1e6,
        "blind_us_per_pod": sum(blind.cpu) / pods * 1e6,
        **{f"blind_{_named(name)}": value for name, value in figures(blind) if name in ("p50_s", "p99_s")},
    }


async def _phase(
    stack: Stack, kubeconfig: Path, run: Rivalry, scheduler: str, command: Sequence[str] | None = None
) -> Outcome:
    """command: starts the scheduler, None: it runs, or is ours."""

    async def start() -> None:
        if scheduler == SCHEDULER:
            await stack.start_scheduler(kubeconfig, scheduler, "", _QUEUE_FLAGS if run.sizes.jobs else ())
        elif command is not None:
            try:
                await stack.start_other(command)
            except (OSError, ValueError) as error:  # there is no such program, or a quotation mark without its other
                raise CannotMeasureError(f"cannot run --start {run.start}: {error}; correct the command") from error

    async def stop() -> None:
        if stack.scheduler is not None:
            await stack.scheduler.stop()
            stack.scheduler = None

    def check() -> None:
        if stack.scheduler is not None:
            stack.scheduler.check()

    def cpu() -> tuple[float, float]:
        if stack.scheduler is None or stack.scheduler.pid is None:
            return 0.0, 0.0
        own, *others = (cpu_seconds(pid) for pid in family(stack.scheduler.pid))
        return own, sum(others)

    synthetic = await session.has_audit(stack.kube)
    return await Phase(stack.kube, run.sizes, scheduler, synthetic, start, stop, check, cpu).measure()


def _series(scheduler: str, outcome: Outcome) -> list[Series]:
    count = range(1, len(outcome.binds) + 1)
    return [
        cdf(f"{scheduler}: time to bind", outcome.latencies, "time to bind", "s"),
        timeline(f"{scheduler}: bound pods", outcome.binds, count, "pods", "count"),
    ]

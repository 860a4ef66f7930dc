"""A case on a live server: our scheduler, and then, if it is asked for, another one on the same nodes."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from benchmarks.demo.stack import Stack
from benchmarks.harness.results import Sample
from benchmarks.harness.runner import CannotMeasureError
from benchmarks.harness.series import Series, cdf, timeline
from benchmarks.live import session
from benchmarks.live.perf.phase import Outcome, Phase, figures
from benchmarks.live.perf.sizes import PerfSizes
from benchmarks.live.perf.templates import NODES

SCHEDULER = "poseidon"
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


async def compare(run: Rivalry) -> Sample:
    """Our figures, those of the other one, and the ratio of their rates."""
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
    if run.against is not None:
        other = await _phase(stack, kubeconfig, run, run.against)
        metrics |= {f"other_{_named(name)}": value for name, value in figures(other)}
        metrics["times_other"] = mine.per_second / other.per_second
        checks += other.checks
        recorded += _series(run.against, other)
    return Sample(metrics, {"pods": run.sizes.pods, "nodes": run.sizes.nodes}, checks, recorded)


def _named(figure: str) -> str:
    return figure.replace("per_s_", "window_") if figure.startswith("per_s_") else figure


async def _phase(stack: Stack, kubeconfig: Path, run: Rivalry, scheduler: str) -> Outcome:
    async def start() -> None:
        if scheduler == SCHEDULER:
            await stack.start_scheduler(kubeconfig, scheduler, "", _QUEUE_FLAGS if run.sizes.jobs else ())
        elif run.start is not None:
            try:
                await stack.start_other(shlex.split(run.start.replace("{kubeconfig}", str(kubeconfig))))
            except (OSError, ValueError) as error:  # there is no such program, or a quotation mark without its other
                raise CannotMeasureError(f"cannot run --start {run.start}: {error}; correct the command") from error

    async def stop() -> None:
        if stack.scheduler is not None:
            await stack.scheduler.stop()
            stack.scheduler = None

    def check() -> None:
        if stack.scheduler is not None:
            stack.scheduler.check()

    synthetic = await session.has_audit(stack.kube)
    return await Phase(stack.kube, run.sizes, scheduler, synthetic, start, stop, check).measure()


def _series(scheduler: str, outcome: Outcome) -> list[Series]:
    count = range(1, len(outcome.binds) + 1)
    return [
        cdf(f"{scheduler}: time to bind", outcome.latencies, "time to bind", "s"),
        timeline(f"{scheduler}: bound pods", outcome.binds, count, "pods", "count"),
    ]

"""Measures the whole path on a live API server."""

from __future__ import annotations

import asyncio
import math
import shlex
import time
from dataclasses import dataclass
from pathlib import Path

import orjson

from benchmarks.demo.checks import run_checks
from benchmarks.demo.children import environment
from benchmarks.demo.evidence import gather
from benchmarks.demo.progress import percentiles
from benchmarks.demo.stack import Stack
from benchmarks.demo.workload import UNIFORM
from benchmarks.harness.results import Check, Sample
from benchmarks.harness.runner import CannotMeasureError, Options
from benchmarks.harness.series import Series, cdf, timeline
from benchmarks.harness.specs import Case
from benchmarks.live import session
from benchmarks.live.companions import Companions, Kind, run_pods
from benchmarks.live.perf.comparing import BLIND, SCHEDULER, executed, measure_compared
from benchmarks.live.processes import cpu_seconds, family, resident_mib
from benchmarks.live.session import Pods
from poseidon_py.util.process.child_process import PYTHON

_FROM_START = "beforehand", "restart"
"""Modes in which the scheduler starts once all pods exist."""

_PATIENCE = 60.0
_SETTLE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Run:
    nodes: int
    pods: int
    mode: str
    per_second: float | None
    workload: str
    seed: int
    kubeconfig: Path | None
    against: str | None
    start: str | None = None
    running: int = 0
    companions: Kind | None = None
    companion_pods: int = 0


def measure(case: Case, options: Options) -> Sample:
    """One server, blind pods, the scheduler's pods, blind pods again: equally many each time, because kubelets that
    start the first of them slow the server down for the rest, but hardly so in a short burst."""
    extra, sizes = options.extra, case.sizes
    if sizes["mode"] == "perf":
        return measure_compared(sizes, options)
    run = _Run(
        nodes=options.scaled(sizes["nodes"]),
        pods=options.scaled(sizes["pods"], 2),
        mode=sizes["mode"],
        per_second=sizes.get("per_second"),
        workload=sizes.get("workload", "basic"),
        seed=options.seed,
        kubeconfig=Path(extra["kubeconfig"]) if extra.get("kubeconfig") else None,
        against=extra.get("against"),
        start=extra.get("start"),
        running=options.scaled(sizes["nodes"]) * sizes.get("running_per_node", 0),
        companions=sizes.get("companions"),
        companion_pods=options.scaled(sizes["companion_pods"]) if "companions" in sizes else 0,
    )
    if run.start and not run.against:
        raise CannotMeasureError("--start needs --against: the name of the scheduler that it starts")
    if run.against and not run.kubeconfig:
        raise CannotMeasureError("--against needs --kubeconfig: the cluster in which that scheduler runs")
    if run.against and bool(run.start) is not (run.mode in _FROM_START):
        remedy = "give --start COMMAND, too" if run.mode in _FROM_START else "start it before, without --start"
        raise CannotMeasureError(f"`{run.mode}` cannot measure that scheduler so: {remedy}")
    return executed(_measure(run))


async def _measure(run: _Run) -> Sample:
    async with Stack() as stack:
        if run.kubeconfig is None:
            await stack.start_cluster(run.nodes, UNIFORM, run.seed)
            return await _phases(stack, stack.kubeconfig, run)
        await stack.connect(run.kubeconfig, 100)
        await session.remove(stack.kube)
        try:
            await session.add_nodes(stack.kube, run.nodes)
            return await _phases(stack, run.kubeconfig, run)
        finally:
            await session.remove(stack.kube)


async def _phases(stack: Stack, kubeconfig: Path, run: _Run) -> Sample:
    audit = await session.has_audit(stack.kube)
    blind = Pods(stack.kube, BLIND, run.nodes, run.pods, run.seed, audit)
    measured = Pods(stack.kube, run.against or SCHEDULER, run.nodes, run.pods, run.seed, audit, run.workload)
    companions = Companions(stack.kube, measured.scheduler, run.companions, run.companion_pods)
    took = []
    at_rate, compares = run.mode == "rate", run.mode != "restart"
    try:
        await companions.prepare()
        await run_pods(stack.kube, run.running)
        if compares and not at_rate:
            await blind.begin()
            took.append((await _blind(blind, kubeconfig, run)).seconds)
        metrics, facts, checks, recorded = await _scheduled(stack, measured, companions, kubeconfig, run)
        if stack.scheduler is not None:
            await stack.scheduler.stop()
        if compares and at_rate:
            await blind.begin()
            alone = _after_answer(blind, (await _blind(blind, kubeconfig, run)).times)
            facts["blind_after_answer_s"] = alone
            metrics["blind_answer_p50_s"], metrics["blind_answer_p99_s"] = alone["p50"], alone["p99"]
        elif compares:
            took.append((await _blind(blind, kubeconfig, run)).seconds)
            # over all pods, not the mean of two rates
            metrics["blind_per_s"] = run.pods * len(took) / sum(took)
            metrics["ratio"] = metrics["bound_per_s"] / metrics["blind_per_s"]
            facts["blind_before_per_s"], facts["blind_after_per_s"] = (round(run.pods / seconds) for seconds in took)
    finally:
        await blind.close()
        await measured.close()
        await companions.remove()
    return Sample(metrics, facts, checks, recorded)


async def _scheduled(
    stack: Stack, pods: Pods, companions: Companions, kubeconfig: Path, run: _Run
) -> tuple[dict[str, float], dict[str, object], list[Check], list[Series]]:
    """Measures the scheduler."""
    await pods.begin()
    metrics: dict[str, float] = {}

    async def start() -> tuple[float, float]:
        """Starts the scheduler. Returns the times when it began, and when it was ready, as far as that is known."""
        began = time.time()
        if run.against is None:
            await stack.start_scheduler(kubeconfig, SCHEDULER, "")
            metrics["startup_s"] = time.time() - began
        elif run.start is not None:
            try:
                await stack.start_other(shlex.split(run.start.replace("{kubeconfig}", str(kubeconfig))))
            except (OSError, ValueError) as error:  # there is no such program, or a quotation mark without its other
                raise CannotMeasureError(f"cannot run --start {run.start}: {error}; correct the command") from error
        return began, time.time() if run.start is None else math.inf

    if run.mode in _FROM_START:
        await pods.create(run.pods)
        started, began = await start()
    else:
        await start()
        started = began = time.time()
    pid = stack.scheduler.pid if stack.scheduler is not None else None
    cpu = cpu_seconds(pid) if pid is not None and run.mode not in _FROM_START else 0.0
    if run.mode not in _FROM_START:
        await pods.create(run.pods, run.per_second, companions.creations())

    def watch() -> None:
        if stack.scheduler is not None and pid is not None:
            stack.scheduler.check()
            # includes the start if the pods exist beforehand, because they are decoded then
            metrics["cpu_us_per_pod"] = (cpu_seconds(pid) - cpu) / run.pods * 1e6

    times = await pods.wait_for(run.pods, _PATIENCE, watch)
    began = min(began, *times.values())
    if run.mode in _FROM_START and pid is not None:
        metrics["first_bind_s"] = min(times.values()) - started
        each, *others = (resident_mib(process) for process in family(pid))
        metrics["resident_mib"] = each + sum(others)
        if run.against is None:
            metrics["bridge_mib"], metrics["engine_mib"] = each, sum(others)
    metrics["bound_per_s"] = len(times) / (max(times.values()) - began)
    waited = sorted(at - max(pods.created[uid], began) for uid, at in times.items())
    found = percentiles(waited)
    metrics["p50_s"], metrics["p99_s"] = found["p50"], found["p99"]
    facts: dict[str, object] = {"pods": run.pods, "nodes": run.nodes, "to_bind_s": found}
    if run.mode == "rate":
        facts["after_answer_s"] = after = _after_answer(pods, times)
        metrics["answer_p50_s"], metrics["answer_p99_s"] = after["p50"], after["p99"]
    since = sorted(at - began for at in times.values())
    recorded = [
        cdf("time to bind", waited, "time to bind", "s"),
        timeline("bound pods", since, range(1, len(since) + 1), "pods", "count"),
    ]
    return metrics, facts, await _checks(stack, len(times), run), recorded


async def _checks(stack: Stack, measured: int, run: _Run) -> list[Check]:
    """The demo's checks, if the scheduler is ours: others have no status or metrics. measured: number of pods in the
    figures."""
    every = Check("every pod is in the figures", measured == run.pods, f"{measured} of {run.pods}")
    await asyncio.sleep(_SETTLE_SECONDS)
    if run.against is not None or run.companions is not None or run.running:  # not all pods are its own, or run
        return [every]
    evidence = await gather(stack.kube, stack.health_url)
    return [every, *(Check(c.name, c.ok, c.detail) for c in run_checks(evidence, SCHEDULER, run.pods, settled=True))]


@dataclass(frozen=True, slots=True)
class _Bound:
    """times: of the binds, by UID of the pod. seconds: from when time starts to the last of them."""

    times: dict[str, float]
    seconds: float


def _after_answer(pods: Pods, times: dict[str, float]) -> dict[str, float]:
    """Percentiles of the seconds from the answer to the creation of each pod to its bind."""
    return percentiles(sorted(at - pods.answered[uid] for uid, at in times.items()))


async def _blind(pods: Pods, kubeconfig: Path, run: _Run) -> _Bound:
    """What the blind binder bound: pods that exist beforehand, or else that are created meanwhile."""
    before, count, follow = set(pods.created), run.pods, run.mode not in _FROM_START
    if not follow:
        await pods.create(count)
    arguments = ["--kubeconfig", str(kubeconfig), "--scheduler-name", BLIND, "--count", str(count)]
    process = await asyncio.create_subprocess_exec(
        *PYTHON,
        "-m",
        "benchmarks.live.blind",
        *arguments,
        *(["--follow"] if follow else []),
        stdout=asyncio.subprocess.PIPE,
        env=environment(),
    )
    assert process.stdout is not None
    try:
        if await process.stdout.readline() != b"ready\n":
            raise CannotMeasureError("the blind binder did not start")
        began = time.time()
        if follow:
            await pods.create(count, run.per_second)
        out = await asyncio.wait_for(process.stdout.read(), _PATIENCE)
        await process.wait()
    except TimeoutError:
        raise CannotMeasureError(f"the blind binder did not bind {count} pods in {_PATIENCE:.0f} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if not out:
        raise CannotMeasureError("the blind binder exited before it had bound all pods")
    done = orjson.loads(out)
    if done["failed"]:
        raise CannotMeasureError(f"{done['failed']:.0f} of the blind binder's {count} binds failed")
    await asyncio.sleep(_SETTLE_SECONDS)  # work that its pods cause should not slow the next phase
    times = {uid: at for uid, at in (await pods.bind_times()).items() if uid not in before}
    if len(times) < count:
        raise CannotMeasureError(f"the server has bind times for only {len(times)} of the blind binder's {count} pods")
    # the server's clock, as for the scheduler: for pods that exist beforehand, time starts at the first bind
    return _Bound(times, max(times.values()) - (began if follow else min(times.values())))

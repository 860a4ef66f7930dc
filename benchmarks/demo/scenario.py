"""The demo: start the processes, submit the workload, wait until it has settled, gather evidence, run the checks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import orjson

from benchmarks.cluster.nodes.kubelets import RUN_SECONDS
from benchmarks.demo.apps import (
    KIND_LABEL,
    LARGE,
    URGENT,
    App,
    budget_manifest,
    demo_apps,
    demo_budgets,
    priority_class,
)
from benchmarks.demo.checks import run_checks
from benchmarks.demo.disruptions import Disruptions
from benchmarks.demo.evidence import Evidence, gather
from benchmarks.demo.moves_check import check_moves, moves
from benchmarks.demo.preemption_check import check_preemption, preemption
from benchmarks.demo.progress import Progress
from benchmarks.demo.show import Display
from benchmarks.demo.stack import Stack
from benchmarks.demo.summary import Summary, summarise
from benchmarks.demo.workload import MIXED
from poseidon_py.kube.client import Kube

_SUBMITS_AT_ONCE = 16
_QUIET_SECONDS = 3.0
"""The workload has settled when nothing has changed for so long."""
_ENDLESS_SECONDS = 3600.0
"""Pods that run longer do not have to end."""
_REPORT_SECONDS = 15.0
_POLL_SECONDS = 0.2
_MOVES_FLAGS = ("--migrate-after", "0", "--moves-at-once", "100")
"""By default only pods that have run for ten minutes are moved, and few at a time."""
_USAGE_FLAGS = ("--usage-interval", "1")
"""At the default interval a demo would end before the second sample."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run. policy, usage: empty for the scheduler's default. patience: seconds to wait for the workload to
    settle; None: by its size."""

    nodes: int
    pods: int
    policy: str
    seed: int
    scheduler: str = "poseidon"
    usage: str = ""
    patience: float | None = None

    @property
    def patience_seconds(self) -> float:
        """`patience`, or a time that is enough on a slow machine."""
        return self.patience if self.patience is not None else 90.0 + self.pods / 50


async def run(stack: Stack, plan: Plan, display: Display) -> Summary:
    """Starts the stack, runs the plan on it, and leaves it running. Raises ChildError, KubeError."""
    began = time.monotonic()
    display.step(f"starting a synthetic cluster of {plan.nodes} nodes")
    await stack.start_cluster(plan.nodes, MIXED, plan.seed)
    apps = demo_apps(plan.nodes, plan.pods, plan.scheduler, plan.seed)
    budgets = demo_budgets(apps)
    await _submit(stack.kube, [priority_class(), *map(budget_manifest, budgets)])
    disruptions = Disruptions(budgets)
    progress = Progress(stack.kube, plan.scheduler, KIND_LABEL, _is_finite, disruptions.observe)
    watching = asyncio.create_task(progress.run(), name="progress")
    polling: asyncio.Task[None] | None = None
    try:
        display.step("starting the scheduler: `poseidon run` and its flow service")
        usage_flags = ["--usage", plan.usage, *_USAGE_FLAGS] if plan.usage else []
        await stack.start_scheduler(stack.kubeconfig, plan.scheduler, plan.policy, [*usage_flags, *_MOVES_FLAGS])
        poller = StatusPoller()
        polling = asyncio.create_task(poller.follow(stack), name="status")
        deadline = time.monotonic() + plan.patience_seconds
        urgent = [app for app in apps if app.kind == URGENT]
        display.step(
            f"submitting {plan.pods} pods through {len(apps)} Deployments, Jobs and Pods, the urgent ones last"
        )
        expected = await _submit(stack.kube, [app for app in apps if app.kind != URGENT])

        async def until(condition: Callable[[], bool]) -> bool:
            return await _until(condition, stack, deadline, lambda: display.progress(progress, plan.pods, poller.note))

        with display:
            await until(lambda: progress.waits(LARGE) or progress.tried(expected))
            expected += await _submit(stack.kube, urgent)
            settled = await until(lambda: progress.settled(expected, _QUIET_SECONDS))
        seconds = time.monotonic() - began
        display.step("the workload has settled; checking the API server's view" if settled else "not settled in time")
        evidence = await _reported(stack, disruptions)
        checks = run_checks(evidence, plan.scheduler, expected - disruptions.removed, settled)
        checks += [*check_preemption(evidence, disruptions), check_moves(evidence, disruptions)]
        return summarise(
            evidence,
            progress,
            checks,
            preemption(evidence, disruptions),
            moves(evidence, disruptions),
            poller.largest_network,
            seconds=seconds,
            scheduler=plan.scheduler,
            policy=poller.policy or plan.policy,
            usage=poller.usage,
            seed=plan.seed,
        )
    finally:
        for task in (watching, polling):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task


class StatusPoller:
    """What the scheduler's status has shown during the run: the largest network, the policy, measured usage."""

    def __init__(self) -> None:
        self.largest_network: dict[str, int] = {}
        self.policy = ""
        self.usage: dict[str, object] = {}
        """Basis and samples of the newest status, and the most pods and nodes measured in any."""
        self.note = ""
        """The newest round, for the progress line."""

    async def follow(self, stack: Stack) -> None:
        """Polls the status until cancelled."""
        while True:
            self.take(await stack.scheduler_status())
            await asyncio.sleep(_POLL_SECONDS)

    def take(self, status: dict[str, object]) -> None:
        """Records one status."""
        self.policy = str(status.get("policy", "")) or self.policy
        self._record_usage(status.get("usage"))
        last = status.get("last_round")
        if not isinstance(last, dict):
            return
        figures = {name: int(last.get(name, 0)) for name in ("vertices", "arcs", "pending", "solves")}
        if figures["arcs"]:
            milliseconds = 1000 * float(last.get("seconds", 0.0))
            self.note = f"; round {status.get('rounds')}: {milliseconds:.1f} ms, {figures['arcs']} arcs"
        if figures["arcs"] > self.largest_network.get("arcs", 0):
            self.largest_network = figures

    def _record_usage(self, usage: object) -> None:
        """Keeps the maxima: at the end few pods are left to be measured."""
        if not isinstance(usage, dict) or not (usage.get("polling") or usage.get("samples", {}).get("taken")):
            return
        before = self.usage
        self.usage = {"basis": usage.get("basis"), **usage.get("samples", {})}
        for what in ("pods", "nodes"):
            now = int(usage.get(what, {}).get("measured", 0))
            self.usage[f"{what}_measured"] = max(now, int(str(before.get(f"{what}_measured", 0))))
        last = usage.get("last_round", {})
        before_priced = int(str(before.get("pods_priced", 0)))
        self.usage["pods_priced"] = max(before_priced, int(last.get("measured", 0)))


async def _submit(kube: Kube, apps: Sequence[App]) -> int:
    """Creates all objects; returns the number of pods that they make. Raises KubeError."""
    for first in range(0, len(apps), _SUBMITS_AT_ONCE):
        await asyncio.gather(
            *(kube.call("POST", app.path, orjson.dumps(app.manifest)) for app in apps[first : first + _SUBMITS_AT_ONCE])
        )
    return sum(app.pods for app in apps)


async def _until(condition: Callable[[], bool], stack: Stack, deadline: float, show: Callable[[], None]) -> bool:
    """Whether a condition holds before the deadline; calls `show` until then. Raises ChildError if a process ends."""
    while time.monotonic() < deadline:
        for child in (stack.cluster, stack.scheduler):
            if child is not None:
                child.check()
        if condition():
            return True
        show()
        await asyncio.sleep(0.1)
    return False


async def _reported(stack: Stack, disruptions: Disruptions) -> Evidence:
    """The evidence, once there is an event for each victim: the scheduler may send events seconds later."""
    deadline = time.monotonic() + _REPORT_SECONDS
    while True:
        evidence = await gather(stack.kube, stack.health_url)
        if len(evidence.preempted) >= len(disruptions.victims) or time.monotonic() > deadline:
            return evidence
        await asyncio.sleep(_POLL_SECONDS)


def _is_finite(annotations: dict[str, str]) -> bool:
    """Whether a pod ends within the time of a demo."""
    return float(annotations.get(RUN_SECONDS, _ENDLESS_SECONDS)) < _ENDLESS_SECONDS

"""The demo itself: start everything, submit, watch until all has settled, gather evidence, judge."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import orjson

from benchmarks.cluster.nodes.kubelets import RUN_SECONDS
from benchmarks.demo.apps import KIND_LABEL, App, demo_apps
from benchmarks.demo.checks import run_checks
from benchmarks.demo.evidence import gather
from benchmarks.demo.progress import Progress
from benchmarks.demo.show import Display
from benchmarks.demo.stack import Stack
from benchmarks.demo.summary import Summary, summarise
from benchmarks.demo.workload import MIXED
from poseidon_py.kube.client import Kube

_SUBMITS_AT_ONCE = 16
_QUIET_SECONDS = 1.5
"""Nothing has changed for so long: nothing will."""
_ENDLESS_SECONDS = 3600.0
_POLL_SECONDS = 0.2
_OFTEN = ("--usage-interval", "1")
"""A demo is over before production would have measured anything twice."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run. policy, usage "": the scheduler's default. patience: seconds to wait for everything to settle."""

    nodes: int
    pods: int
    policy: str
    seed: int
    scheduler: str = "poseidon"
    usage: str = ""
    patience: float | None = None

    @property
    def patience_seconds(self) -> float:
        """As asked, or enough for a slow machine."""
        return self.patience if self.patience is not None else 90.0 + self.pods / 50


async def run(stack: Stack, plan: Plan, display: Display) -> Summary:
    """Runs the plan on a stack that is not started yet, and leaves it running. Raises ChildError."""
    began = time.monotonic()
    display.step(f"starting a synthetic cluster of {plan.nodes} nodes")
    await stack.start_cluster(plan.nodes, MIXED, plan.seed)
    progress = Progress(stack.kube, plan.scheduler, KIND_LABEL, _ends)
    watching = asyncio.create_task(progress.run(), name="progress")
    polling: asyncio.Task[None] | None = None
    try:
        display.step("starting the scheduler: poseidon run, and its firmament service")
        more = ["--usage", plan.usage, *_OFTEN] if plan.usage else []
        await stack.start_scheduler(stack.kubeconfig, plan.scheduler, plan.policy, more)
        networks = Networks()
        polling = asyncio.create_task(networks.follow(stack), name="status")
        apps = demo_apps(plan.nodes, plan.pods, plan.scheduler, plan.seed)
        display.step(f"submitting {plan.pods} pods through {len(apps)} Deployments, Jobs and Pods")
        expected = await _submit(stack.kube, apps)
        with display:
            settled = await _settle(stack, progress, networks, expected, plan.patience_seconds, display)
        seconds = time.monotonic() - began
        display.step("everything has come to rest; looking at what the API server says")
        evidence = await gather(stack.kube, stack.health_url)
        checks = run_checks(evidence, plan.scheduler, expected, settled)
        return summarise(
            evidence,
            progress,
            checks,
            networks.largest,
            seconds=seconds,
            scheduler=plan.scheduler,
            policy=networks.policy or plan.policy,
            usage=networks.usage,
            seed=plan.seed,
        )
    finally:
        for task in (watching, polling):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task


class Networks:
    """The largest network that the scheduler's status has shown."""

    def __init__(self) -> None:
        self.largest: dict[str, int] = {}
        self.policy = ""
        self.usage: dict[str, object] = {}
        """What the last answer said of usage: basis, samples, most pods and nodes measured."""
        self.note = ""
        """What the last answer said, for a line of progress."""

    async def follow(self, stack: Stack) -> None:
        """Asks again and again until cancelled."""
        while True:
            self.take(await stack.scheduler_status())
            await asyncio.sleep(_POLL_SECONDS)

    def take(self, status: dict[str, object]) -> None:
        """Looks at one answer."""
        self.policy = str(status.get("policy", "")) or self.policy
        self._take_usage(status.get("usage"))
        last = status.get("last_round")
        if not isinstance(last, dict):
            return
        figures = {name: int(last.get(name, 0)) for name in ("vertices", "arcs", "pending", "solves")}
        if figures["arcs"]:
            milliseconds = 1000 * float(last.get("seconds", 0.0))
            self.note = f"; round {status.get('rounds')}: {milliseconds:.1f} ms, {figures['arcs']} arcs"
        if figures["arcs"] > self.largest.get("arcs", 0):
            self.largest = figures

    def _take_usage(self, usage: object) -> None:
        """Pods are measured while they are there: the most that ever were says more than those at the end."""
        if not isinstance(usage, dict) or not (usage.get("polling") or usage.get("samples", {}).get("taken")):
            return
        before = self.usage
        self.usage = {"basis": usage.get("basis"), **usage.get("samples", {})}
        for what in ("pods", "nodes"):
            now = int(usage.get(what, {}).get("measured", 0))
            self.usage[f"{what}_measured"] = max(now, int(str(before.get(f"{what}_measured", 0))))
        last = usage.get("last_round", {})
        most = int(str(before.get("pods_priced", 0)))
        self.usage["pods_priced"] = max(most, int(last.get("measured", 0)))


async def _submit(kube: Kube, apps: Sequence[App]) -> int:
    """Creates everything; how many pods that makes. Raises KubeError."""
    for first in range(0, len(apps), _SUBMITS_AT_ONCE):
        await asyncio.gather(
            *(kube.call("POST", app.path, orjson.dumps(app.manifest)) for app in apps[first : first + _SUBMITS_AT_ONCE])
        )
    return sum(app.pods for app in apps)


async def _settle(
    stack: Stack, progress: Progress, networks: Networks, expected: int, patience: float, display: Display
) -> bool:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        for child in (stack.cluster, stack.scheduler):
            if child is not None:
                child.check()
        if progress.settled(expected, _QUIET_SECONDS):
            return True
        display.progress(progress, expected, networks.note)
        await asyncio.sleep(0.1)
    return False


def _ends(annotations: dict[str, str]) -> bool:
    """Whether a pod runs for a time that somebody will wait for."""
    return float(annotations.get(RUN_SECONDS, _ENDLESS_SECONDS)) < _ENDLESS_SECONDS

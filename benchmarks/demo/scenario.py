"""The demo: start the processes, submit the workload, wait until it has settled, gather evidence, run the checks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from benchmarks.cluster.nodes.kubelets import RUN_SECONDS
from benchmarks.demo.apps import (
    KIND_LABEL,
    LARGE,
    URGENT,
    App,
    budget_manifest,
    card_templates,
    demo_apps,
    demo_budgets,
    priority_class,
)
from benchmarks.demo.checks import run_checks
from benchmarks.demo.disruptions import Disruptions
from benchmarks.demo.evidence import gather
from benchmarks.demo.moves_check import check_moves, moves
from benchmarks.demo.preemption_check import check_preemption, preemption
from benchmarks.demo.progress import Progress
from benchmarks.demo.show import Display
from benchmarks.demo.stack import Stack
from benchmarks.demo.summary import Summary, summarise
from benchmarks.demo.workload import WITH_CARDS
from poseidon_py.kube.client import Kube
from poseidon_py.util.tasks import end_tasks

_SUBMITS_AT_ONCE = 16
_ENDLESS_SECONDS = 3600.0
"""Pods that run longer do not have to end."""
_POLL_SECONDS = 0.2
_SOON_SECONDS = 1.0
"""A round that the engine has asked for within so long counts as work that is left."""
_MOVES_FLAGS = ("--migrate-after", "0", "--moves-at-once", "100")
"""By default only pods that have run for ten minutes are moved, and few at a time."""
_USAGE_FLAGS = ("--usage-interval", "1")
"""At the default interval a demo would end before the second sample."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run. policy, usage: empty for the scheduler's default. patience: seconds to wait for a change while the
    workload has not settled; None: by its size."""

    nodes: int
    pods: int
    policy: str
    seed: int
    scheduler: str = "poseidon"
    usage: str = ""
    patience: float | None = None
    dashboard: bool = False
    """Whether the scheduler serves its page."""

    @property
    def patience_seconds(self) -> float:
        """`patience`, or a time that is enough on a slow machine."""
        return self.patience if self.patience is not None else 180.0 + self.pods / 50


async def run(stack: Stack, plan: Plan, display: Display) -> Summary:
    """Starts the stack, runs the plan on it, and leaves it running. Raises ChildError, KubeError."""
    began = time.monotonic()
    display.step(f"starting a synthetic cluster of {plan.nodes} nodes")
    await stack.start_cluster(plan.nodes, WITH_CARDS, plan.seed)
    apps = demo_apps(plan.nodes, plan.pods, plan.scheduler, plan.seed)
    budgets = demo_budgets(apps)
    await _submit(stack.kube, [priority_class(), *card_templates(), *map(budget_manifest, budgets)])
    disruptions = Disruptions(budgets)
    progress = Progress(stack.kube, plan.scheduler, KIND_LABEL, _is_finite, disruptions.observe)
    watching = asyncio.create_task(progress.run(), name="progress")
    try:
        display.step("starting the scheduler: `poseidon run` and its flow service")
        usage_flags = ["--usage", plan.usage, *_USAGE_FLAGS] if plan.usage else []
        flags = [*usage_flags, *_MOVES_FLAGS, *(["--dashboard"] if plan.dashboard else [])]
        await stack.start_scheduler(stack.kubeconfig, plan.scheduler, plan.policy, flags)
        if plan.dashboard:
            display.step(f"the scheduler's page: {stack.health_url}/dashboard/")
        urgent = [app for app in apps if app.kind == URGENT]
        display.step(
            f"submitting {plan.pods} pods through {len(apps)} Deployments, Jobs and Pods, the urgent ones last"
        )
        submitted = await _submit(stack.kube, [app for app in apps if app.kind != URGENT])
        poller = StatusPoller()

        def expected() -> int:
            return submitted - disruptions.removed

        async def until(condition: Callable[[], bool]) -> bool:
            """Whether a condition holds before nothing has changed for too long. Raises ChildError if a process
            ends."""
            while not condition():
                for child in (stack.cluster, stack.scheduler):
                    if child is not None:
                        child.check()
                display.progress(progress, plan.pods, poller.note)
                await asyncio.sleep(_POLL_SECONDS)
                poller.take(await poller.asked(stack))
                if time.monotonic() - max(progress.changed_at, poller.changed_at) > plan.patience_seconds:
                    return False
            return True

        with display:
            await until(lambda: progress.waits(LARGE) or progress.tried(expected()))
            submitted += await _submit(stack.kube, urgent)
            settled = await until(lambda: progress.settled(expected()) and poller.idle(progress.version))
        seconds = time.monotonic() - began
        display.step("the workload has settled; checking the API server's view" if settled else "not settled in time")
        evidence = replace(
            await gather(stack.kube, stack.health_url),
            complaints=stack.complaints(),
            slowest_answer=poller.slowest_answer,
        )
        checks = run_checks(evidence, plan.scheduler, expected(), settled)
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
        await end_tasks(watching)


class StatusPoller:
    """What the scheduler's status has shown during the run: the largest network, the policy, measured usage."""

    def __init__(self) -> None:
        self.largest_network: dict[str, int] = {}
        self.policy = ""
        self.usage: dict[str, object] = {}
        """Basis and samples of the newest status, and the most pods and nodes measured in any."""
        self.note = ""
        """The newest round, for the progress line."""

        self.slowest_answer = 0.0
        """Seconds."""
        self.changed_at = time.monotonic()
        """When the scheduler's work was last another than before."""
        self._work: object = None
        self._unfinished: dict[str, int] | None = None
        self._next_round: float | None = None
        self._version = 0

    async def asked(self, stack: Stack) -> dict[str, object]:
        """The status of the scheduler, which is timed."""
        began = time.monotonic()
        status = await stack.scheduler_status()
        self.slowest_answer = max(self.slowest_answer, time.monotonic() - began)
        return status

    def idle(self, version: int) -> bool:
        """Whether the scheduler knew the pods up to this resource version, had nothing left to do, and will not have
        soon, by its newest status."""
        if self._unfinished is None or self._version < version or any(self._unfinished.values()):
            return False
        return self._next_round is None or self._next_round > _SOON_SECONDS

    def take(self, status: dict[str, Any]) -> None:
        """Records one status."""
        self._unfinished = status.get("unfinished")
        self._next_round = status.get("next_round_seconds")
        self._version = int(status.get("versions", {}).get("pods") or 0)
        work = self._unfinished, self._version, status.get("bound")
        if work != self._work:
            self._work, self.changed_at = work, time.monotonic()
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


def _is_finite(annotations: dict[str, str]) -> bool:
    """Whether a pod ends within the time of a demo."""
    return float(annotations.get(RUN_SECONDS, _ENDLESS_SECONDS)) < _ENDLESS_SECONDS

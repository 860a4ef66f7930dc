"""One scheduler in one case: from the first creation of the measured pods to the last of their binds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import numpy as np
import orjson

from benchmarks.demo.progress import Pod, Progress, percentiles
from benchmarks.harness.results import Check
from benchmarks.harness.runner import CannotMeasureError
from benchmarks.live.perf.background import CHURN, churn, delete, delete_pods, first_admission
from benchmarks.live.perf.claims import CaseClaims
from benchmarks.live.perf.furnishing import JOBS, PODS, QUEUE, QUEUE_LABEL, Furnishing
from benchmarks.live.perf.sizes import PerfSizes
from benchmarks.live.perf.templates import PART, TEMPLATES
from benchmarks.live.session import LABEL, in_parallel, node_names
from poseidon_py.kube.client import Kube
from poseidon_py.util.tasks import end_tasks

INITIAL, MEASURED, WAITING, FIRST = "initial", "measured", "waiting", "first"
_PATIENCE = 120.0
"""Seconds without a bind after which a case fails."""
_POLL_SECONDS = 0.05
_SETTLE_SECONDS = 1.0
_WINDOW_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Figures of one scheduler. binds: seconds since the start, ascending, one for each measured pod; latencies: from
    the request to create a pod to its bind, ascending, seconds; checks: what was right; cpu: CPU seconds from the start
    to the last bind, of the scheduler's process and of those that it has started."""

    binds: list[float]
    latencies: list[float]
    checks: list[Check]
    cpu: tuple[float, float] = (0.0, 0.0)

    @property
    def per_second(self) -> float:
        """Measured pods a second, from the start to the last bind."""
        return len(self.binds) / max(self.binds[-1], 1e-9)

    def windows(self) -> list[float]:
        """Pods bound in each whole second since the start, ascending; the mean rate if there is no whole second."""
        whole = int(self.binds[-1] / _WINDOW_SECONDS)
        if not whole:
            return [self.per_second]
        counts, _ = np.histogram(self.binds, whole, (0.0, whole * _WINDOW_SECONDS))
        found: list[float] = np.sort(counts / _WINDOW_SECONDS).tolist()
        return found


class Phase:
    """The pods of one scheduler on a server that has the nodes of the case. start and stop: of the scheduler; check:
    raises an error if it has exited; cpu: as Outcome's, so far."""

    def __init__(
        self,
        kube: Kube,
        sizes: PerfSizes,
        scheduler: str,
        synthetic: bool,
        start: Callable[[], Awaitable[None]],
        stop: Callable[[], Awaitable[None]],
        check: Callable[[], None],
        cpu: Callable[[], tuple[float, float]] = lambda: (0.0, 0.0),
    ) -> None:
        self._kube, self._sizes, self._scheduler = kube, sizes, scheduler
        self._start, self._stop, self._check, self._cpu = start, stop, check, cpu
        self._furnishing = Furnishing(kube, sizes, synthetic)
        self._progress = Progress(kube, scheduler, PART, observe=self._observed)
        self._claims = CaseClaims(kube, sizes.claims, scheduler, sizes.pods) if sizes.claims is not None else None
        self._on: dict[str, str] = {}  # UID of a bound pod -> its node
        self._awaited: dict[str, asyncio.Event] = {}  # by UID: set when the pod is bound
        self._asked: dict[str, float] = {}  # by UID: when the creation of a measured pod was asked for
        self._nodes: list[str] = []

    async def measure(self) -> Outcome:
        """Everything, from an empty server to an empty server."""
        sizes = self._sizes
        self._nodes = await node_names(self._kube)
        watching = [asyncio.create_task(self._progress.run())]
        try:
            await self._furnishing.prepare()
            if self._claims is not None:
                await self._claims.prepare(self._nodes)
                watching.append(asyncio.create_task(self._claims.follow()))
            await self._furnishing.groups(
                self._group(INITIAL), _groups(sizes.initial, sizes.initial_members), 0, sizes.disruption
            )
            await self._create(INITIAL, sizes.initial_template, sizes.initial, sizes.initial_members, bound=True)
            await self._start()
            await self._create(FIRST, "light", 1)
            await self._until_bound(FIRST, 1)  # it is up
            await self._create(WAITING, sizes.waiting_template, sizes.waiting)
            await self._furnishing.groups(self._group(MEASURED), _groups(sizes.pods, sizes.of_gang), sizes.of_gang)
            await asyncio.sleep(_SETTLE_SECONDS)
            async with self._meanwhile():
                before = self._cpu()
                began = await (self._by_jobs() if sizes.jobs else self._directly())
                await self._until_bound(MEASURED, sizes.pods)
                used = self._cpu()
            binds = sorted(at - began for at in self._bound(MEASURED).values())
            latencies = sorted(
                at - self._asked.get(uid, self._progress.pods[uid].created_at)
                for uid, at in self._bound(MEASURED).items()
            )
            cpu = used[0] - before[0], used[1] - before[1]
            return Outcome(binds, latencies, await self._checks(), cpu)
        finally:
            await self._stop()
            await end_tasks(*watching)
            await self._furnishing.remove()

    async def _directly(self) -> float:
        """Creates the measured pods. Returns when the first was asked for."""
        began = time.monotonic()
        if self._sizes.claims is not None and self._sizes.claims.at_once:
            await self._in_turn(self._sizes.claims.at_once)
        else:
            await self._create(MEASURED, self._sizes.template, self._sizes.pods, self._sizes.of_gang)
        return began

    async def _in_turn(self, at_once: int) -> None:
        """Creates the measured pods, so many at once, each when an earlier one was bound and deleted."""
        numbers = iter(range(self._sizes.pods))

        async def worker() -> None:
            for number in numbers:
                uid = await self._create_one(MEASURED, self._sizes.template, number)
                if uid not in self._on:
                    event = self._awaited.setdefault(uid, asyncio.Event())
                    try:
                        await asyncio.wait_for(event.wait(), _PATIENCE)
                    except TimeoutError:
                        self._check()
                        raise CannotMeasureError(
                            f"{self._scheduler}: pod {number} was not bound within {_PATIENCE:.0f} s"
                        ) from None
                await delete(self._kube, f"{PODS}/{self._name(MEASURED, number)}")

        await asyncio.gather(*(worker() for _ in range(at_once)))

    def _observed(self, change: str, pod: Pod) -> None:
        uid = pod.metadata.uid
        if pod.spec.node and uid not in self._on:
            self._on[uid] = pod.spec.node
            if (event := self._awaited.pop(uid, None)) is not None:
                event.set()

    async def _by_jobs(self) -> float:
        """Creates suspended Jobs that have the measured pods. Returns when the first was admitted."""
        sizes, each = self._sizes, self._sizes.pods // self._sizes.jobs
        pod = TEMPLATES[sizes.template].pod("", MEASURED, self._scheduler, "")
        pod_spec = {**pod["spec"], "restartPolicy": "Never"}
        template = {"metadata": {"labels": pod["metadata"]["labels"]}, "spec": pod_spec}
        labels = {LABEL: "true", QUEUE_LABEL: QUEUE}
        spec = {"suspend": True, "parallelism": each, "completions": each, "template": template}
        admitted = asyncio.create_task(first_admission(self._kube))

        async def one(number: int) -> None:
            job = {"metadata": {"name": f"{LABEL}-{number:05d}", "labels": labels}, "spec": spec}
            await self._kube.call("POST", JOBS, orjson.dumps(job))

        try:
            await in_parallel(one, range(sizes.jobs))
            async with asyncio.timeout(_PATIENCE):
                return await admitted
        except TimeoutError:
            raise CannotMeasureError(
                f"no Job in the queue was admitted within {_PATIENCE:.0f} s; start what admits Jobs with --start"
            ) from None
        finally:
            await end_tasks(admitted)

    async def _create(self, part: str, template: str, count: int, members: int = 0, *, bound: bool = False) -> None:
        """Creates pods, those that are bound evenly on all nodes. members: of each group."""

        async def one(number: int) -> None:
            await self._create_one(part, template, number, members, bound=bound)

        await in_parallel(one, range(count))

    async def _create_one(self, part: str, template: str, number: int, members: int = 0, *, bound: bool = False) -> str:
        """Returns its UID."""
        group = f"{self._group(part)}-{number // members}" if members else ""
        node = self._nodes[number % len(self._nodes)]
        pod = TEMPLATES[template].pod(self._name(part, number), part, self._scheduler, node, group, bound=bound)
        if part == MEASURED and self._claims is not None:
            self._claims.add_to(pod, number)
        asked = time.monotonic()
        uid: str = orjson.loads(await self._kube.call("POST", PODS, orjson.dumps(pod)))["metadata"]["uid"]
        if part == MEASURED:
            self._asked[uid] = asked
        return uid

    def _group(self, part: str) -> str:
        return f"{self._scheduler}-{part}"

    def _name(self, part: str, number: int) -> str:
        return f"{self._scheduler}-{part}-{number:05d}"

    @asynccontextmanager
    async def _meanwhile(self) -> AsyncIterator[None]:
        """Objects come and go until the end of the block."""
        sizes, tasks = self._sizes, list[asyncio.Task[None]]()
        if sizes.churn is not None:
            tasks.append(asyncio.create_task(churn(self._kube, sizes.churn, self._scheduler)))
        if sizes.deleted_per_second:
            names = [self._name(INITIAL, number) for number in range(sizes.initial)]
            tasks.append(asyncio.create_task(delete_pods(self._kube, names, sizes.deleted_per_second)))
        try:
            yield
            for task in tasks:
                if task.done():
                    task.result()  # an error, but for the end of the deletions
        finally:
            await end_tasks(*tasks)

    def _bound(self, part: str) -> dict[str, float]:
        """UID -> when it was bound."""
        return {
            uid: pod.bound_at
            for uid, pod in self._progress.pods.items()
            if pod.kind == part and pod.bound_at is not None
        }

    async def _until_bound(self, part: str, count: int) -> None:
        """Waits until so many pods of a part are bound. Raises CannotMeasureError if no more are."""
        last, since = -1, time.monotonic()
        others = self._progress.bound - len(self._bound(part))
        while True:
            self._check()
            if self._progress.bound != last:
                last, since = self._progress.bound, time.monotonic()
                if last - others >= count and len(self._bound(part)) >= count:  # the first is cheaper
                    return
            elif time.monotonic() - since > _PATIENCE:
                raise CannotMeasureError(
                    f"{self._scheduler}: only {len(self._bound(part))} of {count} {part} pods were bound, and no more "
                    f"within {_PATIENCE:.0f} s"
                )
            await asyncio.sleep(_POLL_SECONDS)

    async def _checks(self) -> list[Check]:
        """What has become of the pods: the measured ones, and those beside them."""
        sizes, pods = self._sizes, self._progress.pods
        churned = [pod for pod in pods.values() if pod.kind == CHURN]
        if sizes.churn is not None and sizes.churn.outcome == "bound":
            with suppress(CannotMeasureError):  # the check says it
                await self._until_bound(CHURN, len(churned))
        await asyncio.sleep(_SETTLE_SECONDS)
        bound = len(self._bound(MEASURED))
        checks = [Check("every measured pod was bound", bound == sizes.pods, f"{bound} of {sizes.pods}")]
        if self._claims is not None:
            checks += self._claims.checks({uid: self._on[uid] for uid in self._bound(MEASURED)})
        if sizes.waiting:
            waiting = [pod for pod in pods.values() if pod.kind == WAITING]
            stayed = sum(pod.bound_at is None for pod in waiting)
            detail = f"{stayed} of {sizes.waiting}"
            checks.append(Check("pods that cannot be scheduled stayed pending", stayed == sizes.waiting, detail))
        if sizes.churn is not None:
            right = sum((pod.bound_at is not None) == (sizes.churn.outcome == "bound") for pod in churned)
            ok = bool(churned) and right == len(churned)
            checks.append(
                Check(f"pods that came meanwhile are {sizes.churn.outcome}", ok, f"{right} of {len(churned)}")
            )
        return [Check(f"{self._scheduler}: {check.name}", check.ok, check.detail) for check in checks]


def _groups(pods: int, members: int) -> int:
    return -(-pods // members) if members else 0


def figures(outcome: Outcome) -> Iterator[tuple[str, float]]:
    """Mean and percentiles of pods a second, and percentiles of the time to bind, as scheduler_perf reports them."""
    yield "per_s", outcome.per_second
    for name, value in percentiles(outcome.windows(), (50, 90, 95, 99)).items():
        yield f"per_s_{name}", value
    for name, value in percentiles(outcome.latencies, (50, 90, 95, 99)).items():
        yield f"{name}_s", value

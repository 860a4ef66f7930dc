"""A preemptor with a store, a fake API server whose answers a test decides on, and time that stands still."""

import asyncio
from collections.abc import Callable
from typing import Any

from poseidon_py.kube.client import ConflictError, NotFoundError
from poseidon_py.preempt.decisions import Decisions, MigratingPod, NominatedPod, VictimPod
from poseidon_py.preempt.preemptor import Preemptor
from poseidon_py.state.preemption.preemption_rules import PreemptionRules
from poseidon_py.state.store import Store
from tests.poseidon_py.builders import node, pod
from tests.poseidon_py.settling import settle

NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z


class FakePods:
    """Pods of an API server. `faults`: for each further request None, an error to raise instead of it, or ("lost",
    error): do it, then raise. `only`: of requests of this kind alone."""

    def __init__(self) -> None:
        self.pods: dict[str, dict[str, Any]] = {}
        self.requests: list[tuple[str, str, Any]] = []
        self.faults: list[Any] = []
        self.only = ""
        self.read_faults: list[Exception] = []
        self.hold: asyncio.Event | None = None
        self.in_flight = self.largest_in_flight = 0
        self.version = 1000

    def put(self, name, **fields):
        self.pods[name] = {"uid": f"uid-{name}", **fields}

    async def _begin(self, kind, name, uid, what):
        self.requests.append((kind, name, what))
        self.in_flight += 1
        self.largest_in_flight = max(self.largest_in_flight, self.in_flight)
        try:
            await asyncio.sleep(0)
            if self.hold is not None:
                await self.hold.wait()
        finally:
            self.in_flight -= 1
        fault = self.faults.pop(0) if self.faults and self.only in ("", kind) else None
        if isinstance(fault, Exception):
            raise fault
        there = self.pods.get(name)
        if there is None:
            raise NotFoundError(404, "NotFound", "no such pod")
        if there["uid"] != uid:
            raise ConflictError(409, "Conflict", "the UID in the precondition does not match")
        self.version += 1
        return there, fault[1] if fault else None

    async def pod(self, namespace, name):
        self.requests.append(("read", name, None))
        await asyncio.sleep(0)
        if self.read_faults:
            raise self.read_faults.pop(0)
        if name not in self.pods:
            raise NotFoundError(404, "NotFound", "no such pod")
        there = self.pods[name]
        return pod(name, uid=there["uid"], deleting=there.get("deleting", False), phase=there.get("phase", "Running"))

    async def patch_pod_status(self, namespace, name, patch):
        (condition,) = patch["status"]["conditions"]
        kind = "announce" if condition["status"] == "True" else "retract"
        kind = "mark" if condition["type"] == "DisruptionTarget" else kind
        there, lost = await self._begin(kind, name, patch["metadata"]["uid"], patch["status"])
        there["condition"] = condition
        self._annotate(there, patch["metadata"].get("annotations", {}))
        if lost:
            raise lost

    @staticmethod
    def _annotate(there, annotations):
        own = there.setdefault("annotations", {}) | annotations
        there["annotations"] = {key: value for key, value in own.items() if value is not None}

    async def nominate_pod(self, namespace, name, uid, node, annotations=None, conditions=()):
        there, lost = await self._begin("nominate", name, uid, node)
        there["nominated"] = node
        there["state"] = [each["status"] for each in conditions if each["type"] == "poseidon.io/Privileged"]
        self._annotate(there, annotations or {})
        if lost:
            raise lost
        return str(self.version)

    async def delete_pod(self, namespace, name, uid):
        there, lost = await self._begin("delete", name, uid, None)
        there["deleting"] = True
        if lost:
            raise lost

    async def evict_pod(self, namespace, name, uid):
        there, lost = await self._begin("evict", name, uid, None)
        there["deleting"] = True
        if lost:
            raise lost

    def of(self, kind):
        """Names of the pods of all requests of a kind."""
        return [name for what, name, _ in self.requests if what == kind]


class Reports:
    def __init__(self) -> None:
        self.preemptions: list[tuple[str, str | None, str]] = []
        self.migrations: list[tuple[str, str, str]] = []
        self.failures: list[tuple[str, str]] = []
        self.announcements: list[tuple[str, str, str]] = []
        self.retracted_pods: list[str] = []

    def announced(self, known, announcement):
        self.announcements.append((known.name, announcement.time, announcement.preemptor))

    def retracted(self, known):
        self.retracted_pods.append(known.name)

    def preempted(self, known, preemptor, node):
        self.preemptions.append((known.name, preemptor.name if preemptor is not None else None, node))

    def migrated(self, known, node, target, needed_by):
        self.migrations.append((known.name, node, target))

    def failed(self, known, message):
        self.failures.append((known.name, message))


class Timer:
    def __init__(self, seconds: float, call: Callable[[], None]) -> None:
        self.seconds = seconds
        self.call = call
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Bench:
    """A victim `v` on node `n`, which may also be moved to node `m`, and a pending pod `p` for it. Delays pass at once,
    or when `asleep` is set."""

    def __init__(self, *, concurrency=20, patience=60.0, notice=0.0, api=None) -> None:
        self.store = Store(["poseidon"], preemption_rules=PreemptionRules(notice))
        self.api = api or FakePods()
        self.reports = Reports()
        self.rejected: list[tuple[str, str, int]] = []
        self.withdrawn: list[str] = []
        self.timers: list[Timer] = []
        self.sleeps: list[float] = []
        self.asleep: asyncio.Event | None = None
        self.clock = 0.0
        self.leads = True
        self.preemptor = Preemptor(
            self.api,
            self.store,
            lambda known, node_id, not_before: self.rejected.append((known.name, node_id, not_before)),
            self.reports,
            withdraw=self._withdraw,
            suspender=self.new_suspender(),
            leads=lambda: self.leads,
            scheduler="poseidon",
            concurrency=concurrency,
            patience=patience,
            sleep=self.sleep,
            monotonic=lambda: self.clock,
            now=lambda: NOW + self.clock,
            call_later=self._later,
            rng=lambda: 1.0,
        )
        self.store.subscribe(self.preemptor)
        self.store.announced.on_list = self.preemptor.take_over
        self.store.observe_node(node("n"))
        self.store.observe_node(node("m"))
        if api is None:
            self.bound("v")
            self.pending("p")

    def _withdraw(self, uids):
        for uid in uids:
            self.withdrawn.append(uid)
            self.store.release(self.store.pods[uid])

    def new_suspender(self):
        """None: no workload is suspended."""
        return None

    def _later(self, seconds, call):
        timer = Timer(seconds, call)
        self.timers.append(timer)
        return timer

    async def sleep(self, seconds):
        self.sleeps.append(seconds)
        if self.asleep is not None:
            await self.asleep.wait()
        else:
            self.clock += seconds
        await asyncio.sleep(0)

    def bound(self, name, at="n", **fields):
        self.api.put(name)
        self.observe(name, node=at, **fields)
        self.known(name).described.movable = True

    def pending(self, name, **fields):
        self.api.put(name)
        self.observe(name, **fields)

    def observe(self, name, **fields):
        self.store.observe_pod(pod(name, **fields))

    def known(self, name):
        return self.store.pods[f"uid-{name}"]

    def take(self, *, nominated=(), victims=(), unnominated=(), migrations=()):
        """`nominated`, `migrations`: pairs of pod and node; `victims`: pairs of victim and preemptor."""
        self.preemptor.take(
            Decisions(
                [NominatedPod(self.known(name), at) for name, at in nominated],
                [VictimPod(self.known(name), self.known(other)) for name, other in victims],
                [self.known(name) for name in unnominated],
                [MigratingPod(self.known(name), at) for name, at in migrations],
            )
        )

    async def preempt(self):
        """`v` is evicted for `p`."""
        self.take(nominated=[("p", "n")], victims=[("v", "p")])
        await settle()

    async def move(self):
        """`v` is to be evicted because `m` costs less."""
        self.take(migrations=[("v", "m")])
        await settle()

    def outcomes(self):
        """Number of victims by outcome."""
        return self._counts(self.store.metrics.victims)

    def migrations(self):
        """Number of migrations by outcome."""
        return self._counts(self.store.metrics.migrations)

    def _counts(self, counter):
        samples = [sample for metric in counter.collect() for sample in metric.samples]
        return {s.labels["outcome"]: s.value for s in samples if s.name.endswith("_total") and s.value}

    @property
    def idle(self):
        preemptor = self.preemptor
        return not (preemptor.evictor.tasks or preemptor.migrator.tasks or preemptor.nominator.tasks)

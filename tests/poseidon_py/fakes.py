"""Fakes of the flow service and the API server.

FakeEngine implements the contract (epochs, idempotent upserts, assumed placements, rejections, a reply that is sent
again until it is acknowledged) with the simplest placement: first fit.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

from poseidon_py.feed.client import EngineError
from poseidon_py.kube.client import ConflictError, NotFoundError
from protos.gen import flow_pb2
from tests.poseidon_py.builders import pod
from tests.poseidon_py.fake_moves import FakeMoves

_epochs = itertools.count(100)


class FakeEngine:
    """`fail`: errors to raise, by method, one per call; `lose`: those to raise after the work is done. `after_round` is
    called with the reply of each round before it is sent."""

    def __init__(self) -> None:
        self.fail: dict[str, list[Exception]] = {}
        self.lose: dict[str, list[Exception]] = {}
        self.calls: Counter[str] = Counter()
        self.updates: list[flow_pb2.Update] = []
        self.refuse_classes: dict[int, str] = {}
        self.forget_classes: set[int] = set()
        self.forget_profiles: set[int] = set()
        self.forget_inputs: set[int] = set()
        self.wants_usage = False
        self.quiet = False
        self.after_round: Callable[[flow_pb2.RoundReply], None] = lambda reply: None
        self.reports: list[flow_pb2.UsageReport] = []
        self.plan = flow_pb2.MovePlan()
        self.plan_requests: list[flow_pb2.PlanRequest] = []
        self.restart()

    def restart(self) -> None:
        self.epoch = next(_epochs)
        self.resynced = False
        self._clear()
        self.last = flow_pb2.RoundReply()

    def _clear(self) -> None:
        self.nodes: dict[str, flow_pb2.Node] = {}
        self.classes: dict[int, flow_pb2.TaskClass] = {}
        self.profiles: dict[int, flow_pb2.Profile] = {}
        self.inputs: dict[int, flow_pb2.Inputs] = {}
        self.namespaces: dict[str, dict[str, str]] = {}
        self.budgets: dict[int, flow_pb2.Budget] = {}
        self.tasks: dict[int, dict] = {}
        self.moves = FakeMoves()
        self.rounds = 0

    def _begin(self, method):
        self.calls[method] += 1
        if self.fail.get(method):
            raise self.fail[method].pop(0)

    def _end(self, method, reply):
        if self.lose.get(method):
            raise self.lose[method].pop(0)
        return reply

    async def hello(self):
        self._begin("hello")
        return flow_pb2.HelloReply(
            epoch=self.epoch, policy="first-fit", resynced=self.resynced, wants_usage=self.wants_usage
        )

    async def report_usage(self, report):
        self._begin("report_usage")
        if report.epoch != self.epoch:
            return flow_pb2.UsageReply(status=flow_pb2.STALE_EPOCH)
        self.reports.append(report)
        reply = flow_pb2.UsageReply(taken=len(report.task_uid) + len(report.node_id))
        return self._end("report_usage", reply)

    async def resync(self, updates):
        self._begin("resync")
        gathered = [update async for update in updates]
        assert [update.complete for update in gathered] == [False] * (len(gathered) - 1) + [True]
        self._clear()
        self.epoch, self.last, self.resynced = next(_epochs), flow_pb2.RoundReply(), True
        reply = flow_pb2.UpdateReply(epoch=self.epoch)
        for update in gathered:
            self._apply(update, reply)
        return self._end("resync", reply)

    async def apply(self, update):
        self._begin("apply")
        await asyncio.sleep(0)
        reply = flow_pb2.UpdateReply(epoch=self.epoch, quiet=self.quiet)
        if update.epoch != self.epoch:
            reply.status = flow_pb2.STALE_EPOCH
            return reply
        self._apply(update, reply)
        if update.HasField("round"):
            self.calls["attached"] += 1
            self._begin("round")
            reply.round.CopyFrom(self._end("round", self._round(update.round)))
        return self._end("apply", reply)

    def _apply(self, update, reply):
        self.updates.append(update)
        for cls in update.classes:
            if cls.id in self.refuse_classes:
                reply.refused.add(kind="class", id=str(cls.id), field="x", reason=self.refuse_classes[cls.id])
            else:
                self.classes[cls.id] = cls
        for inputs in update.inputs:
            self.inputs[inputs.id] = inputs
        for ident in self.forget_inputs & set(self.inputs):
            del self.inputs[ident]
        self.forget_inputs.clear()
        for profile in update.profiles:
            self.profiles[profile.id] = profile
        for namespace in update.namespaces:
            self.namespaces[namespace.name] = dict(namespace.labels)
        for budget in update.budgets:
            self.budgets[budget.id] = budget
        for ident in update.removed_budgets:
            self.budgets.pop(ident, None)
        for ident in self.forget_profiles & set(self.profiles):
            del self.profiles[ident]
        self.forget_profiles.clear()
        for ident in self.forget_classes & set(self.classes):
            del self.classes[ident]
        self.forget_classes.clear()
        for node in update.removed_nodes:
            self.nodes.pop(node, None)
        for node in update.nodes:
            self.nodes[node.id] = node
        for uid in update.removed_tasks:
            self.tasks.pop(uid, None)
            self.moves.removed(uid)
        for rejection in update.rejections:
            task = self.tasks.get(rejection.task_uid)
            if task and task["state"] == "assumed" and task["node"] == rejection.node_id:
                task.update(state="waiting", node="", not_before=rejection.not_before_us)
        columns = update.tasks
        leaving = columns.leaving or [False] * len(columns.uid)
        inputs_id = columns.inputs_id or [0] * len(columns.uid)
        rows = zip(
            columns.uid,
            columns.class_id,
            columns.node,
            columns.name,
            columns.profile_id,
            leaving,
            inputs_id,
            strict=True,
        )
        for uid, cls, at, name, profile, leaves, reads in rows:
            if reads and reads not in self.inputs:
                reply.unknown_inputs.append(reads)
                continue
            if profile not in self.profiles:
                reply.unknown_profiles.append(profile)
                continue
            if cls not in self.classes:
                reply.unknown_classes.append(cls)
                continue
            task = self.tasks.get(uid)
            if at:
                self.tasks[uid] = {
                    "state": "bound",
                    "node": columns.nodes[at - 1],
                    "cls": cls,
                    "name": name,
                    "not_before": 0,
                }
            elif task is None:
                self.tasks[uid] = {
                    "state": "waiting",
                    "node": "",
                    "cls": cls,
                    "name": name,
                    "not_before": 0,
                    "reported": 0,
                }
            elif task["state"] == "bound":
                reply.refused.add(kind="task", id=name, field="state", reason="bound tasks do not wait")
            else:
                task["cls"] = cls
            if uid in self.tasks:
                if not leaves:
                    self.moves.stays(uid)
                self.tasks[uid] |= {
                    "profile": self.profiles[profile],
                    "leaving": leaves,
                    "inputs": self.inputs.get(reads),
                }

    def used(self, node):
        total: Counter[str] = Counter()
        for task in self.tasks.values():
            if task["node"] == node:
                total.update(self.classes[task["cls"]].requests)
        return total

    def fits(self, node, cls):
        used = self.used(node.id)
        return all(used[r] + amount <= node.allocatable.get(r, 0) for r, amount in cls.requests.items())

    async def round(self, request):
        self._begin("round")
        await asyncio.sleep(0)
        return self._end("round", self._round(request))

    def _round(self, request):
        reply = self._run_round(request)
        self.after_round(reply)
        return reply

    def _run_round(self, request):
        if request.epoch != self.epoch:
            return flow_pb2.RoundReply(status=flow_pb2.STALE_EPOCH)
        if request.acknowledged != self.last.round:
            return self.last
        waiting = [
            (uid, t) for uid, t in self.tasks.items() if t["state"] == "waiting" and t["not_before"] <= request.now_us
        ]
        placed: list[tuple[int, str]] = []
        left: dict[int, list[int]] = {}
        for uid, task in waiting:
            cls = self.classes[task["cls"]]
            node = next((n for n in self.nodes.values() if self.fits(n, cls)), None)
            if node is not None:
                task.update(state="assumed", node=node.id)
                placed.append((uid, node.id))
            elif task.get("reported") != len(self.nodes):
                task["reported"] = len(self.nodes)
                left.setdefault(task["cls"], []).append(uid)
        moves = self.moves.begin()
        if not placed and not left and not moves:
            return flow_pb2.RoundReply()
        self.rounds += 1
        reply = flow_pb2.RoundReply(round=self.rounds)
        names = sorted({node for _, node in placed})
        reply.placed.nodes.extend(names)
        reply.placed.task_uid.extend(uid for uid, _ in placed)
        reply.placed.node.extend(names.index(node) for _, node in placed)
        reply.placed.by.extend(flow_pb2.FLOW for _ in placed)
        reply.stats.placed = len(placed)
        for at, move in enumerate(moves):
            reply.migrated.task_uid.append(move.task_uid)
            reply.migrated.node.append(at)
            reply.migrated.nodes.append(move.to_id)
        for ident, uids in left.items():
            count = len(self.nodes)
            group = reply.unscheduled.add(class_id=ident, waiting=len(uids), nodes=count, task_uid=uids)
            group.reasons.add(kind=flow_pb2.Reason.INSUFFICIENT_RESOURCE, detail="cpu", nodes=count)
        self.last = reply
        return reply

    async def explain(self, task):
        return flow_pb2.ExplainReply(found=task in self.tasks)

    async def status(self):
        return flow_pb2.StatusReply(epoch=self.epoch, policy="first-fit", nodes=len(self.nodes))

    async def list_queues(self):
        return flow_pb2.QueuesReply()

    async def list_gangs(self):
        return flow_pb2.GangsReply()

    async def starts(self, tasks=()):
        return flow_pb2.StartsReply(problem="this engine makes no forecasts")

    async def network(self, request):
        return flow_pb2.NetworkReply(problem="no round of this service has solved a network yet")

    async def would_fit(self, request):
        raise AssertionError("this engine is not asked")

    async def plan_moves(self, request):
        self._begin("plan_moves")
        self.plan_requests.append(request)
        await asyncio.sleep(0)
        return self._end("plan_moves", self.plan)

    async def carry_out(self, request):
        self._begin("carry_out")
        await asyncio.sleep(0)
        if request.epoch != self.epoch:
            return flow_pb2.PlanProgress(status=flow_pb2.STALE_EPOCH)
        self.moves.carry_out(request.steps, {uid for uid, task in self.tasks.items() if task["leaving"]})
        return self._end("carry_out", self.moves.reply())

    async def progress(self, request):
        self._begin("progress")
        await asyncio.sleep(0)
        if request.epoch != self.epoch:
            return flow_pb2.PlanProgress(status=flow_pb2.STALE_EPOCH)
        return self._end("progress", self.moves.reply())


def unavailable(method="x"):
    return EngineError(method, "UNAVAILABLE", "connection refused")


class FakeKube:
    """Binds like an API server: once, only the pod with that UID; and keeps an audit of the binds.

    `faults` has the fault of each further bind: None, an error to raise instead of binding, or ("lost", error): bind,
    then raise.
    """

    def __init__(self) -> None:
        self.pods: dict[str, dict] = {}
        self.binds: list[tuple[str, str]] = []
        self.asked: list[str] = []
        self.faults: list[Any] = []
        self.read_faults: list[Exception] = []
        self.hold: asyncio.Event | None = None
        self.hold_reads: asyncio.Event | None = None
        self.in_flight = self.most_in_flight = 0
        self.on_bind = lambda namespace, name: None

    def put(self, name, uid=None, **fields):
        self.pods[f"default/{name}"] = {"name": name, "uid": uid or f"uid-{name}", **fields}

    async def bind(self, namespace, name, uid, node, timeout):
        self.asked.append(name)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(0)
            if self.hold is not None:
                await self.hold.wait()
            self._bind(namespace, name, uid, node)
        finally:
            self.in_flight -= 1

    def _bind(self, namespace, name, uid, node):
        fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, Exception):
            raise fault
        there = self.pods.get(f"{namespace}/{name}")
        if there is None:
            raise NotFoundError(404, "NotFound", "no such pod")
        if there["uid"] != uid:
            raise ConflictError(409, "Conflict", "the UID in the precondition does not match")
        if there.get("node") or there.get("deleting") or there.get("gates"):
            raise ConflictError(409, "Conflict", "already assigned, being deleted, or gated")
        there["node"] = node
        self.binds.append((uid, node))
        self.on_bind(namespace, name)
        if fault is not None:
            raise fault[1]

    async def pod(self, namespace, name):
        await asyncio.sleep(0)
        if self.hold_reads is not None:
            await self.hold_reads.wait()
        if self.read_faults:
            raise self.read_faults.pop(0)
        there = self.pods.get(f"{namespace}/{name}")
        if there is None:
            raise NotFoundError(404, "NotFound", "no such pod")
        return pod(**there)


class BindReports:
    """The reports of the binder."""

    def __init__(self) -> None:
        self.bound: list[tuple[str, str]] = []
        self.failures: list[str] = []

    def scheduled(self, known, node):
        self.bound.append((known.name, node))

    def failed(self, known, message):
        self.failures.append(message)


class Problems:
    """The problems that the store announces."""

    def __init__(self) -> None:
        self.invalid_pods: list[tuple[str, str]] = []
        self.ignored: list[tuple[str, str]] = []
        self.remarks: list[tuple[str, str]] = []
        self.blocks: list[tuple[str, str]] = []

    def invalid(self, namespace, name, uid, problem):
        self.invalid_pods.append((name, problem))

    def annotation_ignored(self, known):
        self.ignored.append((known.name, known.described.ignored))

    def not_honoured(self, known):
        self.remarks += [(known.name, text) for text in known.described.reported]

    def blocked(self, known):
        self.blocks.append((known.name, known.volumes.blocked))

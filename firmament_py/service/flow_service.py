"""The FlowScheduler service of flow.proto: it takes batches of changes, runs rounds, and decides nothing itself."""

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from firmament_py.engine.engine import Engine, apply_all
from firmament_py.engine.execution import Execution
from firmament_py.explain.ever import could_ever_fit
from firmament_py.explain.gang_status import gang_standings
from firmament_py.forecast.forecasts import Forecasts
from firmament_py.model.arrays import I64
from firmament_py.model.events import (
    BudgetRemoved,
    Event,
    GangRemoved,
    LabelSetDefined,
    NamespaceObserved,
    NodeRemoved,
    Outcome,
    PlacementRejected,
    QueuesObserved,
    Refusal,
    TasksEnded,
    TasksRemoved,
)
from firmament_py.model.lifecycle import TaskState
from firmament_py.model.resources import LINKS, UNLIMITED_LINK
from firmament_py.policy import counts_links, spreads_tasks
from firmament_py.rebalance.changed_cluster import emptied
from firmament_py.rebalance.planner import planned
from firmament_py.rebalance.what_if import PlanError, WhatIf
from firmament_py.rebalance.would_fit import would_fit
from firmament_py.service import fits, messages, plans, replies
from firmament_py.service.answers.explain_reply import explain_reply, standing_message
from firmament_py.service.answers.network_reply import network_reply
from firmament_py.service.answers.starts_reply import starts_reply
from firmament_py.service.calls.caller import Caller
from firmament_py.service.calls.invalid_field import InvalidField, invalid_argument
from firmament_py.service.calls.locking import Questions, locked
from firmament_py.service.queue_messages import past_use, queue_tree, queues_reply
from firmament_py.sharing.report import queue_report
from firmament_py.state.cluster import ClusterState
from firmament_py.version import VERSION
from protos.contract import description
from protos.gen import flow_pb2

log = logging.getLogger(__name__)

QUESTIONS_AT_ONCE = 2
"""Plans and trials that are computed at the same time."""


class FlowService:
    def __init__(self, engine: Engine, forecasting: Execution | None = None) -> None:
        """forecasting: what carries out forecasts of starts; None: there are none."""
        self._engine = engine
        self._forecasts = Forecasts(engine, forecasting)
        self._last_reply = flow_pb2.RoundReply()
        self._last_epoch = 0
        self._questions = Questions(QUESTIONS_AT_ONCE)

    def Hello(self, request: flow_pb2.HelloRequest, caller: Caller) -> flow_pb2.HelloReply:
        engine = self._engine
        with locked(engine, caller):
            return flow_pb2.HelloReply(
                epoch=engine.epoch,
                version=VERSION,
                policy=engine.policy.name,
                counts_links=counts_links(engine.policy),
                spreads_tasks=spreads_tasks(engine.policy),
                solver=engine.solver.name,
                resynced=engine.resynced,
                wants_usage=engine.wants_usage,
                description=description(),
            )

    def Resync(self, request_iterator: Iterator[flow_pb2.Update], caller: Caller) -> flow_pb2.UpdateReply:
        # built beside the current state, which serves calls until the stream has ended successfully
        state, reply, complete = ClusterState(), flow_pb2.UpdateReply(), False
        for update in request_iterator:
            _TranslatedUpdate.of(update).apply(state, reply)
            self._engine.expect(state)
            complete = update.complete
        with invalid_argument():
            if not complete:  # gRPC also ends the iteration normally when the sender dies
                raise InvalidField(
                    "complete",
                    "is not set in the last update, so the stream may be incomplete: nothing was changed; "
                    "send everything again and set it in the last update",
                )
        with locked(self._engine, caller):
            self._engine.replace(state)
            reply.epoch = self._engine.epoch
        log.info(
            "resynchronised: %d nodes, %d tasks, %d classes",
            len(state.nodes),
            len(state.tasks),
            len(state.classes),
        )
        return reply

    def Apply(self, request: flow_pb2.Update, caller: Caller) -> flow_pb2.UpdateReply:
        engine, reply = self._engine, flow_pb2.UpdateReply()
        update = _TranslatedUpdate.of(request)  # most of the work, without the lock
        with locked(engine, caller):
            reply.epoch = engine.epoch
            if request.epoch != engine.epoch:
                reply.status = flow_pb2.STALE_EPOCH
            else:
                engine.settle()
                self._forecasts.note_events(update.events)
                update.apply(engine.state, reply)
                if request.HasField("queues"):
                    engine.settle()  # past use counts from now on
                if request.HasField("round"):
                    reply.round.CopyFrom(self._round(request.round))
                reply.quiet = engine.quiet
        return reply

    def Round(self, request: flow_pb2.RoundRequest, caller: Caller) -> flow_pb2.RoundReply:
        with locked(self._engine, caller):
            return self._round(request)

    def _round(self, request: flow_pb2.RoundRequest) -> flow_pb2.RoundReply:
        engine = self._engine
        if request.epoch != engine.epoch:
            return flow_pb2.RoundReply(status=flow_pb2.STALE_EPOCH)
        if self._last_epoch == engine.epoch and request.acknowledged != self._last_reply.round:
            return self._last_reply
        with engine.delivery():
            reply = self._next_reply(request)
        if reply.round:
            self._last_epoch, self._last_reply = engine.epoch, reply
        return reply

    def _next_reply(self, request: flow_pb2.RoundRequest) -> flow_pb2.RoundReply:
        engine = self._engine
        result = engine.run_round(request.now_us)
        wake_us = engine.wake_us(request.now_us)
        if result is None:
            return flow_pb2.RoundReply(wake_us=wake_us)
        self._forecasts.round_ended(result, request.now_us)
        return flow_pb2.RoundReply(
            round=engine.round_of_epoch,
            placed=replies.placements(engine.state, result.tasks, result.nodes, result.placed_by),
            preempted=replies.preemptions(engine.state, result.preemption),
            nominated=replies.placements(engine.state, *result.preemption.nominated),
            unnominated=engine.state.tasks.uid[result.preemption.unnominated].tolist(),
            migrated=replies.placements(engine.state, result.migration.tasks, result.migration.nodes),
            migrated_for=replies.uids_of(engine.state, result.migration.needed_by),
            unscheduled=[
                replies.unscheduled(engine.state, w, result.stats.nodes) for w in result.waiting if len(w.unreported)
            ],
            stats=replies.round_stats(result.stats),
            wake_us=wake_us,
        )

    def ReportUsage(self, request: flow_pb2.UsageReport, caller: Caller) -> flow_pb2.UsageReply:
        engine = self._engine
        with invalid_argument():
            tasks = messages.usage_samples(len(request.task_uid), request.tasks, "tasks")
            nodes = messages.usage_samples(len(request.node_id), request.nodes, "nodes")
        with locked(engine, caller):
            if request.epoch != engine.epoch:
                return flow_pb2.UsageReply(status=flow_pb2.STALE_EPOCH)
            state, now_us = engine.state, engine.now_us()
            noted = engine.usage.note_nodes(state, state.node_rows(request.node_id), *nodes, now_us)
            rows = state.task_rows(np.fromiter(request.task_uid, np.uint64, len(request.task_uid)))
            noted += engine.usage.note_tasks(state, rows, *tasks, now_us)
        return flow_pb2.UsageReply(taken=noted.taken, old=noted.old, refused=noted.refused, unknown=noted.unknown)

    def Explain(self, request: flow_pb2.ExplainRequest, caller: Caller) -> flow_pb2.ExplainReply:
        with locked(self._engine, caller):
            return explain_reply(self._engine.state, request.task_uid, self._engine.scheduler)

    def GetQueues(self, request: flow_pb2.QueuesRequest, caller: Caller) -> flow_pb2.QueuesReply:
        with locked(self._engine, caller):
            self._engine.settle()
            return queues_reply(self._engine.epoch, queue_report(self._engine.state))

    def GetStarts(self, request: flow_pb2.StartsRequest, caller: Caller) -> flow_pb2.StartsReply:
        with locked(self._engine, caller):
            return starts_reply(self._forecasts, request, self._engine.now_us())

    def GetGangs(self, request: flow_pb2.GangsRequest, caller: Caller) -> flow_pb2.GangsReply:
        with locked(self._engine, caller):
            scheduler = self._engine.scheduler
            gangs = [standing_message(each, scheduler) for each in gang_standings(self._engine.state)]
            return flow_pb2.GangsReply(gangs=gangs)

    def GetNetwork(self, request: flow_pb2.NetworkRequest, caller: Caller) -> flow_pb2.NetworkReply:
        return network_reply(self._engine, request, caller)

    def GetStatus(self, request: flow_pb2.StatusRequest, caller: Caller) -> flow_pb2.StatusReply:
        engine = self._engine
        with locked(engine, caller):
            state = engine.state
            nodes = state.present_nodes()
            counts = np.bincount(state.tasks.state[state.tasks.rows()], minlength=len(TaskState)).tolist()
            return flow_pb2.StatusReply(
                epoch=engine.epoch,
                policy=engine.policy.name,
                nodes=len(nodes),
                tasks={task.name.lower(): counts[task] for task in TaskState if task is not TaskState.GONE},
                classes=len(state.classes),
                allocatable=replies.amounts(state.resources.names, _limited(state, nodes).sum(axis=0)),
                used=replies.amounts(state.resources.names, state.nodes.used[nodes].sum(axis=0)),
                last_round=replies.round_stats(engine.last_round) if engine.last_round else None,
                rounds=engine.rounds,
                outcomes=state.outcomes.counts,
                usage=replies.usage_status(
                    engine.usage, engine.wants_usage, *engine.usage.ages(state, engine.now_us())
                ),
            )

    def PlanMoves(self, request: flow_pb2.PlanRequest, caller: Caller) -> flow_pb2.MovePlan:
        with self._questions.one(caller):
            return self._plan_moves(request, caller)

    def _plan_moves(self, request: flow_pb2.PlanRequest, caller: Caller) -> flow_pb2.MovePlan:
        started = time.perf_counter()
        with invalid_argument():
            try:
                wish = plans.wish(request)
                with locked(self._engine, caller):
                    what_if = WhatIf.of(self._engine.scheduler, request.now_us)
                plan = planned(what_if, wish)  # without the lock: rounds go on
            except PlanError as error:
                return flow_pb2.MovePlan(problem=str(error))
        return plans.plan_message(what_if.state, plan, time.perf_counter() - started)

    def WouldFit(self, request: flow_pb2.FitRequest, caller: Caller) -> flow_pb2.FitReply:
        with self._questions.one(caller):
            return self._would_fit(request, caller)

    def _would_fit(self, request: flow_pb2.FitRequest, caller: Caller) -> flow_pb2.FitReply:
        started = time.perf_counter()
        try:
            with locked(self._engine, caller):
                scheduler = self._engine.scheduler
                what_if = WhatIf.of(scheduler, request.now_us)
        except PlanError as error:
            return flow_pb2.FitReply(problem=str(error))
        with invalid_argument():  # without the lock: rounds go on
            displaced = fits.suppose(request, what_if.state)
            update, uids, gang = fits.update_of(request, what_if.state)
            applied = flow_pb2.UpdateReply()
            _TranslatedUpdate.of(update).apply(what_if.state, applied)
            fits.check(applied)
            empty = emptied(what_if, uids) if request.says_whether_ever else None
            fit = would_fit(what_if, scheduler, uids, gang, preempts=request.preempts)
            reply = fits.reply(what_if.state, request, fit)
            fits.add_displaced(reply, what_if.state, displaced)
            if empty is not None and not reply.fits:
                topology = request.topology_key if request.topology_required else ""
                rows = empty.state.task_rows(uids)
                excluded = not could_ever_fit(empty.state, rows, fits.needed_of(request), topology)
                fit = would_fit(empty, scheduler, uids, gang, preempts=False)
                fits.add_ever(reply, request, empty.state, fit, excluded=excluded)
        reply.seconds = time.perf_counter() - started
        return reply

    def CarryOut(self, request: flow_pb2.CarryOutRequest, caller: Caller) -> flow_pb2.PlanProgress:
        with invalid_argument():
            steps = plans.steps(request.steps)
        with locked(self._engine, caller):
            if request.epoch != self._engine.epoch:
                return flow_pb2.PlanProgress(status=flow_pb2.STALE_EPOCH)
            execution = self._engine.scheduler.plan
            with invalid_argument():
                execution.begin(steps, request.now_us)
            return plans.progress(execution)

    def GetProgress(self, request: flow_pb2.ProgressRequest, caller: Caller) -> flow_pb2.PlanProgress:
        with locked(self._engine, caller):
            if request.epoch != self._engine.epoch:
                return flow_pb2.PlanProgress(status=flow_pb2.STALE_EPOCH)
            return plans.progress(self._engine.scheduler.plan)


def _limited(state: ClusterState, nodes: I64) -> I64:
    """(len(nodes), R) allocatable amounts; 0 of a link without a limit."""
    links = np.array([name in LINKS for name in state.resources.names])
    offered = state.nodes.allocatable[nodes]
    return np.where(links & (offered == UNLIMITED_LINK), 0, offered)


@dataclass(frozen=True, slots=True)
class _TranslatedUpdate:
    """The events of an update, and its invalid parts.

    Classes come before tasks that name them, nodes before tasks that run on them, removals in between. A task that is
    both removed and described in one update was deleted and created again: it is removed first.
    """

    events: list[Event]
    refused: list[Refusal]

    @classmethod
    def of(cls, update: flow_pb2.Update) -> "_TranslatedUpdate":
        refused: list[Refusal] = []
        return cls(list(_events(update, refused)), refused)

    def apply(self, state: ClusterState, reply: flow_pb2.UpdateReply) -> None:
        _report(apply_all(state, self.events), self.refused, reply)


def _events(update: flow_pb2.Update, refused: list[Refusal]) -> Iterator[Event]:
    for cls in update.classes:
        try:
            yield messages.class_defined(cls)
        except InvalidField as invalid:
            refused.append(Refusal("class", str(cls.id), invalid.field, invalid.reason))
    for label_set in update.profiles:
        yield LabelSetDefined(label_set.id, label_set.namespace, dict(label_set.labels))
    for gang in update.gangs:
        yield messages.gang_observed(gang)
    for inputs in update.inputs:
        yield messages.inputs_defined(inputs)
    for namespace in update.namespaces:
        yield NamespaceObserved(namespace.name, dict(namespace.labels))
    for budget in update.budgets:
        try:
            yield messages.budget_observed(budget)
        except InvalidField as invalid:
            refused.append(Refusal("budget", budget.name or str(budget.id), invalid.field, invalid.reason))
    for budget_id in update.removed_budgets:
        yield BudgetRemoved(budget_id)
    if update.HasField("queues"):
        yield QueuesObserved(queue_tree(update.queues), past_use(update.queues.past_use))
    for node_id in update.removed_nodes:
        yield NodeRemoved(node_id)
    for node in update.nodes:
        yield messages.node_observed(node)
    for ended, failed in ((update.succeeded_tasks, False), (update.failed_tasks, True)):
        if ended:
            yield TasksEnded(np.fromiter(ended, np.uint64, len(ended)), failed)
    if update.removed_tasks:
        yield TasksRemoved(np.fromiter(update.removed_tasks, np.uint64, len(update.removed_tasks)))
    for rejection in update.rejections:
        yield PlacementRejected(rejection.task_uid, rejection.node_id, rejection.not_before_us)
    for gang_id in update.removed_gangs:
        yield GangRemoved(gang_id)
    if update.HasField("tasks"):
        try:
            yield messages.tasks_observed(update.tasks)
        except InvalidField as invalid:
            refused.append(Refusal("task", f"all {len(update.tasks.uid)}", invalid.field, invalid.reason))


def _report(outcome: Outcome, refused: list[Refusal], reply: flow_pb2.UpdateReply) -> None:
    for item in (*refused, *outcome.refused):
        log.warning("refused %s %s: %s %s", item.kind, item.id, item.field, item.reason)
        reply.refused.append(replies.refusal(item))
    reply.unknown_classes.extend(sorted(outcome.unknown_classes))
    reply.unknown_gangs.extend(sorted(outcome.unknown_gangs))
    reply.unknown_inputs.extend(sorted(outcome.unknown_inputs))
    reply.unknown_profiles.extend(sorted(outcome.unknown_label_sets))

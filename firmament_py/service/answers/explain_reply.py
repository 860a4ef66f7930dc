"""The reply to Explain: the node of a task, why it waits, and the nodes that lack least for it."""

from firmament_py.engine.scheduler import Scheduler
from firmament_py.explain.blocking import Blocking, Constraint, blocking
from firmament_py.explain.gang_status import GangStanding, cannot_start, gang_standing, not_by_preemption
from firmament_py.explain.nearest_nodes import fitting_nodes, nearest
from firmament_py.explain.reasons import DELAYED, reasons_of_task
from firmament_py.explain.verdict import verdict_of
from firmament_py.model.lifecycle import WAITING, TaskState
from firmament_py.model.resources import TASK_SLOTS
from firmament_py.service import replies
from firmament_py.state.cluster import ClusterState
from protos.gen import flow_pb2


def standing_message(standing: GangStanding, scheduler: Scheduler) -> flow_pb2.GangStanding:
    gang = standing.definition.id
    return flow_pb2.GangStanding(
        id=gang,
        name=standing.definition.name,
        minimum=standing.definition.minimum,
        present=standing.present,
        placed=standing.placed,
        missing=min(standing.missing, 2**32 - 1),
        fits=scheduler.gang_fits.get(gang, -1),
        maximum=standing.definition.maximum,
        reserves=gang in scheduler.gang_starts_us,
        starts_us=scheduler.gang_starts_us.get(gang, 0),
        lacks=dict(scheduler.gang_shortages.get(gang, ())),
    )


def explain_reply(state: ClusterState, uid: int, scheduler: Scheduler) -> flow_pb2.ExplainReply:
    """`found` is false if there is no such task."""
    row = state.task_row(uid)
    if row is None:
        return flow_pb2.ExplainReply()
    tasks, cls = state.tasks, int(state.tasks.cls[row])
    definition = state.classes.definition(cls)
    node = state.nodes.observed.get(int(tasks.node[row]))
    reply = flow_pb2.ExplainReply(
        found=True,
        state=TaskState(int(tasks.state[row])).name.lower(),
        node=node.name if node else "",
        job=f"{int(tasks.job[row]):016x}",
        class_name=definition.name,
        priority=definition.priority,
        requests={**definition.requests, TASK_SLOTS: 1},
        nodes=len(state.present_nodes()),
        placed_by=flow_pb2.PlacedBy.Name(int(tasks.placed_by[row])) if node else flow_pb2.PLACED_BY_UNKNOWN,
        story=state.history.story(uid),
    )
    standing = gang_standing(state, row)
    if standing is not None:
        reply.gang.CopyFrom(standing_message(standing, scheduler))
    if tasks.state[row] == WAITING:
        turned_away = standing is not None and standing.definition.id in scheduler.gang_fits
        reservation_holders = [] if turned_away or uid in scheduler.task_starts_us else scheduler.reservation_holders
        delayed = uid in scheduler.delayed_until_us
        of_quota = scheduler.quota_reason(uid)
        reasons = (DELAYED,) if delayed else reasons_of_task(state, row, reservation_holders)
        reasons = reasons if of_quota is None else (of_quota,)
        if standing is not None and standing.definition.id in scheduler.gangs_at_best:
            at_best = scheduler.gangs_at_best[standing.definition.id]
            reasons = (not_by_preemption(standing.definition.name, *at_best), *reasons)
        if standing is not None and (shortage := scheduler.gang_shortages.get(standing.definition.id)):
            reasons = (cannot_start(standing.definition.name, shortage), *reasons)
        reply.reasons.extend(replies.reason(r) for r in reasons)
        reply.verdict = getattr(flow_pb2.ExplainReply, verdict_of(state, row, reasons, standing).name)
        _add_blocking(reply, blocking(state, row))
        reply.reserves = uid in scheduler.task_starts_us
        reply.starts_us = scheduler.task_starts_us.get(uid, 0)
        reply.fits_now = fitting_nodes(state, row)
        for name, lacks in nearest(state, row):
            reply.nearest.add(node=name, lacks=lacks)
    return reply


def _add_blocking(reply: flow_pb2.ExplainReply, found: Blocking) -> None:
    reply.blocking.extend(map(_constraint, found.constraints))
    reply.blocking_is_smallest = found.is_smallest
    for each in found.remedies:
        reply.remedies.add(without=map(_constraint, each.without), nodes=each.nodes, node=each.node)


def _constraint(found: Constraint) -> flow_pb2.BlockingConstraint:
    kind = flow_pb2.Reason.Kind.Name(found.kind.value)
    return flow_pb2.BlockingConstraint(
        kind=kind, detail=found.detail, value=found.value, nodes=found.nodes, short=found.short
    )

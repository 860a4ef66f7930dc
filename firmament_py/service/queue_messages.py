"""Queues of the contract to those of the model, and what they use back."""

from collections.abc import Mapping
from typing import Any

from firmament_py.model.constraints import NodeDemand
from firmament_py.model.events import PastUse
from firmament_py.model.queues import (
    BorrowWithin,
    Division,
    Flavor,
    Fungibility,
    LocalQueue,
    QueueDefinition,
    QueueTree,
    Quota,
    Reclaim,
    ReclaimRules,
    Sharing,
    Stop,
    Within,
)
from firmament_py.service.messages import taints, tolerations
from firmament_py.sharing.report import QueueReport
from protos.gen import flow_pb2

_SHARING: Mapping[int, Sharing] = {
    flow_pb2.Queues.SHARING_UNSPECIFIED: Sharing.CLASSICAL,
    flow_pb2.Queues.CLASSICAL: Sharing.CLASSICAL,
    flow_pb2.Queues.FAIR: Sharing.FAIR,
    flow_pb2.Queues.PROPORTIONAL: Sharing.PROPORTIONAL,
    flow_pb2.Queues.HIERARCHICAL_DRF: Sharing.HIERARCHICAL_DRF,
}

_DIVISION: Mapping[int, Division] = {
    flow_pb2.Queues.SURPLUS_BY_WEIGHT: Division.SURPLUS_BY_WEIGHT,
    flow_pb2.Queues.TOTAL_BY_WEIGHT: Division.TOTAL_BY_WEIGHT,
    flow_pb2.Queues.AS_STATED: Division.AS_STATED,
}

_RULES: Mapping[int, ReclaimRules] = {
    flow_pb2.Queues.QUOTA: ReclaimRules.QUOTA,
    flow_pb2.Queues.FAIR_SHARE: ReclaimRules.FAIR_SHARE,
    flow_pb2.Queues.DESERVED: ReclaimRules.DESERVED,
    flow_pb2.Queues.GUARANTEE: ReclaimRules.GUARANTEE,
    flow_pb2.Queues.DOMINANT_SHARE: ReclaimRules.DOMINANT_SHARE,
}

_WITHIN: Mapping[int, Within] = {
    flow_pb2.Queue.LOWER_PRIORITY: Within.LOWER_PRIORITY,
    flow_pb2.Queue.LOWER_OR_NEWER_EQUAL_PRIORITY: Within.LOWER_OR_NEWER_EQUAL_PRIORITY,
}

_RECLAIM: Mapping[int, Reclaim] = {
    flow_pb2.Queue.LOWER_PRIORITY: Reclaim.LOWER_PRIORITY,
    flow_pb2.Queue.ANY: Reclaim.ANY,
}

_STOP: Mapping[int, Stop] = {
    flow_pb2.Queue.HOLD: Stop.HOLD,
    flow_pb2.Queue.HOLD_AND_DRAIN: Stop.HOLD_AND_DRAIN,
}


def queue_tree(message: flow_pb2.Queues) -> QueueTree:
    """The tree; values of enumerations that this version does not know count as the most restrictive ones."""
    return QueueTree(
        queues=tuple(_queue(queue) for queue in message.queues),
        flavors=tuple(_flavor(flavor) for flavor in message.flavors),
        sharing=_SHARING.get(message.sharing, Sharing.CLASSICAL),
        division=_DIVISION.get(message.division, Division.SURPLUS_BY_WEIGHT),
        reclaim_rules=_RULES.get(message.reclaim_rules, ReclaimRules.QUOTA),
        usage_half_life_s=message.half_life_seconds,
        usage_weight=message.past_use_weight,
        usage_sampling_s=message.sampling_seconds,
        local_queues=tuple(
            LocalQueue(each.id, each.name, each.queue, each.weight if each.HasField("weight") else 1.0)
            for each in message.local_queues
        ),
        resource_weights=dict(message.resource_weights),
        reclaim_ratio=message.reclaim_ratio if message.HasField("reclaim_ratio") else 1.0,
        priority_first=message.priority_first,
        exempt_prefixes=tuple(message.exempt_prefixes),
        exempt_resources=frozenset(message.exempt_resources),
    )


def past_use(message: flow_pb2.PastUse) -> PastUse:
    """What a bridge kept of `past_use_message`."""
    amounts = {each.id: {(one.flavor, one.resource): one.amount for one in each.amounts} for each in message.of}
    return PastUse(message.at_us, amounts)


def past_use_message(past: PastUse) -> flow_pb2.PastUse:
    message = flow_pb2.PastUse(at_us=past.at_us)
    for identifier, amounts in past.amounts.items():
        of = message.of.add(id=identifier)
        for (flavor, resource), amount in amounts.items():
            of.amounts.add(flavor=flavor, resource=resource, amount=amount)
    return message


def _flavor(message: flow_pb2.Flavor) -> Flavor:
    """Without the taints that its own tolerations cover."""
    tolerated = NodeDemand(tolerations=tolerations(message.tolerations))
    left = tuple(taint for taint in taints(message.taints) if taint.repels and not tolerated.is_tolerated(taint))
    return Flavor(message.name, dict(message.node_labels), left)


def _queue(message: flow_pb2.Queue) -> QueueDefinition:
    def optional(name: str, default: Any) -> Any:
        return getattr(message, name) if message.HasField(name) else default

    fungibility = message.fungibility
    return QueueDefinition(
        id=message.id,
        name=message.name,
        parent=message.parent,
        quotas=tuple(_quota(quota) for quota in message.quotas),
        resource_groups=tuple(tuple(group.resources) for group in message.groups),
        weight=optional("weight", 1.0),
        priority=message.priority,
        within=_WITHIN.get(message.within, Within.NEVER),
        reclaim=_RECLAIM.get(message.reclaim, Reclaim.NEVER),
        borrow_within=BorrowWithin(
            message.borrow_within == flow_pb2.Queue.LOWER_PRIORITY, optional("borrow_within_threshold", None)
        ),
        strict_fifo=message.strict_fifo,
        stop=_STOP.get(message.stop, Stop.NONE),
        reclaimable=not message.not_reclaimable,
        fence=message.fence,
        unlimited=message.unlimited,
        fungibility=Fungibility(
            fungibility.next_to_avoid_borrowing,
            not fungibility.preempt_before_next,
            fungibility.preempt_before_borrowing,
        ),
        preempt_min_runtime_s=message.preempt_min_runtime_seconds,
        reclaim_min_runtime_s=message.reclaim_min_runtime_seconds,
        preemption_delay_s=message.preemption_delay_seconds,
        by_past_use=message.by_past_use,
        evictions_per_hour=optional("evictions_per_hour", None),
        priority_offset=message.priority_offset,
        priority_fence=message.priority_fence,
    )


def _quota(message: flow_pb2.Quota) -> Quota:
    def optional(name: str) -> Any:
        return getattr(message, name) if message.HasField(name) else None

    return Quota(
        message.flavor,
        message.resource,
        message.nominal,
        optional("borrowing_limit"),
        optional("lending_limit"),
        optional("limit"),
        optional("weight"),
    )


def queues_reply(epoch: int, report: QueueReport) -> flow_pb2.QueuesReply:
    """Amounts that are all 0 are left out."""
    queues, reply = report.queues, flow_pb2.QueuesReply(epoch=epoch)
    for problem in queues.problems:
        of = {"kind": "queue", "id": problem.queue, "queue": problem.id}
        reply.problems.add(field=problem.field, reason=problem.reason, **of)
    resources = len(queues.resources)
    amounts = queues.nominal, report.used, report.borrowed, report.demand, report.fair
    for row, queue in enumerate(queues.definitions):
        state = reply.queues.add(
            id=queue.id,
            name=queue.name,
            parent=queue.parent,
            takes_tasks=bool(queues.leaf[row] & queues.open[row]),
            running=report.running[row],
            pending=report.pending[row],
            nominated=report.nominated[row],
            share=report.share[row],
        )
        for column in report.shown[row].nonzero()[0].tolist():
            flavor, resource = queues.flavors[column // resources], queues.resources[column % resources]
            nominal, used, borrowed, demand, fair = (int(amount[row, column]) for amount in amounts)
            state.amounts.add(
                flavor=flavor,
                resource=resource,
                nominal=nominal,
                used=used,
                borrowed=borrowed,
                demand=demand,
                fair=fair,
                past=report.past[row, column],
            )
    if report.past_use is not None:
        reply.past_use.CopyFrom(past_use_message(report.past_use))
    local = report.local_queues
    for row, each in enumerate(queues.tree.local_queues):
        shown = reply.local_queues.add(
            id=each.id, running=local.running[row], pending=local.pending[row], past_use=local.score[row]
        )
        for column in ((local.used[row] > 0) | (local.past[row] > 0.0)).nonzero()[0].tolist():
            flavor, resource = queues.flavors[column // resources], queues.resources[column % resources]
            used, past = int(local.used[row, column]), local.past[row, column]
            shown.amounts.add(flavor=flavor, resource=resource, used=used, past=past)
    return reply

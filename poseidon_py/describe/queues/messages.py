"""The tree of queues as a message of the contract."""

from poseidon_py.describe.queues.model import UNBOUNDED, Flavor, LocalQueue, Queue, Quota, Tree, id_of
from poseidon_py.describe.reason_keys import ATTACHABLE
from poseidon_py.devices import column_names
from protos.gen import firmament_pb2, flow_pb2

OF_NODES = (ATTACHABLE, *column_names.PREFIXES)
"""How the names of resources begin that nodes alone limit: no user knows them, so that no queue has a quota of them."""


def queues_message(tree: Tree) -> flow_pb2.Queues:
    """The whole tree; the order of queues is that of their keys, so that equal trees are equal messages."""
    past = tree.rules.past_use if tree.rules.past_use.half_life_seconds > 0.0 else None
    return flow_pb2.Queues(
        sharing=tree.rules.sharing.name,
        division=tree.rules.division.name,
        reclaim_rules=tree.rules.reclaim.name,
        priority_first=tree.rules.priority_first,
        exempt_prefixes=(*tree.rules.exempt_prefixes, *OF_NODES),
        exempt_resources=tree.rules.exempt_resources,
        queues=[queue_message(queue) for queue in sorted(tree.queues, key=lambda queue: queue.key)],
        flavors=[_flavor(flavor) for flavor in sorted(tree.flavors, key=lambda flavor: flavor.name)],
        half_life_seconds=past.half_life_seconds if past else 0.0,
        past_use_weight=past.weight if past else 0.0,
        sampling_seconds=past.sampling_seconds if past else 0.0,
        resource_weights=dict(past.resource_weights) if past else {},
        local_queues=[_local_queue(each) for each in sorted(tree.local_queues, key=lambda each: each.key)],
    )


def _flavor(flavor: Flavor) -> flow_pb2.Flavor:
    return flow_pb2.Flavor(
        name=flavor.name,
        node_labels=dict(flavor.labels),
        taints=[firmament_pb2.Taint(key=key, value=value, effect=effect) for key, value, effect in flavor.taints],
        tolerations=[
            firmament_pb2.Toleration(key=key, operator=operator, value=value, effect=effect)
            for key, operator, value, effect in flavor.tolerations
        ],
    )


def _local_queue(queue: LocalQueue) -> flow_pb2.LocalQueue:
    message = flow_pb2.LocalQueue(id=queue.id, name=queue.name, queue=id_of(queue.queue))
    if queue.weight is not None:
        message.weight = queue.weight
    return message


def queue_message(queue: Queue) -> flow_pb2.Queue:
    message = flow_pb2.Queue(
        id=queue.id,
        name=queue.name,
        parent=id_of(queue.parent) if queue.parent else 0,
        quotas=[_quota(quota) for quota in queue.quotas],
        groups=[flow_pb2.ResourceGroup(resources=resources) for resources in queue.groups],
        priority=queue.priority,
        within=queue.within.name,
        reclaim=queue.reclaim.name,
        borrow_within=queue.borrow_within.name,
        strict_fifo=queue.strict_fifo,
        stop=queue.stop.name,
        preempt_min_runtime_seconds=queue.preempt_min_runtime_seconds,
        reclaim_min_runtime_seconds=queue.reclaim_min_runtime_seconds,
        preemption_delay_seconds=queue.preemption_delay_seconds,
        unlimited=queue.unlimited,
        not_reclaimable=not queue.reclaimable,
        fence=queue.fence,
        by_past_use=queue.by_past_use,
        priority_offset=queue.priority_offset,
        priority_fence=queue.priority_fence,
    )
    if queue.evictions_per_hour is not None:
        message.evictions_per_hour = queue.evictions_per_hour
    if any(queue.fungibility):
        avoids_borrowing, preempts, preempts_first = queue.fungibility
        message.fungibility.next_to_avoid_borrowing = avoids_borrowing
        message.fungibility.preempt_before_next = preempts
        message.fungibility.preempt_before_borrowing = preempts_first
    if queue.weight is not None:
        message.weight = queue.weight
    if queue.borrow_within_threshold is not None:
        message.borrow_within_threshold = queue.borrow_within_threshold
    return message


def _quota(quota: Quota) -> flow_pb2.Quota:
    """A guarantee without a bound is one of the limit, if there is one."""
    bounded = quota.nominal < UNBOUNDED or quota.limit is None
    nominal = quota.nominal if bounded else quota.limit
    message = flow_pb2.Quota(flavor=quota.flavor, resource=quota.resource, nominal=nominal)
    for name in ("borrowing_limit", "lending_limit", "limit"):
        amount: int | None = getattr(quota, name)
        if amount is not None:
            setattr(message, name, amount)
    return message

"""Reads the decisions on preemption and migration in the reply of a round."""

from collections.abc import Callable
from itertools import zip_longest

from poseidon_py.preempt.decisions import Decisions, MigratingPod, NominatedPod, VictimPod
from poseidon_py.state.pod_lifecycle import PodState
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store
from protos.gen import flow_pb2


def decisions_of(
    store: Store, reply: flow_pb2.RoundReply, is_pending: Callable[[PodRecord], bool], *, leads: bool
) -> Decisions:
    """The decisions that can be carried out; none unless this process `leads`. `is_pending`: whether a pod can still be
    placed.

    The engine takes all its decisions for carried out. So the rows of all these pods are sent again: they confirm those
    that are, and undo the others.
    """
    decisions = Decisions()
    names = [store.node_with_id(node) for node in reply.nominated.nodes]
    for task, at in zip(reply.nominated.task_uid, reply.nominated.node, strict=True):
        known, node = store.pod_of_task(task), names[at]
        if known is None:
            continue  # its removal is about to be sent
        store.resend_pod(known.uid)
        if node is None or not is_pending(known):
            decisions.unnominated.append(known)
        else:
            decisions.nominated.append(NominatedPod(known, node))
    for task in reply.unnominated:
        known = store.pod_of_task(task)
        if known is not None:
            store.resend_pod(known.uid)
            decisions.unnominated.append(known)
    for task, other in zip(reply.preempted.task_uid, reply.preempted.preemptor_uid, strict=True):
        known, preemptor = store.pod_of_task(task), store.pod_of_task(other)
        if known is None:
            continue
        store.resend_pod(known.uid)
        if not (known.state is PodState.BOUND or known.revocable) or known.observed.deleting or known.preempting:
            continue  # gone, or decided before; or its bind was sent in the meantime
        if preemptor is None or not is_pending(preemptor):
            store.metrics.victims.labels("dropped").inc()
        else:
            decisions.victims.append(VictimPod(known, preemptor))
    _read_migrations(store, reply, decisions)
    if not leads:
        return Decisions()
    decisions.unnominated += store.nominations.take_stale()
    return decisions


def _read_migrations(store: Store, reply: flow_pb2.RoundReply, decisions: Decisions) -> None:
    names = [store.node_with_id(node) for node in reply.migrated.nodes]
    for task, at, other in zip_longest(reply.migrated.task_uid, reply.migrated.node, reply.migrated_for, fillvalue=0):
        known, target = store.pod_of_task(task), names[at]
        if known is None:
            continue
        store.resend_pod(known.uid)
        if known.state is not PodState.BOUND or known.leaving:
            continue  # gone, or decided before
        if target is None or target == known.node or not store.is_movable(known):
            store.metrics.migrations.labels("dropped").inc()
        else:
            waiting = store.pod_of_task(other) if other else None
            decisions.migrations.append(MigratingPod(known, target, waiting.full_name if waiting else ""))

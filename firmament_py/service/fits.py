"""WouldFit: the tasks of a request as an update of a copy of the state, and the reply."""

from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches

import numpy as np

from firmament_py.model.arrays import I64, U64
from firmament_py.model.lifecycle import WAITING
from firmament_py.rebalance.changed_cluster import added_nodes, drain
from firmament_py.rebalance.would_fit import Fit
from firmament_py.service import replies
from firmament_py.service.calls.invalid_field import InvalidField
from firmament_py.state.cluster import ClusterState
from protos.gen import flow_pb2

MAX_TASKS, MAX_NODES = 100_000, 10_000
_QUOTA = (
    flow_pb2.Reason.OVER_QUOTA,
    flow_pb2.Reason.QUEUE_UNKNOWN,
    flow_pb2.Reason.QUEUE_STOPPED,
    flow_pb2.Reason.NO_FLAVOR,
)
"""What no departure of others ends: only a change of the queues."""
_FIRST_ID = 1 << 62
"""Ids of clients are hashes, so that a range of free ones is found at once."""


def update_of(request: flow_pb2.FitRequest, state: ClusterState) -> tuple[flow_pb2.Update, U64, int]:
    """The update that submits the tasks, their uids (T,), and the id of their gang, 0: none. `state`: has none of
    these ids. Raises InvalidField."""
    total = sum(each.count for each in request.members)
    if not total and not (request.drained_nodes and not request.members):
        raise InvalidField("members", "is empty, or has counts of 0; give at least one task")
    if total > MAX_TASKS:
        raise InvalidField("members", f"has {total} tasks; give at most {MAX_TASKS}")
    for i, each in enumerate(request.members):
        if not each.HasField("class"):
            raise InvalidField(f"members[{i}].class", "is missing; describe the tasks")
    if not 0 <= request.minimum <= total:
        raise InvalidField("minimum", f"is {request.minimum}, of {total} tasks; give 0 for no gang, or up to {total}")
    classes = [getattr(each, "class") for each in request.members]
    counts = [each.count for each in request.members]
    profiles = [each.profile_id for each in request.members]
    queues = [each.queue_id for each in request.members]
    uids = _free_ids(total, lambda uid: state.task_row(uid) is None)
    gang = int(_free_ids(1, lambda ident: state.gangs.known(ident) is None)[0]) if request.minimum else 0
    update = flow_pb2.Update(classes=classes, profiles=request.profiles)
    if gang:
        update.gangs.add(
            id=gang,
            minimum=request.minimum,
            created_us=request.now_us,
            topology_key=request.topology_key,
            topology_required=request.topology_required,
            name="the group",
        )
    update.tasks.CopyFrom(
        flow_pb2.Tasks(
            uid=uids.tolist(),
            class_id=np.repeat(np.array([each.id for each in classes], np.uint64), counts).tolist(),
            job_id=[_FIRST_ID] * total,
            created_us=[request.now_us] * total,
            node=[0] * total,
            name=[f"new/{i}" for i in range(total)],
            profile_id=np.repeat(np.array(profiles, np.uint64), counts).tolist(),
            gang_id=[gang] * total,
            queue_id=np.repeat(np.array(queues, np.uint64), counts).tolist(),
        )
    )
    return update, uids, gang


def suppose(request: flow_pb2.FitRequest, state: ClusterState) -> I64:
    """Adds and drains nodes. Returns the rows (D,) of the tasks that seek other nodes. Raises InvalidField."""
    total = sum(each.count for each in request.added_nodes)
    if total > MAX_NODES:
        raise InvalidField("added_nodes", f"has {total} nodes; give at most {MAX_NODES}")
    by_name = state.node_index.rows_by_name()
    models = []
    for i, each in enumerate(request.added_nodes):
        if each.like and each.like not in by_name:
            raise InvalidField(
                f"added_nodes[{i}].like", f"is {each.like!r}, which is no node; {_close(each.like, by_name)}"
            )
        if not each.like and not each.allocatable:
            raise InvalidField(f"added_nodes[{i}]", "has no amounts; name a node that it is like, or what it offers")
        models.append(state.nodes.observed[by_name[each.like]] if each.like else None)
    for name in request.drained_nodes:
        if name not in by_name:
            raise InvalidField("drained_nodes", f"has {name!r}, which is no node; {_close(name, by_name)}")
    displaced = drain(state, np.unique(np.array([by_name[name] for name in request.drained_nodes], np.int64)))
    for i, (each, model) in enumerate(zip(request.added_nodes, models, strict=True)):
        for node in added_nodes(f"added-{i + 1}", each.count, model, each.allocatable):
            for refused in state.apply(node).refused:
                raise InvalidField(f"added_nodes[{i}].{refused.field}", refused.reason)
    return displaced


def _close(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, known, 1)
    return f"did you mean {close[0]}?" if close else "name one of the cluster"


def check(applied: flow_pb2.UpdateReply) -> None:
    """Raises InvalidField if some part of the update was refused or named something unknown."""
    for refused in applied.refused:
        raise InvalidField(f"members: {refused.kind} {refused.id}: {refused.field}", refused.reason)
    if applied.unknown_profiles:
        raise InvalidField("members.profile_id", "names a profile that is not in profiles; add it, or give 0")


def needed_of(request: flow_pb2.FitRequest) -> int:
    """How many of the tasks have to fit."""
    return int(request.minimum) or sum(each.count for each in request.members)


def add_displaced(reply: flow_pb2.FitReply, state: ClusterState, displaced: I64) -> None:
    """Adds to the reply what becomes of the tasks (D,) of drained nodes."""
    reply.displaced = len(displaced)
    left = displaced[(state.tasks.state[displaced] == WAITING) & (state.tasks.nominated[displaced] < 0)]
    reply.stranded.extend(state.tasks.name[left].tolist())


def add_ever(
    reply: flow_pb2.FitReply, request: flow_pb2.FitRequest, state: ClusterState, fit: Fit, *, excluded: bool
) -> None:
    """Adds to the reply what becomes of the tasks once all others have left. excluded: that they fit then is ruled
    out."""
    if len(fit.placed) >= needed_of(request):
        reply.ever, reply.at_best_ever = flow_pb2.FitReply.FITS_LATER, -1
        return
    reply.never.extend(_unscheduled(state, fit))
    reply.at_best_ever = fit.at_best
    excluded |= _excluded_by_quota(reply, request, state)
    reply.ever = flow_pb2.FitReply.NEVER_FITS if excluded else flow_pb2.FitReply.NOT_FOUND


def _excluded_by_quota(reply: flow_pb2.FitReply, request: flow_pb2.FitRequest, state: ClusterState) -> bool:
    """Whether it is by a quota that they wait once all others have left, whichever of them had been admitted first, and
    on whichever flavor."""
    found = {each.reasons[0].kind for each in reply.never if each.reasons}
    if len({getattr(each, "class").id for each in request.members}) == 1:
        return not found.isdisjoint(_QUOTA)
    if needed_of(request) < sum(each.count for each in request.members):
        return False
    adds_up = len(state.queues.tree.flavors) <= 1
    return any(kind in _QUOTA and (adds_up or kind != flow_pb2.Reason.OVER_QUOTA) for kind in found)


def reply(state: ClusterState, request: flow_pb2.FitRequest, fit: Fit) -> flow_pb2.FitReply:
    needed = needed_of(request)
    cls = state.tasks.cls
    found = flow_pb2.FitReply(fits=len(fit.placed) >= needed, at_best=-1)
    if not found.fits:
        found.at_best = fit.at_best
    keys = np.stack([cls[fit.placed], fit.nodes, fit.after_evictions.astype(np.int64)], axis=1)
    places, counts = np.unique(keys, axis=0, return_counts=True)
    for (task_class, node, later), count in zip(places.tolist(), counts.tolist(), strict=True):
        found.places.add(
            class_id=int(state.classes.id[task_class]),
            node=state.nodes.observed[node].name,
            count=count,
            after_evictions=bool(later),
        )
    found.unscheduled.extend(_unscheduled(state, fit))
    found.victims.extend(str(state.tasks.name[row]) for row in np.unique(fit.victims).tolist())
    return found


def _unscheduled(state: ClusterState, fit: Fit) -> Iterator[flow_pb2.Unscheduled]:
    """Why the tasks that are not placed would wait."""
    nodes = len(state.present_nodes())
    explained = np.zeros(len(fit.waiting), np.bool_)
    for waiting in fit.waiting_classes:
        of_group = np.isin(fit.waiting, waiting.unreported) & ~explained
        if of_group.any():
            explained |= of_group
            message = replies.unscheduled(state, waiting, nodes)
            message.waiting = int(of_group.sum())
            del message.task_uid[:]
            yield message


def _free_ids(count: int, is_free: Callable[[int], bool]) -> U64:
    """(count,) successive ids."""
    first = _FIRST_ID
    while not all(is_free(ident) for ident in range(first, first + count)):
        first += count
    return np.arange(first, first + count, dtype=np.uint64)

"""WouldFit: the tasks of a request as an update of a copy of the state, and the reply."""

from collections.abc import Callable

import numpy as np

from firmament_py.model.arrays import U64
from firmament_py.rebalance.would_fit import Fit
from firmament_py.service import replies
from firmament_py.service.invalid_field import InvalidField
from firmament_py.state.cluster import ClusterState
from protos.gen import flow_pb2

MAX_TASKS = 100_000
_FIRST_ID = 1 << 62
"""Ids of clients are hashes, so that a range of free ones is found at once."""


def update_of(request: flow_pb2.FitRequest, state: ClusterState) -> tuple[flow_pb2.Update, U64, int]:
    """The update that submits the tasks, their uids (T,), and the id of their gang, 0: none. `state`: has none of
    these ids. Raises InvalidField."""
    total = sum(each.count for each in request.members)
    if not request.members or not total:
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
            job_id=[int(uids[0])] * total,
            created_us=[request.now_us] * total,
            node=[0] * total,
            name=[f"new/{i}" for i in range(total)],
            profile_id=np.repeat(np.array(profiles, np.uint64), counts).tolist(),
            gang_id=[gang] * total,
        )
    )
    return update, uids, gang


def check(applied: flow_pb2.UpdateReply) -> None:
    """Raises InvalidField if some part of the update was refused or named something unknown."""
    for refused in applied.refused:
        raise InvalidField(f"members: {refused.kind} {refused.id}: {refused.field}", refused.reason)
    if applied.unknown_profiles:
        raise InvalidField("members.profile_id", "names a profile that is not in profiles; add it, or give 0")


def reply(state: ClusterState, request: flow_pb2.FitRequest, fit: Fit, seconds: float) -> flow_pb2.FitReply:
    needed = request.minimum or sum(each.count for each in request.members)
    cls = state.tasks.cls
    found = flow_pb2.FitReply(fits=len(fit.placed) >= needed, at_best=-1, seconds=seconds)
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
    nodes = len(state.present_nodes())
    explained = np.zeros(len(fit.waiting), np.bool_)
    for waiting in fit.waiting_classes:
        of_group = np.isin(fit.waiting, waiting.unreported) & ~explained
        if of_group.any():
            explained |= of_group
            message = replies.unscheduled(state, waiting, nodes)
            message.waiting = int(of_group.sum())
            del message.task_uid[:]
            found.unscheduled.append(message)
    found.victims.extend(str(state.tasks.name[row]) for row in np.unique(fit.victims).tolist())
    return found


def _free_ids(count: int, is_free: Callable[[int], bool]) -> U64:
    """(count,) successive ids."""
    first = _FIRST_ID
    while not all(is_free(ident) for ident in range(first, first + count)):
        first += count
    return np.arange(first, first + count, dtype=np.uint64)

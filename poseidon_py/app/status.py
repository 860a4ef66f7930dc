"""The JSON of /status and /explain, which `poseidon status` and `poseidon explain` print."""

import math
from collections.abc import Container, Mapping
from typing import Any

from poseidon_py.app.queries.verdicts import verdict_json
from poseidon_py.devices.column_names import COPIES, SERVED
from poseidon_py.report import messages
from poseidon_py.report.unscheduled import waits_for_nodes
from poseidon_py.state.gangs.group import Group
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store
from poseidon_py.util.timestamps import timestamp
from poseidon_py.util.work_queue import KeyedQueue
from protos.gen import flow_pb2

Json = dict[str, Any]


def status_json(store: Store, reply: flow_pb2.StatusReply, bridge: Json, collector: Json) -> Json:
    """`bridge`: fields from the bridge itself; `collector`: state of the usage polls."""
    return {
        **bridge,
        "epoch": f"{reply.epoch:016x}",
        "policy": reply.policy,
        "nodes": reply.nodes,
        "pods": dict(sorted(reply.tasks.items())),
        "classes": reply.classes,
        "outcomes": {how: reply.outcomes[how] for how in ("succeeded", "failed", "removed")},
        "resources": {
            name: {"allocatable": reply.allocatable[name], "used": reply.used.get(name, 0)}
            for name in sorted(reply.allocatable)
        },
        "rounds": reply.rounds,
        "last_round": round_json(reply.last_round),
        "usage": usage_json(reply, collector),
        "known": {"pods": len(store.pods), "nodes": len(store.nodes), "queued": len(store.pod_queue)},
    }


def round_json(stats: flow_pb2.RoundStats) -> Json:
    """The statistics of a round."""
    return {
        "started_us": stats.started_us,
        "seconds": stats.seconds,
        "stages": {name: stats.stage_seconds[name] for name in stats.stage_seconds},
        "pending": stats.pending,
        "placed": stats.placed,
        "placed_by": dict(sorted(stats.placed_by.items())),
        "waiting": stats.waiting,
        "nominated": stats.nominated,
        "preempted": stats.preempted,
        "migrated": stats.migrated,
        "migrated_for_waiting": stats.migrated_for_waiting,
        "least_moves": stats.least_moves,
        "solves": stats.solves,
        "vertices": stats.vertices,
        "arcs": stats.arcs,
        "objective": stats.objective,
        "gap": stats.gap,
        "fallback": stats.fallback,
        "unsolved": dict(stats.unsolved),
        "compressed": stats.compressed,
    }


def unfinished_json(store: Store, *, rounds: bool, reports: int) -> dict[str, int]:
    """What is left to do, by kind of work; if all are 0, nothing happens until an object changes or the engine asks for
    a round. `rounds`: whether one runs or is due; `reports`: that are not sent yet.

    `changes`: of objects that the engine does not know yet; `binds`: pods with a placement that no watch has confirmed;
    `evictions`: pods that are to leave or are leaving; `nominated`: pods that wait for these.
    """
    queues: tuple[KeyedQueue[Any], ...] = (
        store.pod_queue,
        store.node_queue,
        store.namespaces.queue,
        store.budgets.queue,
        store.gangs.queue,
        store.queues.queue,
    )
    counts = dict.fromkeys(("binds", "evictions", "nominated"), 0)
    for pod in store.pods.values():
        counts["binds"] += bool(pod.assumed)
        counts["evictions"] += pod.preempting or pod.migrating or (pod.observed.deleting and bool(pod.node))
        counts["nominated"] += bool(pod.nominated)
    changes = sum(len(queue) + queue.working for queue in queues)
    return {"changes": changes, "rounds": int(rounds), **counts, "reports": reports}


def reasons_json(store: Store, messages_of: Mapping[str, str]) -> list[Json]:
    """Why pods wait, most frequent first. `messages_of`: UID of a pod -> the message of its condition."""
    groups: dict[str, list[str]] = {}
    for uid, message in messages_of.items():
        if (pod := store.pods.get(uid)) is not None:
            groups.setdefault(message, []).append(pod.full_name)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return [{"pods": len(names), "message": message, "example": min(names)} for message, names in ordered]


def usage_json(reply: flow_pb2.StatusReply, collector: Json) -> Json:
    """Measured usage, and how many pods of the last round had costs from it."""
    usage, last = reply.usage, reply.last_round
    return {
        "basis": usage.basis or "requests",
        "samples": {name: getattr(usage, name) for name in ("taken", "old", "refused", "unknown")},
        "kept": usage.samples,
        "half_life_seconds": usage.half_life_seconds,
        "stale_seconds": usage.stale_seconds,
        "pods": {"measured": usage.tasks_measured, "stale": usage.tasks_stale},
        "nodes": {"measured": usage.nodes_measured, "stale": usage.nodes_stale},
        "newest_age_seconds": usage.newest_age_seconds if math.isfinite(usage.newest_age_seconds) else None,
        "memory_bytes": usage.memory_bytes,
        "last_round": {name: getattr(last, f"usage_{name}") for name in ("measured", "missing", "stale")},
        **collector,
    }


def explain_json(
    known: PodRecord,
    reply: flow_pb2.ExplainReply,
    group: Group | None = None,
    terms: messages.GangTerms = messages.NO_TERMS,
    queue: str = "",
    queue_problem: str = "",
    covered: Container[str] | None = None,
) -> Json:
    """State of one pod, and why it waits. `group`, `terms`: its gang, and what messages say of it. `queue_problem`: why
    its queue takes no pods. `covered`: see messages.over_quota. `fits_now`: None, and `nearest` empty, if nodes do not
    matter, since it waits for its gang or its queue."""
    by_nodes = waits_for_nodes(reply.reasons)
    gang = gang_json(reply.gang, group) if reply.HasField("gang") else None
    return {
        "pod": known.full_name,
        "uid": known.uid,
        "state": _state(known, reply),
        "node": known.node or known.assumed,
        "placed_by": _step(reply.placed_by or known.placed_by) if known.node or known.assumed else "",
        "priority": reply.priority,
        "requests": _shown(reply.requests),
        "problem": known.described.problem or known.gang.blocked or known.blocked or queue_problem,
        "queue": queue,
        "gang": gang,
        "message": messages.unscheduled(
            reply.nodes, reply.reasons, terms, queue_problem=queue_problem, covered=covered, detailed=True
        )
        if reply.reasons and not known.node
        else "",
        **verdict_json(reply),
        "reserves": reply.reserves,
        "starts": timestamp(reply.starts_us // 1_000_000) if reply.starts_us else None,
        "expected": None,
        "fits_now": reply.fits_now if by_nodes else None,
        "nearest": [{"node": near.node, "lacks": _shown(near.lacks)} for near in (reply.nearest if by_nodes else ())],
        "story": list(reply.story),
    }


def _shown(amounts: Mapping[str, int]) -> dict[str, int]:
    """Amounts by resource, without those that only the engine knows."""
    return {name: amount for name, amount in sorted(amounts.items()) if not name.startswith((COPIES, SERVED))}


def _step(number: int) -> str:
    """The label of a PlacedBy, as in the statistics of rounds."""
    return flow_pb2.PlacedBy.Name(number).lower().replace("_", " ") if number else "unknown"


def gang_json(gang: flow_pb2.GangStanding, group: Group | None) -> Json:
    """State of a pod's gang. `minimum`: with the members that have `succeeded`, and so count; `maximum`: None without
    one; `fits`: None if it was not tried in the last round; `lacks`: what must become free before it can start, by
    resource; `reserves`: whether capacity is reserved for it; `starts`: when it is expected to fit, None if unknown."""
    succeeded = 0 if group is None else group.minimum - group.needed()[0]
    return {
        "name": gang.name,
        "minimum": gang.minimum + succeeded,
        "succeeded": succeeded,
        "maximum": gang.maximum or None,
        "present": gang.present,
        "placed": gang.placed,
        "missing": gang.missing,
        "fits": gang.fits if gang.fits >= 0 else None,
        "lacks": dict(sorted(gang.lacks.items())),
        "reserves": gang.reserves,
        "starts": timestamp(gang.starts_us // 1_000_000) if gang.starts_us else None,
        "disruption": "whole" if group is not None and group.disrupted_whole else "single",
    }


def _state(known: PodRecord, reply: flow_pb2.ExplainReply) -> str:
    if known.observed.deleting:
        return "being deleted"
    if known.node:
        if known.announced is not None:
            return f"will be evicted at {known.announced.time} for {known.announced.preemptor}"
        return "being preempted" if known.preempting else "being migrated" if known.migrating else "bound"
    if not known.observed.assigned_to_us:
        return "waits for another scheduler"
    if known.observed.gated:
        return "waits for its scheduling gates"
    if known.described.problem:
        return "invalid"
    if known.gang.blocked:
        return "waits for its gang to be declared"
    if known.assumed:
        return "being bound"
    if known.blocked:
        return "waits for its volumes" if known.volumes.blocked else "waits for its device claims"
    if known.nominated:
        privileged = " (privileged: their eviction is announced)" if known.privileged else ""
        return f"waits for other pods to leave {known.nominated}{privileged}"
    return "waits for a node" if reply.found else "not yet considered"

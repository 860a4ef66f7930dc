"""What `poseidon status`, `poseidon explain` and the health port's JSON say about the scheduler and its pods."""

import math
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from poseidon_py.report import messages
from poseidon_py.state.gangs.group import Group
from poseidon_py.state.records import KnownPod
from poseidon_py.state.store import Store
from protos.gen import flow_pb2

Json = dict[str, Any]


def status_json(store: Store, reply: flow_pb2.StatusReply, more: Json, collector: Json) -> Json:
    """`more` comes from who runs the bridge, `collector` from who polls for usage."""
    last = reply.last_round
    return {
        **more,
        "epoch": f"{reply.epoch:016x}",
        "policy": reply.policy,
        "nodes": reply.nodes,
        "pods": dict(sorted(reply.tasks.items())),
        "classes": reply.classes,
        "resources": {
            name: {"allocatable": reply.allocatable[name], "used": reply.used.get(name, 0)}
            for name in sorted(reply.allocatable)
        },
        "rounds": reply.rounds,
        "last_round": {
            "started_us": last.started_us,
            "seconds": last.seconds,
            "stages": {name: last.stage_seconds[name] for name in last.stage_seconds},
            "pending": last.pending,
            "placed": last.placed,
            "waiting": last.waiting,
            "solves": last.solves,
            "vertices": last.vertices,
            "arcs": last.arcs,
            "objective": last.objective,
            "fallback": last.fallback,
        },
        "usage": usage_json(reply, collector),
        "known": {"pods": len(store.pods), "nodes": len(store.nodes), "queued": len(store.pod_queue)},
    }


def usage_json(reply: flow_pb2.StatusReply, collector: Json) -> Json:
    """What is measured, and what of the last round was priced by it."""
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


def explain_json(known: KnownPod, reply: flow_pb2.ExplainReply, group: Group | None = None) -> Json:
    """Why a pod is where it is; group: its gang."""
    gang = gang_json(reply.gang, group) if reply.HasField("gang") else None
    return {
        "pod": known.full_name,
        "uid": known.uid,
        "state": _state(known, reply),
        "node": known.node or known.assumed,
        "priority": reply.priority,
        "requests": dict(sorted(reply.requests.items())),
        "problem": known.problem or known.held or known.blocked,
        "gang": gang,
        "message": messages.unscheduled(reply.nodes, reply.reasons) if reply.reasons and not known.node else "",
        "keeps_room": reply.keeps_room,
        "starts": _time(reply.starts_us) if reply.starts_us else None,
        "fits_now": reply.fits_now,
        "nearest": [{"node": near.node, "lacks": dict(sorted(near.lacks.items()))} for near in reply.nearest],
        "story": list(reply.story),
    }


def gang_json(gang: flow_pb2.GangStanding, group: Group | None) -> Json:
    """How far a pod's gang is; `maximum`: None if it has none; `fits`: None if it was not tried in the last round;
    `keeps_room`, `starts`: whether room is kept for it, and when it is expected to fit, None if that is not known."""
    return {
        "name": gang.name,
        "minimum": gang.minimum,
        "maximum": gang.maximum or None,
        "present": gang.present,
        "placed": gang.placed,
        "missing": gang.missing,
        "fits": gang.fits if gang.fits >= 0 else None,
        "keeps_room": gang.reserves,
        "starts": _time(gang.starts_us) if gang.starts_us else None,
        "disruption": "whole" if group is not None and group.disrupted_whole else "single",
    }


def gang_line(gang: Json) -> str:
    """The same in words."""
    most = f", takes {gang['maximum']} at most" if gang["maximum"] else ""
    line = f"gang {gang['name']}: needs {gang['minimum']}{most}, {gang['present']} there, {gang['placed']} placed"
    if gang["disruption"] == "whole":
        line += ", disrupted as a whole only"
    if gang["missing"]:
        return f"{line}; {gang['missing']} more have to be made before it can be tried"
    if gang["fits"] is not None:
        lacks = gang["minimum"] - gang["placed"]
        line = f"{line}; of the {lacks} that it lacks {gang['fits']} fitted together at best in the last round"
    return f"{line}; {kept_line(gang)}" if gang["keeps_room"] else line


def kept_line(body: Json) -> str:
    """That room is kept, of a gang or a pod, and when it is expected to fit in it, if that is known."""
    return f"room is kept for it, to fit at {body['starts']}" if body["starts"] else "room is kept for it"


def _time(micros: int) -> str:
    return datetime.fromtimestamp(micros // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _state(known: KnownPod, reply: flow_pb2.ExplainReply) -> str:
    if known.deleting:
        return "being deleted"
    if known.node:
        return "bound"
    if not known.ours:
        return "waits for another scheduler"
    if known.gated:
        return "held back by its scheduling gates"
    if known.problem:
        return "cannot be understood"
    if known.held:
        return "waits for its gang to be declared"
    if known.assumed:
        return "being bound"
    if known.blocked:
        return "waits for its volumes"
    return "waits for a node" if reply.found else "not yet considered"


def print_status(body: Json, console: Console) -> None:
    last = body["last_round"]
    role = "leads"
    if not body.get("leading"):
        # one that lost its lease may still be the last that is known to have held it
        other = body.get("leader") if body.get("leader") != body.get("identity") else ""
        role = f"stands by, {other} leads" if other else "stands by, nobody is known to lead"
    console.print(
        f"[bold]{body.get('identity', 'poseidon')}[/bold] {role}, policy {body['policy']}, {body['nodes']} nodes"
    )
    if body.get("not_ready"):
        console.print(f"[red]not ready[/red]: {body['not_ready']}", highlight=False)
    pods = Table("pods", "count", title=None)
    for state, count in body["pods"].items():
        pods.add_row(state, str(count))
    console.print(pods)
    resources = Table("resource", "allocatable", "used", "share")
    for name, amount in body["resources"].items():
        share = amount["used"] / amount["allocatable"] if amount["allocatable"] else 0.0
        resources.add_row(name, show(name, amount["allocatable"]), show(name, amount["used"]), f"{share:.0%}")
    console.print(resources)
    console.print(
        f"round {body['rounds']}: placed {last['placed']} of {last['pending']} in {1000 * last['seconds']:.1f} ms, "
        f"{last['waiting']} wait; network of {last['vertices']} vertices and {last['arcs']} arcs, "
        f"{last['solves']} solves"
        if body["rounds"]
        else "no round yet"
    )
    if last.get("fallback"):
        console.print(f"[red]the last round placed pods anywhere they fit[/red]: {last['fallback']}", highlight=False)
    if line := _usage_line(body["usage"]):
        console.print(line, highlight=False)
    for source, problem in body["usage"].get("problems", {}).items():
        console.print(f"  no answer from {source}: {problem}", highlight=False)


def _usage_line(usage: Json) -> str:
    """What is known of usage; nothing, if nobody asks for it."""
    if usage["basis"] == "requests" and not usage["polling"] and not usage["samples"]["taken"]:
        return ""
    last, age = usage["last_round"], usage["newest_age_seconds"]
    line = (
        f"prices by {usage['basis']}; {usage['pods']['measured']} pods and {usage['nodes']['measured']} nodes measured"
    )
    if age is not None:
        line += f", the last {age:.0f} s ago"
    if usage["basis"] != "requests":
        line += f"; in the last round {last['missing'] + last['stale']} pods counted by their requests"
    refused = usage["samples"]["refused"]
    return f"{line}; {refused} samples refused" if refused else line


def print_explanation(body: Json, console: Console) -> None:
    where = f" ({body['node']})" if body["node"] else ""
    console.print(f"[bold]{body['pod']}[/bold]: {body['state']}{where}, priority {body['priority']}")
    for key in ("problem", "message"):
        if body[key]:
            console.print(f"  {body[key]}", highlight=False)
    if body.get("gang"):
        console.print(f"  {gang_line(body['gang'])}", highlight=False)
    if body.get("keeps_room"):
        console.print(f"  {kept_line(body)}", highlight=False)
    if body["requests"]:
        console.print("  requests: " + ", ".join(f"{k} {show(k, v)}" for k, v in body["requests"].items()))
    if body["state"] == "waits for a node":
        console.print(f"  nodes that would take it as things stand: {body['fits_now']}")
    if body["nearest"]:
        table = Table("node", "lacks")
        for near in body["nearest"]:
            table.add_row(near["node"], ", ".join(f"{k} {show(k, v)}" for k, v in near["lacks"].items()))
        console.print(table)
    for line in body["story"]:
        console.print(f"  - {line}", highlight=False)


def show(resource: str, amount: int) -> str:
    """An amount for people: cores for cpu, binary units for bytes."""
    if resource == "cpu":
        return f"{amount / 1000:g}"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        for unit, size in (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
            if amount >= size:
                return f"{amount / size:.4g}{unit}"
    return str(amount)

"""The gangs that a scheduler knows, as JSON: GET /gangs, which `poseidon gangs` prints.

{"gangs": [{
    "name": "NAMESPACE/NAME", "namespace": str,
    "source": str               what declares it: poseidon.io/gang, Volcano, Job, ... (docs/gangs.md)
    "state": str                one of STATES
    "minimum": int, "maximum": int | null, "roles": {name: minimum}
    "present": int              members that count: placed, or can be placed, or have succeeded
    "placed": int               members that are bound, or being bound
    "running": int              members whose containers run
    "waiting": int              members without a node
    "succeeded": int, "failed": int           members that have ended and whose pods exist
    "priority": int             the highest of its members
    "queue": str | null         of its members, else spec.queue of its PodGroup
    "created": str, "age_seconds": int
    "reserves": bool, "starts": str | null    whether capacity is reserved for it, and when that suffices, if known
    "why": str                  why it waits; empty: it does not
    "problem": str              contradictions in its declaration
    "members": [...]            if one gang was asked for: {"pod", "role", "node", "state"}, by name
}]}
"""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from poseidon_py.report.messages import cannot_start, more_members
from poseidon_py.state.gangs.group import Group
from poseidon_py.state.gangs.members import Member, Tally
from poseidon_py.state.gangs.model import Objects, Unknown
from poseidon_py.state.gangs.registry import GangRegistry
from poseidon_py.state.records import PodRecord
from poseidon_py.util.timestamps import timestamp
from protos.gen import flow_pb2

Json = dict[str, Any]

WAITING_FOR_MEMBERS, PENDING, RESERVED = "Waiting for members", "Pending", "Reserved"
PLACED, RUNNING, INTERRUPTED = "Placed", "Running", "Interrupted"
STATES = (WAITING_FOR_MEMBERS, PENDING, RESERVED, PLACED, RUNNING, INTERRUPTED)
_SUGGESTIONS = 3


class UnknownGang(Exception):
    """There is no such gang; the message has names that are near."""


def gangs_json(
    registry: GangRegistry,
    standings: Iterable[flow_pb2.GangStanding],
    *,
    now_us: int,
    name: str = "",
    namespace: str = "",
    queue_of: Callable[[PodRecord], str] = lambda known: "",
) -> Json:
    """All gangs with members, by namespace and name; `name`: those of that name, with their members.

    `name`: NAME or NAMESPACE/NAME. `namespace`: only those in it; empty: all. `queue_of`: the queue of a pod, empty if
    it is in none. Raises UnknownGang if none has the name.
    """
    of_engine = {each.id: each for each in standings}
    alive = (group for group in registry.groups.values() if group.members and group.assigned_to_us)
    groups = sorted(alive, key=lambda group: group.name)
    if namespace:
        groups = [group for group in groups if group.name.startswith(f"{namespace}/")]
    if name:
        groups = _named(groups, name)
    return {
        "gangs": [
            _gang(registry, group, of_engine.get(group.id), now_us, queue_of)
            | ({"members": [_member(member) for member in _by_name(group)]} if name else {})
            for group in groups
        ]
    }


def _named(groups: list[Group], name: str) -> list[Group]:
    found = [group for group in groups if name in (group.name, group.name.partition("/")[2])]
    if found:
        return found
    full = [group.name for group in groups]
    bare = {each.partition("/")[2]: each for each in full}
    near = get_close_matches(name, full, _SUGGESTIONS) or [
        bare[each] for each in get_close_matches(name.rpartition("/")[2], bare, _SUGGESTIONS)
    ]
    remedy = f"did you mean {' or '.join(near)}?" if near else "`poseidon gangs` lists all"
    raise UnknownGang(f"gang {name} not found; {remedy}")


def _gang(
    registry: GangRegistry,
    group: Group,
    standing: flow_pb2.GangStanding | None,
    now_us: int,
    queue_of: Callable[[PodRecord], str],
) -> Json:
    message = registry.message(group.id) or flow_pb2.Gang()
    members = list(group.members.values())
    records = [member.known for member in members]
    tally = group.tally()
    state, why = _state(group, standing, tally)
    created_us = message.created_us or group.first_us
    return {
        "name": group.name,
        "namespace": group.name.partition("/")[0],
        "source": next((each.declaration.convention for each in members if each.declaration is not None), ""),
        "state": state,
        "minimum": group.minimum,
        "maximum": message.maximum or None,
        "roles": {role.name: least for role, least in zip(message.roles, group.needs.roles, strict=True)},
        "present": tally.present + tally.succeeded,
        "placed": tally.placed,
        "running": tally.running,
        "waiting": tally.waiting,
        "succeeded": tally.succeeded,
        "failed": tally.failed,
        "priority": max(member.known.gang.priority or member.priority for member in members),
        "queue": next(filter(None, map(queue_of, records)), None) or _queue(group, registry.objects),
        "created": timestamp(created_us // 1_000_000),
        "age_seconds": max((now_us - created_us) // 1_000_000, 0),
        "reserves": standing is not None and standing.reserves,
        "starts": timestamp(standing.starts_us // 1_000_000) if standing is not None and standing.starts_us else None,
        "why": why,
        "problem": group.problem,
    }


def _state(group: Group, standing: flow_pb2.GangStanding | None, tally: Tally) -> tuple[str, str]:
    """One of STATES, and why it waits."""
    records = [member.known for member in group.members.values()]
    settled = {each.uid: each.gang.role for each in group.settled()}
    if group.minimum and not group.short(settled):
        if not tally.placed:
            return PENDING, "the next round will try to place it"  # beyond those that have succeeded
        return (RUNNING if tally.running >= max(group.needed()[0], 1) else PLACED), ""
    blocked = next((each.gang.blocked for each in records if each.gang.blocked), "")
    missing, of_roles = group.missing()
    lacking, _ = group.lacking()
    if blocked:
        why = blocked
    elif missing:
        why = f"{more_members(missing, of_roles)} needed before it can be placed"
    elif standing is not None and standing.reserves:
        until = f", expected to suffice at {timestamp(standing.starts_us // 1_000_000)}" if standing.starts_us else ""
        why = f"capacity is reserved for it{until}"
    elif standing is not None and standing.lacks:
        why = f"it cannot start until {cannot_start(standing.lacks)}"
    elif standing is not None and standing.fits >= 0:
        why = f"there was capacity for at most {standing.fits} of the {lacking} members that it lacks"
    elif not group.minimum:
        state = RUNNING if tally.running else PLACED if tally.placed else PENDING
        return state, "its members are placed one by one"
    else:
        why = "the next round will try to place it"
    if group.started or tally.placed:
        done = f", {tally.succeeded} have succeeded" if tally.succeeded else ""
        return INTERRUPTED, f"{tally.placed} of at least {group.minimum} members are placed{done}; {why}"
    if missing and not blocked:
        return WAITING_FOR_MEMBERS, why
    return (RESERVED if standing is not None and standing.reserves else PENDING), why


def _queue(group: Group, objects: Objects) -> str | None:
    if group.object_ref is None:
        return None
    try:
        found = objects.find(*group.object_ref)
    except Unknown:
        return None
    queue = found.spec.get("queue") if found is not None else None
    return queue if isinstance(queue, str) and queue else None


def _by_name(group: Group) -> list[Member]:
    return sorted(group.members.values(), key=lambda member: member.known.name)


def _member(member: Member) -> Json:
    known = member.known
    return {
        "pod": known.full_name,
        "role": member.declaration.role if member.declaration is not None else "",
        "node": known.node or known.assumed,
        "state": _member_state(known.observed.deleting, known.observed.running, known.node, known.assumed),
        "nominated": known.nominated,
    }


def _member_state(deleting: bool, running: bool, node: str, assumed: str) -> str:
    if deleting:
        return "being deleted"
    if running:
        return "running"
    return "bound" if node else "being bound" if assumed else "waiting"


def counts_by_state(gangs: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Number of gangs in each state, in the order of STATES; without those that have none."""
    found = [gang["state"] for gang in gangs]
    return {state: found.count(state) for state in STATES if state in found}

"""What waits and when it is expected to start, as JSON: GET /queue, which `poseidon queue` prints.

{"made": str | null           when the forecast was made; null: there is none yet
 "age_seconds": int | null
 "probability": float         that a start is between the earliest and the latest time
 "compared": int              earlier forecasts from whose errors these times follow; 0: they are a guess
 "durations": int             ended pods of which it is known how long they ran
 "problem": str               why there is no forecast; empty: there is one, or the first one is being made
 "more": int                  that are left out
 "waiting": [{                gangs, and pods of none: by priority, then by age; or by their likely start
    "name": "NAMESPACE/NAME", "kind": "gang" | "pod"
    "pods": int               that wait
    "queue": str, "priority": int, "created": str, "age_seconds": int
    "start": {"earliest": str, "likely": str, "latest": str, "in_seconds": int} | null
    "nodes": [str]            where it is expected to run
    "why": str                why no start is forecast; empty: there is one
 }]}
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store
from poseidon_py.util.timestamps import timestamp
from protos.gen import flow_pb2

Json = dict[str, Any]

WAITING_SHOWN = 1000
BY_START = "start"
"""Of the parameter `order` of /queue: the first to start first."""

NO_END = "no expected end of running pods lets it start"
FAR = "its start is further away than the forecast reaches"
NEW = "it is newer than the forecast"
MADE_NOW = "the first forecast is being made"


@dataclass(frozen=True, slots=True)
class ExpectedStart:
    """Microseconds since the epoch; node: its name, empty: unknown."""

    earliest_us: int
    likely_us: int
    latest_us: int
    node: str


def expected_starts(store: Store, reply: flow_pb2.StartsReply) -> dict[int, ExpectedStart | None]:
    """Tasks of a forecast with their starts; None: none is forecast."""
    names = [store.node_with_id(ident) or "" for ident in reply.nodes]
    columns = reply.uid, reply.earliest_us, reply.likely_us, reply.latest_us, reply.node
    return {
        task: ExpectedStart(earliest, likely, latest, names[node - 1] if node else "") if likely else None
        for task, earliest, likely, latest, node in zip(*columns, strict=True)
    }


def starts_json(
    store: Store,
    reply: flow_pb2.StartsReply,
    *,
    now_us: int,
    namespace: str = "",
    queue: str = "",
    by_start: bool = False,
) -> Json:
    """The body of /queue. `namespace`, `queue`: only what is in it; empty: all. `by_start`: what starts first comes
    first."""
    starts = expected_starts(store, reply)
    found = [
        _unit(store, members, starts, reply, now_us)
        for members in _units(store)
        if not namespace or members[0].full_name.startswith(f"{namespace}/")
    ]
    found = [each for each in found if not queue or each["queue"] == queue]
    found.sort(key=_by_start if by_start else _in_order)
    return {
        "made": timestamp(reply.made_us // 1_000_000) if reply.made_us else None,
        "age_seconds": max((now_us - reply.made_us) // 1_000_000, 0) if reply.made_us else None,
        "probability": reply.probability,
        "compared": reply.errors,
        "durations": reply.durations,
        "problem": reply.problem,
        "more": max(len(found) - WAITING_SHOWN, 0),
        "waiting": found[:WAITING_SHOWN],
    }


def start_of(store: Store, known: PodRecord, reply: flow_pb2.StartsReply, now_us: int) -> Json:
    """`start`, `nodes` and `why` of one waiting pod."""
    return _start([known], expected_starts(store, reply), reply, now_us)


def _units(store: Store) -> Iterable[list[PodRecord]]:
    """Pods that wait, those of a gang together."""
    gangs: dict[int, list[PodRecord]] = {}
    for known in store.waiting():
        if known.assumed:
            continue
        group = store.gangs.group_of(known)
        if group is None:
            yield [known]
        else:
            gangs.setdefault(group.id, []).append(known)
    yield from gangs.values()


def _unit(
    store: Store,
    members: list[PodRecord],
    starts: dict[int, ExpectedStart | None],
    reply: flow_pb2.StartsReply,
    now_us: int,
) -> Json:
    first = min(members, key=lambda known: known.age_us)
    group = store.gangs.group_of(first)
    return {
        "name": first.full_name if group is None else group.name,
        "kind": "pod" if group is None else "gang",
        "pods": len(members),
        "queue": store.queues.resolution_of(first).name,
        "priority": max(known.described.priority for known in members),
        "created": timestamp(first.age_us // 1_000_000),
        "age_seconds": max((now_us - first.age_us) // 1_000_000, 0),
        **_start(members, starts, reply, now_us),
    }


def _start(
    members: list[PodRecord],
    starts: dict[int, ExpectedStart | None],
    reply: flow_pb2.StartsReply,
    now_us: int,
) -> Json:
    """Of the first members to start, which for a gang are its minimum."""
    found = [start for known in members if (start := starts.get(known.task)) is not None]
    if not found:
        return {"start": None, "nodes": [], "why": _why(members, starts, reply)}
    first = min(found, key=lambda each: each.likely_us)
    together = [each for each in found if each.likely_us == first.likely_us]
    expected = {
        "earliest": timestamp(first.earliest_us // 1_000_000),
        "likely": timestamp(first.likely_us // 1_000_000),
        "latest": timestamp(first.latest_us // 1_000_000),
        "in_seconds": max((first.likely_us - now_us) // 1_000_000, 0),
    }
    return {"start": expected, "nodes": sorted({each.node for each in together if each.node}), "why": ""}


def _why(members: list[PodRecord], starts: dict[int, ExpectedStart | None], reply: flow_pb2.StartsReply) -> str:
    """Why no start is forecast."""
    for known in members:
        if problem := known.described.problem or known.gang.blocked or known.blocked:
            return problem
        if known.observed.gated:
            return "it has scheduling gates"
    if not reply.made_us:
        return reply.problem or MADE_NOW
    if not any(known.task in starts for known in members):
        return NEW
    return NO_END if reply.whole else FAR


def _in_order(unit: Json) -> tuple[int, str, str]:
    return -unit["priority"], unit["created"], unit["name"]


def _by_start(unit: Json) -> tuple[bool, str, tuple[int, str, str]]:
    start = unit["start"]
    return start is None, start["likely"] if start is not None else "", _in_order(unit)

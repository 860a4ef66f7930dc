"""In one word why a pod waits, from what refused it last, and whether waiting helps."""

from enum import StrEnum
from typing import NamedTuple

from poseidon_py.report import plugins
from poseidon_py.state.records import PodRecord


class Action(StrEnum):
    """What the owner of a pod can do."""

    WAIT = "wait"
    CHANGE_REQUEST = "change the request"
    ASK_ADMIN = "ask the administrator"


class Verdict(NamedTuple):
    """A class of reasons."""

    key: str
    text: str
    action: Action


NEW = Verdict("new", "about to be tried", Action.WAIT)
GATED = Verdict("gated", "has scheduling gates", Action.WAIT)
INVALID = Verdict("invalid", "is invalid", Action.CHANGE_REQUEST)
VOLUMES = Verdict("volumes", "waits for its volumes", Action.WAIT)
UNDECLARED = Verdict("gang-declaration", "waits for its gang to be declared", Action.WAIT)
NOMINATED = Verdict("nominated", "waits for other pods to leave", Action.WAIT)
BACKOFF = Verdict("backoff", "failed lately, and is tried again", Action.WAIT)
QUEUE = Verdict("queue", "waits for quota of its queue", Action.WAIT)
GANG = Verdict("gang", "waits for its gang: members or capacity", Action.WAIT)
RESERVED = Verdict("reserved", "waits for capacity that is reserved", Action.WAIT)
NO_CAPACITY = Verdict("no-capacity", "no node that suits it has enough free", Action.WAIT)
NO_NODE = Verdict("no-node", "no node suits it", Action.CHANGE_REQUEST)

VERDICTS = (
    NEW, NOMINATED, RESERVED, NO_CAPACITY, GANG, QUEUE, VOLUMES, BACKOFF, GATED, UNDECLARED, NO_NODE, INVALID,
)  # fmt: skip
"""In the order in which they are shown: those that end by themselves first."""

_BY_PLUGIN = (("Queue", QUEUE), ("GangScheduling", GANG), ("Reservation", RESERVED), ("Delay", RESERVED))
_CAPACITY = frozenset({"NodeResourcesFit", "DefaultPreemption", "NodePorts", "VolumeRestrictions", "InterPodAffinity"})
"""What changes when other pods end."""


def verdict_of(known: PodRecord, now_us: int) -> Verdict:
    """Of a pod that waits. `now_us`: microseconds since the epoch."""
    if known.observed.gated:
        return GATED
    if known.described.problem:
        return INVALID
    if known.volumes.blocked:
        return VOLUMES
    if known.gang.blocked:
        return UNDECLARED
    if known.nominated:
        return NOMINATED
    if known.not_before_us > now_us:
        return BACKOFF
    refused_by = known.unschedulable_by
    if not refused_by:
        return NEW
    for plugin, verdict in _BY_PLUGIN:
        if plugin in refused_by:
            return verdict
    if refused_by == plugins.VOLUMES:
        return VOLUMES
    return NO_CAPACITY if _CAPACITY.intersection(refused_by) else NO_NODE

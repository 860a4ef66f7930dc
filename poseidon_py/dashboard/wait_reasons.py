"""Why pods wait, in a few classes, from what refused them last: for lists of very many pods. `poseidon explain` asks
the engine about one."""

from typing import NamedTuple

from poseidon_py.app.queries.verdicts import CHANGE_REQUEST, WAIT
from poseidon_py.report import plugins
from poseidon_py.state.records import PodRecord


class WaitReason(NamedTuple):
    """A class of reasons."""

    key: str
    text: str
    action: str


NEW = WaitReason("new", "about to be tried", WAIT)
GATED = WaitReason("gated", "has scheduling gates", WAIT)
INVALID = WaitReason("invalid", "is invalid", CHANGE_REQUEST)
VOLUMES = WaitReason("volumes", "waits for its volumes", WAIT)
UNDECLARED = WaitReason("gang-declaration", "the declaration of its gang is missing or wrong", CHANGE_REQUEST)
NOMINATED = WaitReason("nominated", "waits for other pods to leave", WAIT)
BACKOFF = WaitReason("backoff", "failed lately, and is tried again", WAIT)
QUEUE = WaitReason("queue", "waits for quota of its queue", WAIT)
GANG = WaitReason("gang", "waits for its gang: members or capacity", WAIT)
RESERVED = WaitReason("reserved", "waits for capacity that is reserved", WAIT)
NO_CAPACITY = WaitReason("no-capacity", "no node that suits it has enough free", WAIT)
NO_NODE = WaitReason("no-node", "no node suits it", CHANGE_REQUEST)

WAIT_REASONS = (
    NEW, NOMINATED, RESERVED, NO_CAPACITY, GANG, QUEUE, VOLUMES, BACKOFF, GATED, UNDECLARED, NO_NODE, INVALID,
)  # fmt: skip
"""In the order in which they are shown: those that end by themselves first."""

_BY_PLUGIN = (("Queue", QUEUE), ("GangScheduling", GANG), ("Reservation", RESERVED), ("Delay", RESERVED))
_CAPACITY = frozenset({"NodeResourcesFit", "DefaultPreemption", "NodePorts", "VolumeRestrictions", "InterPodAffinity"})
"""What changes when other pods end."""


def wait_reason_of(known: PodRecord, now_us: int) -> WaitReason:
    """Of a pod that waits. `now_us`: microseconds since the epoch."""
    if known.observed.gated:
        return GATED
    if known.described.problem:
        return INVALID
    if known.blocked:
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
    for plugin, reason in _BY_PLUGIN:
        if plugin in refused_by:
            return reason
    if refused_by == plugins.VOLUMES:
        return VOLUMES
    return NO_CAPACITY if _CAPACITY.intersection(refused_by) else NO_NODE

"""The verdict on a waiting task, in one word: what its wait is about."""

from collections.abc import Sequence
from enum import IntEnum

import numpy as np

from firmament_py.explain.ever import could_ever_fit
from firmament_py.explain.gang_status import GangStanding
from firmament_py.explain.reason import Reason, ReasonKind
from firmament_py.state.cluster import ClusterState


class Verdict(IntEnum):
    """Numbers as in the contract's ExplainReply.Verdict."""

    WAITS_ITS_TURN = 1
    OVER_QUOTA = 2
    NO_ROOM_NOW = 3
    CAN_NEVER_FIT = 4
    WAITS_FOR_MEMBERS = 5
    ROOM_IS_MADE = 6
    FITS_BY_NOW = 7


_BY_KIND = {
    ReasonKind.OVER_QUOTA: Verdict.OVER_QUOTA,
    ReasonKind.QUEUE_UNKNOWN: Verdict.OVER_QUOTA,
    ReasonKind.QUEUE_STOPPED: Verdict.OVER_QUOTA,
    ReasonKind.NO_FLAVOR: Verdict.OVER_QUOTA,
    ReasonKind.QUEUE_BEHIND: Verdict.WAITS_ITS_TURN,
    ReasonKind.DEFERRED: Verdict.WAITS_ITS_TURN,
    ReasonKind.DELAYED: Verdict.WAITS_ITS_TURN,
    ReasonKind.GANG_FULL: Verdict.WAITS_ITS_TURN,
    ReasonKind.GANG_INCOMPLETE: Verdict.WAITS_FOR_MEMBERS,
}
"""Of the first reason of such a kind. All others are of nodes."""


def verdict_of(state: ClusterState, row: int, reasons: Sequence[Reason], standing: GangStanding | None) -> Verdict:
    """`reasons`: why waiting task row `row` waits; empty: it would be placed. standing: of its gang."""
    if state.tasks.nominated[row] >= 0:
        return Verdict.ROOM_IS_MADE
    if standing is not None and standing.missing:
        return Verdict.WAITS_FOR_MEMBERS
    found = next((_BY_KIND[each.kind] for each in reasons if each.kind in _BY_KIND), None)
    if found is not None:
        return found
    lacking = 0 if standing is None else max(standing.definition.minimum - standing.placed, 0)
    if not _could_ever_fit(state, row, standing, lacking):
        return Verdict.CAN_NEVER_FIT
    if lacking or not len(state.present_nodes()):  # some of it may fit: not all
        return Verdict.NO_ROOM_NOW
    if not reasons:
        return Verdict.FITS_BY_NOW
    # a node counts as reserved only if nothing else is in the way there
    reserved = any(each.kind is ReasonKind.RESERVED for each in reasons)
    return Verdict.WAITS_ITS_TURN if reserved else Verdict.NO_ROOM_NOW


def _could_ever_fit(state: ClusterState, row: int, standing: GangStanding | None, lacking: int) -> bool:
    tasks = state.tasks
    if standing is None or not lacking:
        return could_ever_fit(state, np.array([row], np.int64), 1)
    members = tasks.waiting[tasks.gang[tasks.waiting] == tasks.gang[row]]
    gang = standing.definition
    # where some members run already, they decide on the domain
    key = gang.topology_key if gang.topology_required and not standing.placed else ""
    return could_ever_fit(state, members, min(lacking, len(members)), key)

"""Which changes of the state can end each reason for waiting: the only rule for when tasks are tried again.

A round considers all waiting tasks. After it, each awaits the kinds of changes that this table has for its reasons
(`TaskTable.awaits`), and the next round is due when one of them has happened. A node fails a task for the first of
several reasons, in a fixed order, and no task fits there before that one has ended: so the reasons that are reported
suffice. Where they do not account for all nodes, any change counts. What time alone can end has timers
(engine/wakeups.py).

The counterpart in kube-scheduler are the queueing hints of its plug-ins.
"""

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from types import MappingProxyType

from firmament_py.explain.reason import Reason, ReasonKind
from firmament_py.model.changes import ANY, NODES, NOTHING, Change


class Unreported(Enum):
    """Why tasks wait, beside the reasons that are reported."""

    UNEXPLAINED = auto()
    """Some node fails for no reason that is known, or there is none."""
    OTHER_NODES = auto()
    """The quota of its queue covers some nodes only; it might take others of another flavor."""
    NOMINATED = auto()
    """A node is kept for it, which others leave."""
    NO_VICTIMS = auto()
    """Others could be evicted or moved for it, by its priority or the rules of its queue, but none that help may be."""
    POSTPONED = auto()
    """A placement of it has failed, and it is left out for a while: time alone ends that."""
    BETTER_NODE = auto()
    """A task that runs, and could move to a node that costs less."""


_FREED = Change.RELEASE | Change.NODE_ADDED | Change.NODE_GROWS
_CONSTRAINTS = (
    Change.RELEASE
    | Change.NEIGHBOUR
    | Change.NAMESPACE
    | Change.NODE_ADDED
    | Change.NODE_REMOVED
    | Change.NODE_LABELS
    | Change.NODE_TAINTS
)
_CAPACITY = _FREED | _CONSTRAINTS | Change.NODE_SHRINKS | Change.MEMBER | Change.GANG | Change.QUEUES
_QUOTA = Change.RELEASE | Change.ARRIVAL | Change.WITHDRAWAL | Change.MEMBER | Change.GANG | Change.QUEUES | NODES
_VICTIMS = _CAPACITY | Change.EVICTABLE | Change.BUDGET | Change.MEMBER_PLACED

_R, _U = ReasonKind, Unreported
ENDED_BY: Mapping[ReasonKind | Unreported, Change] = MappingProxyType(
    {
        _R.INSUFFICIENT_RESOURCE: _FREED,
        _R.TOO_MANY_TASKS: _FREED,
        _R.TOKEN_TAKEN: _FREED,
        _R.UNTOLERATED_TAINT: Change.NODE_ADDED | Change.NODE_TAINTS,
        _R.SELECTOR_MISMATCH: Change.NODE_ADDED | Change.NODE_LABELS,
        _R.FURTHER_AFFINITY: Change.NODE_ADDED | Change.NODE_LABELS,
        _R.GANG_DOMAIN: _CONSTRAINTS | Change.MEMBER | Change.GANG | Change.MEMBER_PLACED,
        _R.AFFINITY: _CONSTRAINTS,
        _R.ANTI_AFFINITY: _CONSTRAINTS,
        _R.ANTI_AFFINITY_OF_OTHERS: _CONSTRAINTS,
        _R.SPREAD: _CONSTRAINTS,
        _R.SPREAD_LABEL_MISSING: Change.NODE_ADDED | Change.NODE_LABELS,
        _R.RESERVED: _CAPACITY | Change.WITHDRAWAL | Change.DECISION,
        _R.GANG_INCOMPLETE: Change.MEMBER | Change.GANG,
        _R.GANG_FULL: Change.MEMBER | Change.GANG,
        _R.GANG_CANNOT_START: _CAPACITY | Change.WITHDRAWAL | Change.MEMBER_PLACED,
        _R.GANG_DOES_NOT_FIT: _CAPACITY | Change.WITHDRAWAL | Change.MEMBER_PLACED,
        _R.NOT_BY_PREEMPTION: _VICTIMS,
        _R.BUDGETS: _VICTIMS,
        _R.DEFERRED: ANY & ~(Change.DECISION | Change.MEMBER_PLACED),
        _R.DELAYED: ANY & ~(Change.DECISION | Change.MEMBER_PLACED),
        _R.OVER_QUOTA: _QUOTA,
        _R.QUEUE_BEHIND: _QUOTA,
        _R.QUEUE_UNKNOWN: Change.QUEUES,
        _R.QUEUE_STOPPED: Change.QUEUES | Change.GANG,
        _R.NO_FLAVOR: Change.QUEUES | Change.NODE_ADDED | Change.NODE_LABELS | Change.NODE_TAINTS,
        _U.UNEXPLAINED: ANY,
        _U.OTHER_NODES: _QUOTA,
        _U.NOMINATED: _VICTIMS,
        _U.NO_VICTIMS: _VICTIMS,
        _U.POSTPONED: NOTHING,
        _U.BETTER_NODE: _VICTIMS,
    }
)
"""Of a task that waits for several reasons, whatever ends one of them. That it is described anew ends any."""


def ending(reasons: Iterable[Reason]) -> Change:
    """What can end one of these reasons."""
    kinds = NOTHING
    for reason in reasons:
        kinds |= ENDED_BY[reason.kind]
    return kinds

"""Kinds of changes of the state that can end the wait of a task: see explain/wakeups.py for which ends what."""

from enum import IntFlag, auto

from firmament_py.model.arrays import I64
from firmament_py.model.events import NodeObserved


class Change(IntFlag):
    """One bit for each kind."""

    ARRIVAL = auto()
    """A task begins to wait, or one that waits is described anew."""
    WITHDRAWAL = auto()
    """A task waits no longer, or not until later, and no round has placed it."""
    RELEASE = auto()
    """A task leaves its node, or requests less there; or capacity that was kept for a task is not any more."""
    NEIGHBOUR = auto()
    """Which tasks run on which nodes, with which labels, has changed otherwise than by a departure."""
    MEMBER = auto()
    """A gang has another member, or one less, or one of them runs, or begins to leave, or has another role."""
    EVICTABLE = auto()
    """A running task may be evicted or moved that could not be before, or one that was to leave stays."""
    BUDGET = auto()
    """A disruption budget permits more evictions."""
    NODE_ADDED = auto()
    NODE_REMOVED = auto()
    NODE_GROWS = auto()
    """A node offers more of a resource."""
    NODE_SHRINKS = auto()
    NODE_LABELS = auto()
    NODE_TAINTS = auto()
    NAMESPACE = auto()
    """The labels of a namespace have changed."""
    GANG = auto()
    """A gang is defined, or defined anew."""
    QUEUES = auto()
    """Queues, quotas, or what counts as their use in the past."""
    DECISION = auto()
    """A round has placed tasks, or keeps nodes for them."""
    MEMBER_PLACED = auto()
    """A round has placed members of a gang: if these are its minimum, the others may go and preempt one by one."""


NOTHING = Change(0)
ANY = ~NOTHING
"""All kinds."""

NODES = (
    Change.NODE_ADDED
    | Change.NODE_REMOVED
    | Change.NODE_GROWS
    | Change.NODE_SHRINKS
    | Change.NODE_LABELS
    | Change.NODE_TAINTS
)
"""All kinds about nodes."""


class Changes:
    """Which kinds have happened and are not considered yet. Plain numbers: most calls are about one task."""

    def __init__(self) -> None:
        self.number = 0
        """Rises with every change."""
        self._new = self._in_round = 0

    @property
    def happened(self) -> int:
        """All kinds since the last round that has ended began."""
        return self._new | self._in_round

    def note(self, kinds: int, happened: object = True) -> None:
        """These kinds have happened, if `happened` is true."""
        if kinds and happened:
            self.number += 1
            self._new |= int(kinds)

    def round_begins(self) -> None:
        """A round considers all that has happened until now."""
        self._new, self._in_round = 0, self.happened

    def round_ends(self) -> None:
        """It did not fail."""
        self._in_round = 0


def changes_of_node(before: NodeObserved | None, now: NodeObserved, offered_before: I64, offered: I64) -> Change:
    """What changes with an observed node: `before`, None: it was absent; offered_before, offered (R,): its amounts."""
    if before is None:
        return Change.NODE_ADDED
    kinds = NOTHING
    if (offered > offered_before).any():
        kinds |= Change.NODE_GROWS
    if (offered < offered_before).any():
        kinds |= Change.NODE_SHRINKS
    if before.labels != now.labels or before.name != now.name:
        kinds |= Change.NODE_LABELS
    if before.taints != now.taints:
        kinds |= Change.NODE_TAINTS
    return kinds

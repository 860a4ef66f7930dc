"""One placement that is carried out: its state and the transitions between states.

    PREPARING --volumes ready--> READY --a slot is free--> SENDING --final answer--> ENDED
                                   ^                          |
                                   +-- DEFERRED <-- retry ----+
                                   +-- PARKED <-- gang waits -+

Any placement may also end in its present state: withdrawn, halted, or overtaken by a report of the watch.
"""

from enum import IntEnum
from typing import NamedTuple

from poseidon_py.state.pod_lifecycle import PodState
from poseidon_py.state.records import PodRecord
from poseidon_py.util.backoff import Backoff


class PlacedPod(NamedTuple):
    """What a round has decided about one pod."""

    known: PodRecord
    node: str
    """Name."""
    node_id: str


class PlacementState(IntEnum):
    PREPARING = 0  # its volumes are being bound or provisioned
    READY = 1  # it waits for a slot
    SENDING = 2  # a slot sends it
    DEFERRED = 3  # a request failed and is retried later
    PARKED = 4  # its gang does not allow it to be sent yet
    ENDED = 5  # final


_S = PlacementState
TRANSITIONS: dict[PlacementState, frozenset[PlacementState]] = {
    _S.PREPARING: frozenset({_S.READY, _S.ENDED}),
    _S.READY: frozenset({_S.SENDING, _S.ENDED}),
    _S.SENDING: frozenset({_S.DEFERRED, _S.PARKED, _S.ENDED}),
    _S.DEFERRED: frozenset({_S.READY, _S.ENDED}),
    _S.PARKED: frozenset({_S.READY, _S.ENDED}),
    _S.ENDED: frozenset(),
}


class Placement:
    """The binder's state of a PlacedPod."""

    __slots__ = ("backoff", "give_up", "in_doubt", "known", "node", "node_id", "state")

    def __init__(self, known: PodRecord, node: str, node_id: str, give_up: float, *, prepared: bool) -> None:
        """`give_up`: monotonic seconds after which it is not retried. `prepared`: its volumes are ready."""
        self.known = known
        self.node = node
        self.node_id = node_id
        self.give_up = give_up
        self.state = PlacementState.READY if prepared else PlacementState.PREPARING
        self.backoff: Backoff | None = None
        self.in_doubt = False
        """Whether an earlier request may have bound the pod although its answer was lost."""

    def move(self, to: PlacementState) -> None:
        """Raises RuntimeError for a transition that is not in the table, which is a defect."""
        if to not in TRANSITIONS[self.state]:
            raise RuntimeError(f"the placement of {self.known.full_name} cannot go from {self.state.name} to {to.name}")
        self.state = to

    @property
    def ended(self) -> bool:
        return self.state is PlacementState.ENDED

    @property
    def holds(self) -> bool:
        """Whether the pod is still assumed on this placement's node."""
        return self.known.state is PodState.ASSUMED and self.known.assumed == self.node

    def overtaken(self) -> str:
        """Why it must no longer be carried out; empty: it may be."""
        if self.known.state is PodState.GONE:
            return "gone"
        if self.known.state is PodState.BOUND:
            return "bound"
        if self.known.observed.deleting:
            return "deleting"
        return "" if self.holds else "replaced"

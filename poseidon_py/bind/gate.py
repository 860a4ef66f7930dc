"""The interface between pod binder and gang binder: when a member's bind may be sent, and how its placement ended."""

from enum import Enum
from typing import Protocol

from poseidon_py.state.records import PodRecord


class SendDecision(Enum):
    """Whether the bind of a gang's member may be sent."""

    SEND = "now"
    WAIT = "after `release`"
    DROP = "never"


class End(Enum):
    """How a placement ended."""

    BOUND = "the pod has a node, this one or another"
    FAILED = "the pod did not get a node from it"
    TAKEN = "its volumes were given to other pods; it is placed elsewhere shortly"


class GangGate(Protocol):
    """Coordinates the binds of a gang; called for members of gangs only."""

    def may_send(self, known: PodRecord) -> SendDecision: ...
    def ended(self, known: PodRecord, end: End) -> None: ...


class OpenGate:
    """Sends every bind at once: no gangs."""

    def may_send(self, known: PodRecord) -> SendDecision:
        return SendDecision.SEND

    def ended(self, known: PodRecord, end: End) -> None:
        pass

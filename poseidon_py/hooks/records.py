"""What is stored of a delivery until it has been acknowledged, and of dead letters."""

import msgspec

from poseidon_py.hooks.transition import Transition, order_key

MAX_ERROR = 300
"""Characters of an error that are stored."""


class Record(msgspec.Struct):
    """The delivery of one transition to one hook. Times are seconds since the epoch."""

    hook: str
    id: str
    """The delivery ID: see transition.delivery_id."""
    sequence: int
    """Rises in the order in which transitions are reported."""
    reported: float
    transition: Transition
    attempts: int = 0
    """Attempts that have failed."""
    due: float = 0.0
    """Time of the next attempt; 0: at once."""
    error: str = ""
    """Why the last attempt failed."""
    dead: float = 0.0
    """Time at which it became a dead letter; 0: it is pending."""

    @property
    def key(self) -> str:
        """Its key in the store."""
        return f"{self.hook}.{self.id}"

    @property
    def order(self) -> str:
        """Records of a hook with the same value are sent one after the other."""
        return order_key(self.transition)

    @property
    def subject(self) -> str:
        """The transition, for messages."""
        it = self.transition
        return f"{it.machine} {it.namespace}/{it.name} from {it.before or '(new)'} to {it.after}"


class Totals(msgspec.Struct):
    """What outlives all deliveries."""

    sequence: int = 0
    """Sequences up to this one may have been used."""
    dropped: dict[str, int] = {}
    """Number of dead letters that were dropped, by hook."""
    mark: float = 0.0
    """What the controller has set: up to when all transitions are stored, seconds since the epoch; 0: nothing."""


TOTALS_KEY = "totals"
"""Key of the totals in the store; keys of records have a dot."""

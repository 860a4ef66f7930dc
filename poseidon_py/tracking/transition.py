"""A transition that the scheduler observes."""

from dataclasses import dataclass, field

from poseidon_py.machines.transitions import AnyTransition
from poseidon_py.tracking.figures import Requests


@dataclass(frozen=True)
class Observed(AnyTransition):
    """`job_uid`: empty if pods have only the name of their job; `kind` then tells jobs of one name apart."""

    kind: str = ""
    user: str = ""
    queue: str = ""
    node: str = ""
    requests: Requests = field(default=())
    occasion: str = ""
    """Tells it from other transitions between the same states; empty: its time does."""

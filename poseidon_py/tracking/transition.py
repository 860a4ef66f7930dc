"""A transition that the scheduler observes."""

from poseidon_py.machines.transitions import AnyTransition
from poseidon_py.tracking.figures import Requests


class Observed(AnyTransition, frozen=True):
    """`job_uid`: empty if pods have only the name of their job; `kind` then tells jobs of one name apart."""

    kind: str = ""
    user: str = ""
    queue: str = ""
    node: str = ""
    requests: Requests = ()
    occasion: str = ""
    """Tells it from other transitions between the same states; empty: its time does."""

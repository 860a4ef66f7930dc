"""That a pod names a claim."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """A claim that a pod names; `own`: one that is made for the pod and goes with it."""

    name: str
    own: bool = False

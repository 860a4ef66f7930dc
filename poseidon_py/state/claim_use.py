"""A pod's reference to a persistent volume claim."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """A claim that a pod names. `own`: of a generic ephemeral volume, created for the pod and deleted with it."""

    name: str
    own: bool = False


class PreparationError(Exception):
    """What a pod's claims need is not available on the chosen node."""


class TakenError(PreparationError):
    """It was given to another pod meanwhile: the pod is placed again at once, without a report."""

"""A pod's reference to a persistent volume claim."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """A claim that a pod names. `own`: of a generic ephemeral volume, created for the pod and deleted with it."""

    name: str
    own: bool = False

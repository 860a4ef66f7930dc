"""Whether a pod ends because it is evicted, not by itself, and how pods end. Pure."""

from enum import Enum

from poseidon_py.kube.objects import Pod

CONDITION = "DisruptionTarget"
_REASONS = frozenset(("Evicted", "Preempting", "Shutdown", "NodeShutdown", "Terminated", "NodeLost"))
"""status.reason of a failed pod that its node has evicted: pressure, critical pods, shutdown, a lost node."""


class Outcome(Enum):
    """How a pod has ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    EVICTED = "evicted"


def disruption_of(pod: Pod) -> str:
    """The reason for which the pod is evicted; empty: it is not."""
    for condition in pod.status.conditions or ():
        if condition.type == CONDITION and condition.status == "True":
            return condition.reason or CONDITION
    status = pod.status
    return status.reason or "" if status.phase == "Failed" and status.reason in _REASONS else ""


def outcome_of(pod: Pod) -> Outcome | None:
    """None: it has not ended."""
    phase = pod.status.phase
    if phase == "Succeeded":
        return Outcome.SUCCEEDED
    if phase == "Failed":
        return Outcome.EVICTED if disruption_of(pod) else Outcome.FAILED
    return None

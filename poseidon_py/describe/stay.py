"""How long a pod will keep its room, as far as can be told: since when it runs, and whether it stays. Pure."""

from poseidon_py.describe.lifetime import expected_seconds
from poseidon_py.kube.objects import Nonsense, Pod, micros


def begun(pod: Pod) -> int:
    """When it began to run, microseconds since the epoch; 0: not yet, or it does not say how long it expects to."""
    if not pod.status.started or not expected_seconds(pod):
        return 0
    try:
        return micros(pod.status.started)
    except Nonsense:
        return 0


def lasting(pod: Pod, *, ours: bool) -> bool:
    """Whether nothing that can be known of will make it go while its node is there.

    So it is with pods of a DaemonSet, those that a kubelet makes itself, and those that are always restarted: of a
    controller, which would make them anew, or of another scheduler. Others that are always restarted were made by
    somebody who will delete them.
    """
    kinds = {owner.kind for owner in pod.metadata.owners or () if owner.controller}
    if kinds & {"DaemonSet", "Node"}:
        return True
    return pod.spec.restart_policy in (None, "Always") and (bool(kinds) or not ours)

"""What the store derives from a pod as the API server has it."""

from poseidon_py.kube.objects import PREEMPTED, Pod


def is_disrupted(pod: Pod) -> bool:
    """Whether the pod has the condition of a victim of preemption."""
    return any((each.type, each.reason) == PREEMPTED and each.status == "True" for each in pod.status.conditions or ())


def fingerprint(pod: Pod) -> int:
    """A hash of all fields that affect the description of a bound pod: labels, requests, deletion."""
    spec, metadata = pod.spec, pod.metadata
    asked = [bytes(container.resources) for container in (*(spec.containers or ()), *(spec.init_containers or ()))]
    return hash((metadata.deleting is None, bytes(metadata.labels), bytes(spec.resources), *asked))

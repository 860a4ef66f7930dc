"""What the devices of pods that are only supposed count as."""

from poseidon_py.devices.columns import Kind
from poseidon_py.devices.device_requests import MissingClassError
from poseidon_py.devices.pod_needs import claim_entries, extended_requests
from poseidon_py.kube.objects import InvalidField, Pod
from poseidon_py.state.devices.extended import extended_claim
from poseidon_py.state.devices.gate import DeviceGate


def supposed_columns(gate: DeviceGate, pod: Pod) -> dict[str, int]:
    """What a pod counts as. Raises InvalidField for claims of which that is not known."""
    book, requests = gate.book, []
    for entry in claim_entries(pod):
        claim = gate.cache.claims.get((pod.metadata.namespace, entry.claim))
        if claim is None:
            why = "comes from a template, which is not read" if entry.generated else f"{entry.claim!r} does not exist"
            raise InvalidField("spec.resourceClaims", f"{why}; create the claim, or leave it out and ask without")
        if gate.cache.allocation(claim) is not None:
            why = f"{entry.claim!r} has its devices, and its pods have no choice of nodes"
            raise InvalidField("spec.resourceClaims", f"{why}; leave it out and ask without")
        try:
            requests.append(book.requests_of(claim))
        except MissingClassError as error:
            raise InvalidField("spec.resourceClaims", str(error)) from error
    extended = extended_claim(extended_requests(pod), book.class_serving)
    kind = Kind(tuple(requests), extended.by_resource)
    if kind == Kind():
        return {}
    book.count_sets(kind)
    own = kind.column
    return {column: amount for column, amount in book.amounts(kind).items() if column != own}

"""Which available volumes match a claim, and which one it gets on a node: the smallest that fits. Pure."""

from collections.abc import Callable, Container, Iterable, Mapping

from poseidon_py.kube.objects import InvalidField
from poseidon_py.kube.selector_matching import matches, meets
from poseidon_py.kube.storage_objects import Claim, Volume
from poseidon_py.state.volumes.cache import Storage, capacity_bytes, class_of, labels, requested_bytes


def candidates(storage: Storage, claim: Claim) -> list[Volume]:
    """Volumes that match the claim and are available; if one is pre-bound to the claim, only that one."""
    found = []
    key = (claim.metadata.namespace, claim.metadata.name)
    size = requested_bytes(claim)
    for volume in storage.of_class.get(class_of(claim), {}).values():
        if storage.reserved.get(volume.metadata.name, key) != key or not _fits(volume, claim, size):
            continue
        if is_prebound_to(volume, claim):
            return [volume]
        if volume.spec.claim is None and _is_free(volume, claim):
            found.append(volume)
    return found


def choose(
    storage: Storage, claims: Iterable[Claim], usable: Callable[[Volume], bool]
) -> tuple[list[tuple[Claim, Volume]], list[Claim]]:
    """Claims paired with volumes, and the claims without a match. `usable`: whether the node can use a volume."""
    pairs: list[tuple[Claim, Volume]] = []
    left = []
    for claim in sorted(claims, key=requested_bytes):
        taken = {volume.metadata.name for _, volume in pairs}
        volume = _smallest(candidates(storage, claim), taken, usable)
        if volume is None:
            left.append(claim)
        else:
            pairs.append((claim, volume))
    return pairs, left


def _smallest(volumes: list[Volume], taken: Container[str], usable: Callable[[Volume], bool]) -> Volume | None:
    fits = [v for v in volumes if v.metadata.name not in taken and usable(v)]
    return min(fits, key=lambda v: (capacity_bytes(v), v.metadata.name), default=None)


def is_prebound_to(volume: Volume, claim: Claim) -> bool:
    """Whether the volume's claimRef names this claim, set by the user or by a controller."""
    reference, metadata = volume.spec.claim, claim.metadata
    return (
        reference is not None
        and (reference.namespace, reference.name) == (metadata.namespace, metadata.name)
        and reference.uid in ("", metadata.uid)
    )


def _fits(volume: Volume, claim: Claim, size: int) -> bool:
    return (
        volume.metadata.deleting is None
        and capacity_bytes(volume) >= size
        and (volume.spec.mode or "Filesystem") == (claim.spec.mode or "Filesystem")
        and (volume.spec.attributes_class or "") == (claim.spec.attributes_class or "")
    )


def _is_free(volume: Volume, claim: Claim) -> bool:
    return (
        volume.status.phase == "Available"
        and set(claim.spec.access_modes or ()) <= set(volume.spec.access_modes or ())
        and (claim.spec.selector is None or matches(claim.spec.selector, labels(volume.metadata)))
    )


def usable_on(volume: Volume, node_labels: Mapping[str, str]) -> bool:
    """Whether a volume's node affinity matches a node's labels; an invalid one does not."""
    required = volume.spec.affinity.required if volume.spec.affinity is not None else None
    if required is None:
        return True
    try:
        return any(
            bool(term.labels or term.fields) and all(meets(each, node_labels) for each in term.labels or ())
            for term in required.terms or ()
        )
    except InvalidField:
        return False

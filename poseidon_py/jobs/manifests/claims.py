"""The claims that a job creates for its volumes."""

from collections.abc import Iterator

from poseidon_py.jobs.manifests.owner import Json, Owner
from poseidon_py.jobs.rules.spec import JobSpec

COLLECTION = "/api/v1/namespaces/{}/persistentvolumeclaims"


def claims(owner: Owner, spec: JobSpec) -> Iterator[tuple[str, Json]]:
    """The collection and the manifest of each claim to create."""
    for volume in spec.volumes:
        if volume.claim is not None:
            metadata = owner.metadata(volume.claim_name)
            yield (
                COLLECTION,
                {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": volume.claim},
            )


def resources(spec: JobSpec) -> dict[str, str]:
    """The claims as `controlledResources` has them."""
    return {f"volume-pvc-{volume.claim_name}": volume.claim_name for volume in spec.volumes}

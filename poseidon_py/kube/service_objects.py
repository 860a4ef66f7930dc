"""The fields of Services that scheduling needs. See objects.py."""

from msgspec import Struct, field

from poseidon_py.kube.objects import Labels, Metadata


class ServiceSpec(Struct):
    selector: Labels | None = None


class Service(Struct):
    metadata: Metadata = field(default_factory=Metadata)
    spec: ServiceSpec = field(default_factory=ServiceSpec)

"""The fields of storage objects, and of namespaces, that scheduling needs. See objects.py."""

from msgspec import Raw, Struct, field

from poseidon_py.kube.object_details import LabelSelector
from poseidon_py.kube.objects import NOTHING, Metadata, RequiredTerms


class Namespace(Struct):
    metadata: Metadata = field(default_factory=Metadata)


class Reference(Struct, gc=False):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Amount(Struct, gc=False):
    storage: str | int | float | None = None


class ClaimResources(Struct):
    requests: Amount | None = None


class ClaimSpec(Struct):
    class_name: str | None = field(default=None, name="storageClassName")
    volume_name: str | None = field(default=None, name="volumeName")
    mode: str | None = field(default=None, name="volumeMode")
    access_modes: list[str] | None = field(default=None, name="accessModes")
    attributes_class: str | None = field(default=None, name="volumeAttributesClassName")
    selector: LabelSelector | None = None
    resources: ClaimResources | None = None


class ClaimStatus(Struct):
    phase: str | None = None


class Claim(Struct):
    """PersistentVolumeClaim."""

    metadata: Metadata = field(default_factory=Metadata)
    spec: ClaimSpec = field(default_factory=ClaimSpec)
    status: ClaimStatus = field(default_factory=ClaimStatus)


class CsiSource(Struct, gc=False):
    driver: str = ""
    handle: str = field(default="", name="volumeHandle")


class InTreeDisk(Struct, gc=False):
    """A disk of a plug-in that was replaced by a CSI driver."""

    name: str = field(default="", name="pdName")
    ident: str = field(default="", name="volumeID")
    uri: str = field(default="", name="diskURI")


class VolumeNodeAffinity(Struct):
    required: RequiredTerms | None = None


class VolumeSpec(Struct):
    class_name: str | None = field(default=None, name="storageClassName")
    mode: str | None = field(default=None, name="volumeMode")
    access_modes: list[str] | None = field(default=None, name="accessModes")
    attributes_class: str | None = field(default=None, name="volumeAttributesClassName")
    capacity: Amount | None = None
    claim: Reference | None = field(default=None, name="claimRef")
    affinity: VolumeNodeAffinity | None = field(default=None, name="nodeAffinity")
    csi: CsiSource | None = None
    gce: InTreeDisk | None = field(default=None, name="gcePersistentDisk")
    aws: InTreeDisk | None = field(default=None, name="awsElasticBlockStore")
    azure: InTreeDisk | None = field(default=None, name="azureDisk")
    cinder: InTreeDisk | None = None


class Volume(Struct):
    """PersistentVolume."""

    metadata: Metadata = field(default_factory=Metadata)
    spec: VolumeSpec = field(default_factory=VolumeSpec)
    status: ClaimStatus = field(default_factory=ClaimStatus)


class TopologyExpression(Struct):
    key: str = ""
    values: list[str] | None = None


class TopologyTerm(Struct):
    expressions: list[TopologyExpression] | None = field(default=None, name="matchLabelExpressions")


class StorageClass(Struct):
    metadata: Metadata = field(default_factory=Metadata)
    provisioner: str = ""
    binding_mode: str | None = field(default=None, name="volumeBindingMode")
    topologies: list[TopologyTerm] | None = field(default=None, name="allowedTopologies")


class DriverCount(Struct, gc=False):
    count: int | None = None


class NodeDriver(Struct):
    name: str = ""
    allocatable: DriverCount | None = None


class CsiNodeSpec(Struct):
    drivers: list[NodeDriver] | None = None


class CsiNode(Struct):
    """CSINode: the drivers of a node; it has the name of the node."""

    metadata: Metadata = field(default_factory=Metadata)
    spec: CsiNodeSpec = field(default_factory=CsiNodeSpec)


class AttachmentSource(Struct, gc=False):
    volume: str | None = field(default=None, name="persistentVolumeName")


class AttachmentSpec(Struct, gc=False):
    driver: str = field(default="", name="attacher")
    node: str = field(default="", name="nodeName")
    source: AttachmentSource = field(default_factory=AttachmentSource)


class VolumeAttachment(Struct):
    """A volume that is, or is about to be, attached to a node."""

    metadata: Metadata = field(default_factory=Metadata)
    spec: AttachmentSpec = field(default_factory=AttachmentSpec)


class CsiDriverSpec(Struct, gc=False):
    capacity: bool | None = field(default=None, name="storageCapacity")


class CsiDriver(Struct):
    metadata: Metadata = field(default_factory=Metadata)
    spec: CsiDriverSpec = field(default_factory=CsiDriverSpec)


class Capacity(Struct):
    """CSIStorageCapacity: the storage of a class that is available in a part of the cluster."""

    metadata: Metadata = field(default_factory=Metadata)
    class_name: str = field(default="", name="storageClassName")
    topology: LabelSelector | None = field(default=None, name="nodeTopology")
    capacity: Raw = NOTHING
    largest: Raw = field(default=NOTHING, name="maximumVolumeSize")

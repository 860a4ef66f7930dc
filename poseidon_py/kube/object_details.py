"""The nested parts of pods and nodes that are decoded only for the first object with these bytes. See objects.py."""

from msgspec import Struct, field

from poseidon_py.kube.objects import RequiredTerms, Requirement, SelectorTerm

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class LabelSelector(Struct):
    """A missing selector matches nothing, an empty one everything."""

    labels: dict[str, str] | None = field(default=None, name="matchLabels")
    expressions: list[Requirement] | None = field(default=None, name="matchExpressions")


class PreferredTerm(Struct):
    weight: int = 0
    preference: SelectorTerm = field(default_factory=SelectorTerm)


class NodeAffinity(Struct):
    required: RequiredTerms | None = field(default=None, name=_REQUIRED)
    preferred: list[PreferredTerm] | None = field(default=None, name=_PREFERRED)


class PodTerm(Struct):
    selector: LabelSelector | None = field(default=None, name="labelSelector")
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = field(default=None, name="namespaceSelector")
    topology_key: str = field(default="", name="topologyKey")


class WeightedPodTerm(Struct):
    weight: int = 0
    term: PodTerm = field(default_factory=PodTerm, name="podAffinityTerm")


class PodAffinity(Struct):
    required: list[PodTerm] | None = field(default=None, name=_REQUIRED)
    preferred: list[WeightedPodTerm] | None = field(default=None, name=_PREFERRED)


class Affinity(Struct):
    node: NodeAffinity | None = field(default=None, name="nodeAffinity")
    near: PodAffinity | None = field(default=None, name="podAffinity")
    far: PodAffinity | None = field(default=None, name="podAntiAffinity")


class SpreadConstraint(Struct):
    max_skew: int = field(default=1, name="maxSkew")
    topology_key: str = field(default="", name="topologyKey")
    when: str = field(default="DoNotSchedule", name="whenUnsatisfiable")
    selector: LabelSelector | None = field(default=None, name="labelSelector")
    min_domains: int | None = field(default=None, name="minDomains")
    affinity_policy: str | None = field(default=None, name="nodeAffinityPolicy")
    taints_policy: str | None = field(default=None, name="nodeTaintsPolicy")
    match_keys: list[str] | None = field(default=None, name="matchLabelKeys")


class ContainerPort(Struct, gc=False):
    container_port: int = field(default=0, name="containerPort")
    host_port: int | None = field(default=None, name="hostPort")
    host_ip: str | None = field(default=None, name="hostIP")
    protocol: str | None = None


class ContainerRan(Struct, gc=False):
    """The state of a container that runs or has run."""

    started: str | None = field(default=None, name="startedAt")
    finished: str | None = field(default=None, name="finishedAt")
    exit_code: int = field(default=0, name="exitCode")
    reason: str | None = None


class ContainerState(Struct, gc=False):
    running: ContainerRan | None = None
    terminated: ContainerRan | None = None


class RestartRule(Struct, gc=False):
    action: str | None = None


class Disk(Struct, gc=False):
    """An in-tree disk of any kind."""

    gce: str = field(default="", name="pdName")
    aws: str = field(default="", name="volumeID")
    iqn: str = ""
    pool: str = ""
    image: str = ""
    monitors: list[str] | None = None
    read_only: bool | None = field(default=None, name="readOnly")


class ImageSource(Struct, gc=False):
    reference: str = ""


class NodeImage(Struct):
    names: list[str] | None = None
    size: int = field(default=0, name="sizeBytes")


class AvoidedController(Struct):
    uid: str = ""


class AvoidedSignature(Struct):
    controller: AvoidedController | None = field(default=None, name="podController")


class AvoidedPod(Struct):
    signature: AvoidedSignature | None = field(default=None, name="podSignature")


class AvoidPods(Struct):
    pods: list[AvoidedPod] | None = field(default=None, name="preferAvoidPods")


SpreadConstraints = list[SpreadConstraint]
Ports = list[ContainerPort]
RestartRules = list[RestartRule]
Images = list[NodeImage]

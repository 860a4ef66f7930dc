from protos.gen import firmament_pb2 as _firmament_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CallStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CALL_OK: _ClassVar[CallStatus]
    STALE_EPOCH: _ClassVar[CallStatus]

class PlacedBy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PLACED_BY_UNKNOWN: _ClassVar[PlacedBy]
    FLOW: _ClassVar[PlacedBy]
    CHEAPEST_SLOTS: _ClassVar[PlacedBy]
    GREEDY: _ClassVar[PlacedBy]
    REQUIRED_NODE: _ClassVar[PlacedBy]
    NOMINATION: _ClassVar[PlacedBy]
    GANG_SEARCH: _ClassVar[PlacedBy]
    PACKING: _ClassVar[PlacedBy]
    PATTERNS: _ClassVar[PlacedBy]
    LISTS: _ClassVar[PlacedBy]
    PREEMPTION: _ClassVar[PlacedBy]
    SEARCH: _ClassVar[PlacedBy]
CALL_OK: CallStatus
STALE_EPOCH: CallStatus
PLACED_BY_UNKNOWN: PlacedBy
FLOW: PlacedBy
CHEAPEST_SLOTS: PlacedBy
GREEDY: PlacedBy
REQUIRED_NODE: PlacedBy
NOMINATION: PlacedBy
GANG_SEARCH: PlacedBy
PACKING: PlacedBy
PATTERNS: PlacedBy
LISTS: PlacedBy
PREEMPTION: PlacedBy
SEARCH: PlacedBy

class HelloRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class HelloReply(_message.Message):
    __slots__ = ("epoch", "version", "policy", "solver", "resynced", "wants_usage", "counts_links", "spreads_tasks", "description")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    SOLVER_FIELD_NUMBER: _ClassVar[int]
    RESYNCED_FIELD_NUMBER: _ClassVar[int]
    WANTS_USAGE_FIELD_NUMBER: _ClassVar[int]
    COUNTS_LINKS_FIELD_NUMBER: _ClassVar[int]
    SPREADS_TASKS_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    version: str
    policy: str
    solver: str
    resynced: bool
    wants_usage: bool
    counts_links: bool
    spreads_tasks: bool
    description: bytes
    def __init__(self, epoch: _Optional[int] = ..., version: _Optional[str] = ..., policy: _Optional[str] = ..., solver: _Optional[str] = ..., resynced: _Optional[bool] = ..., wants_usage: _Optional[bool] = ..., counts_links: _Optional[bool] = ..., spreads_tasks: _Optional[bool] = ..., description: _Optional[bytes] = ...) -> None: ...

class Update(_message.Message):
    __slots__ = ("epoch", "classes", "nodes", "removed_nodes", "tasks", "removed_tasks", "succeeded_tasks", "failed_tasks", "rejections", "profiles", "gangs", "removed_gangs", "namespaces", "inputs", "complete", "budgets", "removed_budgets", "round", "queues")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    CLASSES_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    REMOVED_NODES_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    REMOVED_TASKS_FIELD_NUMBER: _ClassVar[int]
    SUCCEEDED_TASKS_FIELD_NUMBER: _ClassVar[int]
    FAILED_TASKS_FIELD_NUMBER: _ClassVar[int]
    REJECTIONS_FIELD_NUMBER: _ClassVar[int]
    PROFILES_FIELD_NUMBER: _ClassVar[int]
    GANGS_FIELD_NUMBER: _ClassVar[int]
    REMOVED_GANGS_FIELD_NUMBER: _ClassVar[int]
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    BUDGETS_FIELD_NUMBER: _ClassVar[int]
    REMOVED_BUDGETS_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    classes: _containers.RepeatedCompositeFieldContainer[TaskClass]
    nodes: _containers.RepeatedCompositeFieldContainer[Node]
    removed_nodes: _containers.RepeatedScalarFieldContainer[str]
    tasks: Tasks
    removed_tasks: _containers.RepeatedScalarFieldContainer[int]
    succeeded_tasks: _containers.RepeatedScalarFieldContainer[int]
    failed_tasks: _containers.RepeatedScalarFieldContainer[int]
    rejections: _containers.RepeatedCompositeFieldContainer[Rejection]
    profiles: _containers.RepeatedCompositeFieldContainer[Profile]
    gangs: _containers.RepeatedCompositeFieldContainer[Gang]
    removed_gangs: _containers.RepeatedScalarFieldContainer[int]
    namespaces: _containers.RepeatedCompositeFieldContainer[Namespace]
    inputs: _containers.RepeatedCompositeFieldContainer[Inputs]
    complete: bool
    budgets: _containers.RepeatedCompositeFieldContainer[Budget]
    removed_budgets: _containers.RepeatedScalarFieldContainer[int]
    round: RoundRequest
    queues: Queues
    def __init__(self, epoch: _Optional[int] = ..., classes: _Optional[_Iterable[_Union[TaskClass, _Mapping]]] = ..., nodes: _Optional[_Iterable[_Union[Node, _Mapping]]] = ..., removed_nodes: _Optional[_Iterable[str]] = ..., tasks: _Optional[_Union[Tasks, _Mapping]] = ..., removed_tasks: _Optional[_Iterable[int]] = ..., succeeded_tasks: _Optional[_Iterable[int]] = ..., failed_tasks: _Optional[_Iterable[int]] = ..., rejections: _Optional[_Iterable[_Union[Rejection, _Mapping]]] = ..., profiles: _Optional[_Iterable[_Union[Profile, _Mapping]]] = ..., gangs: _Optional[_Iterable[_Union[Gang, _Mapping]]] = ..., removed_gangs: _Optional[_Iterable[int]] = ..., namespaces: _Optional[_Iterable[_Union[Namespace, _Mapping]]] = ..., inputs: _Optional[_Iterable[_Union[Inputs, _Mapping]]] = ..., complete: _Optional[bool] = ..., budgets: _Optional[_Iterable[_Union[Budget, _Mapping]]] = ..., removed_budgets: _Optional[_Iterable[int]] = ..., round: _Optional[_Union[RoundRequest, _Mapping]] = ..., queues: _Optional[_Union[Queues, _Mapping]] = ...) -> None: ...

class UpdateReply(_message.Message):
    __slots__ = ("status", "epoch", "unknown_classes", "unknown_profiles", "unknown_gangs", "unknown_inputs", "refused", "quiet", "round")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_CLASSES_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_PROFILES_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_GANGS_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_INPUTS_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    QUIET_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    status: CallStatus
    epoch: int
    unknown_classes: _containers.RepeatedScalarFieldContainer[int]
    unknown_profiles: _containers.RepeatedScalarFieldContainer[int]
    unknown_gangs: _containers.RepeatedScalarFieldContainer[int]
    unknown_inputs: _containers.RepeatedScalarFieldContainer[int]
    refused: _containers.RepeatedCompositeFieldContainer[Refusal]
    quiet: bool
    round: RoundReply
    def __init__(self, status: _Optional[_Union[CallStatus, str]] = ..., epoch: _Optional[int] = ..., unknown_classes: _Optional[_Iterable[int]] = ..., unknown_profiles: _Optional[_Iterable[int]] = ..., unknown_gangs: _Optional[_Iterable[int]] = ..., unknown_inputs: _Optional[_Iterable[int]] = ..., refused: _Optional[_Iterable[_Union[Refusal, _Mapping]]] = ..., quiet: _Optional[bool] = ..., round: _Optional[_Union[RoundReply, _Mapping]] = ...) -> None: ...

class TaskClass(_message.Message):
    __slots__ = ("id", "requests", "node_selector", "node_affinity", "tolerations", "priority", "name", "further_affinity", "further_names", "affinity", "anti_affinity", "spread", "tokens", "preferred_nodes", "preferred_peers", "images", "avoided_as", "traits", "expected_seconds", "never_preempts", "prefers_capacity")
    class RequestsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class TraitsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    NODE_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    NODE_AFFINITY_FIELD_NUMBER: _ClassVar[int]
    TOLERATIONS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    FURTHER_AFFINITY_FIELD_NUMBER: _ClassVar[int]
    FURTHER_NAMES_FIELD_NUMBER: _ClassVar[int]
    AFFINITY_FIELD_NUMBER: _ClassVar[int]
    ANTI_AFFINITY_FIELD_NUMBER: _ClassVar[int]
    SPREAD_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    PREFERRED_NODES_FIELD_NUMBER: _ClassVar[int]
    PREFERRED_PEERS_FIELD_NUMBER: _ClassVar[int]
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    AVOIDED_AS_FIELD_NUMBER: _ClassVar[int]
    TRAITS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_SECONDS_FIELD_NUMBER: _ClassVar[int]
    NEVER_PREEMPTS_FIELD_NUMBER: _ClassVar[int]
    PREFERS_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    id: int
    requests: _containers.ScalarMap[str, int]
    node_selector: _containers.RepeatedCompositeFieldContainer[_firmament_pb2.NodeSelectorRequirement]
    node_affinity: _firmament_pb2.NodeSelector
    tolerations: _containers.RepeatedCompositeFieldContainer[_firmament_pb2.Toleration]
    priority: int
    name: str
    further_affinity: _containers.RepeatedCompositeFieldContainer[_firmament_pb2.NodeSelector]
    further_names: _containers.RepeatedScalarFieldContainer[str]
    affinity: _containers.RepeatedCompositeFieldContainer[PeerTerm]
    anti_affinity: _containers.RepeatedCompositeFieldContainer[PeerTerm]
    spread: _containers.RepeatedCompositeFieldContainer[Spread]
    tokens: _containers.RepeatedScalarFieldContainer[str]
    preferred_nodes: _containers.RepeatedCompositeFieldContainer[_firmament_pb2.PreferredSchedulingTerm]
    preferred_peers: _containers.RepeatedCompositeFieldContainer[PreferredPeer]
    images: _containers.RepeatedScalarFieldContainer[str]
    avoided_as: str
    traits: _containers.ScalarMap[str, str]
    expected_seconds: int
    never_preempts: bool
    prefers_capacity: bool
    def __init__(self, id: _Optional[int] = ..., requests: _Optional[_Mapping[str, int]] = ..., node_selector: _Optional[_Iterable[_Union[_firmament_pb2.NodeSelectorRequirement, _Mapping]]] = ..., node_affinity: _Optional[_Union[_firmament_pb2.NodeSelector, _Mapping]] = ..., tolerations: _Optional[_Iterable[_Union[_firmament_pb2.Toleration, _Mapping]]] = ..., priority: _Optional[int] = ..., name: _Optional[str] = ..., further_affinity: _Optional[_Iterable[_Union[_firmament_pb2.NodeSelector, _Mapping]]] = ..., further_names: _Optional[_Iterable[str]] = ..., affinity: _Optional[_Iterable[_Union[PeerTerm, _Mapping]]] = ..., anti_affinity: _Optional[_Iterable[_Union[PeerTerm, _Mapping]]] = ..., spread: _Optional[_Iterable[_Union[Spread, _Mapping]]] = ..., tokens: _Optional[_Iterable[str]] = ..., preferred_nodes: _Optional[_Iterable[_Union[_firmament_pb2.PreferredSchedulingTerm, _Mapping]]] = ..., preferred_peers: _Optional[_Iterable[_Union[PreferredPeer, _Mapping]]] = ..., images: _Optional[_Iterable[str]] = ..., avoided_as: _Optional[str] = ..., traits: _Optional[_Mapping[str, str]] = ..., expected_seconds: _Optional[int] = ..., never_preempts: _Optional[bool] = ..., prefers_capacity: _Optional[bool] = ...) -> None: ...

class PeerSelector(_message.Message):
    __slots__ = ("namespaces", "namespace_selector", "every_namespace", "labels", "no_task")
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    EVERY_NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    NO_TASK_FIELD_NUMBER: _ClassVar[int]
    namespaces: _containers.RepeatedScalarFieldContainer[str]
    namespace_selector: _containers.RepeatedCompositeFieldContainer[_firmament_pb2.NodeSelectorRequirement]
    every_namespace: bool
    labels: _containers.RepeatedCompositeFieldContainer[_firmament_pb2.NodeSelectorRequirement]
    no_task: bool
    def __init__(self, namespaces: _Optional[_Iterable[str]] = ..., namespace_selector: _Optional[_Iterable[_Union[_firmament_pb2.NodeSelectorRequirement, _Mapping]]] = ..., every_namespace: _Optional[bool] = ..., labels: _Optional[_Iterable[_Union[_firmament_pb2.NodeSelectorRequirement, _Mapping]]] = ..., no_task: _Optional[bool] = ...) -> None: ...

class PeerTerm(_message.Message):
    __slots__ = ("selector", "topology_key")
    SELECTOR_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_KEY_FIELD_NUMBER: _ClassVar[int]
    selector: PeerSelector
    topology_key: str
    def __init__(self, selector: _Optional[_Union[PeerSelector, _Mapping]] = ..., topology_key: _Optional[str] = ...) -> None: ...

class Spread(_message.Message):
    __slots__ = ("selector", "topology_key", "max_skew", "min_domains", "ignore_affinity", "honor_taints", "preferred")
    SELECTOR_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_KEY_FIELD_NUMBER: _ClassVar[int]
    MAX_SKEW_FIELD_NUMBER: _ClassVar[int]
    MIN_DOMAINS_FIELD_NUMBER: _ClassVar[int]
    IGNORE_AFFINITY_FIELD_NUMBER: _ClassVar[int]
    HONOR_TAINTS_FIELD_NUMBER: _ClassVar[int]
    PREFERRED_FIELD_NUMBER: _ClassVar[int]
    selector: PeerSelector
    topology_key: str
    max_skew: int
    min_domains: int
    ignore_affinity: bool
    honor_taints: bool
    preferred: bool
    def __init__(self, selector: _Optional[_Union[PeerSelector, _Mapping]] = ..., topology_key: _Optional[str] = ..., max_skew: _Optional[int] = ..., min_domains: _Optional[int] = ..., ignore_affinity: _Optional[bool] = ..., honor_taints: _Optional[bool] = ..., preferred: _Optional[bool] = ...) -> None: ...

class PreferredPeer(_message.Message):
    __slots__ = ("term", "weight")
    TERM_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    term: PeerTerm
    weight: int
    def __init__(self, term: _Optional[_Union[PeerTerm, _Mapping]] = ..., weight: _Optional[int] = ...) -> None: ...

class Profile(_message.Message):
    __slots__ = ("id", "namespace", "labels")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    id: int
    namespace: str
    labels: _containers.ScalarMap[str, str]
    def __init__(self, id: _Optional[int] = ..., namespace: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Inputs(_message.Message):
    __slots__ = ("id", "blocks")
    ID_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    id: int
    blocks: _containers.RepeatedCompositeFieldContainer[Block]
    def __init__(self, id: _Optional[int] = ..., blocks: _Optional[_Iterable[_Union[Block, _Mapping]]] = ...) -> None: ...

class Block(_message.Message):
    __slots__ = ("bytes", "nodes", "racks")
    BYTES_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    RACKS_FIELD_NUMBER: _ClassVar[int]
    bytes: int
    nodes: _containers.RepeatedScalarFieldContainer[str]
    racks: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, bytes: _Optional[int] = ..., nodes: _Optional[_Iterable[str]] = ..., racks: _Optional[_Iterable[str]] = ...) -> None: ...

class Gang(_message.Message):
    __slots__ = ("id", "minimum", "created_us", "roles", "topology_key", "topology_required", "name", "maximum", "disrupted_whole", "narrower_keys", "start_amounts", "keeps", "queue", "keeps_on", "outer_keys", "staged")
    class StartAmountsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class KeepsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_FIELD_NUMBER: _ClassVar[int]
    CREATED_US_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_KEY_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_REQUIRED_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_FIELD_NUMBER: _ClassVar[int]
    DISRUPTED_WHOLE_FIELD_NUMBER: _ClassVar[int]
    NARROWER_KEYS_FIELD_NUMBER: _ClassVar[int]
    START_AMOUNTS_FIELD_NUMBER: _ClassVar[int]
    KEEPS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    KEEPS_ON_FIELD_NUMBER: _ClassVar[int]
    OUTER_KEYS_FIELD_NUMBER: _ClassVar[int]
    STAGED_FIELD_NUMBER: _ClassVar[int]
    id: int
    minimum: int
    created_us: int
    roles: _containers.RepeatedCompositeFieldContainer[GangRole]
    topology_key: str
    topology_required: bool
    name: str
    maximum: int
    disrupted_whole: bool
    narrower_keys: _containers.RepeatedScalarFieldContainer[str]
    start_amounts: _containers.ScalarMap[str, int]
    keeps: _containers.ScalarMap[str, int]
    queue: int
    keeps_on: str
    outer_keys: _containers.RepeatedScalarFieldContainer[str]
    staged: bool
    def __init__(self, id: _Optional[int] = ..., minimum: _Optional[int] = ..., created_us: _Optional[int] = ..., roles: _Optional[_Iterable[_Union[GangRole, _Mapping]]] = ..., topology_key: _Optional[str] = ..., topology_required: _Optional[bool] = ..., name: _Optional[str] = ..., maximum: _Optional[int] = ..., disrupted_whole: _Optional[bool] = ..., narrower_keys: _Optional[_Iterable[str]] = ..., start_amounts: _Optional[_Mapping[str, int]] = ..., keeps: _Optional[_Mapping[str, int]] = ..., queue: _Optional[int] = ..., keeps_on: _Optional[str] = ..., outer_keys: _Optional[_Iterable[str]] = ..., staged: _Optional[bool] = ...) -> None: ...

class GangRole(_message.Message):
    __slots__ = ("name", "minimum")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_FIELD_NUMBER: _ClassVar[int]
    name: str
    minimum: int
    def __init__(self, name: _Optional[str] = ..., minimum: _Optional[int] = ...) -> None: ...

class Budget(_message.Message):
    __slots__ = ("id", "selector", "allowed", "name")
    ID_FIELD_NUMBER: _ClassVar[int]
    SELECTOR_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    id: int
    selector: PeerSelector
    allowed: int
    name: str
    def __init__(self, id: _Optional[int] = ..., selector: _Optional[_Union[PeerSelector, _Mapping]] = ..., allowed: _Optional[int] = ..., name: _Optional[str] = ...) -> None: ...

class Namespace(_message.Message):
    __slots__ = ("name", "labels")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    name: str
    labels: _containers.ScalarMap[str, str]
    def __init__(self, name: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Queues(_message.Message):
    __slots__ = ("sharing", "division", "reclaim_rules", "reclaim_ratio", "queues", "flavors", "half_life_seconds", "past_use_weight", "local_queues", "sampling_seconds", "resource_weights", "priority_first", "exempt_prefixes", "exempt_resources", "past_use")
    class Sharing(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        SHARING_UNSPECIFIED: _ClassVar[Queues.Sharing]
        CLASSICAL: _ClassVar[Queues.Sharing]
        FAIR: _ClassVar[Queues.Sharing]
        PROPORTIONAL: _ClassVar[Queues.Sharing]
        HIERARCHICAL_DRF: _ClassVar[Queues.Sharing]
    SHARING_UNSPECIFIED: Queues.Sharing
    CLASSICAL: Queues.Sharing
    FAIR: Queues.Sharing
    PROPORTIONAL: Queues.Sharing
    HIERARCHICAL_DRF: Queues.Sharing
    class Division(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        SURPLUS_BY_WEIGHT: _ClassVar[Queues.Division]
        TOTAL_BY_WEIGHT: _ClassVar[Queues.Division]
        AS_STATED: _ClassVar[Queues.Division]
    SURPLUS_BY_WEIGHT: Queues.Division
    TOTAL_BY_WEIGHT: Queues.Division
    AS_STATED: Queues.Division
    class ReclaimRules(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        QUOTA: _ClassVar[Queues.ReclaimRules]
        FAIR_SHARE: _ClassVar[Queues.ReclaimRules]
        DESERVED: _ClassVar[Queues.ReclaimRules]
        GUARANTEE: _ClassVar[Queues.ReclaimRules]
        DOMINANT_SHARE: _ClassVar[Queues.ReclaimRules]
    QUOTA: Queues.ReclaimRules
    FAIR_SHARE: Queues.ReclaimRules
    DESERVED: Queues.ReclaimRules
    GUARANTEE: Queues.ReclaimRules
    DOMINANT_SHARE: Queues.ReclaimRules
    class ResourceWeightsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    SHARING_FIELD_NUMBER: _ClassVar[int]
    DIVISION_FIELD_NUMBER: _ClassVar[int]
    RECLAIM_RULES_FIELD_NUMBER: _ClassVar[int]
    RECLAIM_RATIO_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    FLAVORS_FIELD_NUMBER: _ClassVar[int]
    HALF_LIFE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PAST_USE_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    LOCAL_QUEUES_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_SECONDS_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIRST_FIELD_NUMBER: _ClassVar[int]
    EXEMPT_PREFIXES_FIELD_NUMBER: _ClassVar[int]
    EXEMPT_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    PAST_USE_FIELD_NUMBER: _ClassVar[int]
    sharing: Queues.Sharing
    division: Queues.Division
    reclaim_rules: Queues.ReclaimRules
    reclaim_ratio: float
    queues: _containers.RepeatedCompositeFieldContainer[Queue]
    flavors: _containers.RepeatedCompositeFieldContainer[Flavor]
    half_life_seconds: float
    past_use_weight: float
    local_queues: _containers.RepeatedCompositeFieldContainer[LocalQueue]
    sampling_seconds: float
    resource_weights: _containers.ScalarMap[str, float]
    priority_first: bool
    exempt_prefixes: _containers.RepeatedScalarFieldContainer[str]
    exempt_resources: _containers.RepeatedScalarFieldContainer[str]
    past_use: PastUse
    def __init__(self, sharing: _Optional[_Union[Queues.Sharing, str]] = ..., division: _Optional[_Union[Queues.Division, str]] = ..., reclaim_rules: _Optional[_Union[Queues.ReclaimRules, str]] = ..., reclaim_ratio: _Optional[float] = ..., queues: _Optional[_Iterable[_Union[Queue, _Mapping]]] = ..., flavors: _Optional[_Iterable[_Union[Flavor, _Mapping]]] = ..., half_life_seconds: _Optional[float] = ..., past_use_weight: _Optional[float] = ..., local_queues: _Optional[_Iterable[_Union[LocalQueue, _Mapping]]] = ..., sampling_seconds: _Optional[float] = ..., resource_weights: _Optional[_Mapping[str, float]] = ..., priority_first: _Optional[bool] = ..., exempt_prefixes: _Optional[_Iterable[str]] = ..., exempt_resources: _Optional[_Iterable[str]] = ..., past_use: _Optional[_Union[PastUse, _Mapping]] = ...) -> None: ...

class LocalQueue(_message.Message):
    __slots__ = ("id", "name", "queue", "weight")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    id: int
    name: str
    queue: int
    weight: float
    def __init__(self, id: _Optional[int] = ..., name: _Optional[str] = ..., queue: _Optional[int] = ..., weight: _Optional[float] = ...) -> None: ...

class PastUse(_message.Message):
    __slots__ = ("at_us", "of")
    AT_US_FIELD_NUMBER: _ClassVar[int]
    OF_FIELD_NUMBER: _ClassVar[int]
    at_us: int
    of: _containers.RepeatedCompositeFieldContainer[PastAmounts]
    def __init__(self, at_us: _Optional[int] = ..., of: _Optional[_Iterable[_Union[PastAmounts, _Mapping]]] = ...) -> None: ...

class PastAmounts(_message.Message):
    __slots__ = ("id", "amounts")
    ID_FIELD_NUMBER: _ClassVar[int]
    AMOUNTS_FIELD_NUMBER: _ClassVar[int]
    id: int
    amounts: _containers.RepeatedCompositeFieldContainer[PastAmount]
    def __init__(self, id: _Optional[int] = ..., amounts: _Optional[_Iterable[_Union[PastAmount, _Mapping]]] = ...) -> None: ...

class PastAmount(_message.Message):
    __slots__ = ("flavor", "resource", "amount")
    FLAVOR_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    flavor: str
    resource: str
    amount: float
    def __init__(self, flavor: _Optional[str] = ..., resource: _Optional[str] = ..., amount: _Optional[float] = ...) -> None: ...

class Flavor(_message.Message):
    __slots__ = ("name", "node_labels", "taints", "tolerations")
    class NodeLabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    NODE_LABELS_FIELD_NUMBER: _ClassVar[int]
    TAINTS_FIELD_NUMBER: _ClassVar[int]
    TOLERATIONS_FIELD_NUMBER: _ClassVar[int]
    name: str
    node_labels: _containers.ScalarMap[str, str]
    taints: _containers.RepeatedCompositeFieldContainer[_firmament_pb2.Taint]
    tolerations: _containers.RepeatedCompositeFieldContainer[_firmament_pb2.Toleration]
    def __init__(self, name: _Optional[str] = ..., node_labels: _Optional[_Mapping[str, str]] = ..., taints: _Optional[_Iterable[_Union[_firmament_pb2.Taint, _Mapping]]] = ..., tolerations: _Optional[_Iterable[_Union[_firmament_pb2.Toleration, _Mapping]]] = ...) -> None: ...

class Quota(_message.Message):
    __slots__ = ("flavor", "resource", "nominal", "borrowing_limit", "lending_limit", "limit", "weight")
    FLAVOR_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    NOMINAL_FIELD_NUMBER: _ClassVar[int]
    BORROWING_LIMIT_FIELD_NUMBER: _ClassVar[int]
    LENDING_LIMIT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    flavor: str
    resource: str
    nominal: int
    borrowing_limit: int
    lending_limit: int
    limit: int
    weight: float
    def __init__(self, flavor: _Optional[str] = ..., resource: _Optional[str] = ..., nominal: _Optional[int] = ..., borrowing_limit: _Optional[int] = ..., lending_limit: _Optional[int] = ..., limit: _Optional[int] = ..., weight: _Optional[float] = ...) -> None: ...

class Queue(_message.Message):
    __slots__ = ("id", "name", "parent", "quotas", "groups", "weight", "priority", "within", "reclaim", "borrow_within", "borrow_within_threshold", "strict_fifo", "stop", "preempt_min_runtime_seconds", "reclaim_min_runtime_seconds", "preemption_delay_seconds", "unlimited", "not_reclaimable", "fence", "fungibility", "by_past_use", "evictions_per_hour", "priority_offset", "priority_fence")
    class Victims(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NEVER: _ClassVar[Queue.Victims]
        LOWER_PRIORITY: _ClassVar[Queue.Victims]
        LOWER_OR_NEWER_EQUAL_PRIORITY: _ClassVar[Queue.Victims]
        ANY: _ClassVar[Queue.Victims]
    NEVER: Queue.Victims
    LOWER_PRIORITY: Queue.Victims
    LOWER_OR_NEWER_EQUAL_PRIORITY: Queue.Victims
    ANY: Queue.Victims
    class Stop(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NONE: _ClassVar[Queue.Stop]
        HOLD: _ClassVar[Queue.Stop]
        HOLD_AND_DRAIN: _ClassVar[Queue.Stop]
    NONE: Queue.Stop
    HOLD: Queue.Stop
    HOLD_AND_DRAIN: Queue.Stop
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    QUOTAS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    WITHIN_FIELD_NUMBER: _ClassVar[int]
    RECLAIM_FIELD_NUMBER: _ClassVar[int]
    BORROW_WITHIN_FIELD_NUMBER: _ClassVar[int]
    BORROW_WITHIN_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    STRICT_FIFO_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    PREEMPT_MIN_RUNTIME_SECONDS_FIELD_NUMBER: _ClassVar[int]
    RECLAIM_MIN_RUNTIME_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PREEMPTION_DELAY_SECONDS_FIELD_NUMBER: _ClassVar[int]
    UNLIMITED_FIELD_NUMBER: _ClassVar[int]
    NOT_RECLAIMABLE_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    FUNGIBILITY_FIELD_NUMBER: _ClassVar[int]
    BY_PAST_USE_FIELD_NUMBER: _ClassVar[int]
    EVICTIONS_PER_HOUR_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_OFFSET_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FENCE_FIELD_NUMBER: _ClassVar[int]
    id: int
    name: str
    parent: int
    quotas: _containers.RepeatedCompositeFieldContainer[Quota]
    groups: _containers.RepeatedCompositeFieldContainer[ResourceGroup]
    weight: float
    priority: int
    within: Queue.Victims
    reclaim: Queue.Victims
    borrow_within: Queue.Victims
    borrow_within_threshold: int
    strict_fifo: bool
    stop: Queue.Stop
    preempt_min_runtime_seconds: float
    reclaim_min_runtime_seconds: float
    preemption_delay_seconds: float
    unlimited: bool
    not_reclaimable: bool
    fence: bool
    fungibility: Fungibility
    by_past_use: bool
    evictions_per_hour: int
    priority_offset: int
    priority_fence: bool
    def __init__(self, id: _Optional[int] = ..., name: _Optional[str] = ..., parent: _Optional[int] = ..., quotas: _Optional[_Iterable[_Union[Quota, _Mapping]]] = ..., groups: _Optional[_Iterable[_Union[ResourceGroup, _Mapping]]] = ..., weight: _Optional[float] = ..., priority: _Optional[int] = ..., within: _Optional[_Union[Queue.Victims, str]] = ..., reclaim: _Optional[_Union[Queue.Victims, str]] = ..., borrow_within: _Optional[_Union[Queue.Victims, str]] = ..., borrow_within_threshold: _Optional[int] = ..., strict_fifo: _Optional[bool] = ..., stop: _Optional[_Union[Queue.Stop, str]] = ..., preempt_min_runtime_seconds: _Optional[float] = ..., reclaim_min_runtime_seconds: _Optional[float] = ..., preemption_delay_seconds: _Optional[float] = ..., unlimited: _Optional[bool] = ..., not_reclaimable: _Optional[bool] = ..., fence: _Optional[bool] = ..., fungibility: _Optional[_Union[Fungibility, _Mapping]] = ..., by_past_use: _Optional[bool] = ..., evictions_per_hour: _Optional[int] = ..., priority_offset: _Optional[int] = ..., priority_fence: _Optional[bool] = ...) -> None: ...

class Fungibility(_message.Message):
    __slots__ = ("next_to_avoid_borrowing", "preempt_before_next", "preempt_before_borrowing")
    NEXT_TO_AVOID_BORROWING_FIELD_NUMBER: _ClassVar[int]
    PREEMPT_BEFORE_NEXT_FIELD_NUMBER: _ClassVar[int]
    PREEMPT_BEFORE_BORROWING_FIELD_NUMBER: _ClassVar[int]
    next_to_avoid_borrowing: bool
    preempt_before_next: bool
    preempt_before_borrowing: bool
    def __init__(self, next_to_avoid_borrowing: _Optional[bool] = ..., preempt_before_next: _Optional[bool] = ..., preempt_before_borrowing: _Optional[bool] = ...) -> None: ...

class ResourceGroup(_message.Message):
    __slots__ = ("resources",)
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    resources: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, resources: _Optional[_Iterable[str]] = ...) -> None: ...

class Node(_message.Message):
    __slots__ = ("id", "name", "allocatable", "labels", "taints", "images", "avoids")
    class AllocatableEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class ImagesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ALLOCATABLE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    TAINTS_FIELD_NUMBER: _ClassVar[int]
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    AVOIDS_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    allocatable: _containers.ScalarMap[str, int]
    labels: _containers.ScalarMap[str, str]
    taints: _containers.RepeatedCompositeFieldContainer[_firmament_pb2.Taint]
    images: _containers.ScalarMap[str, int]
    avoids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., allocatable: _Optional[_Mapping[str, int]] = ..., labels: _Optional[_Mapping[str, str]] = ..., taints: _Optional[_Iterable[_Union[_firmament_pb2.Taint, _Mapping]]] = ..., images: _Optional[_Mapping[str, int]] = ..., avoids: _Optional[_Iterable[str]] = ...) -> None: ...

class Tasks(_message.Message):
    __slots__ = ("uid", "class_id", "job_id", "created_us", "node", "name", "nodes", "profile_id", "gang_id", "role", "inputs_id", "leaving", "started_us", "lasting", "nominated", "unevictable", "checkpoint_us", "movable", "daemon", "queue_id", "local_queue_id", "least_preemptor", "exempt_until_us", "required_node")
    UID_FIELD_NUMBER: _ClassVar[int]
    CLASS_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    CREATED_US_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    PROFILE_ID_FIELD_NUMBER: _ClassVar[int]
    GANG_ID_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    INPUTS_ID_FIELD_NUMBER: _ClassVar[int]
    LEAVING_FIELD_NUMBER: _ClassVar[int]
    STARTED_US_FIELD_NUMBER: _ClassVar[int]
    LASTING_FIELD_NUMBER: _ClassVar[int]
    NOMINATED_FIELD_NUMBER: _ClassVar[int]
    UNEVICTABLE_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_US_FIELD_NUMBER: _ClassVar[int]
    MOVABLE_FIELD_NUMBER: _ClassVar[int]
    DAEMON_FIELD_NUMBER: _ClassVar[int]
    QUEUE_ID_FIELD_NUMBER: _ClassVar[int]
    LOCAL_QUEUE_ID_FIELD_NUMBER: _ClassVar[int]
    LEAST_PREEMPTOR_FIELD_NUMBER: _ClassVar[int]
    EXEMPT_UNTIL_US_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_NODE_FIELD_NUMBER: _ClassVar[int]
    uid: _containers.RepeatedScalarFieldContainer[int]
    class_id: _containers.RepeatedScalarFieldContainer[int]
    job_id: _containers.RepeatedScalarFieldContainer[int]
    created_us: _containers.RepeatedScalarFieldContainer[int]
    node: _containers.RepeatedScalarFieldContainer[int]
    name: _containers.RepeatedScalarFieldContainer[str]
    nodes: _containers.RepeatedScalarFieldContainer[str]
    profile_id: _containers.RepeatedScalarFieldContainer[int]
    gang_id: _containers.RepeatedScalarFieldContainer[int]
    role: _containers.RepeatedScalarFieldContainer[int]
    inputs_id: _containers.RepeatedScalarFieldContainer[int]
    leaving: _containers.RepeatedScalarFieldContainer[bool]
    started_us: _containers.RepeatedScalarFieldContainer[int]
    lasting: _containers.RepeatedScalarFieldContainer[bool]
    nominated: _containers.RepeatedScalarFieldContainer[int]
    unevictable: _containers.RepeatedScalarFieldContainer[bool]
    checkpoint_us: _containers.RepeatedScalarFieldContainer[int]
    movable: _containers.RepeatedScalarFieldContainer[bool]
    daemon: _containers.RepeatedScalarFieldContainer[bool]
    queue_id: _containers.RepeatedScalarFieldContainer[int]
    local_queue_id: _containers.RepeatedScalarFieldContainer[int]
    least_preemptor: _containers.RepeatedScalarFieldContainer[int]
    exempt_until_us: _containers.RepeatedScalarFieldContainer[int]
    required_node: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, uid: _Optional[_Iterable[int]] = ..., class_id: _Optional[_Iterable[int]] = ..., job_id: _Optional[_Iterable[int]] = ..., created_us: _Optional[_Iterable[int]] = ..., node: _Optional[_Iterable[int]] = ..., name: _Optional[_Iterable[str]] = ..., nodes: _Optional[_Iterable[str]] = ..., profile_id: _Optional[_Iterable[int]] = ..., gang_id: _Optional[_Iterable[int]] = ..., role: _Optional[_Iterable[int]] = ..., inputs_id: _Optional[_Iterable[int]] = ..., leaving: _Optional[_Iterable[bool]] = ..., started_us: _Optional[_Iterable[int]] = ..., lasting: _Optional[_Iterable[bool]] = ..., nominated: _Optional[_Iterable[int]] = ..., unevictable: _Optional[_Iterable[bool]] = ..., checkpoint_us: _Optional[_Iterable[int]] = ..., movable: _Optional[_Iterable[bool]] = ..., daemon: _Optional[_Iterable[bool]] = ..., queue_id: _Optional[_Iterable[int]] = ..., local_queue_id: _Optional[_Iterable[int]] = ..., least_preemptor: _Optional[_Iterable[int]] = ..., exempt_until_us: _Optional[_Iterable[int]] = ..., required_node: _Optional[_Iterable[str]] = ...) -> None: ...

class Rejection(_message.Message):
    __slots__ = ("task_uid", "node_id", "not_before_us")
    TASK_UID_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    NOT_BEFORE_US_FIELD_NUMBER: _ClassVar[int]
    task_uid: int
    node_id: str
    not_before_us: int
    def __init__(self, task_uid: _Optional[int] = ..., node_id: _Optional[str] = ..., not_before_us: _Optional[int] = ...) -> None: ...

class Refusal(_message.Message):
    __slots__ = ("kind", "id", "field", "reason", "queue")
    KIND_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    kind: str
    id: str
    field: str
    reason: str
    queue: int
    def __init__(self, kind: _Optional[str] = ..., id: _Optional[str] = ..., field: _Optional[str] = ..., reason: _Optional[str] = ..., queue: _Optional[int] = ...) -> None: ...

class RoundRequest(_message.Message):
    __slots__ = ("epoch", "acknowledged", "now_us")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGED_FIELD_NUMBER: _ClassVar[int]
    NOW_US_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    acknowledged: int
    now_us: int
    def __init__(self, epoch: _Optional[int] = ..., acknowledged: _Optional[int] = ..., now_us: _Optional[int] = ...) -> None: ...

class RoundReply(_message.Message):
    __slots__ = ("status", "round", "placed", "unscheduled", "stats", "wake_us", "preempted", "nominated", "unnominated", "migrated", "migrated_for")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    PLACED_FIELD_NUMBER: _ClassVar[int]
    UNSCHEDULED_FIELD_NUMBER: _ClassVar[int]
    STATS_FIELD_NUMBER: _ClassVar[int]
    WAKE_US_FIELD_NUMBER: _ClassVar[int]
    PREEMPTED_FIELD_NUMBER: _ClassVar[int]
    NOMINATED_FIELD_NUMBER: _ClassVar[int]
    UNNOMINATED_FIELD_NUMBER: _ClassVar[int]
    MIGRATED_FIELD_NUMBER: _ClassVar[int]
    MIGRATED_FOR_FIELD_NUMBER: _ClassVar[int]
    status: CallStatus
    round: int
    placed: Placements
    unscheduled: _containers.RepeatedCompositeFieldContainer[Unscheduled]
    stats: RoundStats
    wake_us: int
    preempted: Preemptions
    nominated: Placements
    unnominated: _containers.RepeatedScalarFieldContainer[int]
    migrated: Placements
    migrated_for: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, status: _Optional[_Union[CallStatus, str]] = ..., round: _Optional[int] = ..., placed: _Optional[_Union[Placements, _Mapping]] = ..., unscheduled: _Optional[_Iterable[_Union[Unscheduled, _Mapping]]] = ..., stats: _Optional[_Union[RoundStats, _Mapping]] = ..., wake_us: _Optional[int] = ..., preempted: _Optional[_Union[Preemptions, _Mapping]] = ..., nominated: _Optional[_Union[Placements, _Mapping]] = ..., unnominated: _Optional[_Iterable[int]] = ..., migrated: _Optional[_Union[Placements, _Mapping]] = ..., migrated_for: _Optional[_Iterable[int]] = ...) -> None: ...

class Preemptions(_message.Message):
    __slots__ = ("task_uid", "preemptor_uid")
    TASK_UID_FIELD_NUMBER: _ClassVar[int]
    PREEMPTOR_UID_FIELD_NUMBER: _ClassVar[int]
    task_uid: _containers.RepeatedScalarFieldContainer[int]
    preemptor_uid: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, task_uid: _Optional[_Iterable[int]] = ..., preemptor_uid: _Optional[_Iterable[int]] = ...) -> None: ...

class Placements(_message.Message):
    __slots__ = ("task_uid", "node", "nodes", "by")
    TASK_UID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    task_uid: _containers.RepeatedScalarFieldContainer[int]
    node: _containers.RepeatedScalarFieldContainer[int]
    nodes: _containers.RepeatedScalarFieldContainer[str]
    by: _containers.RepeatedScalarFieldContainer[PlacedBy]
    def __init__(self, task_uid: _Optional[_Iterable[int]] = ..., node: _Optional[_Iterable[int]] = ..., nodes: _Optional[_Iterable[str]] = ..., by: _Optional[_Iterable[_Union[PlacedBy, str]]] = ...) -> None: ...

class Unscheduled(_message.Message):
    __slots__ = ("class_id", "waiting", "nodes", "reasons", "task_uid")
    CLASS_ID_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    TASK_UID_FIELD_NUMBER: _ClassVar[int]
    class_id: int
    waiting: int
    nodes: int
    reasons: _containers.RepeatedCompositeFieldContainer[Reason]
    task_uid: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, class_id: _Optional[int] = ..., waiting: _Optional[int] = ..., nodes: _Optional[int] = ..., reasons: _Optional[_Iterable[_Union[Reason, _Mapping]]] = ..., task_uid: _Optional[_Iterable[int]] = ...) -> None: ...

class Reason(_message.Message):
    __slots__ = ("kind", "detail", "value", "nodes")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        KIND_UNSPECIFIED: _ClassVar[Reason.Kind]
        INSUFFICIENT_RESOURCE: _ClassVar[Reason.Kind]
        TOO_MANY_TASKS: _ClassVar[Reason.Kind]
        UNTOLERATED_TAINT: _ClassVar[Reason.Kind]
        SELECTOR_MISMATCH: _ClassVar[Reason.Kind]
        AFFINITY: _ClassVar[Reason.Kind]
        ANTI_AFFINITY: _ClassVar[Reason.Kind]
        ANTI_AFFINITY_OF_OTHERS: _ClassVar[Reason.Kind]
        SPREAD: _ClassVar[Reason.Kind]
        SPREAD_LABEL_MISSING: _ClassVar[Reason.Kind]
        TOKEN_TAKEN: _ClassVar[Reason.Kind]
        GANG_INCOMPLETE: _ClassVar[Reason.Kind]
        GANG_DOES_NOT_FIT: _ClassVar[Reason.Kind]
        FURTHER_AFFINITY: _ClassVar[Reason.Kind]
        RESERVED: _ClassVar[Reason.Kind]
        GANG_FULL: _ClassVar[Reason.Kind]
        DEFERRED: _ClassVar[Reason.Kind]
        DELAYED: _ClassVar[Reason.Kind]
        NOT_BY_PREEMPTION: _ClassVar[Reason.Kind]
        OVER_QUOTA: _ClassVar[Reason.Kind]
        QUEUE_UNKNOWN: _ClassVar[Reason.Kind]
        QUEUE_STOPPED: _ClassVar[Reason.Kind]
        NO_FLAVOR: _ClassVar[Reason.Kind]
        QUEUE_BEHIND: _ClassVar[Reason.Kind]
        GANG_CANNOT_START: _ClassVar[Reason.Kind]
        BUDGETS: _ClassVar[Reason.Kind]
        GANG_DOMAIN: _ClassVar[Reason.Kind]
    KIND_UNSPECIFIED: Reason.Kind
    INSUFFICIENT_RESOURCE: Reason.Kind
    TOO_MANY_TASKS: Reason.Kind
    UNTOLERATED_TAINT: Reason.Kind
    SELECTOR_MISMATCH: Reason.Kind
    AFFINITY: Reason.Kind
    ANTI_AFFINITY: Reason.Kind
    ANTI_AFFINITY_OF_OTHERS: Reason.Kind
    SPREAD: Reason.Kind
    SPREAD_LABEL_MISSING: Reason.Kind
    TOKEN_TAKEN: Reason.Kind
    GANG_INCOMPLETE: Reason.Kind
    GANG_DOES_NOT_FIT: Reason.Kind
    FURTHER_AFFINITY: Reason.Kind
    RESERVED: Reason.Kind
    GANG_FULL: Reason.Kind
    DEFERRED: Reason.Kind
    DELAYED: Reason.Kind
    NOT_BY_PREEMPTION: Reason.Kind
    OVER_QUOTA: Reason.Kind
    QUEUE_UNKNOWN: Reason.Kind
    QUEUE_STOPPED: Reason.Kind
    NO_FLAVOR: Reason.Kind
    QUEUE_BEHIND: Reason.Kind
    GANG_CANNOT_START: Reason.Kind
    BUDGETS: Reason.Kind
    GANG_DOMAIN: Reason.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    kind: Reason.Kind
    detail: str
    value: str
    nodes: int
    def __init__(self, kind: _Optional[_Union[Reason.Kind, str]] = ..., detail: _Optional[str] = ..., value: _Optional[str] = ..., nodes: _Optional[int] = ...) -> None: ...

class RoundStats(_message.Message):
    __slots__ = ("started_us", "stage_seconds", "seconds", "solves", "vertices", "arcs", "objective", "pending", "placed", "placed_by", "waiting", "classes", "nodes", "dropped", "policy", "fallback", "uncertified", "unsolved", "compressed", "pricing_rounds", "trials", "gap", "preempted", "nominated", "migrated", "migrated_for_waiting", "least_moves", "delayed", "usage_measured", "usage_missing", "usage_stale")
    class StageSecondsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    class PlacedByEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class UnsolvedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    STARTED_US_FIELD_NUMBER: _ClassVar[int]
    STAGE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    SOLVES_FIELD_NUMBER: _ClassVar[int]
    VERTICES_FIELD_NUMBER: _ClassVar[int]
    ARCS_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVE_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    PLACED_FIELD_NUMBER: _ClassVar[int]
    PLACED_BY_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    CLASSES_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    FALLBACK_FIELD_NUMBER: _ClassVar[int]
    UNCERTIFIED_FIELD_NUMBER: _ClassVar[int]
    UNSOLVED_FIELD_NUMBER: _ClassVar[int]
    COMPRESSED_FIELD_NUMBER: _ClassVar[int]
    PRICING_ROUNDS_FIELD_NUMBER: _ClassVar[int]
    TRIALS_FIELD_NUMBER: _ClassVar[int]
    GAP_FIELD_NUMBER: _ClassVar[int]
    PREEMPTED_FIELD_NUMBER: _ClassVar[int]
    NOMINATED_FIELD_NUMBER: _ClassVar[int]
    MIGRATED_FIELD_NUMBER: _ClassVar[int]
    MIGRATED_FOR_WAITING_FIELD_NUMBER: _ClassVar[int]
    LEAST_MOVES_FIELD_NUMBER: _ClassVar[int]
    DELAYED_FIELD_NUMBER: _ClassVar[int]
    USAGE_MEASURED_FIELD_NUMBER: _ClassVar[int]
    USAGE_MISSING_FIELD_NUMBER: _ClassVar[int]
    USAGE_STALE_FIELD_NUMBER: _ClassVar[int]
    started_us: int
    stage_seconds: _containers.ScalarMap[str, float]
    seconds: float
    solves: int
    vertices: int
    arcs: int
    objective: int
    pending: int
    placed: int
    placed_by: _containers.ScalarMap[str, int]
    waiting: int
    classes: int
    nodes: int
    dropped: int
    policy: str
    fallback: str
    uncertified: int
    unsolved: _containers.ScalarMap[str, int]
    compressed: int
    pricing_rounds: int
    trials: int
    gap: int
    preempted: int
    nominated: int
    migrated: int
    migrated_for_waiting: int
    least_moves: int
    delayed: int
    usage_measured: int
    usage_missing: int
    usage_stale: int
    def __init__(self, started_us: _Optional[int] = ..., stage_seconds: _Optional[_Mapping[str, float]] = ..., seconds: _Optional[float] = ..., solves: _Optional[int] = ..., vertices: _Optional[int] = ..., arcs: _Optional[int] = ..., objective: _Optional[int] = ..., pending: _Optional[int] = ..., placed: _Optional[int] = ..., placed_by: _Optional[_Mapping[str, int]] = ..., waiting: _Optional[int] = ..., classes: _Optional[int] = ..., nodes: _Optional[int] = ..., dropped: _Optional[int] = ..., policy: _Optional[str] = ..., fallback: _Optional[str] = ..., uncertified: _Optional[int] = ..., unsolved: _Optional[_Mapping[str, int]] = ..., compressed: _Optional[int] = ..., pricing_rounds: _Optional[int] = ..., trials: _Optional[int] = ..., gap: _Optional[int] = ..., preempted: _Optional[int] = ..., nominated: _Optional[int] = ..., migrated: _Optional[int] = ..., migrated_for_waiting: _Optional[int] = ..., least_moves: _Optional[int] = ..., delayed: _Optional[int] = ..., usage_measured: _Optional[int] = ..., usage_missing: _Optional[int] = ..., usage_stale: _Optional[int] = ...) -> None: ...

class UsageReport(_message.Message):
    __slots__ = ("epoch", "task_uid", "tasks", "node_id", "nodes")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    TASK_UID_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    task_uid: _containers.RepeatedScalarFieldContainer[int]
    tasks: UsageColumns
    node_id: _containers.RepeatedScalarFieldContainer[str]
    nodes: UsageColumns
    def __init__(self, epoch: _Optional[int] = ..., task_uid: _Optional[_Iterable[int]] = ..., tasks: _Optional[_Union[UsageColumns, _Mapping]] = ..., node_id: _Optional[_Iterable[str]] = ..., nodes: _Optional[_Union[UsageColumns, _Mapping]] = ...) -> None: ...

class UsageColumns(_message.Message):
    __slots__ = ("at_us", "cpu", "memory", "rx", "tx")
    AT_US_FIELD_NUMBER: _ClassVar[int]
    CPU_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    RX_FIELD_NUMBER: _ClassVar[int]
    TX_FIELD_NUMBER: _ClassVar[int]
    at_us: _containers.RepeatedScalarFieldContainer[int]
    cpu: _containers.RepeatedScalarFieldContainer[float]
    memory: _containers.RepeatedScalarFieldContainer[float]
    rx: _containers.RepeatedScalarFieldContainer[float]
    tx: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, at_us: _Optional[_Iterable[int]] = ..., cpu: _Optional[_Iterable[float]] = ..., memory: _Optional[_Iterable[float]] = ..., rx: _Optional[_Iterable[float]] = ..., tx: _Optional[_Iterable[float]] = ...) -> None: ...

class UsageReply(_message.Message):
    __slots__ = ("status", "taken", "old", "refused", "unknown")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    OLD_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    status: CallStatus
    taken: int
    old: int
    refused: int
    unknown: int
    def __init__(self, status: _Optional[_Union[CallStatus, str]] = ..., taken: _Optional[int] = ..., old: _Optional[int] = ..., refused: _Optional[int] = ..., unknown: _Optional[int] = ...) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("task_uid",)
    TASK_UID_FIELD_NUMBER: _ClassVar[int]
    task_uid: int
    def __init__(self, task_uid: _Optional[int] = ...) -> None: ...

class ExplainReply(_message.Message):
    __slots__ = ("found", "state", "node", "job", "class_name", "priority", "requests", "nodes", "reasons", "nearest", "story", "fits_now", "gang", "reserves", "starts_us", "placed_by", "verdict", "blocking", "blocking_is_smallest", "remedies")
    class Verdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        VERDICT_UNSPECIFIED: _ClassVar[ExplainReply.Verdict]
        WAITS_ITS_TURN: _ClassVar[ExplainReply.Verdict]
        OVER_QUOTA: _ClassVar[ExplainReply.Verdict]
        NO_ROOM_NOW: _ClassVar[ExplainReply.Verdict]
        CAN_NEVER_FIT: _ClassVar[ExplainReply.Verdict]
        WAITS_FOR_MEMBERS: _ClassVar[ExplainReply.Verdict]
        ROOM_IS_MADE: _ClassVar[ExplainReply.Verdict]
        FITS_BY_NOW: _ClassVar[ExplainReply.Verdict]
    VERDICT_UNSPECIFIED: ExplainReply.Verdict
    WAITS_ITS_TURN: ExplainReply.Verdict
    OVER_QUOTA: ExplainReply.Verdict
    NO_ROOM_NOW: ExplainReply.Verdict
    CAN_NEVER_FIT: ExplainReply.Verdict
    WAITS_FOR_MEMBERS: ExplainReply.Verdict
    ROOM_IS_MADE: ExplainReply.Verdict
    FITS_BY_NOW: ExplainReply.Verdict
    class RequestsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    FOUND_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    CLASS_NAME_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    NEAREST_FIELD_NUMBER: _ClassVar[int]
    STORY_FIELD_NUMBER: _ClassVar[int]
    FITS_NOW_FIELD_NUMBER: _ClassVar[int]
    GANG_FIELD_NUMBER: _ClassVar[int]
    RESERVES_FIELD_NUMBER: _ClassVar[int]
    STARTS_US_FIELD_NUMBER: _ClassVar[int]
    PLACED_BY_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    BLOCKING_FIELD_NUMBER: _ClassVar[int]
    BLOCKING_IS_SMALLEST_FIELD_NUMBER: _ClassVar[int]
    REMEDIES_FIELD_NUMBER: _ClassVar[int]
    found: bool
    state: str
    node: str
    job: str
    class_name: str
    priority: int
    requests: _containers.ScalarMap[str, int]
    nodes: int
    reasons: _containers.RepeatedCompositeFieldContainer[Reason]
    nearest: _containers.RepeatedCompositeFieldContainer[NearMiss]
    story: _containers.RepeatedScalarFieldContainer[str]
    fits_now: int
    gang: GangStanding
    reserves: bool
    starts_us: int
    placed_by: PlacedBy
    verdict: ExplainReply.Verdict
    blocking: _containers.RepeatedCompositeFieldContainer[BlockingConstraint]
    blocking_is_smallest: bool
    remedies: _containers.RepeatedCompositeFieldContainer[Remedy]
    def __init__(self, found: _Optional[bool] = ..., state: _Optional[str] = ..., node: _Optional[str] = ..., job: _Optional[str] = ..., class_name: _Optional[str] = ..., priority: _Optional[int] = ..., requests: _Optional[_Mapping[str, int]] = ..., nodes: _Optional[int] = ..., reasons: _Optional[_Iterable[_Union[Reason, _Mapping]]] = ..., nearest: _Optional[_Iterable[_Union[NearMiss, _Mapping]]] = ..., story: _Optional[_Iterable[str]] = ..., fits_now: _Optional[int] = ..., gang: _Optional[_Union[GangStanding, _Mapping]] = ..., reserves: _Optional[bool] = ..., starts_us: _Optional[int] = ..., placed_by: _Optional[_Union[PlacedBy, str]] = ..., verdict: _Optional[_Union[ExplainReply.Verdict, str]] = ..., blocking: _Optional[_Iterable[_Union[BlockingConstraint, _Mapping]]] = ..., blocking_is_smallest: _Optional[bool] = ..., remedies: _Optional[_Iterable[_Union[Remedy, _Mapping]]] = ...) -> None: ...

class BlockingConstraint(_message.Message):
    __slots__ = ("kind", "detail", "value", "nodes", "short")
    KIND_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    SHORT_FIELD_NUMBER: _ClassVar[int]
    kind: Reason.Kind
    detail: str
    value: str
    nodes: int
    short: int
    def __init__(self, kind: _Optional[_Union[Reason.Kind, str]] = ..., detail: _Optional[str] = ..., value: _Optional[str] = ..., nodes: _Optional[int] = ..., short: _Optional[int] = ...) -> None: ...

class Remedy(_message.Message):
    __slots__ = ("without", "nodes", "node")
    WITHOUT_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    without: _containers.RepeatedCompositeFieldContainer[BlockingConstraint]
    nodes: int
    node: str
    def __init__(self, without: _Optional[_Iterable[_Union[BlockingConstraint, _Mapping]]] = ..., nodes: _Optional[int] = ..., node: _Optional[str] = ...) -> None: ...

class GangStanding(_message.Message):
    __slots__ = ("name", "minimum", "present", "placed", "missing", "fits", "maximum", "reserves", "starts_us", "id", "lacks")
    class LacksEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_FIELD_NUMBER: _ClassVar[int]
    PRESENT_FIELD_NUMBER: _ClassVar[int]
    PLACED_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    FITS_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_FIELD_NUMBER: _ClassVar[int]
    RESERVES_FIELD_NUMBER: _ClassVar[int]
    STARTS_US_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    LACKS_FIELD_NUMBER: _ClassVar[int]
    name: str
    minimum: int
    present: int
    placed: int
    missing: int
    fits: int
    maximum: int
    reserves: bool
    starts_us: int
    id: int
    lacks: _containers.ScalarMap[str, int]
    def __init__(self, name: _Optional[str] = ..., minimum: _Optional[int] = ..., present: _Optional[int] = ..., placed: _Optional[int] = ..., missing: _Optional[int] = ..., fits: _Optional[int] = ..., maximum: _Optional[int] = ..., reserves: _Optional[bool] = ..., starts_us: _Optional[int] = ..., id: _Optional[int] = ..., lacks: _Optional[_Mapping[str, int]] = ...) -> None: ...

class StartsRequest(_message.Message):
    __slots__ = ("uid",)
    UID_FIELD_NUMBER: _ClassVar[int]
    uid: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, uid: _Optional[_Iterable[int]] = ...) -> None: ...

class StartsReply(_message.Message):
    __slots__ = ("made_us", "uid", "earliest_us", "likely_us", "latest_us", "node", "nodes", "whole", "errors", "durations", "problem", "probability")
    MADE_US_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    EARLIEST_US_FIELD_NUMBER: _ClassVar[int]
    LIKELY_US_FIELD_NUMBER: _ClassVar[int]
    LATEST_US_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    WHOLE_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    DURATIONS_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    made_us: int
    uid: _containers.RepeatedScalarFieldContainer[int]
    earliest_us: _containers.RepeatedScalarFieldContainer[int]
    likely_us: _containers.RepeatedScalarFieldContainer[int]
    latest_us: _containers.RepeatedScalarFieldContainer[int]
    node: _containers.RepeatedScalarFieldContainer[int]
    nodes: _containers.RepeatedScalarFieldContainer[str]
    whole: bool
    errors: int
    durations: int
    problem: str
    probability: float
    def __init__(self, made_us: _Optional[int] = ..., uid: _Optional[_Iterable[int]] = ..., earliest_us: _Optional[_Iterable[int]] = ..., likely_us: _Optional[_Iterable[int]] = ..., latest_us: _Optional[_Iterable[int]] = ..., node: _Optional[_Iterable[int]] = ..., nodes: _Optional[_Iterable[str]] = ..., whole: _Optional[bool] = ..., errors: _Optional[int] = ..., durations: _Optional[int] = ..., problem: _Optional[str] = ..., probability: _Optional[float] = ...) -> None: ...

class GangsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GangsReply(_message.Message):
    __slots__ = ("gangs",)
    GANGS_FIELD_NUMBER: _ClassVar[int]
    gangs: _containers.RepeatedCompositeFieldContainer[GangStanding]
    def __init__(self, gangs: _Optional[_Iterable[_Union[GangStanding, _Mapping]]] = ...) -> None: ...

class FitRequest(_message.Message):
    __slots__ = ("members", "minimum", "topology_key", "topology_required", "preempts", "now_us", "profiles", "added_nodes", "drained_nodes", "says_whether_ever")
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_KEY_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_REQUIRED_FIELD_NUMBER: _ClassVar[int]
    PREEMPTS_FIELD_NUMBER: _ClassVar[int]
    NOW_US_FIELD_NUMBER: _ClassVar[int]
    PROFILES_FIELD_NUMBER: _ClassVar[int]
    ADDED_NODES_FIELD_NUMBER: _ClassVar[int]
    DRAINED_NODES_FIELD_NUMBER: _ClassVar[int]
    SAYS_WHETHER_EVER_FIELD_NUMBER: _ClassVar[int]
    members: _containers.RepeatedCompositeFieldContainer[FitMembers]
    minimum: int
    topology_key: str
    topology_required: bool
    preempts: bool
    now_us: int
    profiles: _containers.RepeatedCompositeFieldContainer[Profile]
    added_nodes: _containers.RepeatedCompositeFieldContainer[AddedNodes]
    drained_nodes: _containers.RepeatedScalarFieldContainer[str]
    says_whether_ever: bool
    def __init__(self, members: _Optional[_Iterable[_Union[FitMembers, _Mapping]]] = ..., minimum: _Optional[int] = ..., topology_key: _Optional[str] = ..., topology_required: _Optional[bool] = ..., preempts: _Optional[bool] = ..., now_us: _Optional[int] = ..., profiles: _Optional[_Iterable[_Union[Profile, _Mapping]]] = ..., added_nodes: _Optional[_Iterable[_Union[AddedNodes, _Mapping]]] = ..., drained_nodes: _Optional[_Iterable[str]] = ..., says_whether_ever: _Optional[bool] = ...) -> None: ...

class AddedNodes(_message.Message):
    __slots__ = ("count", "like", "allocatable")
    class AllocatableEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    COUNT_FIELD_NUMBER: _ClassVar[int]
    LIKE_FIELD_NUMBER: _ClassVar[int]
    ALLOCATABLE_FIELD_NUMBER: _ClassVar[int]
    count: int
    like: str
    allocatable: _containers.ScalarMap[str, int]
    def __init__(self, count: _Optional[int] = ..., like: _Optional[str] = ..., allocatable: _Optional[_Mapping[str, int]] = ...) -> None: ...

class FitMembers(_message.Message):
    __slots__ = ("count", "profile_id", "queue_id")
    CLASS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    PROFILE_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_ID_FIELD_NUMBER: _ClassVar[int]
    count: int
    profile_id: int
    queue_id: int
    def __init__(self, count: _Optional[int] = ..., profile_id: _Optional[int] = ..., queue_id: _Optional[int] = ..., **kwargs) -> None: ...

class FitReply(_message.Message):
    __slots__ = ("fits", "places", "unscheduled", "at_best", "victims", "problem", "seconds", "ever", "never", "at_best_ever", "displaced", "stranded")
    class Ever(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        EVER_UNSPECIFIED: _ClassVar[FitReply.Ever]
        FITS_LATER: _ClassVar[FitReply.Ever]
        NEVER_FITS: _ClassVar[FitReply.Ever]
        NOT_FOUND: _ClassVar[FitReply.Ever]
    EVER_UNSPECIFIED: FitReply.Ever
    FITS_LATER: FitReply.Ever
    NEVER_FITS: FitReply.Ever
    NOT_FOUND: FitReply.Ever
    FITS_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    UNSCHEDULED_FIELD_NUMBER: _ClassVar[int]
    AT_BEST_FIELD_NUMBER: _ClassVar[int]
    VICTIMS_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    EVER_FIELD_NUMBER: _ClassVar[int]
    NEVER_FIELD_NUMBER: _ClassVar[int]
    AT_BEST_EVER_FIELD_NUMBER: _ClassVar[int]
    DISPLACED_FIELD_NUMBER: _ClassVar[int]
    STRANDED_FIELD_NUMBER: _ClassVar[int]
    fits: bool
    places: _containers.RepeatedCompositeFieldContainer[FitPlace]
    unscheduled: _containers.RepeatedCompositeFieldContainer[Unscheduled]
    at_best: int
    victims: _containers.RepeatedScalarFieldContainer[str]
    problem: str
    seconds: float
    ever: FitReply.Ever
    never: _containers.RepeatedCompositeFieldContainer[Unscheduled]
    at_best_ever: int
    displaced: int
    stranded: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, fits: _Optional[bool] = ..., places: _Optional[_Iterable[_Union[FitPlace, _Mapping]]] = ..., unscheduled: _Optional[_Iterable[_Union[Unscheduled, _Mapping]]] = ..., at_best: _Optional[int] = ..., victims: _Optional[_Iterable[str]] = ..., problem: _Optional[str] = ..., seconds: _Optional[float] = ..., ever: _Optional[_Union[FitReply.Ever, str]] = ..., never: _Optional[_Iterable[_Union[Unscheduled, _Mapping]]] = ..., at_best_ever: _Optional[int] = ..., displaced: _Optional[int] = ..., stranded: _Optional[_Iterable[str]] = ...) -> None: ...

class FitPlace(_message.Message):
    __slots__ = ("class_id", "node", "count", "after_evictions")
    CLASS_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    AFTER_EVICTIONS_FIELD_NUMBER: _ClassVar[int]
    class_id: int
    node: str
    count: int
    after_evictions: bool
    def __init__(self, class_id: _Optional[int] = ..., node: _Optional[str] = ..., count: _Optional[int] = ..., after_evictions: _Optional[bool] = ...) -> None: ...

class NearMiss(_message.Message):
    __slots__ = ("node", "lacks")
    class LacksEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    NODE_FIELD_NUMBER: _ClassVar[int]
    LACKS_FIELD_NUMBER: _ClassVar[int]
    node: str
    lacks: _containers.ScalarMap[str, int]
    def __init__(self, node: _Optional[str] = ..., lacks: _Optional[_Mapping[str, int]] = ...) -> None: ...

class StatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StatusReply(_message.Message):
    __slots__ = ("epoch", "policy", "nodes", "tasks", "classes", "allocatable", "used", "last_round", "rounds", "usage", "outcomes")
    class TasksEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class AllocatableEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class UsedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class OutcomesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    CLASSES_FIELD_NUMBER: _ClassVar[int]
    ALLOCATABLE_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    LAST_ROUND_FIELD_NUMBER: _ClassVar[int]
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    policy: str
    nodes: int
    tasks: _containers.ScalarMap[str, int]
    classes: int
    allocatable: _containers.ScalarMap[str, int]
    used: _containers.ScalarMap[str, int]
    last_round: RoundStats
    rounds: int
    usage: UsageStatus
    outcomes: _containers.ScalarMap[str, int]
    def __init__(self, epoch: _Optional[int] = ..., policy: _Optional[str] = ..., nodes: _Optional[int] = ..., tasks: _Optional[_Mapping[str, int]] = ..., classes: _Optional[int] = ..., allocatable: _Optional[_Mapping[str, int]] = ..., used: _Optional[_Mapping[str, int]] = ..., last_round: _Optional[_Union[RoundStats, _Mapping]] = ..., rounds: _Optional[int] = ..., usage: _Optional[_Union[UsageStatus, _Mapping]] = ..., outcomes: _Optional[_Mapping[str, int]] = ...) -> None: ...

class UsageStatus(_message.Message):
    __slots__ = ("basis", "wants_usage", "samples", "half_life_seconds", "stale_seconds", "taken", "old", "refused", "unknown", "tasks_measured", "tasks_stale", "nodes_measured", "nodes_stale", "newest_age_seconds", "memory_bytes")
    BASIS_FIELD_NUMBER: _ClassVar[int]
    WANTS_USAGE_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    HALF_LIFE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    STALE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    OLD_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    TASKS_MEASURED_FIELD_NUMBER: _ClassVar[int]
    TASKS_STALE_FIELD_NUMBER: _ClassVar[int]
    NODES_MEASURED_FIELD_NUMBER: _ClassVar[int]
    NODES_STALE_FIELD_NUMBER: _ClassVar[int]
    NEWEST_AGE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    basis: str
    wants_usage: bool
    samples: int
    half_life_seconds: float
    stale_seconds: float
    taken: int
    old: int
    refused: int
    unknown: int
    tasks_measured: int
    tasks_stale: int
    nodes_measured: int
    nodes_stale: int
    newest_age_seconds: float
    memory_bytes: int
    def __init__(self, basis: _Optional[str] = ..., wants_usage: _Optional[bool] = ..., samples: _Optional[int] = ..., half_life_seconds: _Optional[float] = ..., stale_seconds: _Optional[float] = ..., taken: _Optional[int] = ..., old: _Optional[int] = ..., refused: _Optional[int] = ..., unknown: _Optional[int] = ..., tasks_measured: _Optional[int] = ..., tasks_stale: _Optional[int] = ..., nodes_measured: _Optional[int] = ..., nodes_stale: _Optional[int] = ..., newest_age_seconds: _Optional[float] = ..., memory_bytes: _Optional[int] = ...) -> None: ...

class QueuesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class QueuesReply(_message.Message):
    __slots__ = ("epoch", "queues", "problems", "local_queues", "past_use")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    LOCAL_QUEUES_FIELD_NUMBER: _ClassVar[int]
    PAST_USE_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    queues: _containers.RepeatedCompositeFieldContainer[QueueState]
    problems: _containers.RepeatedCompositeFieldContainer[Refusal]
    local_queues: _containers.RepeatedCompositeFieldContainer[LocalQueueState]
    past_use: PastUse
    def __init__(self, epoch: _Optional[int] = ..., queues: _Optional[_Iterable[_Union[QueueState, _Mapping]]] = ..., problems: _Optional[_Iterable[_Union[Refusal, _Mapping]]] = ..., local_queues: _Optional[_Iterable[_Union[LocalQueueState, _Mapping]]] = ..., past_use: _Optional[_Union[PastUse, _Mapping]] = ...) -> None: ...

class QueueState(_message.Message):
    __slots__ = ("id", "name", "parent", "takes_tasks", "running", "pending", "nominated", "share", "amounts")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    TAKES_TASKS_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    NOMINATED_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    AMOUNTS_FIELD_NUMBER: _ClassVar[int]
    id: int
    name: str
    parent: int
    takes_tasks: bool
    running: int
    pending: int
    nominated: int
    share: float
    amounts: _containers.RepeatedCompositeFieldContainer[QueueAmount]
    def __init__(self, id: _Optional[int] = ..., name: _Optional[str] = ..., parent: _Optional[int] = ..., takes_tasks: _Optional[bool] = ..., running: _Optional[int] = ..., pending: _Optional[int] = ..., nominated: _Optional[int] = ..., share: _Optional[float] = ..., amounts: _Optional[_Iterable[_Union[QueueAmount, _Mapping]]] = ...) -> None: ...

class LocalQueueState(_message.Message):
    __slots__ = ("id", "running", "pending", "amounts", "past_use")
    ID_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    AMOUNTS_FIELD_NUMBER: _ClassVar[int]
    PAST_USE_FIELD_NUMBER: _ClassVar[int]
    id: int
    running: int
    pending: int
    amounts: _containers.RepeatedCompositeFieldContainer[QueueAmount]
    past_use: float
    def __init__(self, id: _Optional[int] = ..., running: _Optional[int] = ..., pending: _Optional[int] = ..., amounts: _Optional[_Iterable[_Union[QueueAmount, _Mapping]]] = ..., past_use: _Optional[float] = ...) -> None: ...

class QueueAmount(_message.Message):
    __slots__ = ("flavor", "resource", "nominal", "used", "borrowed", "demand", "fair", "past")
    FLAVOR_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    NOMINAL_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    BORROWED_FIELD_NUMBER: _ClassVar[int]
    DEMAND_FIELD_NUMBER: _ClassVar[int]
    FAIR_FIELD_NUMBER: _ClassVar[int]
    PAST_FIELD_NUMBER: _ClassVar[int]
    flavor: str
    resource: str
    nominal: int
    used: int
    borrowed: int
    demand: int
    fair: int
    past: float
    def __init__(self, flavor: _Optional[str] = ..., resource: _Optional[str] = ..., nominal: _Optional[int] = ..., used: _Optional[int] = ..., borrowed: _Optional[int] = ..., demand: _Optional[int] = ..., fair: _Optional[int] = ..., past: _Optional[float] = ...) -> None: ...

class PlanRequest(_message.Message):
    __slots__ = ("now_us", "goal", "moves", "shape", "moves_per_win")
    class Goal(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        GOAL_UNSPECIFIED: _ClassVar[PlanRequest.Goal]
        PLACE: _ClassVar[PlanRequest.Goal]
        PACK: _ClassVar[PlanRequest.Goal]
        SPREAD: _ClassVar[PlanRequest.Goal]
        POLICY: _ClassVar[PlanRequest.Goal]
    GOAL_UNSPECIFIED: PlanRequest.Goal
    PLACE: PlanRequest.Goal
    PACK: PlanRequest.Goal
    SPREAD: PlanRequest.Goal
    POLICY: PlanRequest.Goal
    class ShapeEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    NOW_US_FIELD_NUMBER: _ClassVar[int]
    GOAL_FIELD_NUMBER: _ClassVar[int]
    MOVES_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    MOVES_PER_WIN_FIELD_NUMBER: _ClassVar[int]
    now_us: int
    goal: PlanRequest.Goal
    moves: int
    shape: _containers.ScalarMap[str, int]
    moves_per_win: int
    def __init__(self, now_us: _Optional[int] = ..., goal: _Optional[_Union[PlanRequest.Goal, str]] = ..., moves: _Optional[int] = ..., shape: _Optional[_Mapping[str, int]] = ..., moves_per_win: _Optional[int] = ...) -> None: ...

class MovePlan(_message.Message):
    __slots__ = ("problem", "steps", "wins", "before", "after", "bound", "bounded", "running", "movable", "guarded", "budgets", "seconds")
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    WINS_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    BOUND_FIELD_NUMBER: _ClassVar[int]
    BOUNDED_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    MOVABLE_FIELD_NUMBER: _ClassVar[int]
    GUARDED_FIELD_NUMBER: _ClassVar[int]
    BUDGETS_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    problem: str
    steps: _containers.RepeatedCompositeFieldContainer[Step]
    wins: _containers.RepeatedCompositeFieldContainer[Win]
    before: int
    after: int
    bound: int
    bounded: bool
    running: int
    movable: int
    guarded: int
    budgets: _containers.RepeatedCompositeFieldContainer[BudgetUse]
    seconds: float
    def __init__(self, problem: _Optional[str] = ..., steps: _Optional[_Iterable[_Union[Step, _Mapping]]] = ..., wins: _Optional[_Iterable[_Union[Win, _Mapping]]] = ..., before: _Optional[int] = ..., after: _Optional[int] = ..., bound: _Optional[int] = ..., bounded: _Optional[bool] = ..., running: _Optional[int] = ..., movable: _Optional[int] = ..., guarded: _Optional[int] = ..., budgets: _Optional[_Iterable[_Union[BudgetUse, _Mapping]]] = ..., seconds: _Optional[float] = ...) -> None: ...

class Step(_message.Message):
    __slots__ = ("moves", "after", "win", "nominated")
    MOVES_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    WIN_FIELD_NUMBER: _ClassVar[int]
    NOMINATED_FIELD_NUMBER: _ClassVar[int]
    moves: _containers.RepeatedCompositeFieldContainer[Move]
    after: _containers.RepeatedScalarFieldContainer[int]
    win: int
    nominated: Placements
    def __init__(self, moves: _Optional[_Iterable[_Union[Move, _Mapping]]] = ..., after: _Optional[_Iterable[int]] = ..., win: _Optional[int] = ..., nominated: _Optional[_Union[Placements, _Mapping]] = ...) -> None: ...

class Move(_message.Message):
    __slots__ = ("task_uid", "task", "to", "to_id", "saves")
    TASK_UID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    TO_ID_FIELD_NUMBER: _ClassVar[int]
    SAVES_FIELD_NUMBER: _ClassVar[int]
    task_uid: int
    task: str
    to: str
    to_id: str
    saves: int
    def __init__(self, task_uid: _Optional[int] = ..., task: _Optional[str] = ..., to: _Optional[str] = ..., to_id: _Optional[str] = ..., saves: _Optional[int] = ..., **kwargs) -> None: ...

class Win(_message.Message):
    __slots__ = ("node", "count", "tasks")
    NODE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    node: str
    count: int
    tasks: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, node: _Optional[str] = ..., count: _Optional[int] = ..., tasks: _Optional[_Iterable[str]] = ...) -> None: ...

class BudgetUse(_message.Message):
    __slots__ = ("name", "moves", "allowed")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MOVES_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_FIELD_NUMBER: _ClassVar[int]
    name: str
    moves: int
    allowed: int
    def __init__(self, name: _Optional[str] = ..., moves: _Optional[int] = ..., allowed: _Optional[int] = ...) -> None: ...

class CarryOutRequest(_message.Message):
    __slots__ = ("epoch", "now_us", "steps")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    NOW_US_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    now_us: int
    steps: _containers.RepeatedCompositeFieldContainer[Step]
    def __init__(self, epoch: _Optional[int] = ..., now_us: _Optional[int] = ..., steps: _Optional[_Iterable[_Union[Step, _Mapping]]] = ...) -> None: ...

class ProgressRequest(_message.Message):
    __slots__ = ("epoch",)
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    def __init__(self, epoch: _Optional[int] = ...) -> None: ...

class PlanProgress(_message.Message):
    __slots__ = ("status", "moves", "active")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    MOVES_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    status: CallStatus
    moves: _containers.RepeatedCompositeFieldContainer[MoveProgress]
    active: bool
    def __init__(self, status: _Optional[_Union[CallStatus, str]] = ..., moves: _Optional[_Iterable[_Union[MoveProgress, _Mapping]]] = ..., active: _Optional[bool] = ...) -> None: ...

class MoveProgress(_message.Message):
    __slots__ = ("task_uid", "stage", "reason")
    class Stage(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STAGE_UNSPECIFIED: _ClassVar[MoveProgress.Stage]
        WAITING: _ClassVar[MoveProgress.Stage]
        LEAVING: _ClassVar[MoveProgress.Stage]
        AWAITED: _ClassVar[MoveProgress.Stage]
        DONE: _ClassVar[MoveProgress.Stage]
        ELSEWHERE: _ClassVar[MoveProgress.Stage]
        DROPPED: _ClassVar[MoveProgress.Stage]
    STAGE_UNSPECIFIED: MoveProgress.Stage
    WAITING: MoveProgress.Stage
    LEAVING: MoveProgress.Stage
    AWAITED: MoveProgress.Stage
    DONE: MoveProgress.Stage
    ELSEWHERE: MoveProgress.Stage
    DROPPED: MoveProgress.Stage
    TASK_UID_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    task_uid: int
    stage: MoveProgress.Stage
    reason: str
    def __init__(self, task_uid: _Optional[int] = ..., stage: _Optional[_Union[MoveProgress.Stage, str]] = ..., reason: _Optional[str] = ...) -> None: ...

class NetworkRequest(_message.Message):
    __slots__ = ("round", "class_name", "node", "task", "limit")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    CLASS_NAME_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    round: int
    class_name: str
    node: str
    task: str
    limit: int
    def __init__(self, round: _Optional[int] = ..., class_name: _Optional[str] = ..., node: _Optional[str] = ..., task: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class NetworkReply(_message.Message):
    __slots__ = ("rounds", "round", "networks", "problem")
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    NETWORKS_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    rounds: _containers.RepeatedCompositeFieldContainer[RecordedRound]
    round: int
    networks: _containers.RepeatedCompositeFieldContainer[DrawnNetwork]
    problem: str
    def __init__(self, rounds: _Optional[_Iterable[_Union[RecordedRound, _Mapping]]] = ..., round: _Optional[int] = ..., networks: _Optional[_Iterable[_Union[DrawnNetwork, _Mapping]]] = ..., problem: _Optional[str] = ...) -> None: ...

class RecordedRound(_message.Message):
    __slots__ = ("number", "started_us", "placed", "networks")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    STARTED_US_FIELD_NUMBER: _ClassVar[int]
    PLACED_FIELD_NUMBER: _ClassVar[int]
    NETWORKS_FIELD_NUMBER: _ClassVar[int]
    number: int
    started_us: int
    placed: int
    networks: int
    def __init__(self, number: _Optional[int] = ..., started_us: _Optional[int] = ..., placed: _Optional[int] = ..., networks: _Optional[int] = ...) -> None: ...

class DrawnNetwork(_message.Message):
    __slots__ = ("status", "cost", "tasks", "vertices_in_all", "arcs_in_all", "too_large", "vertices", "arcs")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    VERTICES_IN_ALL_FIELD_NUMBER: _ClassVar[int]
    ARCS_IN_ALL_FIELD_NUMBER: _ClassVar[int]
    TOO_LARGE_FIELD_NUMBER: _ClassVar[int]
    VERTICES_FIELD_NUMBER: _ClassVar[int]
    ARCS_FIELD_NUMBER: _ClassVar[int]
    status: str
    cost: int
    tasks: int
    vertices_in_all: int
    arcs_in_all: int
    too_large: bool
    vertices: _containers.RepeatedCompositeFieldContainer[DrawnVertex]
    arcs: _containers.RepeatedCompositeFieldContainer[DrawnArc]
    def __init__(self, status: _Optional[str] = ..., cost: _Optional[int] = ..., tasks: _Optional[int] = ..., vertices_in_all: _Optional[int] = ..., arcs_in_all: _Optional[int] = ..., too_large: _Optional[bool] = ..., vertices: _Optional[_Iterable[_Union[DrawnVertex, _Mapping]]] = ..., arcs: _Optional[_Iterable[_Union[DrawnArc, _Mapping]]] = ...) -> None: ...

class DrawnVertex(_message.Message):
    __slots__ = ("kind", "label", "count", "names", "supply", "price", "merged")
    KIND_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    SUPPLY_FIELD_NUMBER: _ClassVar[int]
    PRICE_FIELD_NUMBER: _ClassVar[int]
    MERGED_FIELD_NUMBER: _ClassVar[int]
    kind: str
    label: str
    count: int
    names: _containers.RepeatedScalarFieldContainer[str]
    supply: int
    price: int
    merged: int
    def __init__(self, kind: _Optional[str] = ..., label: _Optional[str] = ..., count: _Optional[int] = ..., names: _Optional[_Iterable[str]] = ..., supply: _Optional[int] = ..., price: _Optional[int] = ..., merged: _Optional[int] = ...) -> None: ...

class DrawnArc(_message.Message):
    __slots__ = ("tail", "head", "capacity", "flow", "least_cost", "most_cost", "merged")
    TAIL_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    FLOW_FIELD_NUMBER: _ClassVar[int]
    LEAST_COST_FIELD_NUMBER: _ClassVar[int]
    MOST_COST_FIELD_NUMBER: _ClassVar[int]
    MERGED_FIELD_NUMBER: _ClassVar[int]
    tail: int
    head: int
    capacity: int
    flow: int
    least_cost: int
    most_cost: int
    merged: int
    def __init__(self, tail: _Optional[int] = ..., head: _Optional[int] = ..., capacity: _Optional[int] = ..., flow: _Optional[int] = ..., least_cost: _Optional[int] = ..., most_cost: _Optional[int] = ..., merged: _Optional[int] = ...) -> None: ...

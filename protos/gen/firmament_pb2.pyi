from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TaskReplyType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TASK_COMPLETED_OK: _ClassVar[TaskReplyType]
    TASK_SUBMITTED_OK: _ClassVar[TaskReplyType]
    TASK_REMOVED_OK: _ClassVar[TaskReplyType]
    TASK_FAILED_OK: _ClassVar[TaskReplyType]
    TASK_UPDATED_OK: _ClassVar[TaskReplyType]
    TASK_NOT_FOUND: _ClassVar[TaskReplyType]
    TASK_JOB_NOT_FOUND: _ClassVar[TaskReplyType]
    TASK_ALREADY_SUBMITTED: _ClassVar[TaskReplyType]
    TASK_STATE_NOT_CREATED: _ClassVar[TaskReplyType]

class NodeReplyType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NODE_ADDED_OK: _ClassVar[NodeReplyType]
    NODE_FAILED_OK: _ClassVar[NodeReplyType]
    NODE_REMOVED_OK: _ClassVar[NodeReplyType]
    NODE_UPDATED_OK: _ClassVar[NodeReplyType]
    NODE_NOT_FOUND: _ClassVar[NodeReplyType]
    NODE_ALREADY_EXISTS: _ClassVar[NodeReplyType]

class ServingStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNKNOWN: _ClassVar[ServingStatus]
    SERVING: _ClassVar[ServingStatus]
    NOT_SERVING: _ClassVar[ServingStatus]

class TaskInfoType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TASKINFO_ADD: _ClassVar[TaskInfoType]
    TASKINFO_REMOVE: _ClassVar[TaskInfoType]

class TaskInfoReplyType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TASKINFO_SUBMITTED_OK: _ClassVar[TaskInfoReplyType]
    TASKINFO_REMOVED_OK: _ClassVar[TaskInfoReplyType]
    TASKINFO_SUBMIT_FAILED: _ClassVar[TaskInfoReplyType]
    TASKINFO_REMOVE_FAILED: _ClassVar[TaskInfoReplyType]
TASK_COMPLETED_OK: TaskReplyType
TASK_SUBMITTED_OK: TaskReplyType
TASK_REMOVED_OK: TaskReplyType
TASK_FAILED_OK: TaskReplyType
TASK_UPDATED_OK: TaskReplyType
TASK_NOT_FOUND: TaskReplyType
TASK_JOB_NOT_FOUND: TaskReplyType
TASK_ALREADY_SUBMITTED: TaskReplyType
TASK_STATE_NOT_CREATED: TaskReplyType
NODE_ADDED_OK: NodeReplyType
NODE_FAILED_OK: NodeReplyType
NODE_REMOVED_OK: NodeReplyType
NODE_UPDATED_OK: NodeReplyType
NODE_NOT_FOUND: NodeReplyType
NODE_ALREADY_EXISTS: NodeReplyType
UNKNOWN: ServingStatus
SERVING: ServingStatus
NOT_SERVING: ServingStatus
TASKINFO_ADD: TaskInfoType
TASKINFO_REMOVE: TaskInfoType
TASKINFO_SUBMITTED_OK: TaskInfoReplyType
TASKINFO_REMOVED_OK: TaskInfoReplyType
TASKINFO_SUBMIT_FAILED: TaskInfoReplyType
TASKINFO_REMOVE_FAILED: TaskInfoReplyType

class ScheduleRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SchedulingDeltas(_message.Message):
    __slots__ = ("deltas", "unscheduled_tasks")
    DELTAS_FIELD_NUMBER: _ClassVar[int]
    UNSCHEDULED_TASKS_FIELD_NUMBER: _ClassVar[int]
    deltas: _containers.RepeatedCompositeFieldContainer[SchedulingDelta]
    unscheduled_tasks: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, deltas: _Optional[_Iterable[_Union[SchedulingDelta, _Mapping]]] = ..., unscheduled_tasks: _Optional[_Iterable[int]] = ...) -> None: ...

class SchedulingDelta(_message.Message):
    __slots__ = ("task_id", "resource_id", "type")
    class ChangeType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NOOP: _ClassVar[SchedulingDelta.ChangeType]
        PLACE: _ClassVar[SchedulingDelta.ChangeType]
        PREEMPT: _ClassVar[SchedulingDelta.ChangeType]
        MIGRATE: _ClassVar[SchedulingDelta.ChangeType]
    NOOP: SchedulingDelta.ChangeType
    PLACE: SchedulingDelta.ChangeType
    PREEMPT: SchedulingDelta.ChangeType
    MIGRATE: SchedulingDelta.ChangeType
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    task_id: int
    resource_id: str
    type: SchedulingDelta.ChangeType
    def __init__(self, task_id: _Optional[int] = ..., resource_id: _Optional[str] = ..., type: _Optional[_Union[SchedulingDelta.ChangeType, str]] = ...) -> None: ...

class TaskDescription(_message.Message):
    __slots__ = ("task_descriptor", "job_descriptor")
    TASK_DESCRIPTOR_FIELD_NUMBER: _ClassVar[int]
    JOB_DESCRIPTOR_FIELD_NUMBER: _ClassVar[int]
    task_descriptor: TaskDescriptor
    job_descriptor: JobDescriptor
    def __init__(self, task_descriptor: _Optional[_Union[TaskDescriptor, _Mapping]] = ..., job_descriptor: _Optional[_Union[JobDescriptor, _Mapping]] = ...) -> None: ...

class TaskUID(_message.Message):
    __slots__ = ("task_uid",)
    TASK_UID_FIELD_NUMBER: _ClassVar[int]
    task_uid: int
    def __init__(self, task_uid: _Optional[int] = ...) -> None: ...

class ResourceUID(_message.Message):
    __slots__ = ("resource_uid",)
    RESOURCE_UID_FIELD_NUMBER: _ClassVar[int]
    resource_uid: str
    def __init__(self, resource_uid: _Optional[str] = ...) -> None: ...

class TaskCompletedResponse(_message.Message):
    __slots__ = ("type",)
    TYPE_FIELD_NUMBER: _ClassVar[int]
    type: TaskReplyType
    def __init__(self, type: _Optional[_Union[TaskReplyType, str]] = ...) -> None: ...

class TaskSubmittedResponse(_message.Message):
    __slots__ = ("type",)
    TYPE_FIELD_NUMBER: _ClassVar[int]
    type: TaskReplyType
    def __init__(self, type: _Optional[_Union[TaskReplyType, str]] = ...) -> None: ...

class TaskRemovedResponse(_message.Message):
    __slots__ = ("type",)
    TYPE_FIELD_NUMBER: _ClassVar[int]
    type: TaskReplyType
    def __init__(self, type: _Optional[_Union[TaskReplyType, str]] = ...) -> None: ...

class TaskFailedResponse(_message.Message):
    __slots__ = ("type",)
    TYPE_FIELD_NUMBER: _ClassVar[int]
    type: TaskReplyType
    def __init__(self, type: _Optional[_Union[TaskReplyType, str]] = ...) -> None: ...

class TaskUpdatedResponse(_message.Message):
    __slots__ = ("type",)
    TYPE_FIELD_NUMBER: _ClassVar[int]
    type: TaskReplyType
    def __init__(self, type: _Optional[_Union[TaskReplyType, str]] = ...) -> None: ...

class NodeAddedResponse(_message.Message):
    __slots__ = ("type",)
    TYPE_FIELD_NUMBER: _ClassVar[int]
    type: NodeReplyType
    def __init__(self, type: _Optional[_Union[NodeReplyType, str]] = ...) -> None: ...

class NodeRemovedResponse(_message.Message):
    __slots__ = ("type",)
    TYPE_FIELD_NUMBER: _ClassVar[int]
    type: NodeReplyType
    def __init__(self, type: _Optional[_Union[NodeReplyType, str]] = ...) -> None: ...

class NodeFailedResponse(_message.Message):
    __slots__ = ("type",)
    TYPE_FIELD_NUMBER: _ClassVar[int]
    type: NodeReplyType
    def __init__(self, type: _Optional[_Union[NodeReplyType, str]] = ...) -> None: ...

class NodeUpdatedResponse(_message.Message):
    __slots__ = ("type",)
    TYPE_FIELD_NUMBER: _ClassVar[int]
    type: NodeReplyType
    def __init__(self, type: _Optional[_Union[NodeReplyType, str]] = ...) -> None: ...

class TaskStatsResponse(_message.Message):
    __slots__ = ("type",)
    TYPE_FIELD_NUMBER: _ClassVar[int]
    type: TaskReplyType
    def __init__(self, type: _Optional[_Union[TaskReplyType, str]] = ...) -> None: ...

class ResourceStatsResponse(_message.Message):
    __slots__ = ("type",)
    TYPE_FIELD_NUMBER: _ClassVar[int]
    type: NodeReplyType
    def __init__(self, type: _Optional[_Union[NodeReplyType, str]] = ...) -> None: ...

class HealthCheckRequest(_message.Message):
    __slots__ = ("grpc_service",)
    GRPC_SERVICE_FIELD_NUMBER: _ClassVar[int]
    grpc_service: str
    def __init__(self, grpc_service: _Optional[str] = ...) -> None: ...

class HealthCheckResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: ServingStatus
    def __init__(self, status: _Optional[_Union[ServingStatus, str]] = ...) -> None: ...

class TaskInfo(_message.Message):
    __slots__ = ("task_name", "resource_id", "cpu_utilization", "mem_utilization", "ephemeral_storage_utilization", "type")
    TASK_NAME_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    CPU_UTILIZATION_FIELD_NUMBER: _ClassVar[int]
    MEM_UTILIZATION_FIELD_NUMBER: _ClassVar[int]
    EPHEMERAL_STORAGE_UTILIZATION_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    task_name: str
    resource_id: str
    cpu_utilization: int
    mem_utilization: int
    ephemeral_storage_utilization: int
    type: TaskInfoType
    def __init__(self, task_name: _Optional[str] = ..., resource_id: _Optional[str] = ..., cpu_utilization: _Optional[int] = ..., mem_utilization: _Optional[int] = ..., ephemeral_storage_utilization: _Optional[int] = ..., type: _Optional[_Union[TaskInfoType, str]] = ...) -> None: ...

class TaskInfoResponse(_message.Message):
    __slots__ = ("type",)
    TYPE_FIELD_NUMBER: _ClassVar[int]
    type: TaskInfoReplyType
    def __init__(self, type: _Optional[_Union[TaskInfoReplyType, str]] = ...) -> None: ...

class JobDescriptor(_message.Message):
    __slots__ = ("uuid", "name", "state", "root_task", "output_ids", "min_number_of_tasks", "scheduled_tasks_count", "is_gang_scheduling_job")
    class JobState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NEW: _ClassVar[JobDescriptor.JobState]
        CREATED: _ClassVar[JobDescriptor.JobState]
        RUNNING: _ClassVar[JobDescriptor.JobState]
        COMPLETED: _ClassVar[JobDescriptor.JobState]
        FAILED: _ClassVar[JobDescriptor.JobState]
        ABORTED: _ClassVar[JobDescriptor.JobState]
        UNKNOWN: _ClassVar[JobDescriptor.JobState]
    NEW: JobDescriptor.JobState
    CREATED: JobDescriptor.JobState
    RUNNING: JobDescriptor.JobState
    COMPLETED: JobDescriptor.JobState
    FAILED: JobDescriptor.JobState
    ABORTED: JobDescriptor.JobState
    UNKNOWN: JobDescriptor.JobState
    UUID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ROOT_TASK_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_IDS_FIELD_NUMBER: _ClassVar[int]
    MIN_NUMBER_OF_TASKS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_TASKS_COUNT_FIELD_NUMBER: _ClassVar[int]
    IS_GANG_SCHEDULING_JOB_FIELD_NUMBER: _ClassVar[int]
    uuid: str
    name: str
    state: JobDescriptor.JobState
    root_task: TaskDescriptor
    output_ids: _containers.RepeatedScalarFieldContainer[bytes]
    min_number_of_tasks: int
    scheduled_tasks_count: int
    is_gang_scheduling_job: bool
    def __init__(self, uuid: _Optional[str] = ..., name: _Optional[str] = ..., state: _Optional[_Union[JobDescriptor.JobState, str]] = ..., root_task: _Optional[_Union[TaskDescriptor, _Mapping]] = ..., output_ids: _Optional[_Iterable[bytes]] = ..., min_number_of_tasks: _Optional[int] = ..., scheduled_tasks_count: _Optional[int] = ..., is_gang_scheduling_job: _Optional[bool] = ...) -> None: ...

class TaskDescriptor(_message.Message):
    __slots__ = ("uid", "name", "state", "job_id", "index", "dependencies", "outputs", "binary", "args", "spawned", "scheduled_to_resource", "last_heartbeat_location", "last_heartbeat_time", "delegated_to", "delegated_from", "submit_time", "start_time", "finish_time", "total_unscheduled_time", "total_run_time", "relative_deadline", "absolute_deadline", "port", "input_size", "inject_task_lib", "resource_request", "priority", "task_type", "final_report", "trace_job_id", "trace_task_id", "labels", "label_selectors", "affinity", "namespace", "toleration", "owner_ref_kind", "owner_ref_uid")
    class TaskState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        CREATED: _ClassVar[TaskDescriptor.TaskState]
        BLOCKING: _ClassVar[TaskDescriptor.TaskState]
        RUNNABLE: _ClassVar[TaskDescriptor.TaskState]
        ASSIGNED: _ClassVar[TaskDescriptor.TaskState]
        RUNNING: _ClassVar[TaskDescriptor.TaskState]
        COMPLETED: _ClassVar[TaskDescriptor.TaskState]
        FAILED: _ClassVar[TaskDescriptor.TaskState]
        ABORTED: _ClassVar[TaskDescriptor.TaskState]
        DELEGATED: _ClassVar[TaskDescriptor.TaskState]
        UNKNOWN: _ClassVar[TaskDescriptor.TaskState]
    CREATED: TaskDescriptor.TaskState
    BLOCKING: TaskDescriptor.TaskState
    RUNNABLE: TaskDescriptor.TaskState
    ASSIGNED: TaskDescriptor.TaskState
    RUNNING: TaskDescriptor.TaskState
    COMPLETED: TaskDescriptor.TaskState
    FAILED: TaskDescriptor.TaskState
    ABORTED: TaskDescriptor.TaskState
    DELEGATED: TaskDescriptor.TaskState
    UNKNOWN: TaskDescriptor.TaskState
    class TaskType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        SHEEP: _ClassVar[TaskDescriptor.TaskType]
        RABBIT: _ClassVar[TaskDescriptor.TaskType]
        DEVIL: _ClassVar[TaskDescriptor.TaskType]
        TURTLE: _ClassVar[TaskDescriptor.TaskType]
    SHEEP: TaskDescriptor.TaskType
    RABBIT: TaskDescriptor.TaskType
    DEVIL: TaskDescriptor.TaskType
    TURTLE: TaskDescriptor.TaskType
    UID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    DEPENDENCIES_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    BINARY_FIELD_NUMBER: _ClassVar[int]
    ARGS_FIELD_NUMBER: _ClassVar[int]
    SPAWNED_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_TO_RESOURCE_FIELD_NUMBER: _ClassVar[int]
    LAST_HEARTBEAT_LOCATION_FIELD_NUMBER: _ClassVar[int]
    LAST_HEARTBEAT_TIME_FIELD_NUMBER: _ClassVar[int]
    DELEGATED_TO_FIELD_NUMBER: _ClassVar[int]
    DELEGATED_FROM_FIELD_NUMBER: _ClassVar[int]
    SUBMIT_TIME_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    FINISH_TIME_FIELD_NUMBER: _ClassVar[int]
    TOTAL_UNSCHEDULED_TIME_FIELD_NUMBER: _ClassVar[int]
    TOTAL_RUN_TIME_FIELD_NUMBER: _ClassVar[int]
    RELATIVE_DEADLINE_FIELD_NUMBER: _ClassVar[int]
    ABSOLUTE_DEADLINE_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    INPUT_SIZE_FIELD_NUMBER: _ClassVar[int]
    INJECT_TASK_LIB_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_REQUEST_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    TASK_TYPE_FIELD_NUMBER: _ClassVar[int]
    FINAL_REPORT_FIELD_NUMBER: _ClassVar[int]
    TRACE_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    TRACE_TASK_ID_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    LABEL_SELECTORS_FIELD_NUMBER: _ClassVar[int]
    AFFINITY_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TOLERATION_FIELD_NUMBER: _ClassVar[int]
    OWNER_REF_KIND_FIELD_NUMBER: _ClassVar[int]
    OWNER_REF_UID_FIELD_NUMBER: _ClassVar[int]
    uid: int
    name: str
    state: TaskDescriptor.TaskState
    job_id: str
    index: int
    dependencies: _containers.RepeatedCompositeFieldContainer[ReferenceDescriptor]
    outputs: _containers.RepeatedCompositeFieldContainer[ReferenceDescriptor]
    binary: str
    args: _containers.RepeatedScalarFieldContainer[str]
    spawned: _containers.RepeatedCompositeFieldContainer[TaskDescriptor]
    scheduled_to_resource: str
    last_heartbeat_location: str
    last_heartbeat_time: int
    delegated_to: str
    delegated_from: str
    submit_time: int
    start_time: int
    finish_time: int
    total_unscheduled_time: int
    total_run_time: int
    relative_deadline: int
    absolute_deadline: int
    port: int
    input_size: int
    inject_task_lib: bool
    resource_request: ResourceVector
    priority: int
    task_type: TaskDescriptor.TaskType
    final_report: TaskFinalReport
    trace_job_id: int
    trace_task_id: int
    labels: _containers.RepeatedCompositeFieldContainer[Label]
    label_selectors: _containers.RepeatedCompositeFieldContainer[LabelSelector]
    affinity: Affinity
    namespace: str
    toleration: _containers.RepeatedCompositeFieldContainer[Toleration]
    owner_ref_kind: str
    owner_ref_uid: str
    def __init__(self, uid: _Optional[int] = ..., name: _Optional[str] = ..., state: _Optional[_Union[TaskDescriptor.TaskState, str]] = ..., job_id: _Optional[str] = ..., index: _Optional[int] = ..., dependencies: _Optional[_Iterable[_Union[ReferenceDescriptor, _Mapping]]] = ..., outputs: _Optional[_Iterable[_Union[ReferenceDescriptor, _Mapping]]] = ..., binary: _Optional[str] = ..., args: _Optional[_Iterable[str]] = ..., spawned: _Optional[_Iterable[_Union[TaskDescriptor, _Mapping]]] = ..., scheduled_to_resource: _Optional[str] = ..., last_heartbeat_location: _Optional[str] = ..., last_heartbeat_time: _Optional[int] = ..., delegated_to: _Optional[str] = ..., delegated_from: _Optional[str] = ..., submit_time: _Optional[int] = ..., start_time: _Optional[int] = ..., finish_time: _Optional[int] = ..., total_unscheduled_time: _Optional[int] = ..., total_run_time: _Optional[int] = ..., relative_deadline: _Optional[int] = ..., absolute_deadline: _Optional[int] = ..., port: _Optional[int] = ..., input_size: _Optional[int] = ..., inject_task_lib: _Optional[bool] = ..., resource_request: _Optional[_Union[ResourceVector, _Mapping]] = ..., priority: _Optional[int] = ..., task_type: _Optional[_Union[TaskDescriptor.TaskType, str]] = ..., final_report: _Optional[_Union[TaskFinalReport, _Mapping]] = ..., trace_job_id: _Optional[int] = ..., trace_task_id: _Optional[int] = ..., labels: _Optional[_Iterable[_Union[Label, _Mapping]]] = ..., label_selectors: _Optional[_Iterable[_Union[LabelSelector, _Mapping]]] = ..., affinity: _Optional[_Union[Affinity, _Mapping]] = ..., namespace: _Optional[str] = ..., toleration: _Optional[_Iterable[_Union[Toleration, _Mapping]]] = ..., owner_ref_kind: _Optional[str] = ..., owner_ref_uid: _Optional[str] = ...) -> None: ...

class ReferenceDescriptor(_message.Message):
    __slots__ = ("id", "type", "scope", "non_deterministic", "size", "location", "inline_data", "producing_task", "time_to_compute", "version")
    class ReferenceType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        TOMBSTONE: _ClassVar[ReferenceDescriptor.ReferenceType]
        FUTURE: _ClassVar[ReferenceDescriptor.ReferenceType]
        CONCRETE: _ClassVar[ReferenceDescriptor.ReferenceType]
        STREAM: _ClassVar[ReferenceDescriptor.ReferenceType]
        VALUE: _ClassVar[ReferenceDescriptor.ReferenceType]
        ERROR: _ClassVar[ReferenceDescriptor.ReferenceType]
    TOMBSTONE: ReferenceDescriptor.ReferenceType
    FUTURE: ReferenceDescriptor.ReferenceType
    CONCRETE: ReferenceDescriptor.ReferenceType
    STREAM: ReferenceDescriptor.ReferenceType
    VALUE: ReferenceDescriptor.ReferenceType
    ERROR: ReferenceDescriptor.ReferenceType
    class ReferenceScope(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        PUBLIC: _ClassVar[ReferenceDescriptor.ReferenceScope]
        PRIVATE: _ClassVar[ReferenceDescriptor.ReferenceScope]
    PUBLIC: ReferenceDescriptor.ReferenceScope
    PRIVATE: ReferenceDescriptor.ReferenceScope
    ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    NON_DETERMINISTIC_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    INLINE_DATA_FIELD_NUMBER: _ClassVar[int]
    PRODUCING_TASK_FIELD_NUMBER: _ClassVar[int]
    TIME_TO_COMPUTE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    id: bytes
    type: ReferenceDescriptor.ReferenceType
    scope: ReferenceDescriptor.ReferenceScope
    non_deterministic: bool
    size: int
    location: str
    inline_data: bytes
    producing_task: int
    time_to_compute: int
    version: int
    def __init__(self, id: _Optional[bytes] = ..., type: _Optional[_Union[ReferenceDescriptor.ReferenceType, str]] = ..., scope: _Optional[_Union[ReferenceDescriptor.ReferenceScope, str]] = ..., non_deterministic: _Optional[bool] = ..., size: _Optional[int] = ..., location: _Optional[str] = ..., inline_data: _Optional[bytes] = ..., producing_task: _Optional[int] = ..., time_to_compute: _Optional[int] = ..., version: _Optional[int] = ...) -> None: ...

class TaskFinalReport(_message.Message):
    __slots__ = ("task_id", "start_time", "finish_time", "instructions", "cycles", "llc_refs", "llc_misses", "runtime")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    FINISH_TIME_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTIONS_FIELD_NUMBER: _ClassVar[int]
    CYCLES_FIELD_NUMBER: _ClassVar[int]
    LLC_REFS_FIELD_NUMBER: _ClassVar[int]
    LLC_MISSES_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_FIELD_NUMBER: _ClassVar[int]
    task_id: int
    start_time: int
    finish_time: int
    instructions: int
    cycles: int
    llc_refs: int
    llc_misses: int
    runtime: float
    def __init__(self, task_id: _Optional[int] = ..., start_time: _Optional[int] = ..., finish_time: _Optional[int] = ..., instructions: _Optional[int] = ..., cycles: _Optional[int] = ..., llc_refs: _Optional[int] = ..., llc_misses: _Optional[int] = ..., runtime: _Optional[float] = ...) -> None: ...

class ResourceTopologyNodeDescriptor(_message.Message):
    __slots__ = ("resource_desc", "children", "parent_id")
    RESOURCE_DESC_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    PARENT_ID_FIELD_NUMBER: _ClassVar[int]
    resource_desc: ResourceDescriptor
    children: _containers.RepeatedCompositeFieldContainer[ResourceTopologyNodeDescriptor]
    parent_id: str
    def __init__(self, resource_desc: _Optional[_Union[ResourceDescriptor, _Mapping]] = ..., children: _Optional[_Iterable[_Union[ResourceTopologyNodeDescriptor, _Mapping]]] = ..., parent_id: _Optional[str] = ...) -> None: ...

class ResourceDescriptor(_message.Message):
    __slots__ = ("uuid", "friendly_name", "descriptive_name", "state", "task_capacity", "last_heartbeat", "type", "schedulable", "current_running_tasks", "num_running_tasks_below", "num_slots_below", "available_resources", "reserved_resources", "min_available_resources_below", "max_available_resources_below", "min_unreserved_resources_below", "max_unreserved_resources_below", "resource_capacity", "whare_map_stats", "coco_interference_scores", "trace_machine_id", "labels", "taints", "avoids", "max_pods")
    class ResourceState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        RESOURCE_UNKNOWN: _ClassVar[ResourceDescriptor.ResourceState]
        RESOURCE_IDLE: _ClassVar[ResourceDescriptor.ResourceState]
        RESOURCE_BUSY: _ClassVar[ResourceDescriptor.ResourceState]
        RESOURCE_LOST: _ClassVar[ResourceDescriptor.ResourceState]
    RESOURCE_UNKNOWN: ResourceDescriptor.ResourceState
    RESOURCE_IDLE: ResourceDescriptor.ResourceState
    RESOURCE_BUSY: ResourceDescriptor.ResourceState
    RESOURCE_LOST: ResourceDescriptor.ResourceState
    class ResourceType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        RESOURCE_PU: _ClassVar[ResourceDescriptor.ResourceType]
        RESOURCE_CORE: _ClassVar[ResourceDescriptor.ResourceType]
        RESOURCE_CACHE: _ClassVar[ResourceDescriptor.ResourceType]
        RESOURCE_NIC: _ClassVar[ResourceDescriptor.ResourceType]
        RESOURCE_DISK: _ClassVar[ResourceDescriptor.ResourceType]
        RESOURCE_SSD: _ClassVar[ResourceDescriptor.ResourceType]
        RESOURCE_MACHINE: _ClassVar[ResourceDescriptor.ResourceType]
        RESOURCE_LOGICAL: _ClassVar[ResourceDescriptor.ResourceType]
        RESOURCE_NUMA_NODE: _ClassVar[ResourceDescriptor.ResourceType]
        RESOURCE_SOCKET: _ClassVar[ResourceDescriptor.ResourceType]
        RESOURCE_COORDINATOR: _ClassVar[ResourceDescriptor.ResourceType]
    RESOURCE_PU: ResourceDescriptor.ResourceType
    RESOURCE_CORE: ResourceDescriptor.ResourceType
    RESOURCE_CACHE: ResourceDescriptor.ResourceType
    RESOURCE_NIC: ResourceDescriptor.ResourceType
    RESOURCE_DISK: ResourceDescriptor.ResourceType
    RESOURCE_SSD: ResourceDescriptor.ResourceType
    RESOURCE_MACHINE: ResourceDescriptor.ResourceType
    RESOURCE_LOGICAL: ResourceDescriptor.ResourceType
    RESOURCE_NUMA_NODE: ResourceDescriptor.ResourceType
    RESOURCE_SOCKET: ResourceDescriptor.ResourceType
    RESOURCE_COORDINATOR: ResourceDescriptor.ResourceType
    UUID_FIELD_NUMBER: _ClassVar[int]
    FRIENDLY_NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTIVE_NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    TASK_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    LAST_HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULABLE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_RUNNING_TASKS_FIELD_NUMBER: _ClassVar[int]
    NUM_RUNNING_TASKS_BELOW_FIELD_NUMBER: _ClassVar[int]
    NUM_SLOTS_BELOW_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    RESERVED_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    MIN_AVAILABLE_RESOURCES_BELOW_FIELD_NUMBER: _ClassVar[int]
    MAX_AVAILABLE_RESOURCES_BELOW_FIELD_NUMBER: _ClassVar[int]
    MIN_UNRESERVED_RESOURCES_BELOW_FIELD_NUMBER: _ClassVar[int]
    MAX_UNRESERVED_RESOURCES_BELOW_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    WHARE_MAP_STATS_FIELD_NUMBER: _ClassVar[int]
    COCO_INTERFERENCE_SCORES_FIELD_NUMBER: _ClassVar[int]
    TRACE_MACHINE_ID_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    TAINTS_FIELD_NUMBER: _ClassVar[int]
    AVOIDS_FIELD_NUMBER: _ClassVar[int]
    MAX_PODS_FIELD_NUMBER: _ClassVar[int]
    uuid: str
    friendly_name: str
    descriptive_name: str
    state: ResourceDescriptor.ResourceState
    task_capacity: int
    last_heartbeat: int
    type: ResourceDescriptor.ResourceType
    schedulable: bool
    current_running_tasks: _containers.RepeatedScalarFieldContainer[int]
    num_running_tasks_below: int
    num_slots_below: int
    available_resources: ResourceVector
    reserved_resources: ResourceVector
    min_available_resources_below: ResourceVector
    max_available_resources_below: ResourceVector
    min_unreserved_resources_below: ResourceVector
    max_unreserved_resources_below: ResourceVector
    resource_capacity: ResourceVector
    whare_map_stats: WhareMapStats
    coco_interference_scores: CoCoInterferenceScores
    trace_machine_id: int
    labels: _containers.RepeatedCompositeFieldContainer[Label]
    taints: _containers.RepeatedCompositeFieldContainer[Taint]
    avoids: _containers.RepeatedCompositeFieldContainer[AvoidPodsAnnotation]
    max_pods: int
    def __init__(self, uuid: _Optional[str] = ..., friendly_name: _Optional[str] = ..., descriptive_name: _Optional[str] = ..., state: _Optional[_Union[ResourceDescriptor.ResourceState, str]] = ..., task_capacity: _Optional[int] = ..., last_heartbeat: _Optional[int] = ..., type: _Optional[_Union[ResourceDescriptor.ResourceType, str]] = ..., schedulable: _Optional[bool] = ..., current_running_tasks: _Optional[_Iterable[int]] = ..., num_running_tasks_below: _Optional[int] = ..., num_slots_below: _Optional[int] = ..., available_resources: _Optional[_Union[ResourceVector, _Mapping]] = ..., reserved_resources: _Optional[_Union[ResourceVector, _Mapping]] = ..., min_available_resources_below: _Optional[_Union[ResourceVector, _Mapping]] = ..., max_available_resources_below: _Optional[_Union[ResourceVector, _Mapping]] = ..., min_unreserved_resources_below: _Optional[_Union[ResourceVector, _Mapping]] = ..., max_unreserved_resources_below: _Optional[_Union[ResourceVector, _Mapping]] = ..., resource_capacity: _Optional[_Union[ResourceVector, _Mapping]] = ..., whare_map_stats: _Optional[_Union[WhareMapStats, _Mapping]] = ..., coco_interference_scores: _Optional[_Union[CoCoInterferenceScores, _Mapping]] = ..., trace_machine_id: _Optional[int] = ..., labels: _Optional[_Iterable[_Union[Label, _Mapping]]] = ..., taints: _Optional[_Iterable[_Union[Taint, _Mapping]]] = ..., avoids: _Optional[_Iterable[_Union[AvoidPodsAnnotation, _Mapping]]] = ..., max_pods: _Optional[int] = ...) -> None: ...

class ResourceVector(_message.Message):
    __slots__ = ("cpu_cores", "ram_bw", "ram_cap", "disk_bw", "disk_cap", "net_tx_bw", "net_rx_bw", "ephemeral_cap")
    CPU_CORES_FIELD_NUMBER: _ClassVar[int]
    RAM_BW_FIELD_NUMBER: _ClassVar[int]
    RAM_CAP_FIELD_NUMBER: _ClassVar[int]
    DISK_BW_FIELD_NUMBER: _ClassVar[int]
    DISK_CAP_FIELD_NUMBER: _ClassVar[int]
    NET_TX_BW_FIELD_NUMBER: _ClassVar[int]
    NET_RX_BW_FIELD_NUMBER: _ClassVar[int]
    EPHEMERAL_CAP_FIELD_NUMBER: _ClassVar[int]
    cpu_cores: float
    ram_bw: int
    ram_cap: int
    disk_bw: int
    disk_cap: int
    net_tx_bw: int
    net_rx_bw: int
    ephemeral_cap: int
    def __init__(self, cpu_cores: _Optional[float] = ..., ram_bw: _Optional[int] = ..., ram_cap: _Optional[int] = ..., disk_bw: _Optional[int] = ..., disk_cap: _Optional[int] = ..., net_tx_bw: _Optional[int] = ..., net_rx_bw: _Optional[int] = ..., ephemeral_cap: _Optional[int] = ...) -> None: ...

class WhareMapStats(_message.Message):
    __slots__ = ("num_idle", "num_devils", "num_rabbits", "num_sheep", "num_turtles")
    NUM_IDLE_FIELD_NUMBER: _ClassVar[int]
    NUM_DEVILS_FIELD_NUMBER: _ClassVar[int]
    NUM_RABBITS_FIELD_NUMBER: _ClassVar[int]
    NUM_SHEEP_FIELD_NUMBER: _ClassVar[int]
    NUM_TURTLES_FIELD_NUMBER: _ClassVar[int]
    num_idle: int
    num_devils: int
    num_rabbits: int
    num_sheep: int
    num_turtles: int
    def __init__(self, num_idle: _Optional[int] = ..., num_devils: _Optional[int] = ..., num_rabbits: _Optional[int] = ..., num_sheep: _Optional[int] = ..., num_turtles: _Optional[int] = ...) -> None: ...

class CoCoInterferenceScores(_message.Message):
    __slots__ = ("devil_penalty", "rabbit_penalty", "sheep_penalty", "turtle_penalty")
    DEVIL_PENALTY_FIELD_NUMBER: _ClassVar[int]
    RABBIT_PENALTY_FIELD_NUMBER: _ClassVar[int]
    SHEEP_PENALTY_FIELD_NUMBER: _ClassVar[int]
    TURTLE_PENALTY_FIELD_NUMBER: _ClassVar[int]
    devil_penalty: int
    rabbit_penalty: int
    sheep_penalty: int
    turtle_penalty: int
    def __init__(self, devil_penalty: _Optional[int] = ..., rabbit_penalty: _Optional[int] = ..., sheep_penalty: _Optional[int] = ..., turtle_penalty: _Optional[int] = ...) -> None: ...

class Label(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class LabelSelector(_message.Message):
    __slots__ = ("type", "key", "values")
    class SelectorType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        IN_SET: _ClassVar[LabelSelector.SelectorType]
        NOT_IN_SET: _ClassVar[LabelSelector.SelectorType]
        EXISTS_KEY: _ClassVar[LabelSelector.SelectorType]
        NOT_EXISTS_KEY: _ClassVar[LabelSelector.SelectorType]
        GREATER_THAN: _ClassVar[LabelSelector.SelectorType]
        LESSER_THAN: _ClassVar[LabelSelector.SelectorType]
    IN_SET: LabelSelector.SelectorType
    NOT_IN_SET: LabelSelector.SelectorType
    EXISTS_KEY: LabelSelector.SelectorType
    NOT_EXISTS_KEY: LabelSelector.SelectorType
    GREATER_THAN: LabelSelector.SelectorType
    LESSER_THAN: LabelSelector.SelectorType
    TYPE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    type: LabelSelector.SelectorType
    key: str
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, type: _Optional[_Union[LabelSelector.SelectorType, str]] = ..., key: _Optional[str] = ..., values: _Optional[_Iterable[str]] = ...) -> None: ...

class Taint(_message.Message):
    __slots__ = ("key", "value", "effect")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    effect: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ..., effect: _Optional[str] = ...) -> None: ...

class Toleration(_message.Message):
    __slots__ = ("key", "operator", "value", "effect", "tolerationSeconds")
    KEY_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    TOLERATIONSECONDS_FIELD_NUMBER: _ClassVar[int]
    key: str
    operator: str
    value: str
    effect: str
    tolerationSeconds: int
    def __init__(self, key: _Optional[str] = ..., operator: _Optional[str] = ..., value: _Optional[str] = ..., effect: _Optional[str] = ..., tolerationSeconds: _Optional[int] = ...) -> None: ...

class AvoidPodsAnnotation(_message.Message):
    __slots__ = ("kind", "uid")
    KIND_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    kind: str
    uid: str
    def __init__(self, kind: _Optional[str] = ..., uid: _Optional[str] = ...) -> None: ...

class Affinity(_message.Message):
    __slots__ = ("node_affinity", "pod_affinity", "pod_anti_affinity")
    NODE_AFFINITY_FIELD_NUMBER: _ClassVar[int]
    POD_AFFINITY_FIELD_NUMBER: _ClassVar[int]
    POD_ANTI_AFFINITY_FIELD_NUMBER: _ClassVar[int]
    node_affinity: NodeAffinity
    pod_affinity: PodAffinity
    pod_anti_affinity: PodAntiAffinity
    def __init__(self, node_affinity: _Optional[_Union[NodeAffinity, _Mapping]] = ..., pod_affinity: _Optional[_Union[PodAffinity, _Mapping]] = ..., pod_anti_affinity: _Optional[_Union[PodAntiAffinity, _Mapping]] = ...) -> None: ...

class NodeAffinity(_message.Message):
    __slots__ = ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution")
    REQUIREDDURINGSCHEDULINGIGNOREDDURINGEXECUTION_FIELD_NUMBER: _ClassVar[int]
    PREFERREDDURINGSCHEDULINGIGNOREDDURINGEXECUTION_FIELD_NUMBER: _ClassVar[int]
    requiredDuringSchedulingIgnoredDuringExecution: NodeSelector
    preferredDuringSchedulingIgnoredDuringExecution: _containers.RepeatedCompositeFieldContainer[PreferredSchedulingTerm]
    def __init__(self, requiredDuringSchedulingIgnoredDuringExecution: _Optional[_Union[NodeSelector, _Mapping]] = ..., preferredDuringSchedulingIgnoredDuringExecution: _Optional[_Iterable[_Union[PreferredSchedulingTerm, _Mapping]]] = ...) -> None: ...

class NodeSelector(_message.Message):
    __slots__ = ("nodeSelectorTerms",)
    NODESELECTORTERMS_FIELD_NUMBER: _ClassVar[int]
    nodeSelectorTerms: _containers.RepeatedCompositeFieldContainer[NodeSelectorTerm]
    def __init__(self, nodeSelectorTerms: _Optional[_Iterable[_Union[NodeSelectorTerm, _Mapping]]] = ...) -> None: ...

class NodeSelectorTerm(_message.Message):
    __slots__ = ("matchExpressions", "matchFields")
    MATCHEXPRESSIONS_FIELD_NUMBER: _ClassVar[int]
    MATCHFIELDS_FIELD_NUMBER: _ClassVar[int]
    matchExpressions: _containers.RepeatedCompositeFieldContainer[NodeSelectorRequirement]
    matchFields: _containers.RepeatedCompositeFieldContainer[NodeSelectorRequirement]
    def __init__(self, matchExpressions: _Optional[_Iterable[_Union[NodeSelectorRequirement, _Mapping]]] = ..., matchFields: _Optional[_Iterable[_Union[NodeSelectorRequirement, _Mapping]]] = ...) -> None: ...

class NodeSelectorRequirement(_message.Message):
    __slots__ = ("key", "operator", "values")
    KEY_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    key: str
    operator: str
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, key: _Optional[str] = ..., operator: _Optional[str] = ..., values: _Optional[_Iterable[str]] = ...) -> None: ...

class PreferredSchedulingTerm(_message.Message):
    __slots__ = ("weight", "preference")
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    PREFERENCE_FIELD_NUMBER: _ClassVar[int]
    weight: int
    preference: NodeSelectorTerm
    def __init__(self, weight: _Optional[int] = ..., preference: _Optional[_Union[NodeSelectorTerm, _Mapping]] = ...) -> None: ...

class PodAffinity(_message.Message):
    __slots__ = ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution")
    REQUIREDDURINGSCHEDULINGIGNOREDDURINGEXECUTION_FIELD_NUMBER: _ClassVar[int]
    PREFERREDDURINGSCHEDULINGIGNOREDDURINGEXECUTION_FIELD_NUMBER: _ClassVar[int]
    requiredDuringSchedulingIgnoredDuringExecution: _containers.RepeatedCompositeFieldContainer[PodAffinityTerm]
    preferredDuringSchedulingIgnoredDuringExecution: _containers.RepeatedCompositeFieldContainer[WeightedPodAffinityTerm]
    def __init__(self, requiredDuringSchedulingIgnoredDuringExecution: _Optional[_Iterable[_Union[PodAffinityTerm, _Mapping]]] = ..., preferredDuringSchedulingIgnoredDuringExecution: _Optional[_Iterable[_Union[WeightedPodAffinityTerm, _Mapping]]] = ...) -> None: ...

class WeightedPodAffinityTerm(_message.Message):
    __slots__ = ("weight", "podAffinityTerm")
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    PODAFFINITYTERM_FIELD_NUMBER: _ClassVar[int]
    weight: int
    podAffinityTerm: PodAffinityTerm
    def __init__(self, weight: _Optional[int] = ..., podAffinityTerm: _Optional[_Union[PodAffinityTerm, _Mapping]] = ...) -> None: ...

class PodAffinityTerm(_message.Message):
    __slots__ = ("labelSelector", "namespaces", "topologyKey")
    LABELSELECTOR_FIELD_NUMBER: _ClassVar[int]
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGYKEY_FIELD_NUMBER: _ClassVar[int]
    labelSelector: PodLabelSelector
    namespaces: _containers.RepeatedScalarFieldContainer[str]
    topologyKey: str
    def __init__(self, labelSelector: _Optional[_Union[PodLabelSelector, _Mapping]] = ..., namespaces: _Optional[_Iterable[str]] = ..., topologyKey: _Optional[str] = ...) -> None: ...

class PodLabelSelector(_message.Message):
    __slots__ = ("matchLabels", "matchExpressions")
    MATCHLABELS_FIELD_NUMBER: _ClassVar[int]
    MATCHEXPRESSIONS_FIELD_NUMBER: _ClassVar[int]
    matchLabels: MatchLabels
    matchExpressions: _containers.RepeatedCompositeFieldContainer[LabelSelectorRequirement]
    def __init__(self, matchLabels: _Optional[_Union[MatchLabels, _Mapping]] = ..., matchExpressions: _Optional[_Iterable[_Union[LabelSelectorRequirement, _Mapping]]] = ...) -> None: ...

class MatchLabels(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class LabelSelectorRequirement(_message.Message):
    __slots__ = ("key", "operator", "values")
    KEY_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    key: str
    operator: str
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, key: _Optional[str] = ..., operator: _Optional[str] = ..., values: _Optional[_Iterable[str]] = ...) -> None: ...

class PodAntiAffinity(_message.Message):
    __slots__ = ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution")
    REQUIREDDURINGSCHEDULINGIGNOREDDURINGEXECUTION_FIELD_NUMBER: _ClassVar[int]
    PREFERREDDURINGSCHEDULINGIGNOREDDURINGEXECUTION_FIELD_NUMBER: _ClassVar[int]
    requiredDuringSchedulingIgnoredDuringExecution: _containers.RepeatedCompositeFieldContainer[PodAffinityTermAntiAff]
    preferredDuringSchedulingIgnoredDuringExecution: _containers.RepeatedCompositeFieldContainer[WeightedPodAffinityTermAntiAff]
    def __init__(self, requiredDuringSchedulingIgnoredDuringExecution: _Optional[_Iterable[_Union[PodAffinityTermAntiAff, _Mapping]]] = ..., preferredDuringSchedulingIgnoredDuringExecution: _Optional[_Iterable[_Union[WeightedPodAffinityTermAntiAff, _Mapping]]] = ...) -> None: ...

class WeightedPodAffinityTermAntiAff(_message.Message):
    __slots__ = ("weight", "podAffinityTerm")
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    PODAFFINITYTERM_FIELD_NUMBER: _ClassVar[int]
    weight: int
    podAffinityTerm: PodAffinityTermAntiAff
    def __init__(self, weight: _Optional[int] = ..., podAffinityTerm: _Optional[_Union[PodAffinityTermAntiAff, _Mapping]] = ...) -> None: ...

class PodAffinityTermAntiAff(_message.Message):
    __slots__ = ("labelSelector", "namespaces", "topologyKey")
    LABELSELECTOR_FIELD_NUMBER: _ClassVar[int]
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGYKEY_FIELD_NUMBER: _ClassVar[int]
    labelSelector: LabelSelectorAntiAff
    namespaces: _containers.RepeatedScalarFieldContainer[str]
    topologyKey: str
    def __init__(self, labelSelector: _Optional[_Union[LabelSelectorAntiAff, _Mapping]] = ..., namespaces: _Optional[_Iterable[str]] = ..., topologyKey: _Optional[str] = ...) -> None: ...

class LabelSelectorAntiAff(_message.Message):
    __slots__ = ("matchLabels", "matchExpressions")
    MATCHLABELS_FIELD_NUMBER: _ClassVar[int]
    MATCHEXPRESSIONS_FIELD_NUMBER: _ClassVar[int]
    matchLabels: MatchLabelsAntiAff
    matchExpressions: _containers.RepeatedCompositeFieldContainer[LabelSelectorRequirementAntiAff]
    def __init__(self, matchLabels: _Optional[_Union[MatchLabelsAntiAff, _Mapping]] = ..., matchExpressions: _Optional[_Iterable[_Union[LabelSelectorRequirementAntiAff, _Mapping]]] = ...) -> None: ...

class MatchLabelsAntiAff(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class LabelSelectorRequirementAntiAff(_message.Message):
    __slots__ = ("key", "operator", "values")
    KEY_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    key: str
    operator: str
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, key: _Optional[str] = ..., operator: _Optional[str] = ..., values: _Optional[_Iterable[str]] = ...) -> None: ...

class TaskStats(_message.Message):
    __slots__ = ("task_id", "hostname", "timestamp", "cpu_limit", "cpu_request", "cpu_usage", "mem_limit", "mem_request", "mem_usage", "mem_rss", "mem_cache", "mem_working_set", "mem_page_faults", "mem_page_faults_rate", "major_page_faults", "major_page_faults_rate", "net_rx", "net_rx_errors", "net_rx_errors_rate", "net_rx_rate", "net_tx", "net_tx_errors", "net_tx_errors_rate", "net_tx_rate", "ephemeral_storage_limit", "ephemeral_storage_request", "ephemeral_storage_usage")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    CPU_LIMIT_FIELD_NUMBER: _ClassVar[int]
    CPU_REQUEST_FIELD_NUMBER: _ClassVar[int]
    CPU_USAGE_FIELD_NUMBER: _ClassVar[int]
    MEM_LIMIT_FIELD_NUMBER: _ClassVar[int]
    MEM_REQUEST_FIELD_NUMBER: _ClassVar[int]
    MEM_USAGE_FIELD_NUMBER: _ClassVar[int]
    MEM_RSS_FIELD_NUMBER: _ClassVar[int]
    MEM_CACHE_FIELD_NUMBER: _ClassVar[int]
    MEM_WORKING_SET_FIELD_NUMBER: _ClassVar[int]
    MEM_PAGE_FAULTS_FIELD_NUMBER: _ClassVar[int]
    MEM_PAGE_FAULTS_RATE_FIELD_NUMBER: _ClassVar[int]
    MAJOR_PAGE_FAULTS_FIELD_NUMBER: _ClassVar[int]
    MAJOR_PAGE_FAULTS_RATE_FIELD_NUMBER: _ClassVar[int]
    NET_RX_FIELD_NUMBER: _ClassVar[int]
    NET_RX_ERRORS_FIELD_NUMBER: _ClassVar[int]
    NET_RX_ERRORS_RATE_FIELD_NUMBER: _ClassVar[int]
    NET_RX_RATE_FIELD_NUMBER: _ClassVar[int]
    NET_TX_FIELD_NUMBER: _ClassVar[int]
    NET_TX_ERRORS_FIELD_NUMBER: _ClassVar[int]
    NET_TX_ERRORS_RATE_FIELD_NUMBER: _ClassVar[int]
    NET_TX_RATE_FIELD_NUMBER: _ClassVar[int]
    EPHEMERAL_STORAGE_LIMIT_FIELD_NUMBER: _ClassVar[int]
    EPHEMERAL_STORAGE_REQUEST_FIELD_NUMBER: _ClassVar[int]
    EPHEMERAL_STORAGE_USAGE_FIELD_NUMBER: _ClassVar[int]
    task_id: int
    hostname: str
    timestamp: int
    cpu_limit: int
    cpu_request: int
    cpu_usage: int
    mem_limit: int
    mem_request: int
    mem_usage: int
    mem_rss: int
    mem_cache: int
    mem_working_set: int
    mem_page_faults: int
    mem_page_faults_rate: float
    major_page_faults: int
    major_page_faults_rate: float
    net_rx: int
    net_rx_errors: int
    net_rx_errors_rate: float
    net_rx_rate: float
    net_tx: int
    net_tx_errors: int
    net_tx_errors_rate: float
    net_tx_rate: float
    ephemeral_storage_limit: int
    ephemeral_storage_request: int
    ephemeral_storage_usage: int
    def __init__(self, task_id: _Optional[int] = ..., hostname: _Optional[str] = ..., timestamp: _Optional[int] = ..., cpu_limit: _Optional[int] = ..., cpu_request: _Optional[int] = ..., cpu_usage: _Optional[int] = ..., mem_limit: _Optional[int] = ..., mem_request: _Optional[int] = ..., mem_usage: _Optional[int] = ..., mem_rss: _Optional[int] = ..., mem_cache: _Optional[int] = ..., mem_working_set: _Optional[int] = ..., mem_page_faults: _Optional[int] = ..., mem_page_faults_rate: _Optional[float] = ..., major_page_faults: _Optional[int] = ..., major_page_faults_rate: _Optional[float] = ..., net_rx: _Optional[int] = ..., net_rx_errors: _Optional[int] = ..., net_rx_errors_rate: _Optional[float] = ..., net_rx_rate: _Optional[float] = ..., net_tx: _Optional[int] = ..., net_tx_errors: _Optional[int] = ..., net_tx_errors_rate: _Optional[float] = ..., net_tx_rate: _Optional[float] = ..., ephemeral_storage_limit: _Optional[int] = ..., ephemeral_storage_request: _Optional[int] = ..., ephemeral_storage_usage: _Optional[int] = ...) -> None: ...

class ResourceStats(_message.Message):
    __slots__ = ("resource_id", "timestamp", "cpus_stats", "mem_allocatable", "mem_capacity", "mem_reservation", "mem_utilization", "disk_bw", "net_rx_bw", "net_tx_bw", "ephemeral_storage_allocatable", "ephemeral_storage_capacity", "ephemeral_storage_reservation", "ephemeral_storage_utilization")
    RESOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    CPUS_STATS_FIELD_NUMBER: _ClassVar[int]
    MEM_ALLOCATABLE_FIELD_NUMBER: _ClassVar[int]
    MEM_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    MEM_RESERVATION_FIELD_NUMBER: _ClassVar[int]
    MEM_UTILIZATION_FIELD_NUMBER: _ClassVar[int]
    DISK_BW_FIELD_NUMBER: _ClassVar[int]
    NET_RX_BW_FIELD_NUMBER: _ClassVar[int]
    NET_TX_BW_FIELD_NUMBER: _ClassVar[int]
    EPHEMERAL_STORAGE_ALLOCATABLE_FIELD_NUMBER: _ClassVar[int]
    EPHEMERAL_STORAGE_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    EPHEMERAL_STORAGE_RESERVATION_FIELD_NUMBER: _ClassVar[int]
    EPHEMERAL_STORAGE_UTILIZATION_FIELD_NUMBER: _ClassVar[int]
    resource_id: str
    timestamp: int
    cpus_stats: _containers.RepeatedCompositeFieldContainer[CpuStats]
    mem_allocatable: int
    mem_capacity: int
    mem_reservation: float
    mem_utilization: float
    disk_bw: int
    net_rx_bw: int
    net_tx_bw: int
    ephemeral_storage_allocatable: int
    ephemeral_storage_capacity: int
    ephemeral_storage_reservation: float
    ephemeral_storage_utilization: float
    def __init__(self, resource_id: _Optional[str] = ..., timestamp: _Optional[int] = ..., cpus_stats: _Optional[_Iterable[_Union[CpuStats, _Mapping]]] = ..., mem_allocatable: _Optional[int] = ..., mem_capacity: _Optional[int] = ..., mem_reservation: _Optional[float] = ..., mem_utilization: _Optional[float] = ..., disk_bw: _Optional[int] = ..., net_rx_bw: _Optional[int] = ..., net_tx_bw: _Optional[int] = ..., ephemeral_storage_allocatable: _Optional[int] = ..., ephemeral_storage_capacity: _Optional[int] = ..., ephemeral_storage_reservation: _Optional[float] = ..., ephemeral_storage_utilization: _Optional[float] = ...) -> None: ...

class CpuStats(_message.Message):
    __slots__ = ("cpu_allocatable", "cpu_capacity", "cpu_reservation", "cpu_utilization")
    CPU_ALLOCATABLE_FIELD_NUMBER: _ClassVar[int]
    CPU_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    CPU_RESERVATION_FIELD_NUMBER: _ClassVar[int]
    CPU_UTILIZATION_FIELD_NUMBER: _ClassVar[int]
    cpu_allocatable: int
    cpu_capacity: int
    cpu_reservation: float
    cpu_utilization: float
    def __init__(self, cpu_allocatable: _Optional[int] = ..., cpu_capacity: _Optional[int] = ..., cpu_reservation: _Optional[float] = ..., cpu_utilization: _Optional[float] = ...) -> None: ...

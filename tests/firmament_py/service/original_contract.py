"""The numbers of the original contract, as Poseidon and Firmament have them: facts to hold ours against.

Each message: NUMBER NAME TYPE of its fields, * for repeated. Where the two originals spell a name differently
(the wire does not care), it is Poseidon's.
"""

FIRMAMENT_MESSAGES = {
    "Affinity": "1 node_affinity NodeAffinity, 2 pod_affinity PodAffinity, 3 pod_anti_affinity PodAntiAffinity",
    "AvoidPodsAnnotation": "1 kind string, 2 uid string",
    "CoCoInterferenceScores": (
        "1 devil_penalty uint32, 2 rabbit_penalty uint32, 3 sheep_penalty uint32, 4 turtle_penalty uint32"
    ),
    "CpuStats": "1 cpu_allocatable int64, 2 cpu_capacity int64, 3 cpu_reservation double, 4 cpu_utilization double",
    "HealthCheckRequest": "1 grpc_service string",
    "HealthCheckResponse": "1 status ServingStatus",
    "JobDescriptor": (
        "1 uuid string, 2 name string, 3 state JobState, 4 root_task TaskDescriptor, 5 output_ids *bytes,"
        " 6 min_number_of_tasks uint64, 7 scheduled_tasks_count uint64, 8 is_gang_scheduling_job bool"
    ),
    "Label": "1 key string, 2 value string",
    "LabelSelector": "1 type SelectorType, 2 key string, 3 values *string",
    "LabelSelectorAntiAff": "1 matchLabels MatchLabelsAntiAff, 2 matchExpressions *LabelSelectorRequirementAntiAff",
    "LabelSelectorRequirement": "1 key string, 2 operator string, 3 values *string",
    "LabelSelectorRequirementAntiAff": "1 key string, 2 operator string, 3 values *string",
    "MatchLabels": "1 key string, 2 value string",
    "MatchLabelsAntiAff": "1 key string, 2 value string",
    "NodeAddedResponse": "1 type NodeReplyType",
    "NodeAffinity": (
        "1 requiredDuringSchedulingIgnoredDuringExecution NodeSelector,"
        " 2 preferredDuringSchedulingIgnoredDuringExecution *PreferredSchedulingTerm"
    ),
    "NodeFailedResponse": "1 type NodeReplyType",
    "NodeRemovedResponse": "1 type NodeReplyType",
    "NodeSelector": "1 nodeSelectorTerms *NodeSelectorTerm",
    "NodeSelectorRequirement": "1 key string, 2 operator string, 3 values *string",
    "NodeSelectorTerm": "1 matchExpressions *NodeSelectorRequirement",
    "NodeUpdatedResponse": "1 type NodeReplyType",
    "PodAffinity": (
        "1 requiredDuringSchedulingIgnoredDuringExecution *PodAffinityTerm,"
        " 2 preferredDuringSchedulingIgnoredDuringExecution *WeightedPodAffinityTerm"
    ),
    "PodAffinityTerm": "1 labelSelector PodLabelSelector, 2 namespaces *string, 3 topologyKey string",
    "PodAffinityTermAntiAff": "1 labelSelector LabelSelectorAntiAff, 2 namespaces *string, 3 topologyKey string",
    "PodAntiAffinity": (
        "1 requiredDuringSchedulingIgnoredDuringExecution *PodAffinityTermAntiAff,"
        " 2 preferredDuringSchedulingIgnoredDuringExecution *WeightedPodAffinityTermAntiAff"
    ),
    "PodLabelSelector": "1 matchLabels MatchLabels, 2 matchExpressions *LabelSelectorRequirement",
    "PreferredSchedulingTerm": "1 weight int32, 2 preference NodeSelectorTerm",
    "ReferenceDescriptor": (
        "1 id bytes, 2 type ReferenceType, 3 scope ReferenceScope, 4 non_deterministic bool, 5 size uint64,"
        " 6 location string, 7 inline_data bytes, 8 producing_task uint64, 9 time_to_compute uint64,"
        " 10 version uint64"
    ),
    "ResourceDescriptor": (
        "1 uuid string, 2 friendly_name string, 3 descriptive_name string, 4 state ResourceState,"
        " 5 task_capacity uint64, 6 last_heartbeat uint64, 7 type ResourceType, 8 schedulable bool,"
        " 9 current_running_tasks *uint64, 10 num_running_tasks_below uint64, 11 num_slots_below uint64,"
        " 12 available_resources ResourceVector, 13 reserved_resources ResourceVector,"
        " 14 min_available_resources_below ResourceVector, 15 max_available_resources_below ResourceVector,"
        " 16 min_unreserved_resources_below ResourceVector, 17 max_unreserved_resources_below ResourceVector,"
        " 18 resource_capacity ResourceVector, 19 whare_map_stats WhareMapStats,"
        " 20 coco_interference_scores CoCoInterferenceScores, 21 trace_machine_id uint64, 32 labels *Label,"
        " 33 taints *Taint, 34 avoids *AvoidPodsAnnotation, 35 max_pods uint64"
    ),
    "ResourceStats": (
        "1 resource_id string, 2 timestamp uint64, 3 cpus_stats *CpuStats, 4 mem_allocatable int64,"
        " 5 mem_capacity int64, 6 mem_reservation double, 7 mem_utilization double, 8 disk_bw int64,"
        " 9 net_rx_bw int64, 10 net_tx_bw int64, 11 ephemeral_storage_allocatable int64,"
        " 12 ephemeral_storage_capacity int64, 13 ephemeral_storage_reservation double,"
        " 14 ephemeral_storage_utilization double"
    ),
    "ResourceStatsResponse": "1 type NodeReplyType",
    "ResourceTopologyNodeDescriptor": (
        "1 resource_desc ResourceDescriptor, 2 children *ResourceTopologyNodeDescriptor, 3 parent_id string"
    ),
    "ResourceUID": "1 resource_uid string",
    "ResourceVector": (
        "1 cpu_cores float, 2 ram_bw uint64, 3 ram_cap uint64, 4 disk_bw uint64, 5 disk_cap uint64,"
        " 6 net_tx_bw uint64, 7 net_rx_bw uint64, 8 ephemeral_cap uint64"
    ),
    "SchedulingDelta": "1 task_id uint64, 2 resource_id string, 3 type ChangeType",
    "SchedulingDeltas": "1 deltas *SchedulingDelta, 2 unscheduled_tasks *uint64",
    "Taint": "1 key string, 2 value string, 3 effect string",
    "TaskCompletedResponse": "1 type TaskReplyType",
    "TaskDescription": "1 task_descriptor TaskDescriptor, 2 job_descriptor JobDescriptor",
    "TaskDescriptor": (
        "1 uid uint64, 2 name string, 3 state TaskState, 4 job_id string, 5 index uint64,"
        " 6 dependencies *ReferenceDescriptor, 7 outputs *ReferenceDescriptor, 8 binary string,"
        " 9 args *string, 10 spawned *TaskDescriptor, 11 scheduled_to_resource string,"
        " 12 last_heartbeat_location string, 13 last_heartbeat_time uint64, 14 delegated_to string,"
        " 15 delegated_from string, 16 submit_time uint64, 17 start_time uint64, 18 finish_time uint64,"
        " 19 total_unscheduled_time uint64, 20 total_run_time uint64, 21 relative_deadline uint64,"
        " 22 absolute_deadline uint64, 23 port uint64, 24 input_size uint64, 25 inject_task_lib bool,"
        " 26 resource_request ResourceVector, 27 priority uint32, 28 task_type TaskType,"
        " 29 final_report TaskFinalReport, 30 trace_job_id uint64, 31 trace_task_id uint64, 32 labels *Label,"
        " 33 label_selectors *LabelSelector, 34 affinity Affinity, 35 namespace string,"
        " 36 toleration *Toleration, 37 owner_ref_kind string, 38 owner_ref_uid string"
    ),
    "TaskFailedResponse": "1 type TaskReplyType",
    "TaskFinalReport": (
        "1 task_id uint64, 2 start_time uint64, 3 finish_time uint64, 4 instructions uint64, 5 cycles uint64,"
        " 6 llc_refs uint64, 7 llc_misses uint64, 8 runtime double"
    ),
    "TaskInfo": (
        "1 task_name string, 2 resource_id string, 3 cpu_utilization int64, 4 mem_utilization int64,"
        " 5 ephemeral_storage_utilization int64, 6 type TaskInfoType"
    ),
    "TaskInfoResponse": "1 type TaskInfoReplyType",
    "TaskRemovedResponse": "1 type TaskReplyType",
    "TaskStats": (
        "1 task_id uint64, 2 hostname string, 3 timestamp uint64, 4 cpu_limit int64, 5 cpu_request int64,"
        " 6 cpu_usage int64, 7 mem_limit int64, 8 mem_request int64, 9 mem_usage int64, 10 mem_rss int64,"
        " 11 mem_cache int64, 12 mem_working_set int64, 13 mem_page_faults int64,"
        " 14 mem_page_faults_rate double, 15 major_page_faults int64, 16 major_page_faults_rate double,"
        " 17 net_rx int64, 18 net_rx_errors int64, 19 net_rx_errors_rate double, 20 net_rx_rate double,"
        " 21 net_tx int64, 22 net_tx_errors int64, 23 net_tx_errors_rate double, 24 net_tx_rate double,"
        " 25 ephemeral_storage_limit int64, 26 ephemeral_storage_request int64,"
        " 27 ephemeral_storage_usage int64"
    ),
    "TaskStatsResponse": "1 type TaskReplyType",
    "TaskSubmittedResponse": "1 type TaskReplyType",
    "TaskUID": "1 task_uid uint64",
    "TaskUpdatedResponse": "1 type TaskReplyType",
    "Toleration": "1 key string, 2 operator string, 3 value string, 4 effect string, 5 tolerationSeconds int64",
    "WeightedPodAffinityTerm": "1 weight int32, 2 podAffinityTerm PodAffinityTerm",
    "WeightedPodAffinityTermAntiAff": "1 weight int32, 2 podAffinityTerm PodAffinityTermAntiAff",
    "WhareMapStats": (
        "1 num_idle uint64, 2 num_devils uint64, 3 num_rabbits uint64, 4 num_sheep uint64, 5 num_turtles uint64"
    ),
}

FIRMAMENT_ENUMS = {
    "JobDescriptor.JobState": "0 NEW, 1 CREATED, 2 RUNNING, 3 COMPLETED, 4 FAILED, 5 ABORTED, 6 UNKNOWN",
    "LabelSelector.SelectorType": (
        "0 IN_SET, 1 NOT_IN_SET, 2 EXISTS_KEY, 3 NOT_EXISTS_KEY, 4 GREATER_THAN, 5 LESSER_THAN"
    ),
    "NodeReplyType": (
        "0 NODE_ADDED_OK, 1 NODE_FAILED_OK, 2 NODE_REMOVED_OK, 3 NODE_UPDATED_OK, 4 NODE_NOT_FOUND,"
        " 5 NODE_ALREADY_EXISTS"
    ),
    "ReferenceDescriptor.ReferenceScope": "0 PUBLIC, 1 PRIVATE",
    "ReferenceDescriptor.ReferenceType": "0 TOMBSTONE, 1 FUTURE, 2 CONCRETE, 3 STREAM, 4 VALUE, 5 ERROR",
    "ResourceDescriptor.ResourceState": "0 RESOURCE_UNKNOWN, 1 RESOURCE_IDLE, 2 RESOURCE_BUSY, 3 RESOURCE_LOST",
    "ResourceDescriptor.ResourceType": (
        "0 RESOURCE_PU, 1 RESOURCE_CORE, 2 RESOURCE_CACHE, 3 RESOURCE_NIC, 4 RESOURCE_DISK, 5 RESOURCE_SSD,"
        " 6 RESOURCE_MACHINE, 7 RESOURCE_LOGICAL, 8 RESOURCE_NUMA_NODE, 9 RESOURCE_SOCKET,"
        " 10 RESOURCE_COORDINATOR"
    ),
    "SchedulingDelta.ChangeType": "0 NOOP, 1 PLACE, 2 PREEMPT, 3 MIGRATE",
    "ServingStatus": "0 UNKNOWN, 1 SERVING, 2 NOT_SERVING",
    "TaskDescriptor.TaskState": (
        "0 CREATED, 1 BLOCKING, 2 RUNNABLE, 3 ASSIGNED, 4 RUNNING, 5 COMPLETED, 6 FAILED, 7 ABORTED,"
        " 8 DELEGATED, 9 UNKNOWN"
    ),
    "TaskDescriptor.TaskType": "0 SHEEP, 1 RABBIT, 2 DEVIL, 3 TURTLE",
    "TaskInfoReplyType": (
        "0 TASKINFO_SUBMITTED_OK, 2 TASKINFO_REMOVED_OK, 3 TASKINFO_SUBMIT_FAILED, 4 TASKINFO_REMOVE_FAILED"
    ),
    "TaskInfoType": "0 TASKINFO_ADD, 1 TASKINFO_REMOVE",
    "TaskReplyType": (
        "0 TASK_COMPLETED_OK, 1 TASK_SUBMITTED_OK, 2 TASK_REMOVED_OK, 3 TASK_FAILED_OK, 4 TASK_UPDATED_OK,"
        " 5 TASK_NOT_FOUND, 6 TASK_JOB_NOT_FOUND, 7 TASK_ALREADY_SUBMITTED, 8 TASK_STATE_NOT_CREATED"
    ),
}

STATS_MESSAGES = {
    "NodeStats": (
        "1 hostname string, 2 timestamp uint64, 3 cpu_allocatable int64, 4 cpu_capacity int64,"
        " 5 cpu_reservation double, 6 cpu_utilization double, 7 mem_allocatable int64, 8 mem_capacity int64,"
        " 9 mem_reservation double, 10 mem_utilization double"
    ),
    "NodeStatsResponse": "1 type NodeStatsResponseType, 2 hostname string",
    "PodStats": (
        "1 name string, 2 namespace string, 3 hostname string, 4 cpu_limit int64, 5 cpu_request int64,"
        " 6 cpu_usage int64, 7 mem_limit int64, 8 mem_request int64, 9 mem_usage int64, 10 mem_rss int64,"
        " 11 mem_cache int64, 12 mem_working_set int64, 13 mem_page_faults int64,"
        " 14 mem_page_faults_rate double, 15 major_page_faults int64, 16 major_page_faults_rate double,"
        " 17 net_rx int64, 18 net_rx_errors int64, 19 net_rx_errors_rate double, 20 net_rx_rate double,"
        " 21 net_tx int64, 22 net_tx_errors int64, 23 net_tx_errors_rate double, 24 net_tx_rate double"
    ),
    "PodStatsResponse": "1 type PodStatsResponseType, 2 name string, 3 namespace string",
}

STATS_ENUMS = {
    "NodeStatsResponseType": "0 NODE_STATS_OK, 1 NODE_NOT_FOUND",
    "PodStatsResponseType": "0 POD_STATS_OK, 1 POD_NOT_FOUND",
}

METHODS = {
    "firmament.FirmamentScheduler": {
        "Schedule": "ScheduleRequest SchedulingDeltas",
        "TaskCompleted": "TaskUID TaskCompletedResponse",
        "TaskFailed": "TaskUID TaskFailedResponse",
        "TaskRemoved": "TaskUID TaskRemovedResponse",
        "TaskSubmitted": "TaskDescription TaskSubmittedResponse",
        "TaskUpdated": "TaskDescription TaskUpdatedResponse",
        "NodeAdded": "ResourceTopologyNodeDescriptor NodeAddedResponse",
        "NodeFailed": "ResourceUID NodeFailedResponse",
        "NodeRemoved": "ResourceUID NodeRemovedResponse",
        "NodeUpdated": "ResourceTopologyNodeDescriptor NodeUpdatedResponse",
        "AddTaskStats": "TaskStats TaskStatsResponse",
        "AddNodeStats": "ResourceStats ResourceStatsResponse",
        "Check": "HealthCheckRequest HealthCheckResponse",
        "AddTaskInfo": "TaskInfo TaskInfoResponse",
    },
    "stats.PoseidonStats": {
        "ReceiveNodeStats": "*NodeStats *NodeStatsResponse",
        "ReceivePodStats": "*PodStats *PodStatsResponse",
    },
}
"""METHOD: REQUEST REPLY, * for a stream."""

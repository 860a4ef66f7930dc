"""Names, labels and annotations of Volcano's objects, and of ours on them."""

LEASE = "poseidon-jobs"
"""The lease of `poseidon jobs run`, by default."""

BATCH = "batch.volcano.sh"
API_VERSION = "batch.volcano.sh/v1alpha1"
KIND = "Job"
GROUP_API_VERSION = "scheduling.volcano.sh/v1beta1"

TASK_SPEC = "volcano.sh/task-spec"
TASK_INDEX = "volcano.sh/task-index"
JOB_NAME = "volcano.sh/job-name"
JOB_NAMESPACE = "volcano.sh/job-namespace"
JOB_VERSION = "volcano.sh/job-version"
JOB_RETRY_COUNT = "volcano.sh/job-retry-count"
PARTITION = "volcano.sh/partition-id"
QUEUE_NAME = "volcano.sh/queue-name"
TEMPLATE = "volcano.sh/template-uid"
OUT_OF_SYNC = "volcano.sh/controller-out-of-sync"
"""On a pod: it is to be deleted. Its value here is the number of the retry that deletes it."""
NUMA_POLICY = "volcano.sh/numa-topology-policy"
GROUP_NAME = "scheduling.k8s.io/group-name"

PREEMPTABLE = "volcano.sh/preemptable"
COOLDOWN = "volcano.sh/cooldown-time"
ZONE = "volcano.sh/revocable-zone"
MIN_AVAILABLE = "volcano.sh/jdb-min-available"
MAX_UNAVAILABLE = "volcano.sh/jdb-max-unavailable"
MAY_PREEMPT, NOTICE = "poseidon.io/preempt", "poseidon.io/preemption-notice"
PASSED_ON = (PREEMPTABLE, COOLDOWN, ZONE, MIN_AVAILABLE, MAX_UNAVAILABLE, MAY_PREEMPT, NOTICE)
"""Annotations of a job that its pods get."""

USER = "poseidon.io/user"
"""On a job, as an annotation or a label: its user, which hooks pass on. On a pod: the user of its job."""
EVICTED_AT = "poseidon.io/evicted-at"
"""On a pod: when the pod that it replaces was evicted, in seconds since the epoch."""


def pod_name(job: str, task: str, index: int) -> str:
    return f"{job}-{task}-{index}"


def group_name(job: str, uid: str) -> str:
    """The name of a job's PodGroup."""
    return f"{job}-{uid}"

"""The labels and annotations that declare gangs, and name groups and roles: the one place for these.

state/gangs reads the gangs of pods, tracking the jobs and tasks that they belong to.
"""

LIGHT_NAME = "pod-group.scheduling.x-k8s.io/name"
LIGHT_MINIMUM = "pod-group.scheduling.x-k8s.io/min-available"
COSCHEDULING = "scheduling.x-k8s.io/pod-group"
SIGS = "pod-group.scheduling.sigs.k8s.io"
LIGHT_SIGS_NAME = "pod-group.scheduling.sigs.k8s.io/name"
LIGHT_SIGS_MINIMUM = "pod-group.scheduling.sigs.k8s.io/min-available"
FLUENCE_NAMES = ("fluence.pod-group", "fluence.flux-framework.org/group")
FLUENCE_SIZES = ("fluence.group-size", "fluence.flux-framework.org/group-size")
VOLCANO_OWNER_MINIMUM = "scheduling.volcano.sh/group-min-member"
KAI_OWNER_MINIMUM = "kai.scheduler/batch-min-member"
GROUP_NAME = "scheduling.k8s.io/group-name"
GROUP_NUMBER = "scheduling.k8s.io/group-pod-num"
VOLCANO_ROLE = "volcano.sh/task-spec"
KUEUE_NAME = "kueue.x-k8s.io/pod-group-name"
KUEUE_COUNT = "kueue.x-k8s.io/pod-group-total-count"
KUEUE_REQUIRED = "kueue.x-k8s.io/podset-required-topology"
KUEUE_MINIMUM = "kueue.x-k8s.io/job-min-parallelism"
KUEUE_PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"
KAI_NAME = "pod-group-name"
KAI_ROLE = "kai.scheduler/subgroup-name"
KAI_POOL = "kai.scheduler/node-pool"
KOORDINATOR_NAME = "gang.scheduling.koordinator.sh/name"
KOORDINATOR_MINIMUM = "gang.scheduling.koordinator.sh/min-available"
KOORDINATOR_SIZE = "gang.scheduling.koordinator.sh/total-number"
KOORDINATOR_WAIT = "gang.scheduling.koordinator.sh/waiting-time"
GROVE_NAME = "grove.io/podgang"
GROVE_ROLE = "grove.io/podclique"
GODEL_NAME = "godel.bytedance.com/pod-group-name"
YUNIKORN_NAME = "yunikorn.apache.org/task-group-name"
YUNIKORN_GROUPS = "yunikorn.apache.org/task-groups"
YUNIKORN_APP = ("yunikorn.apache.org/app-id", "applicationId", "spark-app-selector")
LWS_NAME = "leaderworkerset.sigs.k8s.io/name"
LWS_INDEX = "leaderworkerset.sigs.k8s.io/group-index"
LWS_KEY = "leaderworkerset.sigs.k8s.io/group-key"
LWS_SIZE = "leaderworkerset.sigs.k8s.io/size"
LWS_WORKER = "leaderworkerset.sigs.k8s.io/worker-index"
LWS_EXCLUSIVE = "leaderworkerset.sigs.k8s.io/exclusive-topology"
PERCENT = "firmament-gang-scheduling"
OWN = "poseidon.io/gang"
OWN_MINIMUM = "poseidon.io/gang-min"
OWN_MAXIMUM = "poseidon.io/gang-max"
OWN_TOPOLOGY = "poseidon.io/gang-topology"
OWN_TOPOLOGY_MODE = "poseidon.io/gang-topology-mode"
OWN_ROLE = "poseidon.io/gang-role"
OWN_NAME = "poseidon.io/gang-name"
JOBSET_ROLE = "jobset.sigs.k8s.io/replicatedjob-name"
JOBSET_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
JOBSET_SELECTED = "alpha.jobset.sigs.k8s.io/node-selector"
KUBEFLOW_ROLE = "training.kubeflow.org/replica-type"
RAY_ROLE = "ray.io/group"
RAY_GANG = "ray.io/gang-scheduling-enabled"
JOB_INDEX = "batch.kubernetes.io/job-completion-index"

NO_DECLARATION = frozenset(
    (JOBSET_ROLE, JOBSET_EXCLUSIVE, JOBSET_SELECTED, JOB_INDEX, KUBEFLOW_ROLE, RAY_ROLE, RAY_GANG)
)
"""Keys that tell about pods of a gang, but declare none."""

GROUPS = (
    OWN_NAME, GROUP_NAME, COSCHEDULING, SIGS, KUEUE_NAME, LIGHT_NAME, LIGHT_SIGS_NAME, *FLUENCE_NAMES,
    KOORDINATOR_NAME, GROVE_NAME, GODEL_NAME, *YUNIKORN_APP[:2], KAI_NAME,
)  # fmt: skip
"""Labels and annotations that name the group of pods without a controller, in order of precedence."""

ROLES = (OWN_ROLE, VOLCANO_ROLE, JOBSET_ROLE, KAI_ROLE, GROVE_ROLE, YUNIKORN_NAME)
"""Labels and annotations that name the role of a pod in its group, in order of precedence."""

COMPANIONS = frozenset(
    (VOLCANO_ROLE, GROVE_ROLE, LWS_NAME, LWS_SIZE, LWS_WORKER, LWS_EXCLUSIVE, *YUNIKORN_APP, *NO_DECLARATION)
)
"""Keys that matter only beside one by which a pod declares a gang."""

KEYS = COMPANIONS | frozenset(
    (
        *GROUPS, *ROLES, KOORDINATOR_MINIMUM, KOORDINATOR_SIZE, KOORDINATOR_WAIT,
        LIGHT_MINIMUM, LIGHT_SIGS_MINIMUM, *FLUENCE_SIZES, VOLCANO_OWNER_MINIMUM, KAI_OWNER_MINIMUM, GROUP_NUMBER,
        KUEUE_COUNT, KUEUE_MINIMUM, KUEUE_REQUIRED, KUEUE_PREFERRED, YUNIKORN_GROUPS, LWS_INDEX, LWS_KEY, PERCENT, OWN,
        OWN_MINIMUM, OWN_MAXIMUM, OWN_TOPOLOGY, OWN_TOPOLOGY_MODE,
    )
)  # fmt: skip
"""All of them."""

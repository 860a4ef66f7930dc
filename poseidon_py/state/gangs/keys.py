"""Reads the gang-related labels, annotations and fields of a pod.

Most pods have none, and finding that out must be cheap: each key contains one of three words, which are searched for in
the undecoded bytes first.
"""

import msgspec
from msgspec import Raw

from poseidon_py.kube.objects import NOTHING, InvalidField, Labels, OwnerReference, Pod, decode, micros
from poseidon_py.state.gangs.model import GangHints, Owner

LIGHT_NAME = "pod-group.scheduling.x-k8s.io/name"
LIGHT_MINIMUM = "pod-group.scheduling.x-k8s.io/min-available"
COSCHEDULING = "scheduling.x-k8s.io/pod-group"
SIGS = "pod-group.scheduling.sigs.k8s.io"
LIGHT_SIGS_NAME = "pod-group.scheduling.sigs.k8s.io/name"
LIGHT_SIGS_MINIMUM = "pod-group.scheduling.sigs.k8s.io/min-available"
FLUENCE_NAMES = ("fluence.pod-group", "fluence.flux-framework.org/group")
FLUENCE_SIZES = ("fluence.group-size", "fluence.flux-framework.org/group-size")
VOLCANO_OWNER_MINIMUM = "scheduling.volcano.sh/group-min-member"
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
JOB_INDEX = "batch.kubernetes.io/job-completion-index"

NO_DECLARATION = frozenset((JOBSET_ROLE, JOBSET_EXCLUSIVE, JOBSET_SELECTED, JOB_INDEX))
"""Keys that tell about pods of a gang, but declare none."""

_KEYS = frozenset(
    (
        LIGHT_NAME, LIGHT_MINIMUM, LIGHT_SIGS_NAME, LIGHT_SIGS_MINIMUM, COSCHEDULING, SIGS, *FLUENCE_NAMES,
        *FLUENCE_SIZES, VOLCANO_OWNER_MINIMUM, GROUP_NAME, GROUP_NUMBER, VOLCANO_ROLE, KUEUE_NAME,
        KUEUE_COUNT, KUEUE_MINIMUM, KUEUE_REQUIRED, KUEUE_PREFERRED,
        KAI_NAME, KAI_ROLE, GODEL_NAME, YUNIKORN_NAME, YUNIKORN_GROUPS, *YUNIKORN_APP, LWS_NAME,
        LWS_INDEX, LWS_KEY, LWS_SIZE, PERCENT, OWN, OWN_MINIMUM, OWN_MAXIMUM, OWN_TOPOLOGY, OWN_TOPOLOGY_MODE,
        OWN_ROLE, OWN_NAME, LWS_WORKER, LWS_EXCLUSIVE, *NO_DECLARATION,
    )
)  # fmt: skip


def is_placed_exclusively(hints: GangHints) -> bool:
    """Whether the pod is one of a group that has a topology domain for itself: its controller creates the other pods
    once the first, the leader, has a node, and confines them to the leader's domain. (LeaderWorkerSet:
    pkg/controllers/pod_controller.go; JobSet: pkg/webhooks/pod_webhook.go, unless it selects nodes itself.)"""
    annotations = hints.annotations
    of_job = JOBSET_EXCLUSIVE in annotations and JOBSET_SELECTED not in annotations
    return of_job or LWS_EXCLUSIVE in annotations


def is_leader(hints: GangHints) -> bool:
    """Whether the pod is the first of a group of a LeaderWorkerSet, or of an indexed Job."""
    index = hints.labels.get(LWS_WORKER) or hints.annotations.get(JOB_INDEX) or hints.labels.get(JOB_INDEX)
    return index == "0"


class SchedulingGroup(msgspec.Struct):
    """spec.schedulingGroup of a pod."""

    name: str | None = msgspec.field(default=None, name="podGroupName")


def mentions_gangs(raw: Raw) -> bool:
    """Whether undecoded labels or annotations may contain a key of a convention."""
    if raw is NOTHING:
        return False
    data = bytes(raw)
    return b"group" in data or b"gang" in data or b"/podset-" in data or b"/job-min" in data or b"fluence" in data


def may_declare_gang(pod: Pod) -> bool:
    """Whether the pod itself may declare a gang; called for every pod."""
    if pod.spec.scheduling_group is not NOTHING:
        return True
    return mentions_gangs(pod.metadata.labels) or mentions_gangs(pod.metadata.annotations)


def gang_hints_of(pod: Pod) -> GangHints | None:
    """The gang-related fields of a pod; None: there are none, and it has no controller. Raises InvalidField."""
    metadata = pod.metadata
    owner = controller(metadata.owners)
    group = bytes(pod.spec.scheduling_group)
    marked = mentions_gangs(metadata.labels) or mentions_gangs(metadata.annotations)
    if owner is None and not marked and not group:
        return None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    name = ""
    if marked or JOBSET_ROLE.encode() in bytes(metadata.labels):
        labels = pick(metadata.labels, "metadata.labels")
        annotations = pick(metadata.annotations, "metadata.annotations")
    if group:
        found = decode(pod.spec.scheduling_group, SchedulingGroup, "spec.schedulingGroup")
        name = (found.name if found else None) or ""
    try:
        created = micros(metadata.created)
    except InvalidField:
        created = 0
    return GangHints(metadata.namespace, metadata.name, metadata.uid, created, labels, annotations, name, owner)


def pick(raw: Raw, path: str) -> dict[str, str]:
    """The labels or annotations with keys of conventions. Raises InvalidField."""
    return {key: value for key, value in (decode(raw, Labels, path) or {}).items() if key in _KEYS}


def controller(references: list[OwnerReference] | None) -> Owner | None:
    """The controller among these owner references."""
    for reference in references or ():
        if reference.controller:
            group = reference.api_version.rpartition("/")[0]
            return Owner(reference.kind, reference.name, reference.uid, group)
    return None

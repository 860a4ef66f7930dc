"""The job, the task and the user of a pod, by its owner, labels and annotations alone: every process finds the same."""

from collections.abc import Mapping
from typing import NamedTuple

from poseidon_py.conventions import group_keys
from poseidon_py.kube.objects import InvalidField, Labels, OwnerReference, Pod, annotations_of, labels_of

USER = "poseidon.io/user"
"""An annotation or a label; the annotation takes precedence."""
MAIN = "main"
"""The task of a job whose pods have no roles."""
POD, POD_GROUP = "Pod", "PodGroup"

_JOBSET_NAME, _JOBSET_UID = "jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/jobset-uid"
_KUBEFLOW_NAME, _KUBEFLOW = "training.kubeflow.org/job-name", "kubeflow.org"
_SPARK, _SPARK_NAME = "spark-app-selector", "spark-app-name"
_ROLES = (*group_keys.ROLES, "training.kubeflow.org/replica-type", "ray.io/group", "ray.io/node-type", "spark-role")
"""Labels and annotations that name the task of a pod."""
_PLAIN_GROUPS = ("", "apps", "batch")
"""Groups of kinds that are named without their group."""


class JobKey(NamedTuple):
    """Identifies a job. `kind`: with the group where that is not one of Kubernetes' own, as in `kubectl get`."""

    namespace: str
    kind: str
    name: str
    uid: str
    """Of the object; empty: the pods have its name only."""


class Identity(NamedTuple):
    """What a pod belongs to."""

    job: JobKey
    task: str
    user: str
    owner: str
    """UID of the controller of the pod; empty: it has none."""


def identity_of(pod: Pod) -> Identity:
    """Labels and annotations that cannot be read count as missing."""
    labels, annotations = _labels(pod), _annotations(pod)
    owner = next((each for each in pod.metadata.owners or () if each.controller), None)
    namespace = pod.metadata.namespace
    kind, name, uid = _job(pod, owner, labels, annotations)
    user = annotations.get(USER) or labels.get(USER) or namespace
    return Identity(
        JobKey(namespace, kind, name, uid), _task(labels, annotations), user, owner.uid if owner is not None else ""
    )


def _job(
    pod: Pod, owner: OwnerReference | None, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> tuple[str, str, str]:
    """Kind, name and UID. Some kinds own other owners of pods: their labels say so."""
    if name := labels.get(_JOBSET_NAME):
        return "JobSet", name, labels.get(_JOBSET_UID, "")
    if name := labels.get(group_keys.LWS_NAME):
        return "LeaderWorkerSet", name, ""
    if name := labels.get(_KUBEFLOW_NAME):  # the launcher of an MPIJob is the pod of a Job
        return owner.kind if owner is not None and _group(owner) == _KUBEFLOW else "MPIJob", name, ""
    if uid := labels.get(_SPARK):  # the driver, and executors, which it owns
        return "SparkApplication", labels.get(_SPARK_NAME) or uid, uid
    if owner is not None:
        group = _group(owner)
        return owner.kind if group in _PLAIN_GROUPS else f"{owner.kind}.{group}", owner.name, owner.uid
    for key in group_keys.GROUPS:
        if name := annotations.get(key) or labels.get(key):
            return POD_GROUP, name, ""
    return POD, pod.metadata.name, pod.metadata.uid


def _task(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    for key in _ROLES:
        if role := annotations.get(key) or labels.get(key):
            return role
    if group_keys.LWS_NAME in labels:
        return "leader" if labels.get(group_keys.LWS_WORKER, "0") == "0" else "worker"
    return MAIN


def _group(owner: OwnerReference) -> str:
    return owner.api_version.rpartition("/")[0]


def _labels(pod: Pod) -> Labels:
    try:
        return labels_of(pod.metadata)
    except InvalidField:
        return {}


def _annotations(pod: Pod) -> Labels:
    try:
        return annotations_of(pod.metadata)
    except InvalidField:
        return {}

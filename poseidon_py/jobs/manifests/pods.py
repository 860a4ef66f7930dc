"""The pod of one replica, with Volcano's names, labels and annotations."""

import copy

from poseidon_py.jobs import names
from poseidon_py.jobs.manifests import plugins
from poseidon_py.jobs.manifests.owner import Json, Owner
from poseidon_py.jobs.rules.spec import JobSpec, Task
from poseidon_py.jobs.rules.status import JobStatus
from poseidon_py.jobs.rules.world import Creation

DEFAULT_SCHEDULER = "poseidon"


def pod(owner: Owner, spec: JobSpec, status: JobStatus, creation: Creation) -> Json:
    """The manifest of a pod. `creation` is of a task of the job."""
    task = spec.task(creation.task)
    assert task is not None, f"the job has no task {creation.task}"
    template = copy.deepcopy(task.template)
    metadata, pod_spec = template.get("metadata") or {}, template["spec"]
    if not pod_spec.get("schedulerName"):
        pod_spec["schedulerName"] = spec.scheduler_name or DEFAULT_SCHEDULER
    if not pod_spec.get("priorityClassName") and spec.priority_class:
        pod_spec["priorityClassName"] = spec.priority_class
    if pod_spec.get("hostNetwork") and not pod_spec.get("dnsPolicy"):
        pod_spec["dnsPolicy"] = "ClusterFirstWithHostNet"
    _mount(spec, pod_spec)
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **owner.metadata(names.pod_name(owner.name, task.name, creation.index)),
            "labels": {**(metadata.get("labels") or {}), **_labels(owner, spec, task, creation.index)},
            "annotations": {
                **(metadata.get("annotations") or {}),
                **_annotations(owner, spec, status, task, creation),
            },
        },
        "spec": pod_spec,
    }
    plugins.change_pod(owner, spec, body, creation.index)
    return body


def _labels(owner: Owner, spec: JobSpec, task: Task, index: int) -> dict[str, str]:
    found = {
        names.TASK_INDEX: str(index),
        names.TASK_SPEC: task.name,
        names.JOB_NAME: owner.name,
        names.JOB_NAMESPACE: owner.namespace,
        names.QUEUE_NAME: spec.queue,
    }
    if task.partition_size:
        found[names.PARTITION] = str(index // task.partition_size)
    return found | {key: owner.labels[key] for key in (names.PREEMPTABLE, names.COOLDOWN) if key in owner.labels}


def _annotations(owner: Owner, spec: JobSpec, status: JobStatus, task: Task, creation: Creation) -> dict[str, str]:
    found = {
        names.TASK_INDEX: str(creation.index),
        names.TASK_SPEC: task.name,
        names.GROUP_NAME: names.group_name(owner.name, owner.uid),
        names.JOB_NAME: owner.name,
        names.QUEUE_NAME: spec.queue,
        names.JOB_VERSION: str(status.version),
        names.JOB_RETRY_COUNT: str(status.retry_count),
        names.TEMPLATE: f"{owner.name}-{task.name}",
    }
    if task.topology_policy:
        found[names.NUMA_POLICY] = task.topology_policy
    if creation.evicted_at:
        found[names.EVICTED_AT] = f"{creation.evicted_at:.3f}"
    if owner.user:
        found[names.USER] = owner.user
    return found | {key: owner.annotations[key] for key in names.PASSED_ON if key in owner.annotations}


def _mount(spec: JobSpec, pod_spec: Json) -> None:
    """The volumes of the job, each claim once, in all containers."""
    for at, volume in enumerate(spec.volumes):
        name = f"job-volume-{at}"
        pod_spec.setdefault("volumes", []).append(
            {"name": name, "persistentVolumeClaim": {"claimName": volume.claim_name}}
        )
        for container in pod_spec["containers"]:
            container.setdefault("volumeMounts", []).append({"name": name, "mountPath": volume.mount_path})

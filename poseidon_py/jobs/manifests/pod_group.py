"""The PodGroup of a job: how many of its pods, and of each task, are placed together or not at all.

Tasks that wait for others have no pods yet, so they do not count until they start: else the group would wait for its
own members.
"""

from collections.abc import Mapping

import msgspec

from poseidon_py.describe.requests import requests
from poseidon_py.jobs import names
from poseidon_py.jobs.manifests.owner import Json, Owner
from poseidon_py.jobs.rules.spec import JobSpec, Task
from poseidon_py.kube.objects import InvalidField, Pod
from poseidon_py.kube.quantity import CPU, PODS

_NOT_PASSED_ON = ("kubectl.kubernetes.io/last-applied-configuration", "poseidon.io/event")


def pod_group(owner: Owner, spec: JobSpec, version: int, started: Mapping[str, bool]) -> Json:
    """The manifest. `version`: of the job; `started`: task -> whether its pods may exist."""
    annotations = {key: text for key, text in owner.annotations.items() if key not in _NOT_PASSED_ON}
    return {
        "apiVersion": names.GROUP_API_VERSION,
        "kind": "PodGroup",
        "metadata": {
            **owner.metadata(names.group_name(owner.name, owner.uid)),
            "labels": dict(owner.labels),
            "annotations": annotations | {names.JOB_VERSION: str(version)},
        },
        "spec": group_spec(spec, started),
    }


def group_spec(spec: JobSpec, started: Mapping[str, bool]) -> Json:
    """The specification, which follows the job's."""
    counted = [task for task in spec.tasks if started.get(task.name, True)]
    replicas = sum(task.replicas for task in counted)
    minimum = min(spec.min_available, replicas)
    found: Json = {
        "minMember": minimum,
        "minTaskMember": {task.name: task.min_available for task in counted},
        "queue": spec.queue,
        "minResources": _min_resources(counted, minimum),
    }
    if spec.priority_class:
        found["priorityClassName"] = spec.priority_class
    if spec.network_topology:
        found["networkTopology"] = spec.network_topology
    return found


def _min_resources(tasks: list[Task], minimum: int) -> dict[str, str]:
    """What the minimum of pods requests: the minimum of each task first, in the order of the job, then the others."""
    needed = [min(task.min_available, task.replicas) for task in tasks]
    if sum(needed) > minimum:
        needed = [0] * len(tasks)
    taken: list[int] = []
    missing = minimum - sum(needed)
    for task, least in zip(tasks, needed, strict=True):
        extra = min(missing, task.replicas - least)
        taken.append(least + extra)
        missing -= extra
    total: dict[str, int] = {}
    for task, pods in zip(tasks, taken, strict=True):
        for resource, amount in _requests(task).items():
            total[resource] = total.get(resource, 0) + amount * pods
    return {name: f"{amount}m" if name == CPU else str(amount) for name, amount in sorted(total.items()) if amount}


def _requests(task: Task) -> dict[str, int]:
    """What one pod requests; empty if that cannot be said: the API server refuses the pod, and says why."""
    template = task.template["spec"]
    pod_spec = {**template, "containers": [_with_limits(each) for each in template.get("containers") or ()]}
    try:
        pod = msgspec.json.decode(msgspec.json.encode({"spec": pod_spec}), type=Pod)
        return {name: amount for name, amount in requests(pod).items() if name != PODS}
    except (InvalidField, ValueError):
        return {}


def _with_limits(container: Json) -> Json:
    """A container whose limits are requests where it has none, as the API server has it."""
    stated = container.get("resources") or {}
    return {
        **container,
        "resources": {**stated, "requests": {**(stated.get("limits") or {}), **(stated.get("requests") or {})}},
    }

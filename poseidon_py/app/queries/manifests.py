"""The pods that a manifest would create, as a scheduler would observe them. Pure.

    Pod                                          1
    Job, CronJob                                 the smaller of parallelism and completions
    Deployment, ReplicaSet, StatefulSet, ...     replicas
    JobSet                                       those of its Jobs
    LeaderWorkerSet                              size: one of its groups, a leader and workers
    kinds of kubeflow.org, RayCluster            replicas of each role
    Job of batch.volcano.sh                      replicas of each task, with a PodGroup

PodGroups are not pods, but their gangs' declarations. Of what the API server sets by default, that is set here
which matters to scheduling: requests are limits where they are missing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from poseidon_py.devices.objects import GROUP as DEVICES
from poseidon_py.jobs.manifests.owner import Owner as JobOwner
from poseidon_py.jobs.manifests.pod_group import pod_group
from poseidon_py.jobs.manifests.pods import pod as volcano_pod
from poseidon_py.jobs.rules.spec import read_spec
from poseidon_py.jobs.rules.status import JobStatus
from poseidon_py.jobs.rules.world import Creation
from poseidon_py.kube.objects import InvalidField, Pod
from poseidon_py.state.gangs.by_owner import OWNERS
from poseidon_py.state.gangs.by_pod_group import GROUPS
from poseidon_py.state.gangs.decode import Item, owner_or_group_of
from poseidon_py.state.gangs.model import MAX_COUNT, Invalid, Owner, OwnerOrGroup, Resource, ray_replicas, role_default
from poseidon_py.state.gangs.owner_kinds import OWNER_KINDS
from poseidon_py.util.decoding import MalformedError, decode_json

Json = dict[str, Any]
_RESOURCES: Mapping[tuple[str, str], Resource] = {
    **OWNERS,
    **{(each.resource.group, each.kind): each.resource for each in OWNER_KINDS.values()},
    **{(each.group, "PodGroup"): each for each in GROUPS},
}
_REPLICA_SPECS = {each.kind: each.replica_specs for each in OWNER_KINDS.values() if each.replica_specs}
_REPLICATED = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")
_VOLCANO_JOB = "batch.volcano.sh/Job"
_PRIORITIES = 2**31
_SYSTEM_PRIORITIES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


class Template(NamedTuple):
    """Equal pods of one workload."""

    workload: str
    """kind/name, and the part of it if there are several."""
    pod: Pod
    number: int
    """Number of these pods."""


class Manifest(NamedTuple):
    """The objects of a manifest."""

    templates: list[Template]
    objects: list[tuple[Resource, OwnerOrGroup]]
    """PodGroups and owners."""
    notes: list[str]
    """What is not taken into account."""


def manifest(items: Iterable[object], namespace: str, priority: int | None, *, override: bool = False) -> Manifest:
    """`namespace`: of objects that name none; `priority`: of pods that state none, or with `override` of all. An object
    that cannot be read is left out, with a note. Raises InvalidField if no pods are left."""
    found, problems = Manifest([], [], []), list[InvalidField]()
    for at, item in enumerate(_flat(items)):
        one = Manifest([], [], found.notes)
        try:
            if not isinstance(item, dict) or not isinstance(item.get("kind"), str):
                raise InvalidField(
                    f"object {at + 1}", "is not a Kubernetes object; give apiVersion, kind, metadata and spec"
                )
            _Reader(one, item, namespace, priority, override=override).read()
        except InvalidField as error:
            problems.append(error)
        else:
            found.templates.extend(one.templates)
            found.objects.extend(one.objects)
    note_problems(found, problems)
    if not found.templates:
        ignored = f" ({'; '.join(found.notes)})" if found.notes else ""
        raise InvalidField(
            "the manifest", f"no pods{ignored}; give a Pod, or a Job, Deployment or another owner of pods"
        )
    return found


def note_problems(found: Manifest, problems: Sequence[InvalidField]) -> None:
    """Notes what was left out; raises the first problem if nothing is left."""
    if problems and not found.templates:
        raise problems[0]
    found.notes.extend(f"left out: {problem}" for problem in problems)


def _flat(items: Iterable[object]) -> Iterator[object]:
    for item in items:
        if (
            isinstance(item, dict)
            and str(item.get("kind", "")).endswith("List")
            and isinstance(item.get("items"), list)
        ):
            yield from _flat(item["items"])
        elif item is not None:
            yield item


class _Reader:
    """Reads one object into a manifest."""

    def __init__(self, found: Manifest, item: Json, namespace: str, priority: int | None, *, override: bool) -> None:
        self._found, self._priority, self._override = found, priority, override
        self._kind = str(item["kind"])
        metadata = _part(item, "metadata", self._kind)
        self._name = str(metadata.get("name") or metadata.get("generateName") or "unnamed")
        self._namespace = str(metadata.get("namespace") or namespace)
        self._group = str(item.get("apiVersion") or "").rpartition("/")[0]
        uid = f"new/{self._group}/{self._kind}/{self._namespace}/{self._name}"
        self._metadata = {**metadata, "name": self._name, "namespace": self._namespace, "uid": uid}
        self._item = {**item, "metadata": self._metadata}
        self.place = f"{self._kind} {self._namespace}/{self._name}"

    def read(self) -> None:
        if self._kind == "Pod":
            self._add(self._item, 1, "", None)
            return
        resource = _RESOURCES.get((self._group, self._kind))
        if self._kind == "CronJob":
            job = _part(self._spec(), "jobTemplate", f"{self.place}: spec")
            inner = {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": self._metadata,
                "spec": _part(job, "spec", self.place),
            }
            _Reader(self._found, inner, self._namespace, self._priority, override=self._override).read()
        elif f"{self._group}/{self._kind}" == _VOLCANO_JOB:
            self._volcano_job()
        elif self._group == DEVICES:
            pass  # what claims and templates ask for is read with the pods that name them
        elif resource is None:
            self._found.notes.append(f"{self.place} is ignored: it has no pods that are placed as a group")
        else:
            self._found.objects.append((resource, self._observed(resource)))
            if self._kind != "PodGroup":
                self._owner()

    def _owner(self) -> None:
        spec, kind, owner = self._spec(), self._kind, Owner(self._kind, self._name, self._metadata["uid"], self._group)
        if kind == "Job":
            self._add(self._template(spec, "spec"), self._at_once(spec, "spec"), "", owner)
        elif kind in _REPLICATED:
            self._add(self._template(spec, "spec"), self._count(spec, "replicas", "spec", 1), "", owner)
        elif kind == "JobSet":
            self._job_set(spec, owner)
        elif kind == "LeaderWorkerSet":
            self._leader_worker_set(spec)
        elif kind in _REPLICA_SPECS:
            field = _REPLICA_SPECS[kind]
            for role, each in _part(spec, field, f"{self.place}: spec").items():
                path = f"spec.{field}.{role}"
                each = _mapping(each, f"{self.place}: {path}")
                count = self._count(each, "replicas", path, role_default(field, str(role)))
                self._add(self._template(each, path), count, str(role), owner)
        else:
            self._ray_cluster(spec, owner)

    def _volcano_job(self) -> None:
        """Its controller makes a PodGroup, and the pods of tasks that wait for no others."""
        labels, annotations = (self._metadata.get(name) or {} for name in ("labels", "annotations"))
        owner = JobOwner(self._namespace, self._name, self._metadata["uid"], labels, annotations)
        try:
            spec = read_spec(self._name, msgspec.Raw(_encoded(self._spec())), annotations)
        except InvalidField as error:
            raise InvalidField(f"{self.place}: {error.field}", error.reason) from error
        started = {task.name: not task.depends_on for task in spec.tasks}
        group = pod_group(owner, spec, 1, started)
        _Reader(self._found, group, self._namespace, self._priority, override=self._override).read()
        for task in spec.tasks:
            if started[task.name]:
                made = volcano_pod(owner, spec, JobStatus(), Creation(task.name, 0))
                self._add({"metadata": made["metadata"], "spec": made["spec"]}, task.replicas, task.name, None)
            else:
                self._note(f"the task {task.name} of", "is not taken into account: it starts after others")

    def _job_set(self, spec: Json, owner: Owner) -> None:
        for at, each in enumerate(self._list(spec, "replicatedJobs", "spec")):
            path = f"spec.replicatedJobs[{at}]"
            job = _part(_part(each, "template", f"{self.place}: {path}"), "spec", f"{self.place}: {path}.template")
            count = self._count(each, "replicas", path, 1) * self._at_once(job, f"{path}.template.spec")
            name = str(each.get("name") or at)
            pod = self._template(job, f"{path}.template.spec")
            labels = {"jobset.sigs.k8s.io/replicatedjob-name": name}
            self._add(_labelled(pod, labels), count, name, owner)

    def _leader_worker_set(self, spec: Json) -> None:
        inner = _part(spec, "leaderWorkerTemplate", f"{self.place}: spec")
        path = "spec.leaderWorkerTemplate"
        groups, size = self._count(spec, "replicas", "spec", 1), self._count(inner, "size", path, 1)
        worker = _part(inner, "workerTemplate", f"{self.place}: {path}")
        leader = inner.get("leaderTemplate") or worker
        if groups > 1:
            self._found.notes.append(
                f"{self.place} has {groups} groups, each of which is a gang: this is about one of them"
            )
        labels = {"leaderworkerset.sigs.k8s.io/name": self._name, "leaderworkerset.sigs.k8s.io/group-index": "0"}
        self._add(
            _labelled(_mapping(leader, f"{self.place}: {path}.leaderTemplate"), labels), min(groups, 1), "leader", None
        )
        self._add(_labelled(worker, labels), size - 1 if groups and size else 0, "worker", None)

    def _ray_cluster(self, spec: Json, owner: Owner) -> None:
        head = _part(spec, "headGroupSpec", f"{self.place}: spec")
        self._add(self._template(head, "spec.headGroupSpec"), 1, "head", owner)
        for at, each in enumerate(self._list(spec, "workerGroupSpecs", "spec")):
            path = f"spec.workerGroupSpecs[{at}]"
            try:
                count = ray_replicas(each.get("replicas"), each.get("minReplicas"), each.get("maxReplicas"), path)
            except Invalid as error:
                raise InvalidField(self.place, str(error)) from error
            count *= self._count(each, "numOfHosts", path, 1)
            self._add(
                self._template(each, path), 0 if each.get("suspend") else count, str(each.get("groupName", at)), owner
            )

    # -- parts ------------------------------------------------------------------------------------------------

    def _spec(self) -> Json:
        return _part(self._item, "spec", self.place)

    def _template(self, holder: Json, path: str) -> Json:
        return _part(holder, "template", f"{self.place}: {path}")

    def _list(self, holder: Json, name: str, path: str) -> list[Json]:
        found = holder.get(name) or []
        if not isinstance(found, list):
            raise InvalidField(f"{self.place}: {path}.{name}", "is not a list; give one")
        return [_mapping(each, f"{self.place}: {path}.{name}[{at}]") for at, each in enumerate(found)]

    def _count(self, holder: Json, name: str, path: str, default: int) -> int:
        value = holder.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_COUNT:
            raise InvalidField(
                f"{self.place}: {path}.{name}", f"{value!r} is not valid; give a whole number, 0 or more"
            )
        return value

    def _at_once(self, job: Json, path: str) -> int:
        parallelism = self._count(job, "parallelism", path, 1)
        return min(parallelism, self._count(job, "completions", path, parallelism))

    def _observed(self, resource: Resource) -> OwnerOrGroup:
        try:
            return owner_or_group_of(resource, decode_json(_encoded(self._item), Item, self.place))
        except MalformedError as error:
            raise InvalidField(self.place, error.reason) from error
        except InvalidField as error:
            raise InvalidField(f"{self.place}: {error.field}", error.reason) from error

    def _add(self, template: Json, count: int, role: str, owner: Owner | None) -> None:
        if not count:
            return
        metadata = _part(template, "metadata", self.place) if template.get("metadata") else {}
        where = self.place if self._kind == "Pod" else f"{self.place}: template"
        path = f"{self.place}: spec" if self._kind == "Pod" else f"{where}.spec"
        spec = _with_label_keys(_defaulted(_part(template, "spec", where), path), metadata.get("labels"))
        priority = spec["priority"] = self._priority_of(spec)
        if isinstance(priority, int) and not -_PRIORITIES <= priority < _PRIORITIES:
            raise InvalidField(path, f"has the priority {priority}; give one of {-_PRIORITIES} to {_PRIORITIES - 1}")
        metadata = {**metadata, "name": self._name, "namespace": self._namespace, "uid": self._metadata["uid"]}
        metadata.pop("ownerReferences", None)
        if owner is not None:
            version = f"{owner.group}/v1" if owner.group else "v1"
            reference = {"apiVersion": version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
            metadata["ownerReferences"] = [reference | {"controller": True}]
        for name in ("nodeName", "schedulingGates"):
            spec.pop(name, None)
        try:
            pod = decode_json(_encoded({"metadata": metadata, "spec": spec}), Pod, self.place)
        except MalformedError as error:
            raise InvalidField(where, error.reason) from error
        workload = f"{self._kind.lower()}/{self._name}" + (f" {role}" if role else "")
        self._found.templates.append(Template(workload, pod, count))
        if any(_is_claim(each) for each in spec.get("volumes") or ()):
            self._note("the volumes of", "are not taken into account")

    def _priority_of(self, spec: Json) -> int | None:
        stated = None if self._override and self._priority is not None else spec.get("priority")
        if stated is not None or self._priority is not None:
            return stated if stated is not None else self._priority
        name = spec.get("priorityClassName")
        if name in _SYSTEM_PRIORITIES:
            return _SYSTEM_PRIORITIES[name]
        if name:
            self._note(f"the priority class {name} of", "is not resolved: they count with priority 0; give --priority")
        return None

    def _note(self, before: str, after: str) -> None:
        note = f"{before} {self.place} {after}"
        if note not in self._found.notes:
            self._found.notes.append(note)


def _is_claim(volume: object) -> bool:
    return isinstance(volume, dict) and ("persistentVolumeClaim" in volume or "ephemeral" in volume)


def _defaulted(spec: Json, path: str) -> Json:
    """The spec with requests where only limits are given, as the API server adds them."""
    spec = dict(spec)
    for name in ("containers", "initContainers"):
        containers = spec.get(name) or []
        if not isinstance(containers, list):
            raise InvalidField(f"{path}.{name}", "is not a list; give one")
        spec[name] = [_with_requests(_mapping(each, f"{path}.{name}[{at}]")) for at, each in enumerate(containers)]
    return _with_requests(spec)


def _with_requests(holder: Json) -> Json:
    resources = holder.get("resources")
    if not isinstance(resources, dict) or not isinstance(resources.get("limits"), dict):
        return holder
    requests = resources.get("requests") or {}
    if not isinstance(requests, dict):
        return holder  # its description reports it
    return {**holder, "resources": {**resources, "requests": {**resources["limits"], **requests}}}


def _with_label_keys(spec: Json, labels: object) -> Json:
    """The spec with matchLabelKeys and mismatchLabelKeys of pod affinity merged into the selectors of their terms, as
    the API server merges them when it creates the pod. What is malformed its description reports."""

    def merged(value: object) -> object:
        if isinstance(value, list):
            return [merged(each) for each in value]
        if not isinstance(value, dict) or not isinstance(labels, dict):
            return value
        selector = value.get("labelSelector")
        lists = [value.get(name) or [] for name in ("matchLabelKeys", "mismatchLabelKeys")]
        if not isinstance(selector, dict) or not all(isinstance(each, list) for each in lists):
            return {name: merged(each) for name, each in value.items()}
        added = [
            {"key": key, "operator": operator, "values": [labels[key]]}
            for keys, operator in zip(lists, ("In", "NotIn"), strict=True)
            for key in keys
            if isinstance(key, str) and key in labels
        ]
        expressions = [*(selector.get("matchExpressions") or ()), *added]
        return {**value, "labelSelector": {**selector, "matchExpressions": expressions}}

    return {**spec, "affinity": merged(spec["affinity"])} if spec.get("affinity") else spec


def _labelled(template: Json, labels: Mapping[str, str]) -> Json:
    metadata = template.get("metadata") if isinstance(template.get("metadata"), dict) else {}
    assert isinstance(metadata, dict)
    return {**template, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **labels}}}


def _part(holder: Json, name: str, path: str) -> Json:
    if holder.get(name) is None:
        raise InvalidField(f"{path}.{name}" if ":" in path else f"{path}: {name}", "is missing; give it")
    return _mapping(holder[name], f"{path}.{name}" if ":" in path else f"{path}: {name}")


def _mapping(value: object, path: str) -> Json:
    if not isinstance(value, dict):
        raise InvalidField(path, "is not a mapping; give one")
    return value


def _encoded(value: Json) -> bytes:
    return msgspec.json.encode(value)

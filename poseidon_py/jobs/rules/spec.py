"""The specification of a Job, with defaults, validated. Each error names the field and the remedy.

Only what the controller needs is decoded; pod templates stay as they are.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Raw, Struct

from poseidon_py.jobs.rules.annotations import Extensions, read_extensions
from poseidon_py.jobs.rules.policies import Policy
from poseidon_py.jobs.rules.policy_fields import PolicyFields, read_policies
from poseidon_py.kube.objects import InvalidField
from poseidon_py.util.decoding import MalformedError, decode_json

DEFAULT_QUEUE = "default"
DEFAULT_MAX_RETRY = 3
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_POD_NAME_LENGTH = 63
"""Also the length of a host name and of the value of a label."""
_MAX_REPLICAS = 100_000
PLUGINS = ("env", "svc")

Json = dict[str, Any]


class _DependsOn(Struct):
    name: list[str] | None = None
    iteration: str | None = None


class _Partitions(Struct, rename="camel"):
    total_partitions: int = 0
    partition_size: int = 0
    min_partitions: int | None = None


class _Task(Struct, rename="camel"):
    name: str | None = None
    replicas: int | None = None
    min_available: int | None = None
    template: Json | None = None
    policies: list[PolicyFields] | None = None
    max_retry: int | None = None
    depends_on: _DependsOn | None = None
    partition_policy: _Partitions | None = None
    topology_policy: str | None = None


class _Volume(Struct, rename="camel"):
    mount_path: str = ""
    volume_claim_name: str | None = None
    volume_claim: Json | None = None


class _Job(Struct, rename="camel"):
    scheduler_name: str | None = None
    min_available: int | None = None
    volumes: list[_Volume] | None = None
    tasks: list[_Task] | None = None
    policies: list[PolicyFields] | None = None
    plugins: dict[str, list[str] | None] | None = None
    queue: str | None = None
    max_retry: int | None = None
    ttl: int | None = msgspec.field(default=None, name="ttlSecondsAfterFinished")
    priority_class: str | None = msgspec.field(default=None, name="priorityClassName")
    min_success: int | None = None
    network_topology: Json | None = None


@dataclass(frozen=True)
class Task:
    """A role of a job: `replicas` pods of one template."""

    name: str
    replicas: int
    min_available: int
    template: Json
    policies: tuple[Policy, ...] = ()
    max_retry: int = DEFAULT_MAX_RETRY
    """Restarts of containers after which the task has failed; -1: no limit."""
    depends_on: tuple[str, ...] = ()
    depends_on_any: bool = False
    partition_size: int = 0
    """Pods per partition; 0: the task has none."""
    topology_policy: str = ""


@dataclass(frozen=True)
class Volume:
    """A volume that is mounted in all containers. `claim`: the specification of a claim to create; None: it exists."""

    mount_path: str
    claim_name: str
    claim: Json | None = None


@dataclass(frozen=True)
class JobSpec:
    """A valid specification."""

    tasks: tuple[Task, ...]
    min_available: int
    policies: tuple[Policy, ...] = ()
    max_retry: int = DEFAULT_MAX_RETRY
    """The job has failed when its retries reach this."""
    min_success: int | None = None
    ttl: int | None = None
    """Seconds after its end after which the job is deleted; None: never."""
    queue: str = DEFAULT_QUEUE
    scheduler_name: str = ""
    priority_class: str = ""
    plugins: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    volumes: tuple[Volume, ...] = ()
    network_topology: Json | None = None
    extensions: Extensions = Extensions()  # noqa: RUF009 (it is frozen)

    @property
    def replicas(self) -> int:
        return sum(task.replicas for task in self.tasks)

    def task(self, name: str) -> Task | None:
        return next((task for task in self.tasks if task.name == name), None)


def read_spec(job_name: str, raw: Raw, annotations: Mapping[str, str]) -> JobSpec:
    """The specification of the job with this name. Raises InvalidField."""
    try:
        found: _Job = decode_json(bytes(raw) or b"{}", _Job, "spec")
    except MalformedError as error:
        raise InvalidField(*_located(error.reason)) from error
    if not found.tasks:
        raise InvalidField("spec.tasks", "is empty; give at least one task")
    tasks = tuple(_task(job_name, at, task) for at, task in enumerate(found.tasks))
    names = [task.name for task in tasks]
    for at, name in enumerate(names):
        if name in names[:at]:
            raise InvalidField(f"spec.tasks[{at}].name", f"{name!r} is the name of another task; give each its own")
    _check_dependencies(tasks)
    policies = read_policies(found.policies, "spec.policies")
    extensions = read_extensions(annotations, names)
    total = sum(task.replicas for task in tasks)
    minimum = _number(found.min_available, "spec.minAvailable", 0) or sum(task.min_available for task in tasks)
    if minimum > total:
        raise InvalidField("spec.minAvailable", f"is {minimum}, and all tasks have {total} replicas; give at most that")
    retries = _number(found.max_retry, "spec.maxRetry", 0) or DEFAULT_MAX_RETRY
    retry = extensions.retry
    if retry is not None and retry.max_retry_count is not None:
        retries = retry.max_retry_count + 1  # the retry that reaches the limit of Volcano's field fails
    return JobSpec(
        tasks,
        minimum,
        policies + extensions.policies,
        retries,
        _number(found.min_success, "spec.minSuccess", 1),
        _number(found.ttl, "spec.ttlSecondsAfterFinished", 0),
        found.queue or DEFAULT_QUEUE,
        found.scheduler_name or "",
        found.priority_class or "",
        _plugins(found.plugins or {}),
        tuple(_volume(job_name, at, each) for at, each in enumerate(found.volumes or ())),
        found.network_topology,
        extensions,
    )


def _located(reason: str) -> tuple[str, str]:
    """Path and reason of msgspec's error, which has the path at its end."""
    text, found, path = reason.rpartition(" - at `$")
    return (f"spec{path.rstrip('`')}", f"{text[:1].lower()}{text[1:]}") if found else ("spec", reason)


def _task(job_name: str, at: int, found: _Task) -> Task:
    path = f"spec.tasks[{at}]"
    name = found.name or f"default{at}"
    if not _NAME.fullmatch(name):
        raise InvalidField(f"{path}.name", f"{name!r} is not valid; give lower-case letters, digits and -")
    replicas = _number(found.replicas, f"{path}.replicas", 0, _MAX_REPLICAS) or 0
    longest = f"{job_name}-{name}-{max(replicas - 1, 0)}"
    if len(longest) > _POD_NAME_LENGTH:
        raise InvalidField(
            f"{path}.name",
            f"a pod would be called {longest!r}, which is longer than {_POD_NAME_LENGTH} characters; give the job or "
            "the task a shorter name",
        )
    size, minimum = 0, replicas
    if found.partition_policy is not None:
        size, minimum = _partitions(found.partition_policy, replicas, f"{path}.partitionPolicy")
    stated = _number(found.min_available, f"{path}.minAvailable", 0)
    minimum = stated if stated is not None else minimum
    if minimum > replicas:
        raise InvalidField(f"{path}.minAvailable", f"is {minimum}, with {replicas} replicas; give at most that")
    template = found.template or {}
    containers = (template.get("spec") or {}).get("containers")
    if not isinstance(containers, list) or not containers:
        raise InvalidField(f"{path}.template.spec.containers", "is empty; give at least one container")
    depends = found.depends_on or _DependsOn()
    if depends.iteration not in (None, "", "any", "all"):
        raise InvalidField(f"{path}.dependsOn.iteration", f"is {depends.iteration!r}; give any or all")
    return Task(
        name,
        replicas,
        minimum,
        template,
        read_policies(found.policies, f"{path}.policies"),
        _number(found.max_retry, f"{path}.maxRetry", -1) or DEFAULT_MAX_RETRY,
        tuple(depends.name or ()),
        depends.iteration == "any",
        size,
        found.topology_policy or "",
    )


def _partitions(found: _Partitions, replicas: int, path: str) -> tuple[int, int]:
    """Pods per partition, and the minimum of pods of the task."""
    size = _number(found.partition_size, f"{path}.partitionSize", 1) or 0
    total = _number(found.total_partitions, f"{path}.totalPartitions", 1) or 0
    if size * total != replicas:
        raise InvalidField(
            path, f"{total} partitions of {size} pods are not the {replicas} replicas of the task; make them equal"
        )
    minimum = _number(found.min_partitions, f"{path}.minPartitions", 0, total) or 0
    return size, minimum * size or replicas


def _check_dependencies(tasks: Sequence[Task]) -> None:
    position = {task.name: at for at, task in enumerate(tasks)}
    for at, task in enumerate(tasks):
        for name in task.depends_on:
            if name not in position or name == task.name:
                raise InvalidField(f"spec.tasks[{at}].dependsOn.name", f"{name!r} is no other task of the job")
    remaining = {task.name: set(task.depends_on) for task in tasks}
    while free := [name for name, needs in remaining.items() if not needs & remaining.keys()]:
        for name in free:
            del remaining[name]
    if remaining:
        at = position[next(iter(remaining))]
        raise InvalidField(
            f"spec.tasks[{at}].dependsOn",
            f"the tasks {', '.join(remaining)} wait for each other; remove one of them",
        )


def _plugins(found: Mapping[str, list[str] | None]) -> dict[str, tuple[str, ...]]:
    for name in found:
        if name not in PLUGINS:
            raise InvalidField(
                f"spec.plugins[{name}]",
                f"is not supported by this controller; remove it, or use Volcano's controller. Supported: "
                f"{', '.join(PLUGINS)}",
            )
    return {name: tuple(arguments or ()) for name, arguments in found.items()}


def _volume(job_name: str, at: int, found: _Volume) -> Volume:
    path = f"spec.volumes[{at}]"
    if not found.mount_path or ":" in found.mount_path:
        raise InvalidField(f"{path}.mountPath", f"is {found.mount_path!r}; give a path without colons")
    if bool(found.volume_claim_name) == (found.volume_claim is not None):
        raise InvalidField(path, "give either volumeClaimName, of an existing claim, or volumeClaim, to create one")
    return Volume(found.mount_path, found.volume_claim_name or f"{job_name}-pvc-{at}", found.volume_claim)


def _number(value: int | None, path: str, least: int, greatest: int = 2**31 - 1) -> int | None:
    if value is not None and not least <= value <= greatest:
        raise InvalidField(path, f"is {value}; give a whole number from {least} to {greatest}")
    return value

"""Decodes PodGroups and owners to the fields that the conventions read."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Raw, Struct, field

from poseidon_py.kube.objects import NOTHING, InvalidField, Metadata, micros
from poseidon_py.kube.queue_objects.keys import queue_labels
from poseidon_py.state.gangs.by_owner import (
    JOB_SETS,
    JOBS,
    OWNERS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
)
from poseidon_py.state.gangs.keys import controller, mentions_gangs, pick
from poseidon_py.state.gangs.model import OwnerOrGroup, Resource
from poseidon_py.util.decoding import MalformedError, decode_json

_OWNERS = frozenset(OWNERS.values())
_SPREAD = (REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS)
"""Owners whose pods are spread by default."""


class Item(Struct):
    """An object of any kind, with spec and status undecoded."""

    metadata: Metadata = field(default_factory=Metadata)
    spec: Raw = NOTHING
    status: Raw = NOTHING


class _Counts(Struct):
    """The spec of an owner of pods."""

    replicas: int | None = None
    selector: Raw = NOTHING
    parallelism: int | None = None
    completions: int | None = None


class _Progress(Struct):
    succeeded: int | None = None


class _Template(Struct):
    spec: _Counts = field(default_factory=_Counts)


class _ReplicatedJob(Struct):
    name: str
    replicas: int | None = None
    template: _Template = field(default_factory=_Template)


class _JobSet(Struct):
    jobs: list[_ReplicatedJob] | None = field(default=None, name="replicatedJobs")


def owner_or_group_of(resource: Resource, item: Item) -> OwnerOrGroup:
    """An object, reduced to what the conventions read. Raises InvalidField."""
    metadata = item.metadata
    annotations = pick(metadata.annotations, "metadata.annotations") if mentions_gangs(metadata.annotations) else {}
    size: int | None = None
    left: int | None = None
    roles: tuple[tuple[str, int], ...] = ()
    spec: dict[str, object] = {}
    selector = b""
    if resource == JOBS:
        size, left = _job(item)
    elif resource == JOB_SETS:
        roles = tuple(
            (each.name, (1 if each.replicas is None else each.replicas) * _of_job(each.template.spec))
            for each in _decode(item.spec, _JobSet, "spec").jobs or ()
        )
        size = sum(count for _, count in roles)
    elif resource in _OWNERS:
        counts = _decode(item.spec, _Counts, "spec")
        size = 1 if counts.replicas is None else counts.replicas
        if resource in _SPREAD:
            selector = bytes(counts.selector)
    else:
        spec = _decode(item.spec, dict[str, Any], "spec")
    return OwnerOrGroup(
        metadata.uid,
        metadata.namespace,
        metadata.name,
        micros(metadata.created),
        annotations,
        controller(metadata.owners),
        spec,
        size=size,
        left=left,
        roles=roles,
        version=metadata.resource_version,
        selector=selector,
        queue_labels=queue_labels(metadata.labels),
    )


def _job(item: Item) -> tuple[int, int | None]:
    counts = _decode(item.spec, _Counts, "spec")
    if counts.completions is None:
        return _of_job(counts), None
    done = _decode(item.status, _Progress, "status").succeeded or 0
    return _of_job(counts), max(counts.completions - done, 0)


def _of_job(counts: _Counts) -> int:
    """Number of pods that a Job runs at the same time at its start."""
    parallelism = 1 if counts.parallelism is None else counts.parallelism
    return parallelism if counts.completions is None else min(parallelism, counts.completions)


def _decode(raw: Raw, kind: Callable[..., Any], path: str) -> Any:
    data = bytes(raw)
    try:
        return decode_json(data if data and data != b"null" else b"{}", kind, path)
    except MalformedError as error:
        raise InvalidField(path, error.reason) from error


def same(one: OwnerOrGroup | None, other: OwnerOrGroup) -> bool:
    """Whether the two are equal in everything that conventions read."""
    return one is not None and _content(one) == _content(other)


def _content(owner_or_group: OwnerOrGroup) -> tuple[object, ...]:
    spec: Mapping[str, object] = owner_or_group.spec
    return (
        owner_or_group.uid,
        owner_or_group.created_us,
        owner_or_group.annotations,
        owner_or_group.owner,
        spec,
        owner_or_group.size,
        owner_or_group.left,
        owner_or_group.roles,
        owner_or_group.queue_labels,
    )

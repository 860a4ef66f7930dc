"""Decodes PodGroups and owners to the fields that the conventions read."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from msgspec import Meta, Raw, Struct, field

from poseidon_py.conventions import group_keys as m
from poseidon_py.conventions.fields import Remarks, remarks_on
from poseidon_py.conventions.keys import remarks_on_object
from poseidon_py.conventions.table import kind_table
from poseidon_py.describe.annotations.class_terms import ClassTerms, class_terms
from poseidon_py.kube.objects import NOTHING, InvalidField, Metadata, micros
from poseidon_py.kube.queue_objects.keys import queue_annotations, queue_labels
from poseidon_py.kube.workload_objects import limit_of, suspension_of
from poseidon_py.state.gangs.by_owner import (
    JOB_SETS,
    OWNERS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
)
from poseidon_py.state.gangs.by_pod_group import GROUP_KINDS, PRIORITY_CLASSES
from poseidon_py.state.gangs.keys import controller, mentions_gangs, pick
from poseidon_py.state.gangs.model import Counts, OwnerOrGroup, Resource
from poseidon_py.state.gangs.owner_kinds import RAY_CLUSTERS, counts_of
from poseidon_py.util.decoding import MalformedError, decode_json

_OWNERS = frozenset(OWNERS.values())
_SPREAD = (REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS)
"""Owners whose pods are spread by default."""
_Priority = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]


class Item(Struct):
    """An object of any kind, with spec and status undecoded."""

    metadata: Metadata = field(default_factory=Metadata)
    spec: Raw = NOTHING
    status: Raw = NOTHING
    value: Raw = NOTHING
    """Of a PriorityClass."""
    is_default: Raw = field(default=NOTHING, name="globalDefault")


class _Replicas(Struct):
    """The spec of an owner that keeps a number of equal pods."""

    replicas: int | None = None
    selector: Raw = NOTHING


class _Status(Struct):
    phase: object = None


def owner_or_group_of(
    resource: Resource, item: Item, *, metadata_only: bool = False, problem: str = ""
) -> OwnerOrGroup:
    """An object, reduced to what the conventions read. `metadata_only`: its kind is one that no convention knows, or
    its spec cannot be read because of a `problem`. Raises InvalidField."""
    metadata = item.metadata
    annotations = pick(metadata.annotations, "metadata.annotations") if mentions_gangs(metadata.annotations) else {}
    if resource == RAY_CLUSTERS and mentions_gangs(metadata.labels):
        labels = pick(metadata.labels, "metadata.labels")
        annotations |= {key: value for key, value in labels.items() if key == m.RAY_GANG}
    counts = (
        Counts(problem=problem)
        if metadata_only
        else counts_of(
            resource,
            lambda kind: _decode(item.spec, kind, "spec"),
            lambda kind: _decode(item.status, kind, "status"),
            exclusive=resource == JOB_SETS and _has_exclusive_jobs(metadata),
        )
    )
    spec: dict[str, object] = {}
    selector, phase = b"", ""
    problems: tuple[str, ...] = ()
    if counts is None and resource in _OWNERS:
        replicas = _decode(item.spec, _Replicas, "spec")
        counts = Counts(1 if replicas.replicas is None else replicas.replicas)
        if resource in _SPREAD:
            selector = bytes(replicas.selector)
    elif resource == PRIORITY_CLASSES:
        terms, problems = class_terms(metadata)
        spec = {"value": _decode(item.value, _Priority, "value"), "default": bytes(item.is_default) == b"true"}
        spec["preemption"] = terms
    elif counts is None:
        spec = _decode(item.spec, dict[str, Any], "spec")
        phase = _phase(item.status)
    return OwnerOrGroup(
        metadata.uid,
        metadata.namespace,
        metadata.name,
        micros(metadata.created),
        annotations,
        controller(metadata.owners),
        spec,
        counts=counts or Counts(),
        phase=phase,
        version=metadata.resource_version,
        selector=selector,
        queue_labels=queue_labels(metadata.labels),
        queue_annotations=queue_annotations(metadata.annotations),
        remarks=_remarks(resource, metadata, spec, problems),
        suspension=None if metadata_only else suspension_of(resource.group, resource.plural, metadata, item.spec),
        time_limit=limit_of(metadata.labels),
        resource=resource,
    )


def _has_exclusive_jobs(metadata: Metadata) -> bool:
    """Whether annotations of a JobSet, which its controller copies, give each of its Jobs a domain for itself."""
    if m.JOBSET_EXCLUSIVE.encode() not in bytes(metadata.annotations):
        return False
    annotations = pick(metadata.annotations, "metadata.annotations")
    return m.JOBSET_EXCLUSIVE in annotations and m.JOBSET_SELECTED not in annotations


def preemption_of(priority_class: OwnerOrGroup) -> ClassTerms:
    """What a PriorityClass says about the preemption of its pods."""
    found = priority_class.spec["preemption"]
    assert isinstance(found, ClassTerms)
    return found


def _phase(status: Raw) -> str:
    """Empty if there is none that can be read."""
    try:
        found = _decode(status, _Status, "status").phase
    except InvalidField:
        return ""
    return found if isinstance(found, str) else ""


def _remarks(resource: Resource, metadata: Metadata, spec: Mapping[str, object], problems: tuple[str, ...]) -> Remarks:
    """What is said of an object. `spec`: that of a PodGroup; those of owners are their controllers'. `problems`: of its
    annotations."""
    keys = remarks_on_object(bytes(metadata.labels), bytes(metadata.annotations))
    keys = Remarks(problems + keys.reported, keys.refused) if problems else keys
    named = GROUP_KINDS.get(resource.plural)
    kind = kind_table(resource.group, named) if spec and named is not None else None
    if kind is None:
        return keys
    fields = remarks_on(kind, {"spec": spec})
    return Remarks(fields.reported + keys.reported, fields.refused + keys.refused)


def _decode(raw: Raw, kind: Callable[..., Any], path: str) -> Any:
    data = bytes(raw)
    try:
        return decode_json(data if data and data != b"null" else b"{}", kind, path)
    except MalformedError as error:
        raise InvalidField(path, error.reason) from error


def same(one: OwnerOrGroup | None, other: OwnerOrGroup) -> bool:
    """Whether the two are equal in everything that conventions read.

    A phase is none of it. Nor is the selector: default spreading reads it for each pod that it describes, and of the
    kinds that have one here only a ReplicationController can change it.
    """
    return one is not None and _content(one) == _content(other)


def _content(owner_or_group: OwnerOrGroup) -> tuple[object, ...]:
    return (
        owner_or_group.uid,
        owner_or_group.created_us,
        owner_or_group.annotations,
        owner_or_group.owner,
        owner_or_group.spec,
        owner_or_group.counts,
        owner_or_group.queue_labels,
        owner_or_group.queue_annotations,
        owner_or_group.remarks,
        owner_or_group.suspension,
        owner_or_group.time_limit,
    )

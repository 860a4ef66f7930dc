"""Reads the gang-related labels, annotations and fields of a pod.

Most pods have none, and finding that out must be cheap: each key by which a pod declares a gang contains one of a few
words (`mentions_gangs`), which are searched for in the undecoded bytes first.
"""

import msgspec
from msgspec import Raw

from poseidon_py.conventions import group_keys
from poseidon_py.kube.objects import NOTHING, InvalidField, Labels, OwnerReference, Pod, decode, micros
from poseidon_py.state.gangs.model import GangHints, Owner


def is_placed_exclusively(hints: GangHints) -> bool:
    """Whether the pod is one of a group that has a topology domain for itself: its controller creates the other pods
    once the first, the leader, has a node, and confines them to the leader's domain. (LeaderWorkerSet:
    pkg/controllers/pod_controller.go; JobSet: pkg/webhooks/pod_webhook.go, unless it selects nodes itself.)"""
    annotations = hints.annotations
    of_job = group_keys.JOBSET_EXCLUSIVE in annotations and group_keys.JOBSET_SELECTED not in annotations
    return of_job or group_keys.LWS_EXCLUSIVE in annotations


def sequence_of(hints: GangHints) -> tuple[str, int]:
    """The LeaderWorkerSet whose replica the pod belongs to, and the index of the replica: the set makes them in this
    order, and removes the last first. Empty and 0: none."""
    name, index = hints.labels.get(group_keys.LWS_NAME), hints.labels.get(group_keys.LWS_INDEX, "")
    return (f"lws/{hints.namespace}/{name}", int(index)) if name and index.isdecimal() else ("", 0)


def is_leader(hints: GangHints) -> bool:
    """Whether the pod is the first of a group of a LeaderWorkerSet, or of an indexed Job."""
    indexes = (hints.annotations.get(group_keys.JOB_INDEX), hints.labels.get(group_keys.JOB_INDEX))
    return "0" in (hints.labels.get(group_keys.LWS_WORKER), *indexes)


class SchedulingGroup(msgspec.Struct):
    """spec.schedulingGroup of a pod."""

    name: str | None = msgspec.field(default=None, name="podGroupName")


def mentions_gangs(raw: Raw) -> bool:
    """Whether undecoded labels or annotations may contain a key of a convention."""
    if raw is NOTHING:
        return False
    data = bytes(raw)
    return b"group" in data or b"gang" in data or b"/podset-" in data or b"-min" in data or b"fluence" in data


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
    if marked or group_keys.JOBSET_ROLE.encode() in bytes(metadata.labels):
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
    return {key: value for key, value in (decode(raw, Labels, path) or {}).items() if key in group_keys.KEYS}


def controller(references: list[OwnerReference] | None) -> Owner | None:
    """The controller among these owner references."""
    for reference in references or ():
        if reference.controller:
            group = reference.api_version.rpartition("/")[0]
            return Owner(reference.kind, reference.name, reference.uid, group)
    return None

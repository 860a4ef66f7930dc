"""Tasks of the original contract -> events: a class, a label set, a gang if their job is one, and the task."""

import zlib
from collections.abc import Iterator, Mapping
from hashlib import blake2b

import numpy as np

from firmament_py.model.constraints import (
    NO_PEERS,
    NO_PREFERENCES,
    NodeDemand,
    Operator,
    PeerDemand,
    PreferenceSet,
    Requirement,
)
from firmament_py.model.events import (
    ClassDefined,
    Event,
    GangObserved,
    GangRemoved,
    LabelSetDefined,
    TasksObserved,
)
from firmament_py.service import firmament_affinity, messages
from firmament_py.service.calls.invalid_field import InvalidField
from firmament_py.service.firmament_amounts import amounts
from firmament_py.service.firmament_amounts import links as links_of
from firmament_py.state.cluster import ClusterState
from protos.gen import firmament_pb2 as pb

MOVABLE = "poseidon.io/movable"
"""A task with this label, "true", may be evicted in order to run on another machine."""

_SELECTOR_OPERATORS = {
    pb.LabelSelector.IN_SET: Operator.IN,
    pb.LabelSelector.NOT_IN_SET: Operator.NOT_IN,
    pb.LabelSelector.EXISTS_KEY: Operator.EXISTS,
    pb.LabelSelector.NOT_EXISTS_KEY: Operator.DOES_NOT_EXIST,
    pb.LabelSelector.GREATER_THAN: Operator.GT,
    pb.LabelSelector.LESSER_THAN: Operator.LT,
}


def task_events(
    request: pb.TaskDescription, created_us: int, state: ClusterState, *, links: bool = False
) -> Iterator[Event]:
    """The events for a waiting task, created at created_us (microseconds since the epoch) unless it has a submit time.

    links: whether its bandwidth counts. Raises InvalidField for an invalid field.
    """
    task, job = request.task_descriptor, request.job_descriptor
    affinity = task.affinity.node_affinity
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    demand = NodeDemand(
        selector=tuple(_selector(s) for s in task.label_selectors),
        affinity=(messages.affinity(getattr(affinity, required)),) if affinity.HasField(required) else (),
        tolerations=messages.tolerations(task.toleration),
    )
    requests = amounts(task.resource_request, round_up=True) | (links_of(task.resource_request) if links else {})
    # an owner that no machine avoids must not lead to a separate class
    avoided_as = task.owner_ref_uid if state.node_index.avoided(task.owner_ref_uid) else ""
    cls = _class(
        {k: v for k, v in requests.items() if v},
        demand,
        task.priority,
        _traits(task),
        firmament_affinity.peers(task),
        firmament_affinity.preferences(task, avoided_as),
    )
    yield cls
    label_set = label_set_of(task)
    yield label_set
    job_id = content_id("job", job.uuid or task.job_id)
    if 0 < task.submit_time < 2**63:
        created_us = task.submit_time
    gang = 0
    if job.is_gang_scheduling_job and 0 < job.min_number_of_tasks < 2**63:
        gang, known = job_id, state.gangs.known(job_id)
        since = min(created_us, known.created_us) if known else created_us
        yield GangObserved(gang, job.min_number_of_tasks, since, name=job.name or job.uuid)
    yield _one_task(
        task.uid,
        cls.id,
        job_id,
        created_us,
        task.name,
        gang=gang,
        label_set=label_set.id,
        movable=label_set.labels.get(MOVABLE) == "true",
    )
    if gang:
        yield GangRemoved(gang)  # the contract does not report the end of a job: the gang exists as long as its tasks


def foreign_events(info: pb.TaskInfo, uid: int, now_us: int) -> Iterator[Event]:
    """The events for a task that another scheduler runs on a machine. Raises InvalidField if it names no machine."""
    if not info.resource_id:
        raise InvalidField("resource_id", "is empty; give the UUID of the machine that the task runs on")
    requests = {
        "cpu": max(info.cpu_utilization, 0),
        "memory": max(info.mem_utilization, 0),
        "ephemeral-storage": max(info.ephemeral_storage_utilization, 0),
    }
    cls = _class({k: v for k, v in requests.items() if v}, NodeDemand(), 0)
    yield cls
    name, _, namespace = info.task_name.partition("/")  # podname/namespace in this message
    yield _one_task(uid, cls.id, uid, now_us, f"{namespace}/{name}" if namespace else name, info.resource_id)


def _one_task(
    uid: int,
    class_id: int,
    job: int,
    created_us: int,
    name: str,
    node: str = "",
    gang: int = 0,
    label_set: int = 0,
    *,
    movable: bool = False,
) -> TasksObserved:
    return TasksObserved(
        uid=np.array([uid], np.uint64),
        class_id=np.array([class_id], np.uint64),
        job_id=np.array([job], np.uint64),
        created_us=np.array([created_us], np.int64),
        node=np.array([1 if node else 0]),
        names=[name],
        nodes=(node,) if node else (),
        gang_id=np.array([gang], np.uint64),
        label_set_id=np.array([label_set], np.uint64),
        movable=np.array([movable]),
    )


def _traits(task: pb.TaskDescriptor) -> dict[str, str]:
    """A task without a known type is a sheep, as in the original."""
    types = pb.TaskDescriptor.TaskType
    kind = task.task_type if task.task_type in types.values() else pb.TaskDescriptor.SHEEP
    traits = {"interference-class": types.Name(kind).lower()}
    return traits | ({"program": task.binary} if task.binary else {})


def _selector(selector: pb.LabelSelector) -> Requirement:
    operator = _SELECTOR_OPERATORS.get(selector.type)
    if operator is None:
        raise InvalidField(f"label_selectors[{selector.key}].type", f"is {selector.type}; give a SelectorType")
    return Requirement(selector.key, operator, tuple(selector.values))


def _class(
    requests: Mapping[str, int],
    demand: NodeDemand,
    priority: int,
    traits: Mapping[str, str] | None = None,
    peers: PeerDemand = NO_PEERS,
    preferences: PreferenceSet = NO_PREFERENCES,
) -> ClassDefined:
    identity = repr((sorted(requests.items()), demand, priority, traits, peers, preferences))
    name = f"wire-{zlib.crc32(identity.encode()):08x}"
    return ClassDefined(
        content_id("class", identity), requests, demand, priority, name, peers, preferences, traits=traits or {}
    )


def label_set_of(task: pb.TaskDescriptor) -> LabelSetDefined:
    """The namespace and labels of a task."""
    namespace, labels = firmament_affinity.namespace(task), {label.key: label.value for label in task.labels}
    return LabelSetDefined(content_id("label set", repr((namespace, sorted(labels.items())))), namespace, labels)


def content_id(kind: str, text: str) -> int:
    """An id that is a hash of the content, never 0."""
    return int.from_bytes(blake2b(f"{kind}:{text}".encode(), digest_size=8).digest(), "little") | 1

"""The original FirmamentScheduler service, for the Go Poseidon and any other Firmament client.

Answers what the original answers wherever its client depends on it, and is kinder where the original crashes or
its client would exit: completing, failing or removing a known task always succeeds, whatever its node's fate.
Ids are UUIDs of the machine; PLACE names the machine's first processing unit, as the original does.

What tasks demand of each other is kept as Kubernetes means it, by labels and topology keys
(service/firmament_affinity.py).

Units on this wire (see firmament.proto): millicores; thousandths of a byte, kept here as bytes (requests are
rounded up, capacities down); a TaskInfo has bytes.
"""

import logging
import math
import zlib
from collections.abc import Iterator, Mapping
from hashlib import blake2b

import grpc
import numpy as np

from firmament_py.engine.engine import Engine
from firmament_py.model.arrays import U64
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
    NodeObserved,
    NodeRemoved,
    TasksEnded,
    TasksObserved,
    TasksRemoved,
)
from firmament_py.model.lifecycle import TaskState
from firmament_py.model.resources import LIMIT, LINKS, TASK_SLOTS
from firmament_py.policy import counts_links
from firmament_py.service import firmament_affinity, messages, usage_samples
from firmament_py.service.callers import turn
from firmament_py.service.messages import InvalidField
from firmament_py.state.cluster import ClusterState
from protos.gen import firmament_pb2 as pb
from protos.gen import firmament_pb2_grpc

log = logging.getLogger(__name__)

# the Go client takes no message above 4 MiB; a delta has at most 53 bytes, a uid 10
_MOST_DELTAS = 50_000
_MOST_UNSCHEDULED = 100_000

_SELECTOR_OPERATORS = {
    pb.LabelSelector.IN_SET: Operator.IN,
    pb.LabelSelector.NOT_IN_SET: Operator.NOT_IN,
    pb.LabelSelector.EXISTS_KEY: Operator.EXISTS,
    pb.LabelSelector.NOT_EXISTS_KEY: Operator.DOES_NOT_EXIST,
    pb.LabelSelector.GREATER_THAN: Operator.GT,
    pb.LabelSelector.LESSER_THAN: Operator.LT,
}


class WireService(firmament_pb2_grpc.FirmamentSchedulerServicer):
    """State of its own: which processing unit stands for a machine, and the tasks that AddTaskInfo told of."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._units: dict[str, list[str]] = {}  # of each machine, in the order of its tree
        self._all_units: set[str] = set()
        self._foreign: dict[str, int] = {}  # TaskInfo.task_name -> uid
        self._undelivered: dict[int, str] = {}  # uid -> machine: placements for the next replies, in order

    # -- rounds -----------------------------------------------------------------------------------------------

    def Schedule(self, request: pb.ScheduleRequest, context: grpc.ServicerContext) -> pb.SchedulingDeltas:
        engine, reply = self._engine, pb.SchedulingDeltas()
        with turn(engine, context):  # a reply that nobody reads would lose its placements
            result = engine.run_round(engine.now_us())
            state = engine.state
            if result is not None and len(result.tasks):
                uids = state.tasks.uid[result.tasks]
                machines = [state.nodes.id[row] for row in result.nodes.tolist()]
                # this client never confirms: what it is told is taken as done
                self._confirm(uids, machines)
                self._undelivered.update(zip(uids.tolist(), machines, strict=True))
            while self._undelivered and len(reply.deltas) < _MOST_DELTAS:
                uid = next(iter(self._undelivered))
                machine = self._undelivered.pop(uid)
                if self._is_on(uid, machine):
                    unit = (self._units.get(machine) or [machine])[0]
                    reply.deltas.add(task_id=uid, resource_id=unit, type=pb.SchedulingDelta.PLACE)
            waiting = state.tasks.uid[state.tasks.state == TaskState.WAITING]
            reply.unscheduled_tasks.extend(waiting[:_MOST_UNSCHEDULED].tolist())
        return reply

    def _is_on(self, uid: int, machine: str) -> bool:
        """Whether a placement still stands: the client exits when it is told of a task or machine it has removed."""
        state = self._engine.state
        task, node = state.task_row(uid), state.node_row(machine)
        return task is not None and node is not None and int(state.tasks.node[task]) == node

    def _confirm(self, uids: U64, machines: list[str], label_set: LabelSetDefined | None = None) -> None:
        """Tasks are on these machines, and of this label set, None: of the one they have."""
        state = self._engine.state
        rows = np.array([state.task_row(uid) for uid in uids.tolist()], np.int64)
        nodes, index = np.unique(machines, return_inverse=True)
        gang = state.tasks.gang[rows]
        label_sets = state.label_sets.id[state.tasks.label_set[rows]]
        if label_set is not None:
            state.apply(label_set)
            label_sets = np.full(len(uids), label_set.id, np.uint64)
        state.apply(
            TasksObserved(
                uid=uids,
                class_id=state.classes.id[state.tasks.cls[rows]],
                job_id=state.tasks.job[rows],
                created_us=state.tasks.created_us[rows],
                node=index + 1,
                names=state.tasks.name[rows].tolist(),
                nodes=tuple(nodes.tolist()),
                label_set_id=label_sets,
                gang_id=np.where(gang >= 0, state.gangs.id[gang], 0).astype(np.uint64),
                role=state.tasks.role[rows],
            )
        )

    # -- tasks ------------------------------------------------------------------------------------------------

    def TaskSubmitted(self, request: pb.TaskDescription, context: grpc.ServicerContext) -> pb.TaskSubmittedResponse:
        task = request.task_descriptor
        with self._engine.lock:
            if self._engine.state.task_row(task.uid) is not None:
                return pb.TaskSubmittedResponse(type=pb.TASK_ALREADY_SUBMITTED)
            if task.state != pb.TaskDescriptor.CREATED:
                return pb.TaskSubmittedResponse(type=pb.TASK_STATE_NOT_CREATED)
            self._observe(request, context, self._engine.now_us())
        return pb.TaskSubmittedResponse(type=pb.TASK_SUBMITTED_OK)

    def TaskUpdated(self, request: pb.TaskDescription, context: grpc.ServicerContext) -> pb.TaskUpdatedResponse:
        with self._engine.lock:
            tasks, row = self._engine.state.tasks, self._engine.state.task_row(request.task_descriptor.uid)
            if row is None:
                return pb.TaskUpdatedResponse(type=pb.TASK_NOT_FOUND)
            if tasks.state[row] == TaskState.WAITING:
                self._observe(request, context, int(tasks.created_us[row]))
            elif tasks.node[row] >= 0:  # others may look at its labels
                machine = self._engine.state.nodes.id[int(tasks.node[row])]
                self._confirm(tasks.uid[[row]], [machine], _label_set(request.task_descriptor))
        return pb.TaskUpdatedResponse(type=pb.TASK_UPDATED_OK)

    def TaskCompleted(self, request: pb.TaskUID, context: grpc.ServicerContext) -> pb.TaskCompletedResponse:
        known = self._end(TasksEnded, request)
        return pb.TaskCompletedResponse(type=pb.TASK_COMPLETED_OK if known else pb.TASK_NOT_FOUND)

    def TaskFailed(self, request: pb.TaskUID, context: grpc.ServicerContext) -> pb.TaskFailedResponse:
        known = self._end(TasksEnded, request)
        return pb.TaskFailedResponse(type=pb.TASK_FAILED_OK if known else pb.TASK_NOT_FOUND)

    def TaskRemoved(self, request: pb.TaskUID, context: grpc.ServicerContext) -> pb.TaskRemovedResponse:
        known = self._end(TasksRemoved, request)
        return pb.TaskRemovedResponse(type=pb.TASK_REMOVED_OK if known else pb.TASK_NOT_FOUND)

    def _end(self, event: type[TasksEnded] | type[TasksRemoved], request: pb.TaskUID) -> bool:
        with self._engine.lock:
            return not self._engine.state.apply(event(np.array([request.task_uid], np.uint64))).unknown

    def _observe(self, request: pb.TaskDescription, context: grpc.ServicerContext, created_us: int) -> None:
        """Takes in a waiting task, created at created_us if it does not say so itself.

        Aborts the call with INVALID_ARGUMENT if the description makes no sense."""
        try:
            messages.require(request, "task_descriptor", "job_descriptor")
            links = counts_links(self._engine.policy)
            self._carry_out(_task_events(request, created_us, self._engine.state, links=links))
        except InvalidField as problem:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"task {request.task_descriptor.uid}: {problem}")

    def _carry_out(self, events: Iterator[Event]) -> None:
        for refusal in self._engine.apply(events).refused:
            raise InvalidField(refusal.field, refusal.reason)

    # -- nodes ------------------------------------------------------------------------------------------------

    def NodeAdded(
        self, request: pb.ResourceTopologyNodeDescriptor, context: grpc.ServicerContext
    ) -> pb.NodeAddedResponse:
        with self._engine.lock:
            node_row, units = self._engine.state.node_row, self._all_units
            if any(node_row(part.uuid) is not None or part.uuid in units for part in _tree(request)):
                return pb.NodeAddedResponse(type=pb.NODE_ALREADY_EXISTS)
            self._observe_node(request, context)
        return pb.NodeAddedResponse(type=pb.NODE_ADDED_OK)

    def NodeUpdated(
        self, request: pb.ResourceTopologyNodeDescriptor, context: grpc.ServicerContext
    ) -> pb.NodeUpdatedResponse:
        with self._engine.lock:
            if self._engine.state.node_row(request.resource_desc.uuid) is None:
                return pb.NodeUpdatedResponse(type=pb.NODE_NOT_FOUND)
            self._observe_node(request, context)
        return pb.NodeUpdatedResponse(type=pb.NODE_UPDATED_OK)

    def NodeFailed(self, request: pb.ResourceUID, context: grpc.ServicerContext) -> pb.NodeFailedResponse:
        known = self._remove_node(request)
        return pb.NodeFailedResponse(type=pb.NODE_FAILED_OK if known else pb.NODE_NOT_FOUND)

    def NodeRemoved(self, request: pb.ResourceUID, context: grpc.ServicerContext) -> pb.NodeRemovedResponse:
        known = self._remove_node(request)
        return pb.NodeRemovedResponse(type=pb.NODE_REMOVED_OK if known else pb.NODE_NOT_FOUND)

    def _remove_node(self, request: pb.ResourceUID) -> bool:
        with self._engine.lock:
            self._all_units.difference_update(self._units.pop(request.resource_uid, ()))
            return not self._engine.state.apply(NodeRemoved(request.resource_uid)).unknown

    def _observe_node(self, request: pb.ResourceTopologyNodeDescriptor, context: grpc.ServicerContext) -> None:
        """Takes in a machine; aborts the call with INVALID_ARGUMENT if the description makes no sense."""
        machine = request.resource_desc
        try:
            self._carry_out(iter([_node_event(request, links=counts_links(self._engine.policy))]))
        except InvalidField as problem:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"node {machine.friendly_name}: {problem}")
        units = [part.uuid for part in _tree(request) if part.type == pb.ResourceDescriptor.RESOURCE_PU]
        if units or machine.uuid not in self._units:  # an update may leave them out
            self._all_units.difference_update(self._units.get(machine.uuid, ()))
            self._units[machine.uuid] = units
            self._all_units.update(units)

    # -- statistics and tasks of others -----------------------------------------------------------------------

    def AddTaskStats(self, request: pb.TaskStats, context: grpc.ServicerContext) -> pb.TaskStatsResponse:
        engine = self._engine
        with turn(engine, context):
            row, now_us = engine.state.task_row(request.task_id), engine.now_us()
            if row is None:
                return pb.TaskStatsResponse(type=pb.TASK_NOT_FOUND)
            sample = (usage_samples.micros(request.timestamp, now_us), usage_samples.of_pod(request))
            engine.usage.note_tasks(engine.state, *usage_samples.columns([row], [sample]), now_us)
        return pb.TaskStatsResponse(type=pb.TASK_COMPLETED_OK)

    def AddNodeStats(self, request: pb.ResourceStats, context: grpc.ServicerContext) -> pb.ResourceStatsResponse:
        engine = self._engine
        with turn(engine, context):
            row, now_us = engine.state.node_row(request.resource_id), engine.now_us()
            if row is None:
                return pb.ResourceStatsResponse(type=pb.NODE_NOT_FOUND)
            shares = usage_samples.of_machine(request, engine.state.offered(row))
            sample = (usage_samples.micros(request.timestamp, now_us), shares)
            engine.usage.note_nodes(engine.state, *usage_samples.columns([row], [sample]), now_us)
        return pb.ResourceStatsResponse(type=pb.NODE_ADDED_OK)

    def AddTaskInfo(self, request: pb.TaskInfo, context: grpc.ServicerContext) -> pb.TaskInfoResponse:
        with self._engine.lock:
            if request.type == pb.TASKINFO_REMOVE:
                uid = self._foreign.pop(request.task_name, None)
                if uid is None:
                    return pb.TaskInfoResponse(type=pb.TASKINFO_REMOVE_FAILED)
                self._engine.apply([TasksRemoved(np.array([uid], np.uint64))])
                return pb.TaskInfoResponse(type=pb.TASKINFO_REMOVED_OK)
            if request.task_name in self._foreign:
                return pb.TaskInfoResponse(type=pb.TASKINFO_SUBMIT_FAILED)
            uid = _hash("foreign", request.task_name)
            try:
                self._carry_out(_foreign_events(request, uid, self._engine.now_us()))
            except InvalidField as problem:
                log.warning("task %s of another scheduler is not counted: %s", request.task_name, problem)
                return pb.TaskInfoResponse(type=pb.TASKINFO_SUBMIT_FAILED)
            self._foreign[request.task_name] = uid
            return pb.TaskInfoResponse(type=pb.TASKINFO_SUBMITTED_OK)

    def Check(self, request: pb.HealthCheckRequest, context: grpc.ServicerContext) -> pb.HealthCheckResponse:
        # asked of the service as a whole only, as the original does
        return pb.HealthCheckResponse(status=pb.UNKNOWN if request.grpc_service else pb.SERVING)


def _task_events(
    request: pb.TaskDescription, created_us: int, state: ClusterState, *, links: bool = False
) -> Iterator[Event]:
    task, job = request.task_descriptor, request.job_descriptor
    affinity = task.affinity.node_affinity
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    demand = NodeDemand(
        selector=tuple(_selector(s) for s in task.label_selectors),
        affinity=(messages.affinity(getattr(affinity, required)),) if affinity.HasField(required) else (),
        tolerations=messages.tolerations(task.toleration),
    )
    amounts = _amounts(task.resource_request, round_up=True) | (_links(task.resource_request) if links else {})
    # classes are not told apart by an owner that no machine speaks of
    avoided_as = task.owner_ref_uid if state.node_index.avoided(task.owner_ref_uid) else ""
    cls = _class(
        {k: v for k, v in amounts.items() if v},
        demand,
        task.priority,
        _traits(task),
        firmament_affinity.peers(task),
        firmament_affinity.preferences(task, avoided_as),
    )
    yield cls
    label_set = _label_set(task)
    yield label_set
    job_id = _hash("job", job.uuid or task.job_id)
    if 0 < task.submit_time < 2**63:
        created_us = task.submit_time
    gang = 0
    if job.is_gang_scheduling_job and 0 < job.min_number_of_tasks < 2**63:
        gang, known = job_id, state.gangs.known(job_id)
        since = min(created_us, known.created_us) if known else created_us
        yield GangObserved(gang, job.min_number_of_tasks, since, name=job.name or job.uuid)
    yield _one_task(task.uid, cls.id, job_id, created_us, task.name, gang=gang, label_set=label_set.id)
    if gang:
        yield GangRemoved(gang)  # nobody tells when the job is over: it lives as long as its tasks


def _foreign_events(info: pb.TaskInfo, uid: int, now_us: int) -> Iterator[Event]:
    if not info.resource_id:
        raise InvalidField("resource_id", "is empty; give the UUID of the machine that the task runs on")
    requests = {
        "cpu": max(info.cpu_utilization, 0),
        "memory": max(info.mem_utilization, 0),
        "ephemeral-storage": max(info.ephemeral_storage_utilization, 0),
    }
    cls = _class({k: v for k, v in requests.items() if v}, NodeDemand(), 0)
    yield cls
    name, _, namespace = info.task_name.partition("/")  # in this message the other way round
    yield _one_task(uid, cls.id, uid, now_us, f"{namespace}/{name}" if namespace else name, info.resource_id)


def _one_task(
    uid: int, class_id: int, job: int, created_us: int, name: str, node: str = "", gang: int = 0, label_set: int = 0
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
    )


def _traits(task: pb.TaskDescriptor) -> dict[str, str]:
    """Whoever says nothing of its type, or something unheard of, is a sheep, as in the original."""
    types = pb.TaskDescriptor.TaskType
    kind = task.task_type if task.task_type in types.values() else pb.TaskDescriptor.SHEEP
    traits = {"interference-class": types.Name(kind).lower()}
    return traits | ({"program": task.binary} if task.binary else {})


def _links(vector: pb.ResourceVector) -> dict[str, int]:
    """What a task asks of its node's links, or what a node has; 0, which says nothing, is left out."""
    said = zip(LINKS, (vector.net_rx_bw, vector.net_tx_bw), strict=True)
    return {link: min(amount, LIMIT) for link, amount in said if amount}


def _tree(node: pb.ResourceTopologyNodeDescriptor) -> Iterator[pb.ResourceDescriptor]:
    """A machine and all its parts, from the top."""
    yield node.resource_desc
    for child in node.children:
        yield from _tree(child)


def _node_event(request: pb.ResourceTopologyNodeDescriptor, *, links: bool = False) -> NodeObserved:
    machine = request.resource_desc
    if not machine.uuid:
        raise InvalidField("resource_desc.uuid", "is empty; give the machine's UUID")
    name = machine.friendly_name or machine.uuid
    available = machine.available_resources if machine.HasField("available_resources") else machine.resource_capacity
    return NodeObserved(
        id=machine.uuid,
        name=name,
        allocatable={
            **_amounts(available, round_up=False),
            **(_links(available) if links else {}),
            TASK_SLOTS: machine.max_pods,
        },
        labels={firmament_affinity.HOST: name, **{label.key: label.value for label in machine.labels}},
        taints=messages.taints(machine.taints),
        avoids=frozenset(item.uid for item in machine.avoids if item.uid),
    )


def _amounts(vector: pb.ResourceVector, *, round_up: bool) -> dict[str, int]:
    cpu = vector.cpu_cores
    if not math.isfinite(cpu) or cpu < 0:
        raise InvalidField("cpu_cores", f"is {cpu}; give millicores, 0 or more")
    whole = math.ceil if round_up else math.floor
    thousandths = {"memory": vector.ram_cap, "ephemeral-storage": vector.ephemeral_cap}
    return {
        "cpu": min(whole(cpu), LIMIT),
        **{name: -(-amount // 1000) if round_up else amount // 1000 for name, amount in thousandths.items()},
    }


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
        _hash("class", identity), requests, demand, priority, name, peers, preferences, traits=traits or {}
    )


def _label_set(task: pb.TaskDescriptor) -> LabelSetDefined:
    namespace, labels = firmament_affinity.namespace(task), {label.key: label.value for label in task.labels}
    return LabelSetDefined(_hash("label set", repr((namespace, sorted(labels.items())))), namespace, labels)


def _hash(kind: str, text: str) -> int:
    return int.from_bytes(blake2b(f"{kind}:{text}".encode(), digest_size=8).digest(), "little") | 1

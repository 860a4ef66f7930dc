"""The original FirmamentScheduler service, for the Go Poseidon and any other Firmament client.

It replies like the original wherever clients depend on that, and is more tolerant where the original crashes or its
client would exit: completing, failing or removing a known task always succeeds, whatever the state of its node. Ids are
UUIDs of the machine; PLACE names the machine's first processing unit, as in the original.
"""

import logging
from collections.abc import Iterator

import numpy as np

from firmament_py.engine.engine import Engine
from firmament_py.model.arrays import U64
from firmament_py.model.events import Event, NodeRemoved, TasksEnded, TasksRemoved
from firmament_py.model.lifecycle import WAITING
from firmament_py.policy import counts_links
from firmament_py.service import messages, usage_samples
from firmament_py.service.calls.caller import Caller
from firmament_py.service.calls.invalid_field import InvalidField, invalid_argument
from firmament_py.service.calls.locking import locked
from firmament_py.service.firmament_deltas import PendingDeltas, bind
from firmament_py.service.firmament_nodes import ProcessingUnits, node_event, tree
from firmament_py.service.firmament_tasks import content_id, foreign_events, label_set_of, task_events
from protos.gen import firmament_pb2 as pb

log = logging.getLogger(__name__)

_MAX_UNSCHEDULED = 100_000  # in one reply, besides MAX_DELTAS in 4 MiB: a uid has at most 10 bytes


class FirmamentService:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._units = ProcessingUnits()
        self._deltas = PendingDeltas()
        self._foreign: dict[str, int] = {}  # TaskInfo.task_name -> uid

    # -- rounds -----------------------------------------------------------------------------------------------

    def Schedule(self, request: pb.ScheduleRequest, caller: Caller) -> pb.SchedulingDeltas:
        engine, reply = self._engine, pb.SchedulingDeltas()
        with locked(engine, caller):  # the placements of a reply that is not read would be lost
            result = engine.run_round(engine.now_us(), original=True)
            state = engine.state
            if result is not None:
                self._deltas.add(state, result)
            self._deltas.deliver(state, self._units, reply)
            waiting = state.tasks.uid[state.tasks.state == WAITING]
            reply.unscheduled_tasks.extend(waiting[:_MAX_UNSCHEDULED].tolist())
        return reply

    # -- tasks ------------------------------------------------------------------------------------------------

    def TaskSubmitted(self, request: pb.TaskDescription, caller: Caller) -> pb.TaskSubmittedResponse:
        task = request.task_descriptor
        with self._engine.lock:
            if self._engine.state.task_row(task.uid) is not None:
                return pb.TaskSubmittedResponse(type=pb.TASK_ALREADY_SUBMITTED)
            if task.state != pb.TaskDescriptor.CREATED:
                return pb.TaskSubmittedResponse(type=pb.TASK_STATE_NOT_CREATED)
            self._observe(request, caller, self._engine.now_us())
        return pb.TaskSubmittedResponse(type=pb.TASK_SUBMITTED_OK)

    def TaskUpdated(self, request: pb.TaskDescription, caller: Caller) -> pb.TaskUpdatedResponse:
        with self._engine.lock:
            tasks, row = self._engine.state.tasks, self._engine.state.task_row(request.task_descriptor.uid)
            if row is None:
                return pb.TaskUpdatedResponse(type=pb.TASK_NOT_FOUND)
            if tasks.state[row] == WAITING:
                self._observe(request, caller, int(tasks.created_us[row]))
            elif tasks.node[row] >= 0:  # selectors of other tasks may match its new labels
                machine = self._engine.state.nodes.id[int(tasks.node[row])]
                bind(self._engine.state, tasks.uid[[row]], [machine], label_set_of(request.task_descriptor))
        return pb.TaskUpdatedResponse(type=pb.TASK_UPDATED_OK)

    def TaskCompleted(self, request: pb.TaskUID, caller: Caller) -> pb.TaskCompletedResponse:
        known = self._end(TasksEnded(_uids(request)))
        return pb.TaskCompletedResponse(type=pb.TASK_COMPLETED_OK if known else pb.TASK_NOT_FOUND)

    def TaskFailed(self, request: pb.TaskUID, caller: Caller) -> pb.TaskFailedResponse:
        known = self._end(TasksEnded(_uids(request), failed=True))
        return pb.TaskFailedResponse(type=pb.TASK_FAILED_OK if known else pb.TASK_NOT_FOUND)

    def TaskRemoved(self, request: pb.TaskUID, caller: Caller) -> pb.TaskRemovedResponse:
        known = self._end(TasksRemoved(_uids(request)))
        return pb.TaskRemovedResponse(type=pb.TASK_REMOVED_OK if known else pb.TASK_NOT_FOUND)

    def _end(self, event: TasksEnded | TasksRemoved) -> bool:
        with self._engine.lock:
            return not self._engine.state.apply(event).unknown

    def _observe(self, request: pb.TaskDescription, caller: Caller, created_us: int) -> None:
        """Adds or updates a waiting task, created at created_us unless it has a submit time."""
        with invalid_argument(f"task {request.task_descriptor.uid}"):
            messages.require(request, "task_descriptor", "job_descriptor")
            links = counts_links(self._engine.policy)
            self._apply(task_events(request, created_us, self._engine.state, links=links))

    def _apply(self, events: Iterator[Event]) -> None:
        """Applies events in order. Raises InvalidField for the first part that is refused."""
        for refusal in self._engine.apply(events).refused:
            raise InvalidField(refusal.field, refusal.reason)

    # -- nodes ------------------------------------------------------------------------------------------------

    def NodeAdded(self, request: pb.ResourceTopologyNodeDescriptor, caller: Caller) -> pb.NodeAddedResponse:
        with self._engine.lock:
            node_row = self._engine.state.node_row
            if any(node_row(part.uuid) is not None or part.uuid in self._units for part in tree(request)):
                return pb.NodeAddedResponse(type=pb.NODE_ALREADY_EXISTS)
            self._observe_node(request, caller)
        return pb.NodeAddedResponse(type=pb.NODE_ADDED_OK)

    def NodeUpdated(self, request: pb.ResourceTopologyNodeDescriptor, caller: Caller) -> pb.NodeUpdatedResponse:
        with self._engine.lock:
            if self._engine.state.node_row(request.resource_desc.uuid) is None:
                return pb.NodeUpdatedResponse(type=pb.NODE_NOT_FOUND)
            self._observe_node(request, caller)
        return pb.NodeUpdatedResponse(type=pb.NODE_UPDATED_OK)

    def NodeFailed(self, request: pb.ResourceUID, caller: Caller) -> pb.NodeFailedResponse:
        known = self._remove_node(request)
        return pb.NodeFailedResponse(type=pb.NODE_FAILED_OK if known else pb.NODE_NOT_FOUND)

    def NodeRemoved(self, request: pb.ResourceUID, caller: Caller) -> pb.NodeRemovedResponse:
        known = self._remove_node(request)
        return pb.NodeRemovedResponse(type=pb.NODE_REMOVED_OK if known else pb.NODE_NOT_FOUND)

    def _remove_node(self, request: pb.ResourceUID) -> bool:
        with self._engine.lock:
            self._units.remove(request.resource_uid)
            return not self._engine.state.apply(NodeRemoved(request.resource_uid)).unknown

    def _observe_node(self, request: pb.ResourceTopologyNodeDescriptor, caller: Caller) -> None:
        with invalid_argument(f"node {request.resource_desc.friendly_name}"):
            self._apply(iter([node_event(request, links=counts_links(self._engine.policy))]))
        self._units.set(request)

    # -- statistics and tasks of other schedulers -------------------------------------------------------------

    def AddTaskStats(self, request: pb.TaskStats, caller: Caller) -> pb.TaskStatsResponse:
        engine = self._engine
        with locked(engine, caller):
            row, now_us = engine.state.task_row(request.task_id), engine.now_us()
            if row is None:
                return pb.TaskStatsResponse(type=pb.TASK_NOT_FOUND)
            sample = (usage_samples.micros(request.timestamp, now_us), usage_samples.of_pod(request))
            engine.usage.note_tasks(engine.state, *usage_samples.columns([row], [sample]), now_us)
        return pb.TaskStatsResponse(type=pb.TASK_COMPLETED_OK)

    def AddNodeStats(self, request: pb.ResourceStats, caller: Caller) -> pb.ResourceStatsResponse:
        engine = self._engine
        with locked(engine, caller):
            row, now_us = engine.state.node_row(request.resource_id), engine.now_us()
            if row is None:
                return pb.ResourceStatsResponse(type=pb.NODE_NOT_FOUND)
            shares = usage_samples.of_machine(request, engine.state.offered(row))
            sample = (usage_samples.micros(request.timestamp, now_us), shares)
            engine.usage.note_nodes(engine.state, *usage_samples.columns([row], [sample]), now_us)
        return pb.ResourceStatsResponse(type=pb.NODE_ADDED_OK)

    def AddTaskInfo(self, request: pb.TaskInfo, caller: Caller) -> pb.TaskInfoResponse:
        with self._engine.lock:
            if request.type == pb.TASKINFO_REMOVE:
                uid = self._foreign.pop(request.task_name, None)
                if uid is None:
                    return pb.TaskInfoResponse(type=pb.TASKINFO_REMOVE_FAILED)
                self._engine.apply([TasksRemoved(np.array([uid], np.uint64))])
                return pb.TaskInfoResponse(type=pb.TASKINFO_REMOVED_OK)
            if request.task_name in self._foreign:
                return pb.TaskInfoResponse(type=pb.TASKINFO_SUBMIT_FAILED)
            uid = content_id("foreign", request.task_name)
            try:
                self._apply(foreign_events(request, uid, self._engine.now_us()))
            except InvalidField as invalid:
                log.warning("task %s of another scheduler is ignored: %s", request.task_name, invalid)
                return pb.TaskInfoResponse(type=pb.TASKINFO_SUBMIT_FAILED)
            self._foreign[request.task_name] = uid
            return pb.TaskInfoResponse(type=pb.TASKINFO_SUBMITTED_OK)

    def Check(self, request: pb.HealthCheckRequest, caller: Caller) -> pb.HealthCheckResponse:
        # as in the original, services have no health of their own
        return pb.HealthCheckResponse(status=pb.UNKNOWN if request.grpc_service else pb.SERVING)


def _uids(request: pb.TaskUID) -> U64:
    return np.array([request.task_uid], np.uint64)

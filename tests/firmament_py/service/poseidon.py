"""The Go Poseidon as seen by the service: its calls with the fields that it sets, and its fatal replies.

Poseidon exits or panics at any RPC error and at any reply but the ones expected, so every call here asserts.
"""

from dataclasses import dataclass, field
from uuid import NAMESPACE_DNS, uuid5

import grpc

from protos.gen import firmament_pb2 as pb
from protos.gen import firmament_pb2_grpc

MIB = 1 << 20


def generate_uuid(seed: str) -> str:
    """The same for the same name, also after a restart."""
    return str(uuid5(NAMESPACE_DNS, seed))


def resources(cpu: int = 0, memory: int = 0, storage: int = 0) -> pb.ResourceVector:
    """Millicores; bytes, which travel as thousandths."""
    return pb.ResourceVector(cpu_cores=cpu, ram_cap=1000 * memory, ephemeral_cap=1000 * storage)


def topology(
    name: str,
    cpu: int = 4000,
    memory: int = 1024 * MIB,
    storage: int = 0,
    pods: int = 110,
    capacity: pb.ResourceVector | None = None,
    labels: dict[str, str] | None = None,
    taints: tuple[pb.Taint, ...] = (),
) -> pb.ResourceTopologyNodeDescriptor:
    """A machine and its one processing unit, which has neither available resources nor max_pods."""
    available = resources(cpu, memory, storage)
    described = [pb.Label(key=k, value=v) for k, v in (labels or {}).items()]
    machine = pb.ResourceDescriptor(
        uuid=generate_uuid(name),
        friendly_name=name,
        state=pb.ResourceDescriptor.RESOURCE_IDLE,
        type=pb.ResourceDescriptor.RESOURCE_MACHINE,
        resource_capacity=capacity or available,
        available_resources=available,
        labels=described,
        taints=taints,
        max_pods=pods,
    )
    unit = pb.ResourceDescriptor(
        uuid=generate_uuid(f"{name}_PU #0"),
        friendly_name=f"{name}_PU #0",
        state=pb.ResourceDescriptor.RESOURCE_IDLE,
        type=pb.ResourceDescriptor.RESOURCE_PU,
        resource_capacity=capacity or available,
        labels=described,
        taints=taints,
    )
    child = pb.ResourceTopologyNodeDescriptor(resource_desc=unit, parent_id=machine.uuid)
    return pb.ResourceTopologyNodeDescriptor(resource_desc=machine, children=[child])


def description(
    uid: int,
    request: pb.ResourceVector | None = None,
    job: str = "job",
    selector: dict[str, str] | None = None,
    tolerations: tuple[pb.Toleration, ...] = (),
    affinity: pb.Affinity | None = None,
    gang_of: int = 0,
) -> pb.TaskDescription:
    """gang_of: the job is a gang with this minimum."""
    job_id = generate_uuid(job)
    task = pb.TaskDescriptor(
        uid=uid,
        name=f"default/pod-{uid}",
        namespace="default",
        state=pb.TaskDescriptor.CREATED,
        job_id=job_id,
        resource_request=request or resources(cpu=100),
        owner_ref_kind="ReplicaSet",
        owner_ref_uid=job,
        labels=[pb.Label(key="app", value=job)],
        label_selectors=[
            pb.LabelSelector(type=pb.LabelSelector.IN_SET, key=k, values=[v])
            for k, v in sorted((selector or {}).items())
        ],
        toleration=tolerations,
        affinity=affinity,
    )
    described = pb.JobDescriptor(uuid=job_id, name=job, state=pb.JobDescriptor.CREATED, root_task=task)
    if gang_of:
        described.is_gang_scheduling_job, described.min_number_of_tasks = True, gang_of
    return pb.TaskDescription(task_descriptor=task, job_descriptor=described)


@dataclass
class Poseidon:
    """Tracks the pods and nodes that replies can refer to, like its two maps."""

    stub: firmament_pb2_grpc.FirmamentSchedulerStub
    pods: dict[int, str | None] = field(default_factory=dict)  # uid -> node
    nodes: set[str] = field(default_factory=set)
    unscheduled: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, channel: grpc.Channel) -> "Poseidon":
        poseidon = cls(firmament_pb2_grpc.FirmamentSchedulerStub(channel))
        assert poseidon.stub.Check(pb.HealthCheckRequest()).status == pb.SERVING
        return poseidon

    def schedule(self) -> dict[int, str]:
        """uid -> node of each PLACE; anything else is not expected of a service that does not preempt."""
        reply = self.stub.Schedule(pb.ScheduleRequest())
        by_unit = {generate_uuid(f"{name}_PU #0"): name for name in self.nodes}
        placed = {}
        for delta in reply.deltas:
            assert delta.type == pb.SchedulingDelta.PLACE
            assert delta.task_id in self.pods, "a pod that is not in TaskIDToPod is fatal"
            assert delta.resource_id in by_unit, "a resource that is not in ResIDToNode is fatal"
            assert self.pods[delta.task_id] is None, "only changes are told"
            placed[delta.task_id] = self.pods[delta.task_id] = by_unit[delta.resource_id]
        assert len(placed) == len(reply.deltas)
        self.unscheduled = set(reply.unscheduled_tasks)
        assert self.unscheduled <= set(self.pods)
        return placed

    def submit(self, *tasks: pb.TaskDescription) -> None:
        for task in tasks:
            self.pods[task.task_descriptor.uid] = None
            assert self.stub.TaskSubmitted(task).type == pb.TASK_SUBMITTED_OK

    def update(self, task: pb.TaskDescription) -> None:
        assert self.stub.TaskUpdated(task).type == pb.TASK_UPDATED_OK

    def complete(self, *uids: int) -> None:
        for uid in uids:
            assert self.stub.TaskCompleted(pb.TaskUID(task_uid=uid)).type == pb.TASK_COMPLETED_OK

    def fail(self, *uids: int) -> None:
        for uid in uids:
            assert self.stub.TaskFailed(pb.TaskUID(task_uid=uid)).type == pb.TASK_FAILED_OK

    def remove(self, *uids: int) -> None:
        for uid in uids:
            assert self.stub.TaskRemoved(pb.TaskUID(task_uid=uid)).type == pb.TASK_REMOVED_OK
            del self.pods[uid]

    def add_node(self, *nodes: pb.ResourceTopologyNodeDescriptor) -> None:
        for node in nodes:
            self.nodes.add(node.resource_desc.friendly_name)
            assert self.stub.NodeAdded(node).type == pb.NODE_ADDED_OK

    def update_node(self, node: pb.ResourceTopologyNodeDescriptor) -> None:
        assert self.stub.NodeUpdated(node).type == pb.NODE_UPDATED_OK

    def fail_node(self, name: str) -> None:
        reply = self.stub.NodeFailed(pb.ResourceUID(resource_uid=generate_uuid(name)))
        assert reply.type == pb.NODE_FAILED_OK
        self.nodes.discard(name)

    def remove_node(self, name: str) -> None:
        reply = self.stub.NodeRemoved(pb.ResourceUID(resource_uid=generate_uuid(name)))
        assert reply.type == pb.NODE_REMOVED_OK
        self.nodes.discard(name)

    def foreign(
        self, name: str, node: str, cpu: int = 0, memory: int = 0, remove: bool = False
    ) -> pb.TaskInfoReplyType:
        """A pod of another scheduler: millicores and plain bytes here. Any reply will do."""
        info = pb.TaskInfo(
            task_name=f"{name}/default",
            resource_id=generate_uuid(node),
            cpu_utilization=cpu,
            mem_utilization=memory,
            type=pb.TASKINFO_REMOVE if remove else pb.TASKINFO_ADD,
        )
        reply: pb.TaskInfoResponse = self.stub.AddTaskInfo(info)
        return reply.type

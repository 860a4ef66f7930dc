"""The fields of Jobs, Commands, PodGroups and pods that the controller needs. See poseidon_py/kube/objects.py."""

from msgspec import Raw, Struct, field

from poseidon_py.kube.list_watch import Kind
from poseidon_py.kube.objects import NOTHING, Metadata, PodSpec


class JobObject(Struct):
    """A Job of batch.volcano.sh."""

    metadata: Metadata = field(default_factory=Metadata)
    spec: Raw = NOTHING
    status: Raw = NOTHING


class Target(Struct):
    name: str = ""
    kind: str = ""
    uid: str = ""


class Command(Struct):
    """A Command of bus.volcano.sh: an action on the job that is its target."""

    metadata: Metadata = field(default_factory=Metadata)
    action: str | None = None
    target: Target | None = None
    reason: str | None = None
    message: str | None = None


class GroupStatus(Struct):
    phase: str | None = None


class PodGroup(Struct):
    """A PodGroup of scheduling.volcano.sh."""

    metadata: Metadata = field(default_factory=Metadata)
    spec: Raw = NOTHING
    status: GroupStatus = field(default_factory=GroupStatus)


class Started(Struct):
    at: str | None = field(default=None, name="startedAt")


class Terminated(Struct):
    exit_code: int = field(default=0, name="exitCode")
    finished: str | None = field(default=None, name="finishedAt")
    started: str | None = field(default=None, name="startedAt")


class ContainerState(Struct):
    terminated: Terminated | None = None
    running: Started | None = None


class ContainerStatus(Struct):
    ready: bool | None = None
    restarts: int | None = field(default=None, name="restartCount")
    state: ContainerState | None = None
    last_state: ContainerState | None = field(default=None, name="lastState")


class ConditionTime(Struct):
    type: str = ""
    changed: str | None = field(default=None, name="lastTransitionTime")


class PodStatus(Struct):
    phase: str | None = None
    conditions: list[ConditionTime] | None = None
    containers: list[ContainerStatus] | None = field(default=None, name="containerStatuses")
    init_containers: list[ContainerStatus] | None = field(default=None, name="initContainerStatuses")


class JobPod(Struct):
    """A pod of a job."""

    metadata: Metadata = field(default_factory=Metadata)
    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)


def kinds(namespace: str) -> tuple[Kind[JobObject], Kind[JobPod], Kind[PodGroup], Kind[Command]]:
    """What is watched: in one namespace, or in all if it is empty."""
    within = f"namespaces/{namespace}/" if namespace else ""
    return (
        Kind("jobs", f"/apis/batch.volcano.sh/v1alpha1/{within}jobs", JobObject),
        Kind("pods", f"/api/v1/{within}pods", JobPod, labels="volcano.sh/job-name"),
        Kind("podgroups", f"/apis/scheduling.volcano.sh/v1beta1/{within}podgroups", PodGroup),
        Kind(
            "commands",
            f"/apis/bus.volcano.sh/v1alpha1/{within}commands",
            Command,
            without="commands on jobs are not obeyed",
        ),
    )

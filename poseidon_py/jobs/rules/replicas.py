"""One pod of a job as it was observed."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal

from poseidon_py.describe.requests import requests
from poseidon_py.jobs import names
from poseidon_py.jobs.objects import ContainerStatus, JobPod
from poseidon_py.jobs.rules.annotations import EVENT
from poseidon_py.jobs.rules.machines import ReplicaState
from poseidon_py.kube.objects import InvalidField, Pod, annotations_of
from poseidon_py.kube.quantity import CPU, PODS
from poseidon_py.util.timestamps import instant_of

_STATES = {
    "Pending": ReplicaState.PENDING,
    "Running": ReplicaState.RUNNING,
    "Succeeded": ReplicaState.SUCCEEDED,
    "Failed": ReplicaState.FAILED,
}


@dataclass(frozen=True, slots=True)
class Replica:
    """A pod that exists. Times are seconds since the epoch."""

    namespace: str
    name: str
    uid: str
    version: str
    """The resource version."""
    task: str
    index: int
    job_version: int
    phase: ReplicaState
    """PENDING, RUNNING, SUCCEEDED, FAILED or UNKNOWN, whether it is being deleted or not."""
    deleting: bool
    created: float
    ready: bool = True
    restarts: int = 0
    exit_code: int = 0
    ended: float = 0.0
    """When its last container ended; 0: unknown."""
    restart_number: int = 0
    """The retry by which it is to be deleted; 0: none."""
    evicted_at: float = 0.0
    event: str = ""
    """A custom event on it."""
    started: float = 0.0
    """When its first container started; 0: none has, or it is unknown."""
    deletion_requested: float = 0.0
    node: str = ""
    requests: tuple[tuple[str, str], ...] = ()
    """What it occupies: resources and decimal numbers, in cores, bytes or pieces."""
    job: str = ""
    """The name of its job."""
    user: str = ""
    """The user of its job when it was created; empty: none was given."""
    queue: str = ""
    readiness_changed: float = 0.0

    @property
    def state(self) -> ReplicaState:
        return ReplicaState.TERMINATING if self.deleting else self.phase

    @property
    def has_ended(self) -> bool:
        return self.phase in (ReplicaState.SUCCEEDED, ReplicaState.FAILED)

    @property
    def marked(self) -> bool:
        return self.restart_number > 0

    def being_deleted(self) -> "Replica":
        """The replica once its deletion is requested."""
        return replace(self, deleting=True)


def job_uid_of(pod: JobPod) -> str:
    """The UID of the job that controls the pod; empty: it is of no job."""
    for owner in pod.metadata.owners or ():
        if owner.controller and owner.kind == names.KIND and owner.api_version.startswith(f"{names.BATCH}/"):
            return owner.uid
    return ""


def replica_of(pod: JobPod) -> Replica:
    """Raises InvalidField."""
    meta, status = pod.metadata, pod.status
    annotations = annotations_of(meta)
    task = annotations.get(names.TASK_SPEC, "")
    if not task:
        raise InvalidField(f"metadata.annotations[{names.TASK_SPEC}]", "is missing; delete the pod, it is made anew")
    phase = _STATES.get(status.phase or "Pending", ReplicaState.UNKNOWN)
    return Replica(
        meta.namespace,
        meta.name,
        meta.uid,
        meta.resource_version,
        task,
        _whole(annotations, names.TASK_INDEX),
        _whole(annotations, names.JOB_VERSION),
        phase,
        meta.deleting is not None,
        instant_of(meta.created),
        all(each.ready for each in status.containers or ()),
        sum(each.restarts or 0 for each in (*(status.containers or ()), *(status.init_containers or ()))),
        _exit_code((*(status.containers or ()), *(status.init_containers or ()))),
        _ended(pod),
        _mark(annotations),
        _float(annotations.get(names.EVICTED_AT, "")),
        annotations.get(EVENT, ""),
        _started(pod),
        max(0.0, instant_of(meta.deleting) - (meta.grace or 0)),
        pod.spec.node_name or "",
        requests_of(pod),
        annotations.get(names.JOB_NAME, ""),
        annotations.get(names.USER, ""),
        annotations.get(names.QUEUE_NAME, ""),
        max((instant_of(each.changed) for each in status.conditions or () if each.type == "Ready"), default=0.0),
    )


def requests_of(pod: JobPod) -> tuple[tuple[str, str], ...]:
    """Resources and decimal numbers; empty if the requests cannot be read, which leaves the pod's states readable."""
    try:
        found = requests(Pod(spec=pod.spec))
    except (InvalidField, ValueError):
        return ()
    return tuple(
        (name, f"{Decimal(amount) / 1000:f}" if name == CPU else str(amount))
        for name, amount in sorted(found.items())
        if name != PODS and amount
    )


def _mark(annotations: dict[str, str]) -> int:
    """Volcano's controller writes `true`, which counts as the first retry."""
    text = annotations.get(names.OUT_OF_SYNC)
    return 0 if text is None else int(text) if text.isdecimal() and int(text) else 1


def _exit_code(statuses: Iterable[ContainerStatus]) -> int:
    """The first exit code that is not 0."""
    ends = [each.state.terminated for each in statuses if each.state and each.state.terminated]
    return next((end.exit_code for end in ends if end.exit_code), 0)


def _ended(pod: JobPod) -> float:
    ends = [each.state.terminated for each in pod.status.containers or () if each.state and each.state.terminated]
    found = [instant_of(end.finished) for end in ends if end.finished]
    found += [instant_of(each.changed) for each in pod.status.conditions or () if each.type == "Ready" and each.changed]
    return max(found, default=0.0)


def _started(pod: JobPod) -> float:
    status = pod.status
    states = [state for each in status.containers or () for state in (each.state, each.last_state) if state]
    found = [instant_of(state.running.at) for state in states if state.running]
    found += [instant_of(state.terminated.started) for state in states if state.terminated]
    return min(filter(None, found), default=0.0)


def _whole(annotations: dict[str, str], name: str) -> int:
    text = annotations.get(name, "")
    if not text.isdecimal():
        raise InvalidField(
            f"metadata.annotations[{name}]", f"{text!r} is not a whole number; delete the pod, it is made anew"
        )
    return int(text)


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0

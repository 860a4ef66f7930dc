"""Transitions with the times that the objects have, so that every process reports the same ones."""

from collections.abc import Callable, Iterator

from poseidon_py.machines.states import JobState, ReplicaState, TaskState
from poseidon_py.tracking.derivation import job_path, replica_path, task_path
from poseidon_py.tracking.records import Job, Replica, Task
from poseidon_py.tracking.transition import Observed

_J, _R = JobState, ReplicaState
_ENDS = ("Succeeded", "Failed", "Stopped")
_NOTICES = ("WillEvicted", "Privileged")


class Narration:
    """`now`: seconds since the epoch, for what objects have no time of."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now

    def of_job(self, job: Job, old: str, new: str, *, first: bool = False) -> Observed:
        """One transition of a job. `first`: it is on the way from nothing, which the job may have gone long ago."""
        return Observed(
            "job",
            old,
            new,
            job.key.namespace,
            job.key.name,
            job.key.uid,
            self._time(job, old, new, first),
            reason=job.reason if new == job.state else "",
            since=job.changed if old else 0.0,
            kind=job.key.kind,
            user=job.user,
            queue=job.queue,
            occasion=_occasion(job, old, new),
        )

    def of_task(self, task: Task, old: str, new: str, *, first: bool = False) -> Observed:
        """One transition of a task; likewise."""
        job = task.job
        return Observed(
            "task",
            old,
            new,
            job.key.namespace,
            job.key.name,
            job.key.uid,
            self._time(job, old, new, first),
            task.name,
            kind=job.key.kind,
            user=job.user,
            queue=job.queue,
        )

    def of_replica(self, uid: str, pod: Replica, old: ReplicaState, new: ReplicaState, cause: str = "") -> Observed:
        """One transition of a replica. `cause`: why it is evicted, if that is known."""
        job = pod.task.job
        return Observed(
            "replica",
            old,
            new,
            job.key.namespace,
            job.key.name,
            job.key.uid,
            _began(new, pod) or self._now(),
            pod.task.name,
            pod.name,
            uid,
            reason=(cause or pod.reason) if new == pod.state else "",
            since=_began(old, pod),
            kind=job.key.kind,
            user=job.user,
            queue=job.queue,
            node=pod.node,
            requests=pod.requests,
            occasion=_occasion_of_pod(uid, pod, old, new),
        )

    def of_all(self, job: Job) -> Iterator[Observed]:
        """From nothing to the present states: the job, its tasks, its pods."""
        ran = job.first_started > 0
        for step in job_path(_J.NEW, job.state, ran=ran):
            yield self.of_job(job, *step, first=True)
        for task in list(job.tasks.values()):  # jobs may change between two transitions
            for of_task in task_path(TaskState.NEW, task.state, ran=ran):
                yield self.of_task(task, *of_task, first=True)
            for uid, pod in list(task.replicas.items()):
                for of_pod in replica_path(_R.ABSENT, pod.state, pod):
                    yield self.of_replica(uid, pod, *of_pod)

    @staticmethod
    def reason(job: Job) -> str:
        """Why a job failed or stopped, or has or gives notice; empty: nothing is known."""
        if job.state in (_J.WILL_EVICTED, _J.PRIVILEGED):
            return job.preempted_by
        return job.failure[1] if job.state in (_J.FAILED, _J.STOPPED) else ""

    def _time(self, job: Job, old: str, new: str, first: bool) -> float:
        if new == _J.PENDING and not old:
            return job.created
        starts = new == _J.RUNNING and old in ("", _J.PENDING)
        if starts and job.first_started and (first or job.first_started >= job.changed):
            return job.first_started
        return (job.ended if new in _ENDS else 0.0) or self._now()


def _occasion(job: Job, old: str, new: str) -> str:
    """The time of a notice tells it from others; it begins when that is observed, which is not the same everywhere."""
    return f"notice {job.notice_at:.0f}" if job.notice_at and (new in _NOTICES or old in _NOTICES) else ""


def _occasion_of_pod(uid: str, pod: Replica, old: str, new: str) -> str:
    """A pod makes each transition once, but for those from and to states that it may enter again."""
    if _R.UNKNOWN in (old, new) or _R.WILL_EVICTED in (old, new):
        return ""
    return f"pod {uid}"


def _began(state: ReplicaState, pod: Replica) -> float:
    """When a pod entered a state, 0: unknown."""
    if state is _R.PENDING:
        return pod.created
    if state is _R.BOUND:
        return pod.bound
    if state is _R.RUNNING:
        return pod.started
    if state is _R.TERMINATING:
        return pod.deletion_requested
    return pod.ended if state in (_R.SUCCEEDED, _R.FAILED, _R.EVICTED) else 0.0

"""Keeps the states and statistics of jobs up to date with what the watch of pods reports.

    watch of pods --observed, removed, listed--> replicas --> tasks --> jobs --> transitions, figures
    once a second --sweep--> jobs whose pods have all ended: have they? --> those that ended long ago are dropped

The states of a pod that ended stay, in a small record, while the API server has it. Nothing here is stored: another
process finds the same states in the pods.
"""

import time
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass

from poseidon_py.describe.requests import requests as requests_of
from poseidon_py.kube.objects import PREEMPTED as PREEMPTED_BY_SCHEDULER
from poseidon_py.kube.objects import InvalidField, Pod
from poseidon_py.kube.quantity import CPU, PODS
from poseidon_py.machines.states import JobState, ReplicaState
from poseidon_py.tracking.accounts import PREEMPTED, Accounts
from poseidon_py.tracking.derivation import (
    ALIVE,
    ON_NODE,
    OVER,
    PENDING,
    is_alive,
    job_path,
    job_state,
    replica_path,
    task_path,
    task_state,
)
from poseidon_py.tracking.figures import Requests
from poseidon_py.tracking.identity import POD, JobKey, identity_of
from poseidon_py.tracking.narration import Narration
from poseidon_py.tracking.notice import PRIVILEGED, WILL_EVICTED
from poseidon_py.tracking.observation import HAS_ENDED, Observation, observe
from poseidon_py.tracking.records import Job, Replica, Task
from poseidon_py.tracking.transition import Observed
from poseidon_py.util.timestamps import instant_of

_R = ReplicaState
SETTLE = 30.0
"""Seconds without a new pod after which a job has ended whose owner does not say whether it creates others."""
_PREEMPTION = PREEMPTED_BY_SCHEDULER[1]
_SWEPT = 1000
"""Jobs that one sweep examines at most, which takes some milliseconds."""
_SHAPES = 10_000
"""Requests that are remembered for pods with equal ones."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the scheduler knows of pods and their owners; each is called with a UID of a pod, `verdict` of an owner."""

    queue: Callable[[str], str] = lambda uid: ""
    """The name of the pod's queue; empty: none, or unknown."""
    gang_is_short: Callable[[str], bool | None] = lambda uid: None
    """Whether fewer members of its gang are bound, or have succeeded, than it needs; None: it is in none."""
    eviction: Callable[[str], str] = lambda uid: ""
    """Why this scheduler evicts it: preempted or migrated; empty: it does not."""
    verdict: Callable[[str, str], str | None] = lambda uid, kind: None
    """Of the owner, or of its owner of that kind: Succeeded or Failed; empty: it has not ended; None: unknown."""


class Tracker:
    """See the module. `accounts` has the totals of queues and users."""

    def __init__(
        self,
        scheduler_names: Container[str],
        passed: Callable[[Observed], None] = lambda transition: None,
        surroundings: Surroundings = Surroundings(),
        *,
        keep_seconds: float = 3600.0,
        keep_jobs: int = 1000,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`passed`: takes transitions. `keep_seconds`, `keep_jobs`: how long, and how many, ended jobs are kept."""
        self.jobs: dict[JobKey, Job] = {}
        self.accounts = Accounts()
        self.since = now()
        """When it began."""
        self._names = scheduler_names
        self._passed = passed
        self._around = surroundings
        self._keep_seconds = keep_seconds
        self._keep_jobs = keep_jobs
        self._now = now
        self._narration = Narration(now)
        self._replicas: dict[str, Replica] = {}
        self._dropped: set[str] = set()
        """UIDs of pods that exist, of jobs that were dropped."""
        self._unsettled: dict[JobKey, Job] = {}
        """Jobs whose state may change without an event of a pod."""
        self._over: dict[JobKey, Job] = {}
        """Jobs that have ended, in that order."""
        self._shapes: dict[object, Requests] = {}
        self._live = False

    def __len__(self) -> int:
        """Pods with a record."""
        return len(self._replicas)

    def replica(self, uid: str) -> Replica | None:
        """The pod with a UID; None: it is gone, or another scheduler's."""
        return self._replicas.get(uid)

    @property
    def live(self) -> bool:
        """Whether the first list is complete: from then on transitions are passed on, and totals counted."""
        return self._live

    # -- reports of the watch ---------------------------------------------------------------------------------

    def observed(self, pod: Pod) -> None:
        """A pod exists."""
        uid = pod.metadata.uid
        replica = self._replicas.get(uid)
        if replica is None:
            if not uid or pod.spec.scheduler_name not in self._names or uid in self._dropped:
                return
            replica = self._add(pod)
        self._apply(uid, replica, observe(pod), pod.spec.node_name or "")

    def removed(self, pod: Pod) -> None:
        """A pod was deleted. `pod`: its last state, or its metadata alone."""
        uid = pod.metadata.uid
        replica = self._replicas.get(uid)
        if replica is not None and pod.status.phase and replica.state not in HAS_ENDED:
            self._apply(uid, replica, observe(pod), replica.node)
        self.gone(uid)

    def gone(self, uid: str) -> None:
        """A pod does not exist any more."""
        self._dropped.discard(uid)
        replica = self._replicas.pop(uid, None)
        if replica is None:
            return
        job = replica.task.job
        cause = self._cause(uid, replica)
        job.queue = self._around.queue(uid) or job.queue
        del replica.task.replicas[uid]
        if replica.state in HAS_ENDED:
            self._tell_replica(uid, replica, replica.state, _R.DELETED)
        else:
            replica.ended = replica.ended or self._now()
            evicted = replica.disrupted or bool(cause)
            self._move(uid, replica, _R.EVICTED if evicted else _R.DELETED, cause)
        self._changed(job)

    def listed(self, uids: Container[str]) -> None:
        """These pods exist, and no others."""
        for uid in [uid for uid in self._replicas if uid not in uids]:
            self.gone(uid)
        self._dropped = {uid for uid in self._dropped if uid in uids}
        if not self._live:
            for job in self.jobs.values():
                self._derive(job)
            self._live = True
            self.since = self._now()
            self.sweep()

    # -- time -------------------------------------------------------------------------------------------------

    def sweep(self) -> None:
        """Once a second: jobs whose state depends on time or on their owner; drops jobs that ended long ago."""
        for key in list(self._unsettled)[:_SWEPT]:
            job = self._unsettled.pop(key)
            if self.jobs.get(key) is job:
                self._derive(job)
        expired = self._now() - self._keep_seconds
        while self._over:
            job = next(iter(self._over.values()))
            if len(self._over) <= self._keep_jobs and max(job.ended, job.changed) > expired:
                break
            self._drop(job)

    def _drop(self, job: Job) -> None:
        del self._over[job.key], self.jobs[job.key]
        self._unsettled.pop(job.key, None)
        for uid, _ in job.replicas():
            del self._replicas[uid]
            self._dropped.add(uid)

    # -- replicas ---------------------------------------------------------------------------------------------

    def _add(self, pod: Pod) -> Replica:
        uid, identity = pod.metadata.uid, identity_of(pod)
        created = instant_of(pod.metadata.created)
        job = self.jobs.get(identity.job)
        if job is None:
            job = self.jobs[identity.job] = Job(identity.job, identity.user, created)
        task = job.tasks.get(identity.task)
        if task is None:
            task = job.tasks[identity.task] = Task(identity.task, job)
        job.created = min(job.created, created)
        if created >= task.newest:
            job.owner = identity.owner
        replica = self._replicas[uid] = task.replicas[uid] = Replica(
            pod.metadata.name, task, created, self._requests(pod)
        )
        replica.counted = self._live
        self._count(replica, _R.ABSENT, 1)
        self.accounts.created(replica)
        return replica

    def _requests(self, pod: Pod) -> Requests:
        """Pods with equal requests share them. Empty if they cannot be read."""
        spec = pod.spec
        containers = (*(spec.containers or ()), *(spec.init_containers or ()))
        key = (
            bytes(spec.resources),
            bytes(spec.overhead),
            tuple((each.restart_policy, bytes(each.resources)) for each in containers),
            len(spec.init_containers or ()),
        )
        found = self._shapes.get(key)
        if found is None:
            try:
                amounts = requests_of(Pod(spec=spec))
            except (InvalidField, ValueError):
                amounts = {}
            found = tuple(
                (name, amount / 1000 if name == CPU else float(amount))
                for name, amount in sorted(amounts.items())
                if name != PODS and amount
            )
            if len(self._shapes) >= _SHAPES:
                self._shapes.clear()
            self._shapes[key] = found
        return found

    def _apply(self, uid: str, replica: Replica, seen: Observation, node: str) -> None:
        old, new = replica.state, seen.state
        if old in HAS_ENDED or (old is _R.TERMINATING and new not in (_R.EVICTED, _R.DELETED)):
            new = old  # ends and deletions are never taken back; a pod that ends within its grace period is deleted
        replica.node = node or replica.node
        replica.deletion_requested = seen.deletion_requested or replica.deletion_requested
        replica.checkpoint = max(seen.checkpoint, replica.checkpoint)
        replica.disrupted |= seen.disrupted
        replica.reason = "" if new is _R.SUCCEEDED else seen.reason or replica.reason
        replica.exit_code = seen.exit_code or replica.exit_code
        noticed = replica.notice
        if seen.notice.state or noticed:
            self._note(replica, seen)
        job = replica.task.job
        if new is not old:
            job.queue = self._around.queue(uid) or job.queue
            replica.counted |= self._live
        self._set_times(replica, seen, new)
        if new is old and noticed == replica.notice:
            return
        if new is not old:
            self._move(uid, replica, new, self._cause(uid, replica) if new is _R.EVICTED else "")
        self._changed(job)

    def _note(self, replica: Replica, seen: Observation) -> None:
        """Takes over a notice of eviction."""
        self._count_notice(replica, replica.state, -1)
        replica.notice = seen.notice.state
        self._count_notice(replica, replica.state, 1)
        job = replica.task.job
        if seen.notice.state:
            job.notice_at, job.preempted_by = seen.notice.at, seen.notice.by

    def _set_times(self, replica: Replica, seen: Observation, new: ReplicaState) -> None:
        if not replica.bound and new is not _R.PENDING and (seen.bound or replica.node):
            replica.bound = max(seen.bound or (self._now() if self._live else replica.created), replica.created)
            self.accounts.bound(replica)
        if not replica.started and (seen.started or new in (_R.RUNNING, _R.WILL_EVICTED)):
            pending = new is _R.WILL_EVICTED and not seen.started
            replica.started = 0.0 if pending else seen.started or self._now()
        if new in HAS_ENDED and not replica.ended:
            replica.ended = max(seen.ended or self._now(), replica.started)
        elif seen.ended:
            replica.ended = seen.ended  # it ended while it was being deleted
        job = replica.task.job
        if replica.started and not 0 < job.first_started <= replica.started:
            job.first_started = replica.started

    def _move(self, uid: str, replica: Replica, new: ReplicaState, cause: str) -> None:
        old = replica.state
        replica.counted |= self._live
        self._count(replica, old, -1)
        replica.state = new
        self._count(replica, new, 1)
        if new in HAS_ENDED or new is _R.DELETED:
            job = replica.task.job
            job.ended = max(job.ended, replica.ended)
            if new in (_R.FAILED, _R.EVICTED) and replica.ended >= job.failure[0]:
                code = f" (exit code {replica.exit_code})" if replica.exit_code else ""
                job.failure = replica.ended, f"{cause or replica.reason}{code}"
            self.accounts.ended(replica, new, cause)
        self._tell_replica(uid, replica, old, new, cause)

    def _cause(self, uid: str, replica: Replica) -> str:
        """Why it is evicted; empty: not by a scheduler, or it is not evicted."""
        return PREEMPTED if replica.reason == _PREEMPTION else self._around.eviction(uid)

    def _count(self, replica: Replica, state: ReplicaState, by: int) -> None:
        task = replica.task
        task.counts[state] = task.counts.get(state, 0) + by
        self._count_notice(replica, state, by)

    def _count_notice(self, replica: Replica, state: ReplicaState, by: int) -> None:
        if replica.notice == PRIVILEGED and state in ALIVE:
            replica.task.privileged += by
        if replica.notice == WILL_EVICTED and state in (_R.WILL_EVICTED, _R.TERMINATING):
            replica.task.evicting += by

    # -- tasks and jobs ---------------------------------------------------------------------------------------

    def _changed(self, job: Job) -> None:
        """A pod of a job has changed. The first list is taken as a whole: a part of it is no state of a job."""
        if self._live:
            self._derive(job)

    def _derive(self, job: Job) -> None:
        """Brings the states of a job and its tasks up to date."""
        alive = is_alive(job)
        over, verdict, short = False, "", False
        if alive:
            if job.count(PENDING) and job.count(ON_NODE):
                self._unsettled[job.key] = job  # whether it is in a gang may not be known yet
                shown = (self._around.gang_is_short(uid) for uid, _ in job.replicas())
                short = next((each for each in shown if each is not None), False)
        else:
            over, verdict = self._is_over(job)
            if not over:
                self._unsettled[job.key] = job
        ran = job.first_started > 0 and (job.state is JobState.NEW or job.first_started >= job.changed)
        new = job_state(job, over=over, verdict=verdict, short=short)
        for task in job.tasks.values():
            of_task = task_state(task, over=over, verdict=verdict)
            if of_task is not task.state:
                old, task.state = task.state, of_task
                if self._live:
                    for step in task_path(old, of_task, ran=ran):
                        self._passed(self._narration.of_task(task, *step))
        if new is not job.state:
            self._set_state(job, new, ran=ran)

    def _set_state(self, job: Job, new: JobState, *, ran: bool) -> None:
        old, job.state = job.state, new
        job.reason = self._narration.reason(job)
        if new in OVER:
            self._over[job.key] = job
        else:
            self._over.pop(job.key, None)
        for step in job_path(old, new, ran=ran):
            transition = self._narration.of_job(job, *step)
            job.changed = transition.time
            if self._live:
                self._passed(transition)

    def _is_over(self, job: Job) -> tuple[bool, str]:
        """Whether no further pods are expected, and what the owner says."""
        if job.key.kind == POD:
            return True, ""
        verdict = self._around.verdict(job.owner, job.key.kind) if job.owner else None
        if verdict:
            return True, verdict
        if job.state in OVER:
            return True, ""
        return verdict is None and self._now() >= job.ended + SETTLE, ""

    # -- transitions ------------------------------------------------------------------------------------------

    def _tell_replica(self, uid: str, replica: Replica, old: ReplicaState, new: ReplicaState, cause: str = "") -> None:
        if self._live:
            for step in replica_path(old, new, replica):
                self._passed(self._narration.of_replica(uid, replica, *step, cause=cause))

    def present(self) -> Iterator[Observed]:
        """For all that exists, the transitions from nothing to its state, as if it were observed for the first time."""
        for job in list(self.jobs.values()):
            yield from self._narration.of_all(job)

    def note_queues(self) -> None:
        """Looks up the queues of jobs whose pods have not changed since their queue is known."""
        for job in self.jobs.values():
            if not job.queue:
                job.queue = next((self._around.queue(uid) for uid, _ in job.replicas()), "")

    def counts(self) -> Mapping[JobState, int]:
        """Jobs by state."""
        found: dict[JobState, int] = {}
        for job in self.jobs.values():
            found[job.state] = found.get(job.state, 0) + 1
        return found

"""The jobs that a scheduler observes, as JSON: GET /jobs, which `poseidon jobs` prints.

{"since": str                 when the totals of queues and users began
 "more": int                  older jobs that are left out
 "jobs": [{                   the oldest first, of the newest
    "name": "NAMESPACE/NAME", "namespace": str, "kind": str, "uid": str
    "state": str, "reason": str, "since": str       since when it is in its state, and why
    "created": str, "age_seconds": int
    "started": str | null     when the first of its pods began to run
    "ended": str | null       when its last pod ended, if the job has ended
    "user": str, "queue": str
    "pods": {state: number}   with those that are gone, in their last state
    "eviction_time": str | null, "preempted_by": str      of jobs that are Privileged or WillEvicted
    "retries": int, "preempted": int, "migrated": int
    and if it was asked for:
    "statistics": {...}       tracking/figures.py; with the time until now of pods that run
    "tasks": [{"name", "state", "pods", "statistics"}]
    "replicas": [{"name", "uid", "task", "state", "node", "created", "bound", "started", "ended", "checkpoint",
                  "reason", "exit_code", "requests"}], "more_replicas": int
    "waiting": [{"pod", "why"}], "more": int        its oldest pending pods
 }],
 "suspended": [{"name", "kind", "queue", "why"}]     workloads that wait to be resumed, the oldest first
}
"""

import heapq
from collections.abc import Awaitable, Callable, Container, Iterable
from difflib import get_close_matches
from typing import Any

from poseidon_py.machines.states import JobState, ReplicaState
from poseidon_py.tracking.derivation import OVER
from poseidon_py.tracking.figures import Figures, as_json, merged
from poseidon_py.tracking.identity import JobKey
from poseidon_py.tracking.records import Job, Replica, Task
from poseidon_py.tracking.times import written
from poseidon_py.tracking.tracker import Tracker

Json = dict[str, Any]
Why = Callable[[str], Awaitable[Json | None]]
"""Explains the pod with a UID; None: it is gone."""

JOBS_SHOWN = REPLICAS_SHOWN = 1000
WAITING_SHOWN = 20
_SUGGESTIONS = 3
_NOTICED = (JobState.PRIVILEGED, JobState.WILL_EVICTED)


class UnknownJob(Exception):
    """There is no such job; the message has names that are near."""


async def jobs_json(
    tracker: Tracker,
    now: float,
    why: Why,
    *,
    name: str = "",
    namespace: str = "",
    user: str = "",
    queue: str = "",
    state: str = "",
) -> Json:
    """All jobs, or those that agree with what is given. `name`: NAME or NAMESPACE/NAME: those of that name, in detail.

    Raises UnknownJob if none has the name.
    """
    if not namespace and "/" in name:
        namespace, _, name = name.partition("/")
    tracker.note_queues()
    found = [
        job
        for job in tracker.jobs.values()
        if (not namespace or job.key.namespace == namespace)
        and (not user or job.user == user)
        and (not queue or job.queue == queue)
        and (not state or job.state.lower() == state.lower())
    ]
    if name:
        found = _named(found, name)
    count = len(found)
    found = heapq.nlargest(JOBS_SHOWN, found, key=_age)[::-1]
    jobs = [job_json(job, now) | (_details(job, now) if name else {}) for job in found]
    if name:
        for job, body in zip(found, jobs, strict=True):
            body |= await _waiting(job, why)
    return {"since": written(tracker.since), "more": count - len(jobs), "jobs": jobs}


def _age(job: Job) -> tuple[float, JobKey]:
    return job.created, job.key


def _named(jobs: list[Job], name: str) -> list[Job]:
    found = [job for job in jobs if job.key.name == name]
    if found:
        return found
    near = get_close_matches(name, dict.fromkeys(job.key.name for job in jobs), _SUGGESTIONS)
    remedy = f"did you mean {' or '.join(near)}?" if near else "`poseidon jobs` lists all"
    raise UnknownJob(f"job {name} not found; {remedy}")


def job_json(job: Job, now: float) -> Json:
    """A job without its pods."""
    figures = job.figures()
    noticed = job.state in _NOTICED
    return {
        "name": job.full_name,
        "namespace": job.key.namespace,
        "kind": job.key.kind,
        "uid": job.key.uid,
        "state": str(job.state),
        "reason": job.reason,
        "since": written(job.changed),
        "created": written(job.created),
        "age_seconds": max(int(now - job.created), 0),
        "started": written(job.first_started),
        "ended": written(job.ended) if job.state in OVER else None,
        "user": job.user,
        "queue": job.queue,
        "pods": _pods(job.tasks.values()),
        "eviction_time": written(job.notice_at) if noticed else None,
        "preempted_by": job.preempted_by if noticed else "",
        "retries": figures.retries,
        "preempted": figures.preempted,
        "migrated": figures.migrated,
    }


def _pods(tasks: Iterable[Task]) -> dict[str, int]:
    counts: dict[ReplicaState, int] = {}
    for task in tasks:
        for state, count in task.counts.items():
            counts[state] = counts.get(state, 0) + count
    return {str(state): counts[state] for state in ReplicaState if counts.get(state)}


def _details(job: Job, now: float) -> Json:
    tasks = sorted(job.tasks.values(), key=lambda task: task.name)
    replicas = sorted(job.replicas(), key=lambda each: (each[1].task.name, each[1].name))
    until_now = {task.name: _until_now(task, now) for task in tasks}
    return {
        "statistics": as_json(merged(until_now.values())),
        "tasks": [
            {
                "name": task.name,
                "state": str(task.state),
                "pods": _pods([task]),
                "statistics": as_json(until_now[task.name]),
            }
            for task in tasks
        ],
        "replicas": [_replica(uid, pod) for uid, pod in replicas[:REPLICAS_SHOWN]],
        "more_replicas": max(len(replicas) - REPLICAS_SHOWN, 0),
    }


def _until_now(task: Task, now: float) -> Figures:
    """The figures of a task, with the time of pods that have not ended."""
    figures = merged([task.figures])
    for pod in task.replicas.values():
        if pod.bound and not pod.ended:
            figures.occupied(max(now - pod.bound, 0.0), pod.requests)
            figures.run += max(now - pod.started, 0.0) if pod.started else 0.0
    return figures


def _replica(uid: str, pod: Replica) -> Json:
    return {
        "name": pod.name,
        "uid": uid,
        "task": pod.task.name,
        "state": str(pod.state),
        "node": pod.node,
        **{name: written(getattr(pod, name)) for name in ("created", "bound", "started", "ended", "checkpoint")},
        "reason": pod.reason,
        "exit_code": pod.exit_code,
        "requests": dict(pod.requests),
    }


async def _waiting(job: Job, why: Why) -> Json:
    pods = [(pod.created, pod.name, uid) for uid, pod in job.replicas() if pod.state is ReplicaState.PENDING]
    pods.sort()
    found = []
    for _, name, uid in pods[:WAITING_SHOWN]:
        explained = await why(uid)
        if explained is not None:
            reason = explained["problem"] or explained["message"] or explained["state"]
            found.append({"pod": f"{job.key.namespace}/{name}", "why": reason})
    return {"waiting": found, "more": max(len(pods) - WAITING_SHOWN, 0)}


def queue_statistics(tracker: Tracker, queues: Container[str]) -> Json:
    """Of these queues together since `since`: all of it, and by user."""
    users = tracker.accounts.of_users(queues)
    return {
        "since": written(tracker.since),
        "statistics": as_json(merged(users.values())),
        "users": {user: as_json(users[user]) for user in sorted(users)},
    }

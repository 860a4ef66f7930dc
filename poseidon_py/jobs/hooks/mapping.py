"""What hooks are given of a transition: identity, user, order, occasion and details."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from poseidon_py.hooks.transition import Transition as Delivery
from poseidon_py.jobs.cache import CachedJob
from poseidon_py.jobs.hooks.paths import began, steps
from poseidon_py.jobs.rules.machines import ReplicaState
from poseidon_py.jobs.rules.replicas import Replica
from poseidon_py.jobs.transitions import Transition

FindJob = Callable[[Transition], CachedJob | None]
"""The job of a transition; None: it is gone."""


def deliveries(transition: Transition, job: CachedJob | None) -> Iterator[Delivery]:
    """The transitions that hooks are given, in their order. `job`: that of the transition; None: it is gone."""
    if transition.machine == "replica":
        if transition.observed is not None:
            yield from _of_replica(transition, transition.observed, job)
        return
    queue = job.spec.queue if job is not None and job.spec is not None else ""
    details = {"task": transition.task, "queue": queue, "reason": transition.reason, "message": transition.message}
    task = transition.task
    yield Delivery(
        transition.machine,
        id=f"{transition.job_uid}/{task}" if task else transition.job_uid,
        namespace=transition.namespace,
        name=f"{transition.job}-{task}" if task else transition.job,
        user_id=(job.owner.user if job is not None else "") or transition.namespace,
        job=_job_key(transition),
        before=transition.old,
        after=transition.new,
        at=transition.time,
        details=_present(details, transition.since),
        occasion=f"transition {transition.number} of {transition.job_uid}",
    )


def _of_replica(transition: Transition, pod: Replica, job: CachedJob | None) -> Iterator[Delivery]:
    path = steps(ReplicaState(transition.old), ReplicaState(transition.new), pod)
    user = (job.owner.user if job is not None else pod.user) or pod.namespace
    requests = {f"requests.{resource}": amount for resource, amount in pod.requests}
    for old, new in path:
        last = (old, new) == path[-1]
        at = began(new, pod) or (0.0 if last else began(path[-1][1], pod)) or transition.time
        since = began(old, pod)
        reason = transition.reason if last else ""
        yield Delivery(
            "replica",
            id=pod.uid,
            namespace=pod.namespace,
            name=pod.name,
            user_id=user,
            job=_job_key(transition),
            before=old,
            after=new,
            at=at,
            details=requests
            | _present(
                {"task": pod.task, "pod": pod.name, "node": pod.node, "queue": pod.queue, "reason": reason},
                min(since, at),
            ),
            occasion=_occasion(old, new, pod),
        )


def _occasion(old: ReplicaState, new: ReplicaState, pod: Replica) -> str:
    """A pod makes each transition once, but for those from and to Unknown."""
    if ReplicaState.UNKNOWN in (old, new):
        return f"pod {pod.uid} {pod.readiness_changed:.0f}"
    return f"pod {pod.uid}"


def _job_key(transition: Transition) -> str:
    return f"{transition.namespace}/{transition.job}"


def _present(details: dict[str, str], since: float) -> dict[str, str]:
    found = {key: text for key, text in details.items() if text}
    if since > 0:
        found["since"] = datetime.fromtimestamp(since, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return found

"""Brings one job up to date: what is there, the decision on it, and the writes of that decision."""

import logging
import time
from collections.abc import Callable
from dataclasses import replace

from poseidon_py.jobs import names
from poseidon_py.jobs.cache import Cache, CachedJob, Key
from poseidon_py.jobs.events import JobEvents
from poseidon_py.jobs.manifests import claims, plugins
from poseidon_py.jobs.manifests.pod_group import pod_group
from poseidon_py.jobs.manifests.pods import pod
from poseidon_py.jobs.outbox import Outbox
from poseidon_py.jobs.rules.decide import decide
from poseidon_py.jobs.rules.machines import ACTIVE, STOPPED, STOPPING, JobPhase, TaskState
from poseidon_py.jobs.rules.missed import missed_evictions
from poseidon_py.jobs.rules.noted import MAX_TEXT, Noted
from poseidon_py.jobs.rules.policies import OF_COMMANDS, Action, Event
from poseidon_py.jobs.rules.spec import JobSpec
from poseidon_py.jobs.rules.status import JobStatus, write_status
from poseidon_py.jobs.rules.world import Decision, Eviction, Signal, World
from poseidon_py.jobs.transitions import Transitions, transition_of
from poseidon_py.jobs.writer import TakenError, Writer, job_path, pod_path
from poseidon_py.kube.client import ApiError, KubeError, NotFoundError
from poseidon_py.kube.objects import annotations_of

log = logging.getLogger(__name__)

INVALID = "InvalidJob"
_VOLCANO = "volcano"
_STOPS = frozenset({Action.ABORT_JOB, Action.COMPLETE_JOB, Action.TERMINATE_JOB, Action.FAIL_JOB})
_REPORTED_SOON = 1.0
"""Seconds until an expired job is looked at again whose transitions are not stored by the hooks yet."""
_NOTHING = JobSpec((), 0, max_retry=2**31)


class RefusedError(Exception):
    """Some writes of a decision failed. `errors`: all of them."""

    def __init__(self, errors: list[Exception]) -> None:
        super().__init__(f"{errors[0]}" + (f" (and {len(errors) - 1} others)" if len(errors) > 1 else ""))
        self.errors = errors


class Reconciler:
    """`reconcile` one key at a time."""

    def __init__(
        self,
        cache: Cache,
        writer: Writer,
        events: JobEvents,
        transitions: Transitions,
        now: Callable[[], float] = time.time,
        outbox: Outbox | None = None,
    ) -> None:
        """`outbox`: has the transitions that are noted in statuses until they are reported; None: none are."""
        self._cache = cache
        self._writer = writer
        self._events = events
        self._transitions = transitions
        self._now = now
        self._outbox = outbox
        self._met: set[str] = set()
        """UIDs of jobs on which a decision was made since this process leads."""
        self._ensured: dict[str, str] = {}
        """UID of a job -> what its claims and the objects of its plugins were made from."""

    def lead(self) -> None:
        """This process becomes the leader: another one has decided until now."""
        self._met.clear()
        self._ensured.clear()
        if self._outbox is not None:
            self._outbox.clear()

    async def reconcile(self, key: Key) -> float | None:
        """Makes one decision and carries it out. Seconds until the next one; 0: at once, None: after a change.

        Raises KubeError, RefusedError or NotLeadingError.
        """
        job = self._cache.jobs.get(key)
        if job is None:
            if self._outbox is not None:
                self._outbox.forget(key)
            return None
        if self._outbox is not None:
            self._outbox.repeat(job.owner, job.status)
        if job.deleting:
            self._met.discard(job.owner.uid)
            self._ensured.pop(job.owner.uid, None)
            return None
        spec = job.spec or self._to_stop(job)
        if spec is None:
            await self._invalid(job)
            return None
        world, evictions = self._world(job, spec)
        decision = decide(world)
        again = await self._carry_out(job, spec, world, decision)
        self._met.add(job.owner.uid)
        self._forget(job, evictions)
        return again

    def _to_stop(self, job: CachedJob) -> JobSpec | None:
        """A specification of nothing, for an invalid job that stops, or is to stop; None: it is left alone."""
        signal = self._signal(job)
        stops = signal is not None and signal.action in _STOPS and job.status.phase not in STOPPED
        return _NOTHING if stops or job.status.phase in STOPPING else None

    # -- what is there ----------------------------------------------------------------------------------------

    def _world(self, job: CachedJob, spec: JobSpec) -> tuple[World, list[Eviction]]:
        """The job now, and the evictions that the cache has of it."""
        status = job.status
        if status.reason == INVALID:
            status = replace(status, reason="", message="")
        replicas = self._cache.replicas_of(job)
        noted = list(self._cache.evictions.get(job.owner.uid, ()))
        evictions = tuple(noted)
        if job.owner.uid not in self._met:
            evictions = missed_evictions(spec, status, replicas, self._now())
        group = self._cache.group_of(job)
        phase = group.status.phase if group is not None else None
        waits = phase == "Pending" and spec.scheduler_name.startswith(_VOLCANO)
        signal = self._signal(job)
        world = World(spec, status, replicas, evictions, signal, phase == "Unknown", waits, self._now())
        return world, noted

    def _signal(self, job: CachedJob) -> Signal | None:
        """The oldest command, else a custom event of the job, else one of a pod."""
        for command in sorted(
            self._cache.commands.get(job.key, {}).values(),
            key=lambda each: (each.metadata.created or "", each.metadata.name),
        ):
            token = f"command {command.metadata.uid}"
            target = command.target
            if target is not None and target.uid not in ("", job.owner.uid):
                continue  # it is for an earlier job of that name
            action = Action(command.action) if command.action in OF_COMMANDS else Action.NO_ACTION
            return Signal(token, Event.COMMAND_ISSUED, action)
        if job.event:
            return Signal(f"event {job.event} of the job", job.event)
        for replica in self._cache.replicas_of(job):
            if replica.event:
                return Signal(
                    f"event {replica.event} of {replica.uid}", replica.event, None, replica.task, replica.name
                )
        return None

    def _forget(self, job: CachedJob, evictions: list[Eviction]) -> None:
        """These evictions had their effect; later ones stay."""
        found = self._cache.evictions.get(job.owner.uid, [])
        del found[: len(evictions)]
        if not found:
            self._cache.evictions.pop(job.owner.uid, None)

    # -- what is done -----------------------------------------------------------------------------------------

    async def _invalid(self, job: CachedJob) -> None:
        """Says what is wrong; its pods are left alone."""
        message = f"{job.problem}"
        self._events.send(job.owner, INVALID, message, warning=True)
        if (job.status.reason, job.status.message) == (INVALID, message) or job.problem.startswith("status"):
            return
        old = job.status
        phase = old.phase or JobPhase.PENDING
        status = replace(
            old, phase=phase, reason=INVALID, message=message, changed=old.changed if old.phase else self._now()
        )
        passing, status = self._noted(job, status)
        replicas = self._cache.replicas_of(job)
        least = int(old.raw.get("minAvailable") or 0)
        await self._writer.status(job, write_status(status, replicas, _others(old), least, job.created))
        self._pass(job, passing)

    async def _carry_out(self, job: CachedJob, spec: JobSpec, world: World, decision: Decision) -> float | None:
        old = job.status
        passing, new = self._noted(job, decision.status)
        _raise(await self._writer.each(self._writer.mark_pod(each, new.retry_count) for each in decision.restarted))
        replicas = self._cache.replicas_of(job)
        resources = plugins.resources(spec) | claims.resources(spec)
        body = write_status(new, replicas, resources, spec.min_available, job.created)
        if body != old.raw:
            try:
                await self._writer.status(job, body)
            except NotFoundError:
                return None  # deleted meanwhile
            self._pass(job, passing)
        self._tell(job, decision)
        if world.signal is not None:
            await self._acknowledge(job, world.signal, decision)
        if old.phase != new.phase:
            return 0.0
        await self._objects(job, spec, decision)
        errors = await self._writer.each(self._writer.delete_pod(each) for each in decision.deletions)
        bodies = [pod(job.owner, spec, new, each) for each in decision.creations]
        errors += await self._writer.each(self._writer.create_pod(job, each) for each in bodies)
        _raise(errors)
        if decision.delete_job:
            if self._outbox is not None and self._outbox.waiting(job.owner, new):
                return _REPORTED_SOON
            self._events.send(job.owner, "Expired", f"deleted {spec.ttl} s after its end (ttlSecondsAfterFinished)")
            await self._writer.delete_job(job.owner)
            return None
        if new.retries != old.retries or new.handled != old.handled:
            return 0.0
        return decision.again_in

    def _noted(self, job: CachedJob, new: JobStatus) -> tuple[list[Noted], JobStatus]:
        """The transitions from the status that the job has, and the new status with notes of them."""
        old, now = job.status, self._now()
        found = []
        if old.phase != new.phase:
            message = new.message[:MAX_TEXT]
            found.append(Noted("job", "", old.phase, new.phase, now, old.changed, new.reason, message))
        for name, state in new.tasks.items():
            before = old.tasks.get(name, TaskState.NEW)
            if before != state:
                found.append(Noted("task", name, before, state, now))
        return (found, new) if self._outbox is None else self._outbox.note(job.owner, new, found)

    def _pass(self, job: CachedJob, passing: list[Noted]) -> None:
        """The transitions whose status was written."""
        for noted in passing:
            self._transitions.passed(transition_of(job.owner, noted))
        if self._outbox is not None and passing:
            self._outbox.passed(job.owner, passing[-1].number)

    def _tell(self, job: CachedJob, decision: Decision) -> None:
        cause = decision.cause
        if decision.no_effect:
            self._events.send(job.owner, "NoEffect", decision.no_effect, warning=True)
        elif cause is not None and cause.action:
            self._events.send(job.owner, "ExecuteAction", f"{cause.detail}; {_retries(job, decision)}")

    async def _acknowledge(self, job: CachedJob, signal: Signal, decision: Decision) -> None:
        """Removes a command or the annotation of an event, whose effect is in the status."""
        kind, _, uid = signal.token.partition(" ")
        if kind == "command":
            command = self._cache.commands.get(job.key, {}).get(uid)
            if command is None:
                return
            if command.action not in OF_COMMANDS:
                self._events.send(
                    job.owner,
                    "InvalidCommand",
                    f"command {command.metadata.name}: action is {command.action!r}; give one of "
                    f"{', '.join(sorted(OF_COMMANDS))}",
                    warning=True,
                )
            await self._writer.delete_command(command.metadata.namespace, command.metadata.name, uid)
        elif signal.pod:
            path = pod_path(job.owner.namespace, signal.pod)
            await self._writer.remove_event(path, uid.rpartition(" ")[2])
        else:
            await self._writer.remove_event(job_path(job.owner), job.owner.uid)

    async def _objects(self, job: CachedJob, spec: JobSpec, decision: Decision) -> None:
        """PodGroup, claims and objects of plugins: there while the job is active; the PodGroup goes when it stops."""
        status, group = decision.status, self._cache.group_of(job)
        stale = group is not None and annotations_of(group.metadata).get(names.JOB_VERSION, "0") != str(status.version)
        ends = status.phase in STOPPED or status.phase in STOPPING
        if group is not None and (ends or stale):
            await self._writer.delete_group(group)
            group = None
        if status.phase not in ACTIVE:
            return
        await self._writer.write_group(job, pod_group(job.owner, spec, status.version, decision.started), group)
        origin = f"{job.raw_spec!r}"
        if self._ensured.get(job.owner.uid) == origin:
            return
        needed = [*claims.claims(job.owner, spec), *plugins.objects(job.owner, spec)]
        _raise(await self._writer.each(self._writer.create_once(path, body, job.owner) for path, body in needed))
        self._ensured[job.owner.uid] = origin


def _retries(job: CachedJob, decision: Decision) -> str:
    before, after = job.status.retry_count, decision.status.retry_count
    return f"retry {after}" if after > before else f"the job is {decision.status.phase}"


def _others(status: JobStatus) -> dict[str, str]:
    """The texts of `controlledResources` that are not ours."""
    texts = status.raw.get("controlledResources") or {}
    return {key: text for key, text in texts.items() if not key.startswith("poseidon.io/")}


def _raise(errors: list[Exception]) -> None:
    """Raises the first error that is none of the API server's, else RefusedError with all of them, if there are any."""
    for error in errors:
        if not isinstance(error, (KubeError, TakenError)):
            raise error
    if errors:
        raise RefusedError(errors)


def describe_refusals(error: Exception) -> list[str]:
    """What the API server refused for good, for events: users can do something about it."""
    errors = error.errors if isinstance(error, RefusedError) else [error]
    final = {each.message for each in errors if isinstance(each, ApiError) and each.code in (400, 403, 422)}
    return sorted(final | {str(each) for each in errors if isinstance(each, TakenError)})

"""The objects of jobs as the watches report them, and the keys of jobs that have changed.

Answers to own writes are taken like reports, so a decision sees what was done before it. A report that is older than
what is known is ignored.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from poseidon_py.jobs import names
from poseidon_py.jobs.manifests import plugins
from poseidon_py.jobs.manifests.owner import Json, Owner
from poseidon_py.jobs.objects import Command, JobObject, JobPod, PodGroup
from poseidon_py.jobs.rules.annotations import EVENT
from poseidon_py.jobs.rules.machines import ReplicaState
from poseidon_py.jobs.rules.replicas import Replica, job_uid_of, replica_of
from poseidon_py.jobs.rules.spec import JobSpec, read_spec
from poseidon_py.jobs.rules.status import JobStatus, read_status
from poseidon_py.jobs.rules.world import Eviction
from poseidon_py.jobs.transitions import Transition, Transitions
from poseidon_py.kube.objects import InvalidField, Metadata, annotations_of, labels_of
from poseidon_py.util.timestamps import instant_of

log = logging.getLogger(__name__)

Key = tuple[str, str]
"""Namespace and name of a job."""


@dataclass(frozen=True)
class CachedJob:
    """A job as it was observed. `spec` is None if it has a `problem`."""

    owner: Owner
    version: str
    created: float
    deleting: bool
    spec: JobSpec | None
    status: JobStatus
    problem: str = ""
    raw_spec: bytes = b""
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return self.owner.namespace, self.owner.name

    @property
    def event(self) -> str:
        """A custom event on it; empty: none."""
        return self.annotations.get(EVENT, "")


def read_job(item: JobObject, known: CachedJob | None = None) -> CachedJob:
    """The job; what is invalid is its problem. `known`: an older version of it."""
    meta, problem = item.metadata, ""
    annotations: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}
    spec, status = None, JobStatus()
    raw = bytes(item.spec)
    try:
        annotations, labels = annotations_of(meta), labels_of(meta)
        status = read_status(item.status)
        if known is not None and (known.raw_spec, known.annotations) == (raw, annotations) and known.spec is not None:
            spec = known.spec
        else:
            spec = read_spec(meta.name, item.spec, annotations)
            plugins.svc_arguments(spec.plugins.get("svc", ()))
    except InvalidField as error:
        spec, problem = None, str(error)
    return CachedJob(
        Owner(meta.namespace, meta.name, meta.uid, labels, annotations),
        meta.resource_version,
        instant_of(meta.created),
        meta.deleting is not None,
        spec,
        status,
        problem,
        raw,
        annotations,
    )


def older(one: str, other: str) -> bool:
    """Whether a resource version is older than the other; they are numbers that grow."""
    return one.isdecimal() and other.isdecimal() and int(one) < int(other)


class Cache:
    """`changed` is called with the key of each job that may need something."""

    def __init__(
        self,
        changed: Callable[[Key, bool], None],
        transitions: Transitions,
        rewritten: Callable[[CachedJob, CachedJob], None] = lambda old, new: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`changed`: the key, and whether it is urgent. `rewritten`: a report shows a job in another phase, version or
        number of retries than it was known to be in."""
        self._changed = changed
        self._transitions = transitions
        self._rewritten = rewritten
        self._now = now
        self.jobs: dict[Key, CachedJob] = {}
        self.replicas: dict[str, dict[str, Replica]] = {}
        """UID of a job -> name -> pod."""
        self.groups: dict[Key, PodGroup] = {}
        """Namespace and name of a PodGroup -> the object."""
        self.commands: dict[Key, dict[str, Command]] = {}
        """Key of the target -> UID -> command."""
        self.evictions: dict[str, list[Eviction]] = {}
        """UID of a job -> pods that were deleted by others, since its last decision."""
        self._attempted: dict[str, tuple[str, int, int]] = {}
        """UID of a job -> phase, version and retries of the last status that was to be written."""
        self._keys: dict[str, Key] = {}
        """UID of a job -> its key."""
        self._owners: dict[str, tuple[str, str]] = {}
        """UID of a pod -> UID of its job, and the pod's name."""
        self._ended: set[str] = set()
        """UIDs of pods that ended before they were deleted."""
        self._deleted: set[str] = set()
        """UIDs of pods whose deletion was requested here."""
        self._targets: dict[str, Key] = {}
        """UID of a command -> key of its target."""

    def replicas_of(self, job: CachedJob) -> tuple[Replica, ...]:
        """In the order of tasks and indices."""
        found = self.replicas.get(job.owner.uid, {}).values()
        return tuple(sorted(found, key=lambda each: (each.task, each.index, each.name)))

    def group_of(self, job: CachedJob) -> PodGroup | None:
        owner = job.owner
        found = self.groups.get((owner.namespace, names.group_name(owner.name, owner.uid)))
        return found if found is not None and found.metadata.deleting is None else None

    # -- jobs -------------------------------------------------------------------------------------------------

    def observe_job(self, item: JobObject, *, own: bool = False) -> None:
        """`own`: it is the answer to a write of this process."""
        key = item.metadata.namespace, item.metadata.name
        known = self.jobs.get(key)
        if known is not None and known.owner.uid == item.metadata.uid:
            if older(item.metadata.resource_version, known.version):
                return
        elif known is not None:
            self.remove_job(Metadata(known.owner.name, known.owner.namespace, known.owner.uid))
            known = None
        job = self.jobs[key] = read_job(item, known)
        self._keys[job.owner.uid] = key
        core = _core(job.status)
        if known is not None and not own and core not in (_core(known.status), self._attempted.get(job.owner.uid)):
            self._rewritten(known, job)
        self._changed(key, True)

    def writes_status(self, job: CachedJob, status: Json) -> None:
        """A status is about to be written: a report of it may come before the answer, or instead of it."""
        phase = status["state"].get("phase", "")
        self._attempted[job.owner.uid] = phase, status.get("version", 0), status.get("retryCount", 0)

    def remove_job(self, item: Metadata) -> None:
        key = item.namespace, item.name
        known = self.jobs.get(key)
        if known is not None and known.owner.uid == item.uid:
            del self.jobs[key], self._keys[item.uid]
            self.evictions.pop(item.uid, None)
            self._attempted.pop(item.uid, None)
            self._changed(key, True)

    def jobs_listed(self, uids: set[str]) -> None:
        for job in [job for job in self.jobs.values() if job.owner.uid not in uids]:
            self.remove_job(Metadata(job.owner.name, job.owner.namespace, job.owner.uid))

    # -- pods -------------------------------------------------------------------------------------------------

    def observe_pod(self, item: JobPod) -> None:
        """Raises InvalidField."""
        job_uid = job_uid_of(item)
        if not job_uid:
            return
        replica = replica_of(item)
        pods = self.replicas.setdefault(job_uid, {})
        before = pods.get(replica.name)
        if before is not None and before.uid == replica.uid:
            if older(replica.version, before.version):
                return
            if before.deleting:  # a deletion is never taken back, but a report may be from before it
                replica = replica.being_deleted()
        elif before is not None:
            self.remove_pod(before.uid)
            pods = self.replicas.setdefault(job_uid, {})
            before = None
        pods[replica.name] = replica
        self._owners[replica.uid] = job_uid, replica.name
        if replica.has_ended and not replica.deleting:
            self._ended.add(replica.uid)
        key = replica.namespace, annotations_of(item.metadata).get(names.JOB_NAME, "")
        old = before.state if before is not None else ReplicaState.ABSENT
        self._pass(key, job_uid, replica, old, replica.state)
        self._changed(key, False)

    def remove_pod(self, uid: str) -> None:
        job_uid, name = self._owners.pop(uid, ("", ""))
        pods = self.replicas.get(job_uid, {})
        replica = pods.pop(name, None)
        if replica is None:
            return
        if not pods:
            self.replicas.pop(job_uid, None)
        key = self._keys.get(job_uid)
        ended, by_us = uid in self._ended, uid in self._deleted
        self._ended.discard(uid)
        self._deleted.discard(uid)
        if key is None:  # the job was deleted first
            self._pass((replica.namespace, replica.job), job_uid, replica, replica.state, ReplicaState.ABSENT)
            return
        job = self.jobs[key]
        retry = job.status.retries.get(name)
        by_us |= replica.marked or replica.job_version < job.status.version or (retry is not None and retry.uid == uid)
        if not ended and not by_us:
            self.evictions.setdefault(job_uid, []).append(Eviction(replica.task, replica.index, self._now()))
        self._pass(key, job_uid, replica, replica.state, ReplicaState.ABSENT)
        self._changed(key, False)

    def deletes(self, replica: Replica) -> None:
        """The deletion of the pod is about to be requested: when it goes, that is no eviction."""
        self._deleted.add(replica.uid)

    def deletion_accepted(self, replica: Replica, *, gone: bool = False) -> None:
        """The API server deletes the pod. `gone`: it does not have it."""
        self._deleted.add(replica.uid)
        known = self._known(replica)
        if known is None:
            return
        if gone:
            self.remove_pod(replica.uid)
        elif not known.deleting:
            self._replace(known, known.being_deleted())

    def _known(self, replica: Replica) -> Replica | None:
        job_uid, name = self._owners.get(replica.uid, ("", ""))
        known = self.replicas.get(job_uid, {}).get(name)
        return known if known is not None and known.uid == replica.uid else None

    def _replace(self, known: Replica, new: Replica) -> None:
        job_uid = self._owners[known.uid][0]
        self.replicas[job_uid][known.name] = new
        self._pass((new.namespace, new.job), job_uid, new, known.state, new.state)

    def pods_listed(self, uids: set[str]) -> None:
        for uid in [uid for uid in self._owners if uid not in uids]:
            self.remove_pod(uid)

    def _pass(self, key: Key, job_uid: str, replica: Replica, old: ReplicaState, new: ReplicaState) -> None:
        if old != new:
            self._transitions.passed(self._transition(key, job_uid, replica, old, new))

    def _transition(self, key: Key, job_uid: str, replica: Replica, old: ReplicaState, new: ReplicaState) -> Transition:
        return Transition(
            "replica",
            old,
            new,
            key[0],
            key[1],
            job_uid,
            self._now(),
            replica.task,
            replica.name,
            replica.uid,
            f"ExitCode {replica.exit_code}" if new == ReplicaState.FAILED and replica.exit_code else "",
            observed=replica,
        )

    def present(self) -> Iterator[Transition]:
        """For each pod the transition from nothing to its state, as if it were observed now for the first time."""
        for job_uid, pods in self.replicas.items():
            for pod in pods.values():
                yield self._transition((pod.namespace, pod.job), job_uid, pod, ReplicaState.ABSENT, pod.state)

    # -- groups and commands ----------------------------------------------------------------------------------

    def observe_group(self, item: PodGroup) -> None:
        meta = item.metadata
        known = self.groups.get((meta.namespace, meta.name))
        if known is not None and older(meta.resource_version, known.metadata.resource_version):
            return
        self.groups[meta.namespace, meta.name] = item
        self._group_changed(meta)

    def remove_group(self, meta: Metadata) -> None:
        known = self.groups.get((meta.namespace, meta.name))
        if known is not None and known.metadata.uid == meta.uid:
            del self.groups[meta.namespace, meta.name]
            self._group_changed(meta)

    def groups_listed(self, uids: set[str]) -> None:
        for group in [group for group in self.groups.values() if group.metadata.uid not in uids]:
            self.remove_group(group.metadata)

    def _group_changed(self, meta: Metadata) -> None:
        for owner in meta.owners or ():
            if owner.controller and owner.kind == names.KIND:
                self._changed((meta.namespace, owner.name), False)

    def observe_command(self, item: Command) -> None:
        if item.target is None or item.target.kind != names.KIND or not item.target.name:
            return
        key = item.metadata.namespace, item.target.name
        self.commands.setdefault(key, {})[item.metadata.uid] = item
        self._targets[item.metadata.uid] = key
        self._changed(key, True)

    def remove_command(self, uid: str) -> None:
        key = self._targets.pop(uid, None)
        if key is None:
            return
        found = self.commands.get(key, {})
        found.pop(uid, None)
        if not found:
            self.commands.pop(key, None)
        self._changed(key, True)

    def commands_listed(self, uids: set[str]) -> None:
        for uid in [uid for uid in self._targets if uid not in uids]:
            self.remove_command(uid)

    def as_status(self) -> dict[str, Any]:
        """Jobs by phase."""
        found: dict[str, int] = {}
        for job in self.jobs.values():
            found[job.status.phase or "New"] = found.get(job.status.phase or "New", 0) + 1
        return found


def _core(status: JobStatus) -> tuple[str, int, int]:
    return status.phase, status.version, status.retry_count

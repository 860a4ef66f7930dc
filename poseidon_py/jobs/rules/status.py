"""The status of a Job: what the controller reads back from it, and how it is written.

All that must survive a restart of the controller is in it. Volcano's fields have no place for some of that, so
`controlledResources`, a map of texts, has it under `poseidon.io/...`:

    poseidon.io/task.NAME        the state of the task
    poseidon.io/retries.POD      retries of a replica, and the UID of the pod that the last of them replaced
    poseidon.io/handled          the last command or custom event, so that it has its effect once
    poseidon.io/noted.NUMBER     a transition that may not have been reported yet; see noted.py
    poseidon.io/transitions      the number of the last transition that was noted
"""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import durationpy
from msgspec import Raw, Struct, field

from poseidon_py.jobs.rules.machines import JobPhase, ReplicaState, TaskState
from poseidon_py.jobs.rules.noted import Noted, read_noted, write_noted
from poseidon_py.jobs.rules.replicas import Replica
from poseidon_py.kube.objects import InvalidField
from poseidon_py.util.decoding import MalformedError, decode_json
from poseidon_py.util.timestamps import instant_of

Json = dict[str, Any]

PREFIX = "poseidon.io/"
_TASK, _RETRIES, _HANDLED = f"{PREFIX}task.", f"{PREFIX}retries.", f"{PREFIX}handled"
_NOTED, _NUMBER = f"{PREFIX}noted.", f"{PREFIX}transitions"
_COUNTED = {
    "pending": ReplicaState.PENDING,
    "running": ReplicaState.RUNNING,
    "succeeded": ReplicaState.SUCCEEDED,
    "failed": ReplicaState.FAILED,
    "unknown": ReplicaState.UNKNOWN,
    "terminating": ReplicaState.TERMINATING,
}
TaskCounts = dict[str, dict[str, int]]


@dataclass(frozen=True)
class ReplicaRetries:
    """Retries of one replica by the retry policy of its task."""

    count: int = 0
    uid: str = ""
    """The pod that the last retry replaces."""


@dataclass(frozen=True)
class JobStatus:
    """The decoded status."""

    phase: JobPhase = JobPhase.NEW
    reason: str = ""
    message: str = ""
    changed: float = 0.0
    """Seconds since the epoch of the last transition."""
    version: int = 0
    retry_count: int = 0
    task_counts: TaskCounts = dataclasses.field(default_factory=dict)
    tasks: Mapping[str, TaskState] = dataclasses.field(default_factory=dict)
    retries: Mapping[str, ReplicaRetries] = dataclasses.field(default_factory=dict)
    handled: str = ""
    raw: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    noted: tuple[Noted, ...] = ()
    """In the order of their numbers."""
    transitions: int = 0
    """The number of the last transition that was noted."""


class _State(Struct):
    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    changed: str | None = field(default=None, name="lastTransitionTime")


class _TaskCount(Struct):
    phase: dict[str, int] | None = None


class _Fields(Struct):
    state: _State | None = None
    version: int | None = None
    retry_count: int | None = field(default=None, name="retryCount")
    task_counts: dict[str, _TaskCount] | None = field(default=None, name="taskStatusCount")
    texts: dict[str, str] | None = field(default=None, name="controlledResources")
    conditions: list[dict[str, str]] | None = None


def read_status(raw: Raw) -> JobStatus:
    """Raises InvalidField: somebody wrote what is no status."""
    text = bytes(raw) or b"{}"
    try:
        found: _Fields = decode_json(text, _Fields | None, "status") or _Fields()
        whole: Json = decode_json(text, dict[str, Any] | None, "status") or {}
    except MalformedError as error:
        raise InvalidField("status", error.reason) from error
    state, texts = found.state or _State(), found.texts or {}
    try:
        phase = JobPhase(state.phase or "")
    except ValueError:
        raise InvalidField(
            "status.state.phase", f"is {state.phase!r}; give one of {', '.join(filter(None, JobPhase))}"
        ) from None
    return JobStatus(
        phase,
        state.reason or "",
        state.message or "",
        instant_of(state.changed),
        found.version or 0,
        found.retry_count or 0,
        {name: dict(each.phase or {}) for name, each in (found.task_counts or {}).items()},
        {name: _task_state(text) for name, text in _under(texts, _TASK)},
        {name: _retries(text) for name, text in _under(texts, _RETRIES)},
        texts.get(_HANDLED, ""),
        whole,
        read_noted(dict(_under(texts, _NOTED))),
        int(texts.get(_NUMBER, "")) if texts.get(_NUMBER, "").isdecimal() else 0,
    )


def _under(texts: Mapping[str, str], prefix: str) -> Iterable[tuple[str, str]]:
    return ((key.removeprefix(prefix), text) for key, text in texts.items() if key.startswith(prefix))


def _task_state(text: str) -> TaskState:
    try:
        return TaskState(text)
    except ValueError:
        return TaskState.NEW


def _retries(text: str) -> ReplicaRetries:
    count, _, uid = text.partition(" ")
    return ReplicaRetries(int(count) if count.isdecimal() else 0, uid)


def count_by_task(replicas: Iterable[Replica]) -> TaskCounts:
    """Task -> phase -> pods that are not being deleted."""
    found: TaskCounts = {}
    for replica in replicas:
        if not replica.deleting:
            counts = found.setdefault(replica.task, {})
            counts[replica.phase] = counts.get(replica.phase, 0) + 1
    return found


def write_status(
    status: JobStatus, replicas: Iterable[Replica], resources: Mapping[str, str], min_available: int, created: float
) -> Json:
    """The status as it is written. `resources`: objects of the job besides its pods; `created`: the job's time."""
    present = list(replicas)
    counts = {
        name: sum(replica.state == state and not replica.marked for replica in present)
        for name, state in _COUNTED.items()
    }
    counts["terminating"] = sum(replica.deleting or replica.marked for replica in present)
    texts = dict(resources)
    texts |= {f"{_TASK}{name}": str(state) for name, state in status.tasks.items()}
    texts |= {f"{_RETRIES}{name}": f"{each.count} {each.uid}" for name, each in status.retries.items()}
    if status.handled:
        texts[_HANDLED] = status.handled
    texts |= {f"{_NOTED}{number}": text for number, text in write_noted(status.noted).items()}
    if status.transitions:
        texts[_NUMBER] = str(status.transitions)
    body = {
        **status.raw,
        "state": {
            "phase": str(status.phase),
            "reason": status.reason,
            "message": status.message,
            "lastTransitionTime": timestamp(status.changed),
        },
        "minAvailable": min_available,
        "version": status.version,
        "retryCount": status.retry_count,
        **counts,
        "taskStatusCount": {
            name: {"phase": found} for name, found in count_by_task(each for each in present if not each.marked).items()
        },
        "controlledResources": texts,
        "conditions": _conditions(status),
        "runningDuration": _go_duration(status.changed - created),
    }
    # the API has no zeros, empty texts and empty maps in optional fields
    optional = (*counts, "minAvailable", "version", "retryCount", "taskStatusCount", "controlledResources")
    return {name: value for name, value in body.items() if value or name not in optional} | {
        "state": {name: value for name, value in body["state"].items() if value}
    }


def _conditions(status: JobStatus) -> list[Json]:
    """One condition per phase that the job was in, with the time at which it was last entered; the present one last."""
    found = [each for each in status.raw.get("conditions") or () if each.get("status") != status.phase]
    if not status.phase:
        return found
    return [*found, {"status": str(status.phase), "lastTransitionTime": timestamp(status.changed)}]


def _go_duration(seconds_passed: float) -> str:
    whole = max(int(seconds_passed), 0)
    return durationpy.to_str(timedelta(seconds=whole)) if whole else "0s"


def timestamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

"""Events, the actions they lead to, and the policies between them.

The policies of a task come before those of the job; of each list the first that matches is taken. Without one the
event has its default action (`DEFAULTS`), mostly none: the job is only brought up to date.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from poseidon_py.jobs.rules.machines import JobPhase
from poseidon_py.kube.objects import InvalidField


class Event(StrEnum):
    """The events that are raised here; policies may also name custom ones, in CamelCase."""

    ANY = "*"
    POD_FAILED = "PodFailed"
    POD_EVICTED = "PodEvicted"
    POD_PENDING = "PodPending"
    POD_RUNNING = "PodRunning"
    TASK_COMPLETED = "TaskCompleted"
    TASK_FAILED = "TaskFailed"
    MAIN_TASK = "MainTaskEvent"
    JOB_UNKNOWN = "Unknown"
    OUT_OF_SYNC = "OutOfSync"
    COMMAND_ISSUED = "CommandIssued"
    JOB_UPDATED = "JobUpdated"


class Action(StrEnum):
    """What is done about an event."""

    ABORT_JOB = "AbortJob"
    RESTART_JOB = "RestartJob"
    RESTART_TASK = "RestartTask"
    RESTART_POD = "RestartPod"
    RESTART_PARTITION = "RestartPartition"
    TERMINATE_JOB = "TerminateJob"
    COMPLETE_JOB = "CompleteJob"
    RESUME_JOB = "ResumeJob"
    FAIL_JOB = "FailJob"
    SYNC_JOB = "SyncJob"
    NO_ACTION = "NoAction"


INTERNAL = frozenset({Event.OUT_OF_SYNC, Event.COMMAND_ISSUED, Event.POD_RUNNING})
"""Events that bring a job up to date, and that no policy may name."""
TARGETED = frozenset({Action.RESTART_TASK, Action.RESTART_POD, Action.RESTART_PARTITION})
"""Actions on some of the pods."""
OF_COMMANDS = frozenset(
    {
        Action.ABORT_JOB,
        Action.RESTART_JOB,
        Action.TERMINATE_JOB,
        Action.COMPLETE_JOB,
        Action.RESUME_JOB,
        Action.FAIL_JOB,
        Action.SYNC_JOB,
    }
)
IDLE = frozenset({Action.SYNC_JOB, Action.NO_ACTION})

DEFAULTS: Mapping[str, Action] = {Event.MAIN_TASK: Action.COMPLETE_JOB}
"""The actions of events that no policy names; SyncJob for all others."""

_J, _A = JobPhase, Action
_WHILE_ACTIVE = {
    _A.RESTART_JOB: _J.RESTARTING,
    _A.RESTART_TASK: _J.RESTARTING,
    _A.RESTART_POD: _J.RESTARTING,
    _A.RESTART_PARTITION: _J.RESTARTING,
    _A.ABORT_JOB: _J.ABORTING,
    _A.TERMINATE_JOB: _J.TERMINATING,
    _A.COMPLETE_JOB: _J.COMPLETING,
    _A.FAIL_JOB: _J.FAILED,
}
EFFECTS: Mapping[JobPhase, Mapping[Action, JobPhase]] = {
    _J.PENDING: _WHILE_ACTIVE,
    _J.RUNNING: _WHILE_ACTIVE,
    _J.RESTARTING: {
        action: phase
        for action, phase in _WHILE_ACTIVE.items()
        if phase != _J.RESTARTING  # it restarts already
    },
    _J.ABORTING: {_A.RESUME_JOB: _J.RESTARTING},
    _J.ABORTED: {_A.RESUME_JOB: _J.RESTARTING},
}
"""Phase -> action -> the phase that follows; what is not listed has no effect."""


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy: events or an exit code, an action, and seconds until it is taken; None: at once."""

    events: frozenset[str]
    exit_code: int | None
    action: Action
    timeout: float | None

    def matches(self, event: str, exit_code: int) -> bool:
        if event == Event.POD_PENDING and self.timeout is None:
            return False  # every pod is pending for a while
        if self.exit_code is not None:
            return event == Event.POD_FAILED and self.exit_code == exit_code
        return event in self.events or Event.ANY in self.events


@dataclass(frozen=True, slots=True)
class Reaction:
    """The action of an event, and seconds from the event until it is taken."""

    action: Action
    delay: float = 0.0


def reaction(event: str, exit_code: int, *policies: Iterable[Policy]) -> Reaction:
    """The reaction to an event by the first policy that matches, of the first list that has one."""
    for each in policies:
        for policy in each:
            if policy.matches(event, exit_code):
                return Reaction(policy.action, policy.timeout or 0.0)
    return Reaction(DEFAULTS.get(event, Action.SYNC_JOB))


def action_of(name: str | None, path: str) -> Action:
    """The action with that name. Raises InvalidField."""
    try:
        return Action(name or "")
    except ValueError:
        given = f"is {name!r}" if name else "is missing"
        raise InvalidField(path, f"{given}; give one of {', '.join(Action)}") from None


def event_of(name: str, path: str) -> str:
    """A valid name of an event for a policy. Raises InvalidField."""
    if name in INTERNAL:
        raise InvalidField(path, f"is {name!r}, which is internal; give PodFailed, PodEvicted, TaskCompleted, ...")
    if name != Event.ANY and not (name.isalnum() and name[:1].isupper() and len(name) <= 63):
        raise InvalidField(
            path,
            f"{name!r} is not the name of an event; give *, one like PodFailed or TaskCompleted, or a custom one in "
            "CamelCase of up to 63 letters and digits",
        )
    return name

"""What a decision about a job is made from, and what it consists of. Values only."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from poseidon_py.jobs.rules.policies import Action
from poseidon_py.jobs.rules.replicas import Replica
from poseidon_py.jobs.rules.spec import JobSpec
from poseidon_py.jobs.rules.status import JobStatus


@dataclass(frozen=True)
class Eviction:
    """A pod that was deleted by somebody else before it ended. `at`: seconds since the epoch."""

    task: str
    index: int
    at: float


@dataclass(frozen=True)
class Signal:
    """A command or a custom event. It has its effect once: the status notes its token, then it is removed."""

    token: str
    event: str
    action: Action | None = None
    """Of a command; None: as the policies have it for the event."""
    task: str = ""
    pod: str = ""
    """The pod that has the event; empty: it is the job's."""


@dataclass(frozen=True)
class World:
    """A job at one moment."""

    spec: JobSpec
    status: JobStatus
    replicas: tuple[Replica, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    signal: Signal | None = None
    group_unknown: bool = False
    """Whether the scheduler says that part of the job runs, and the others do not fit."""
    group_waits: bool = False
    """Whether the scheduler wants no pods yet."""
    now: float = 0.0


@dataclass(frozen=True)
class Creation:
    """A pod to create. `evicted_at`: when the pod that it replaces was evicted; 0: it replaces none."""

    task: str
    index: int
    evicted_at: float = 0.0


@dataclass(frozen=True)
class Cause:
    """Why a job changes its phase. `detail`: for users."""

    event: str
    action: str
    detail: str


@dataclass(frozen=True)
class Decision:
    """What to do, in this order: mark, write the status, and, unless the phase has changed, delete and create."""

    status: JobStatus
    restarted: tuple[Replica, ...] = ()
    """Pods that a targeted restart deletes."""
    deletions: tuple[Replica, ...] = ()
    creations: tuple[Creation, ...] = ()
    started: Mapping[str, bool] = field(default_factory=dict)
    """Task -> whether its pods may exist: the tasks that it depends on are ready."""
    cause: Cause | None = None
    no_effect: str = ""
    """Why a signal had no effect."""
    again_in: float | None = None
    """Seconds until something is due; None: the next change brings it up."""
    delete_job: bool = False

"""The records of jobs, tasks and replicas: small, because there may be hundreds of thousands."""

from collections.abc import Container, Iterator

from poseidon_py.machines.states import JobState, ReplicaState, TaskState
from poseidon_py.tracking.figures import Figures, Requests, merged
from poseidon_py.tracking.identity import JobKey

_R = ReplicaState
BadEnd = tuple[float, float]
"""When a pod failed or was evicted, and when it was created."""


class Replica:
    """A pod that exists in the API server. Times are seconds since the epoch, 0: unknown or not yet."""

    __slots__ = (
        "bound", "checkpoint", "counted", "created", "deletion_requested", "disrupted", "ended", "exit_code", "name",
        "node", "notice", "reason", "requests", "started", "state", "task",
    )  # fmt: skip

    def __init__(self, name: str, task: "Task", created: float, requests: Requests) -> None:
        self.name = name
        self.task = task
        self.created = created
        self.requests = requests
        self.state = _R.ABSENT
        self.bound = 0.0
        self.started = 0.0
        self.ended = 0.0
        self.deletion_requested = 0.0
        self.checkpoint = 0.0
        self.node = ""
        self.reason = ""
        self.notice = ""
        """PRIVILEGED, WILL_EVICTED or empty."""
        self.disrupted = False
        self.exit_code = 0
        self.counted = True
        """Whether what happens to it counts in the totals: not what happened before the scheduler started."""


class Task:
    """The pods of one role of a job."""

    __slots__ = (
        "counts", "evicting", "figures", "job", "name", "newest", "open_evictions", "open_failures", "privileged",
        "replicas", "state",
    )  # fmt: skip

    def __init__(self, name: str, job: "Job") -> None:
        self.name = name
        self.job = job
        self.state = TaskState.NEW
        self.replicas: dict[str, Replica] = {}
        """By UID: those that exist."""
        self.counts: dict[ReplicaState, int] = {}
        """Pods by state, with those that are gone: their last state."""
        self.privileged = 0
        """Pods that wait or run and whose victims have notice."""
        self.evicting = 0
        """Pods that run or terminate and have notice of their eviction."""
        self.newest = 0.0
        """When its newest pod was created."""
        self.open_failures: list[BadEnd] = []
        """Of pods that failed, and after which none was created yet."""
        self.open_evictions: list[BadEnd] = []
        self.figures = Figures()

    def count(self, states: Container[ReplicaState]) -> int:
        """Pods in these states; those that are gone count with their last state."""
        found = 0
        for state, count in self.counts.items():
            if state in states:
                found += count
        return found


class Job:
    """One job."""

    __slots__ = (
        "changed", "created", "ended", "failure", "first_started", "key", "notice_at", "owner", "preempted_by", "queue",
        "reason", "state", "tasks", "user",
    )  # fmt: skip

    def __init__(self, key: JobKey, user: str, created: float) -> None:
        self.key = key
        self.user = user
        self.queue = ""
        """Name of its queue, as it was known last; empty: none."""
        self.tasks: dict[str, Task] = {}
        self.state = JobState.NEW
        self.reason = ""
        """Why it failed, or will be evicted."""
        self.created = created
        self.first_started = 0.0
        self.ended = 0.0
        """When its last pod ended, or was gone."""
        self.failure: tuple[float, str] = (0.0, "")
        """When its last pod failed or was evicted, and why."""
        self.changed = created
        """When it entered its state."""
        self.owner = ""
        """UID of the controller of its newest pod; empty: it has none."""
        self.notice_at = 0.0
        """When it, or what it preempts, will be evicted; 0: unknown, or there is no such notice."""
        self.preempted_by = ""

    @property
    def full_name(self) -> str:
        return f"{self.key.namespace}/{self.key.name}"

    def replicas(self) -> Iterator[tuple[str, Replica]]:
        """UIDs and pods that exist."""
        for task in self.tasks.values():
            yield from task.replicas.items()

    def count(self, states: Container[ReplicaState]) -> int:
        """As of a task."""
        found = 0
        for task in self.tasks.values():
            found += task.count(states)
        return found

    def figures(self) -> Figures:
        """Those of its tasks together."""
        return merged(task.figures for task in self.tasks.values())

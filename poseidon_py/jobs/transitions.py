"""The one place through which every transition of the three machines passes.

Transitions of jobs and tasks are noted in the status of the job: each is passed on when that was written, also after a
restart of the controller. Those of replicas are observed: what happens to a pod while no controller runs is seen as one
transition afterwards, or as none if the pod came and went.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from poseidon_py.jobs.manifests.owner import Owner
from poseidon_py.jobs.metrics import JobMetrics
from poseidon_py.jobs.rules.machines import JOB, REPLICA, TASK
from poseidon_py.jobs.rules.noted import Noted
from poseidon_py.jobs.rules.replicas import Replica

log = logging.getLogger(__name__)

Machine = Literal["job", "task", "replica"]
_TABLES: Mapping[Machine, Mapping[Any, frozenset[Any]]] = {"job": JOB, "task": TASK, "replica": REPLICA}


@dataclass(frozen=True)
class Transition:
    """One transition. `time`: seconds since the epoch; `reason`: the event or action that caused it, if it is known."""

    machine: Machine
    old: str
    new: str
    namespace: str
    job: str
    job_uid: str
    time: float
    task: str = ""
    pod: str = ""
    pod_uid: str = ""
    reason: str = ""
    message: str = ""
    since: float = 0.0
    """When the state before began, in seconds since the epoch; 0: unknown."""
    number: int = 0
    """Of those of the job and its tasks, as it is noted in the status; 0: it is not noted."""
    observed: Replica | None = None
    """The pod after the transition, or before it went."""

    @property
    def object(self) -> str:
        """For logs."""
        return "/".join(filter(None, (self.namespace, self.job, self.task, self.pod)))


def transition_of(owner: Owner, noted: Noted) -> Transition:
    """The transition of a job or a task that was noted."""
    machine: Machine = "task" if noted.machine == "task" else "job"
    return Transition(
        machine, noted.old, noted.new, owner.namespace, owner.name, owner.uid, noted.time, noted.task,
        reason=noted.reason, message=noted.message, since=noted.since, number=noted.number,
    )  # fmt: skip


Listener = Callable[[Transition], None]


class Transitions:
    """`listeners` may be added to at any time; they are called in order and must not block."""

    def __init__(self, metrics: JobMetrics) -> None:
        self.listeners: list[Listener] = []
        self._metrics = metrics

    def passed(self, transition: Transition) -> None:
        """A transition has taken place. A listener that fails stops neither the others nor the controller."""
        old: StrEnum | str = transition.old
        legal = any(transition.new in news for state, news in _TABLES[transition.machine].items() if state == old)
        if not legal:
            self._metrics.illegal.labels(transition.machine, transition.old, transition.new).inc()
            log.warning(
                "%s %s went from %r to %r, which its machine does not have",
                transition.machine,
                transition.object,
                transition.old,
                transition.new,
            )
        self._metrics.transitions.labels(transition.machine, transition.new).inc()
        level = logging.INFO if transition.machine == "job" else logging.DEBUG
        why = f": {transition.message or transition.reason}" if transition.message or transition.reason else ""
        log.log(
            level,
            "%s %s: %s -> %s%s",
            transition.machine,
            transition.object,
            transition.old or "new",
            transition.new,
            why,
        )
        for listener in self.listeners:
            try:
                listener(transition)
            except Exception:
                log.exception("a listener to transitions failed")

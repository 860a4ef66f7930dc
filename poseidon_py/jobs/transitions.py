"""The one place through which every transition of the three machines passes.

Transitions of jobs and tasks are noted in the status of the job: each is passed on when that was written, also after a
restart of the controller. Those of replicas are observed: what happens to a pod while no controller runs is seen as one
transition afterwards, or as none if the pod came and went.
"""

from collections.abc import Callable

from poseidon_py.jobs.manifests.owner import Owner
from poseidon_py.jobs.metrics import JobMetrics
from poseidon_py.jobs.rules.machines import JOB, REPLICA, TASK
from poseidon_py.jobs.rules.noted import Noted
from poseidon_py.jobs.rules.replicas import Replica
from poseidon_py.machines.transitions import AnyTransition, AnyTransitions, Machine


class Transition(AnyTransition, frozen=True):
    """One transition of a job of this controller."""

    number: int = 0
    """Of those of the job and its tasks, as it is noted in the status; 0: it is not noted."""
    observed: Replica | None = None
    """The pod after the transition, or before it went."""


def transition_of(owner: Owner, noted: Noted) -> Transition:
    """The transition of a job or a task that was noted."""
    machine: Machine = "task" if noted.machine == "task" else "job"
    return Transition(
        machine, noted.old, noted.new, owner.namespace, owner.name, owner.uid, noted.time, noted.task,
        reason=noted.reason, message=noted.message, since=noted.since, number=noted.number,
    )  # fmt: skip


Listener = Callable[[Transition], None]


class Transitions(AnyTransitions[Transition]):
    """Those of one controller."""

    def __init__(self, metrics: JobMetrics) -> None:
        super().__init__({"job": JOB, "task": TASK, "replica": REPLICA}, metrics.transitions, metrics.illegal)

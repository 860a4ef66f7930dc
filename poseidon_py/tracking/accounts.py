"""Adds what happens to pods to the figures of their tasks, and to the totals of queues and users."""

from collections.abc import Container, Iterator, Mapping

from poseidon_py.machines.states import ReplicaState
from poseidon_py.tracking.figures import Figures, merged
from poseidon_py.tracking.records import BadEnd, Replica

MAX_TOTALS = 10_000
"""Pairs of a queue and a user with totals of their own; users above it count together."""
OTHERS = "(others)"
PREEMPTED, MIGRATED = "preempted", "migrated"
"""Causes of evictions."""
_R = ReplicaState
Pair = tuple[str, str]
"""Names of a queue, empty: none, and of a user."""


class Accounts:
    """Totals since the process began to observe. They outlive jobs."""

    def __init__(self) -> None:
        self.totals: dict[Pair, Figures] = {}

    def _figures(self, pod: Replica) -> Iterator[Figures]:
        yield pod.task.figures
        if pod.counted:
            yield self._total(pod.task.job.queue, pod.task.job.user)

    def _total(self, queue: str, user: str) -> Figures:
        found = self.totals.get((queue, user))
        if found is None:
            if len(self.totals) >= MAX_TOTALS:
                user = OTHERS
                queue = queue if (queue, user) in self.totals or len(self.totals) < 2 * MAX_TOTALS else OTHERS
            found = self.totals.setdefault((queue, user), Figures())
        return found

    def of_queues(self) -> Mapping[str, Figures]:
        """By name of the queue, empty: of pods in none."""
        return self._merged(0)

    def of_users(self, queues: Container[str] | None = None) -> Mapping[str, Figures]:
        """By user. `queues`: only in these; None: in all."""
        return self._merged(1, queues)

    def _merged(self, at: int, queues: Container[str] | None = None) -> Mapping[str, Figures]:
        parts: dict[str, list[Figures]] = {}
        for pair, figures in self.totals.items():
            if queues is None or pair[0] in queues:
                parts.setdefault(pair[at], []).append(figures)
        return {name: merged(each) for name, each in parts.items()}

    # -- what happens -----------------------------------------------------------------------------------------

    def created(self, pod: Replica) -> None:
        """In the totals it counts once it is bound or gone: its queue is not known before."""
        task = pod.task
        task.figures.created += 1
        if pod.created > task.newest:
            task.newest = pod.created
            replaced = 0
            for ends in (task.open_failures, task.open_evictions):
                left = [end for end in ends if not _is_replaced(end, pod.created)]
                replaced += len(ends) - len(left)
                ends[:] = left
            if replaced:
                for figures in self._figures(pod):
                    figures.retries += replaced

    def bound(self, pod: Replica) -> None:
        self._count(pod)
        for figures in self._figures(pod):
            figures.waits.add(max(pod.bound - pod.created, 0.0))

    def _count(self, pod: Replica) -> None:
        if pod.counted:
            self._total(pod.task.job.queue, pod.task.job.user).created += 1

    def ended(self, pod: Replica, state: ReplicaState, cause: str) -> None:
        """It ended, or is gone. `cause`: preempted or migrated; empty: neither, or it was not evicted."""
        if not pod.bound:
            self._count(pod)
        ran = max(pod.ended - pod.started, 0.0) if pod.started else 0.0
        lost = 0.0
        if state is _R.EVICTED and pod.started:
            lost = max(pod.ended - max(pod.started, pod.checkpoint), 0.0)
        replaced = self._note_bad_end(pod, state)
        for figures in self._figures(pod):
            figures.run += ran
            figures.lost += lost
            figures.retries += replaced
            if pod.bound:
                figures.occupied(max(pod.ended - pod.bound, 0.0), pod.requests)
            if state is _R.SUCCEEDED:
                figures.succeeded += 1
            elif state is _R.FAILED:
                figures.failed += 1
            elif state is _R.EVICTED:
                figures.evicted += 1
                figures.preempted += cause == PREEMPTED
                figures.migrated += cause == MIGRATED
            else:
                figures.deleted += 1

    def _note_bad_end(self, pod: Replica, state: ReplicaState) -> int:
        """1 if the pod failed or was evicted, and another one of its task was created since, else 0."""
        task = pod.task
        if state is _R.FAILED:
            at, ends = pod.ended, task.open_failures
        elif state is _R.EVICTED:  # controllers may replace it while it terminates
            at, ends = pod.deletion_requested or pod.ended, task.open_evictions
        else:
            return 0
        if _is_replaced((at, pod.created), task.newest):
            return 1
        ends.append((at, pod.created))
        return 0


def _is_replaced(end: BadEnd, newest: float) -> bool:
    """Whether a pod was created since. Creation times are whole seconds."""
    at, created = end
    return int(at) <= newest and created < newest

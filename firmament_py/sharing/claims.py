"""Jobs that may preempt by the rules of their queues, and what these depend on."""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.queues.permissions import Situation
from firmament_py.queues.quota import Capacity
from firmament_py.sharing.flavors import add_amounts
from firmament_py.sharing.jobs import Jobs
from firmament_py.sharing.use import QueueUse
from firmament_py.state.cluster import ClusterState


@dataclass(frozen=True, slots=True)
class Claim:
    """A waiting job: rows (K,) of its tasks, which are one gang if it is `whole`, else alike single tasks. queue: row.
    request (R,): of the whole gang, or of one task. flavor (R,): on which it takes each resource, -1: none."""

    rows: I64
    queue: int
    priority: int
    created_us: int
    request: I64
    flavor: I64
    whole: bool
    preemptible: bool

    def amounts(self, tasks: int, columns: int) -> I64:
        """(V,) what so many of its single tasks request, or the gang."""
        amounts = np.zeros(columns, np.int64)
        some = np.flatnonzero(self.flavor >= 0)
        amounts[self.flavor[some] * len(self.flavor) + some] = self.request[some] * (1 if self.whole else tasks)
        return amounts


class Claims:
    """The claims of a round: described only when they are asked for, since nearly all jobs are placed."""

    def __init__(self) -> None:
        self._of_jobs: list[tuple[Jobs, I64, I64]] = []

    def add(self, jobs: Jobs, claiming: I64, flavor: I64) -> None:
        """Some of J jobs, claiming (K,), ascending; flavor (J, R), as of a claim."""
        self._of_jobs.append((jobs, claiming, flavor))

    def of(self, tasks: Bools) -> list[Claim]:
        """Those that have one of the tasks (T,) of the task table."""
        found = []
        for jobs, claiming, flavor in self._of_jobs:
            some = np.logical_or.reduceat(tasks[jobs.rows], jobs.start[:-1])
            found += [_claim(jobs, j, flavor[j]) for j in claiming[some[claiming]].tolist()]
        return found


def _claim(jobs: Jobs, j: int, flavor: I64) -> Claim:
    return Claim(
        rows=jobs.rows[jobs.start[j] : jobs.start[j + 1]],
        queue=int(jobs.queue[j]),
        priority=int(jobs.priority[j]),
        created_us=int(jobs.created_us[j]),
        request=jobs.request[j],
        flavor=flavor,
        whole=bool(jobs.count[j] == 1),
        preemptible=bool(jobs.preemptible[j]),
    )


class Standing:
    """What queues use, as decisions of a round change it."""

    def __init__(self, use: QueueUse, capacity: Capacity, share: I64 | None, total: I64) -> None:
        """share: see Situation; total (V,): what nodes offer."""
        self.use = use
        self._total = total
        self._capacity = capacity
        self._share = share
        self._own: I64 | None = None
        self._firm: I64 | None = None

    @property
    def own(self) -> I64:
        """(Q, V) what tasks use that do not leave, and what is reserved for nominated ones."""
        if self._own is None:
            self._own = self.use.running(leaving=False) + self.use.nominated()
        return self._own

    def arrive(self, rows: I64, nodes: I64) -> None:
        """Task rows (K,) are placed on, or nominated to, node rows (K,). What gangs keep for them is in use already."""
        new = ~self.use.retained_places(rows)[0]
        self._own = self.own + self.use.of(rows[new], nodes[new])

    def leave(self, rows: I64, nodes: I64) -> None:
        """Task rows (K,) leave node rows (K,), which are nominated for them."""
        self._own = self.own - self.use.of(rows, nodes)

    def evict(self, rows: I64) -> None:
        """Task rows (K,) leave the nodes that they are on."""
        self._own = self.own - self.use.left_by(rows)

    def situation(self, claim: Claim, tasks: int) -> Situation:
        """Of a claim for so many of its tasks."""
        if self._firm is None:
            self._firm = self.use.firm()
        return Situation(
            queues=self.use.queues,
            capacity=self._capacity,
            own=self.own,
            queue=claim.queue,
            priority=claim.priority,
            created_us=claim.created_us,
            request=claim.amounts(tasks, self.own.shape[1]),
            preemptible=claim.preemptible,
            share=self._share,
            firm=self._firm,
            total=self._total,
        )

    def within_nominal(self, claim: Claim, tasks: int) -> int:
        """How many of so many single tasks of a claim, or all of a gang, its queue's nominal amounts cover."""
        one = claim.amounts(1, self.own.shape[1])
        left = np.maximum(0, self.use.queues.nominal[claim.queue] - self.own[claim.queue])
        count = int((left // np.maximum(one, 1))[one > 0].min(initial=tasks))
        if claim.whole:
            return tasks if count else 0
        return min(count, tasks)

    def fits(self, situation: Situation, without: I64) -> bool:
        """Whether the quota of a claim suffices once `without` (Q, V) is no more used."""
        left = situation.left(situation.own - without)
        return bool((situation.request <= left)[situation.request > 0].all())

    def amounts(self, state: ClusterState, rows: I64) -> I64:
        """(K, V) what each of task rows (K,), all on nodes, uses."""
        queues = self.use.queues
        queue, node = self.use.queue_of(rows), self.use.position(state.tasks.node[rows])
        columns = self.use.choices.columns(queue, self.use.choices.kind(rows, node))
        amounts = np.zeros((len(rows), queues.nominal.shape[1]), np.int64)
        add_amounts(amounts, np.arange(len(rows)), columns, self.use.requests(state.tasks.cls[rows]))
        return amounts

"""Inter-task constraints: affinity, anti-affinity in both directions, topology spread.

`IntertaskConstraints` counts the tasks on each node that the selectors of the waiting classes match, and updates these
counts while a round places tasks. From the counts follow

- `allowed`: the nodes that can take a further task of a class now;
- `limit`: how many tasks of a class that is matched by its own selectors each domain can take in one solve
  (capacities of the network: exact for one constraint, an upper bound for several with different domains);
- `trim`: the part of a solution for one class that meets all its constraints, given all earlier placements.

Classes are placed one after the other, so a class that depends on another is trimmed, or waits for the next solve of
the round, after the other is placed: the solves are stages, instead of one task at a time.

Semantics are those of kube-scheduler's InterPodAffinity and PodTopologySpread filters. C classes, N nodes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.model.constraints import NO_PEERS
from firmament_py.snapshot.affinity import Affinity
from firmament_py.snapshot.anti_affinity import AntiAffinity
from firmament_py.snapshot.domain_limits import UNLIMITED, DomainLimit
from firmament_py.snapshot.domains import Condition, Domains
from firmament_py.snapshot.running_tasks import RunningTasks
from firmament_py.snapshot.spread import TopologySpread
from firmament_py.state.cluster import ClusterState


class IntertaskConstraints:
    """nodes: (N,) rows of the node table; classes and label_sets: (C,) rows of their tables; running: see there."""

    def __init__(self, state: ClusterState, nodes: I64, classes: I64, label_sets: I64, running: RunningTasks) -> None:
        self._demands = [state.classes.definition(row).peers for row in classes.tolist()]
        self._of = state, classes, label_sets, Domains(state.node_index, nodes)
        self._running = running
        self._summarise()

    def _summarise(self) -> None:
        self._possible = any(demand != NO_PEERS for demand in self._demands) or self._repelled_by_running
        """False: no class says anything of other tasks, so there is nothing to count, as in most rounds; the parts
        below are only made if they are asked."""
        self.any = False
        self.terms: I64 = np.zeros(len(self._demands), np.int64)
        """(C,) number of constraints that apply to a further task of each class."""
        self.counted: Bools = np.zeros(len(self._demands), np.bool_)
        """(C,) whether tasks of each class count for constraints of others, or of their own."""
        if self._possible:
            self.any = self._anti_affinity.any or self._spread.any or any(demand.affinity for demand in self._demands)
            own = [len(demand.affinity) + len(demand.anti_affinity) + len(demand.spread) for demand in self._demands]
            self.terms = np.array(own, np.int64) + self._anti_affinity.repelling
            self.counted = self._affinity.counted | self._anti_affinity.counted | self._spread.counted
        self.concerned: Bools = self.terms > 0
        """(C,) whether each class has constraints on other tasks, or others on it."""

    @property
    def _repelled_by_running(self) -> bool:
        """Whether running tasks repel any others."""
        return bool(self._running.classes_that(self._of[0].classes.repels))

    @cached_property
    def _affinity(self) -> Affinity:
        state, _, label_sets, domains = self._of
        return Affinity(self._demands, label_sets, state.label_sets, self._running, domains)

    @cached_property
    def _anti_affinity(self) -> AntiAffinity:
        state, _, label_sets, domains = self._of
        return AntiAffinity(self._demands, label_sets, state.label_sets, self._running, state.classes, domains)

    @cached_property
    def _spread(self) -> TopologySpread:
        state, classes, label_sets, domains = self._of
        return TopologySpread(state, classes, self._demands, label_sets, self._running, domains)

    @contextmanager
    def beside(self, running: RunningTasks) -> Iterator[None]:
        """Within, these tasks run, some of those that do, and none was placed before."""
        before = dict(vars(self))
        for part in ("_affinity", "_anti_affinity", "_spread"):
            vars(self).pop(part, None)
        self._running = running
        self._summarise()
        try:
            yield
        finally:
            vars(self).clear()
            vars(self).update(before)

    @property
    def shrinking(self) -> Bools:
        """(C,) classes that can only go to fewer nodes the more tasks are placed, whatever these are."""
        return np.array([not (demand.affinity or demand.spread) for demand in self._demands], np.bool_)

    def affine_keys(self, c: int) -> list[str]:
        """Topology keys of the domains that tasks of class c must share with others."""
        return self._affinity.keys(c)

    def add(self, cls: I64, node: I64, count: I64) -> None:
        """Counts count[i] more tasks (below 0: fewer) of class cls[i] on node[i], (K,) each."""
        if self._possible:
            for part in (self._affinity, self._anti_affinity, self._spread):
                part.add(cls, node, count)

    # -- where a further task may go --------------------------------------------------------------------------

    def allowed(self, c: int) -> Bools:
        """(N,) nodes that can take a further task of class c."""
        return self._affinity.allowed(c) & self._clear(c) & self._spread.allowed(c)

    def conditions(self, c: int) -> list[Condition]:
        """What `allowed` means, condition by condition: it follows what is allowed once tasks of a node are gone."""
        parts = (self._affinity, self._anti_affinity, self._spread)
        return [condition for part in parts for condition in part.conditions(c)]

    def conceivable(self, c: int) -> Bools:
        """(N,) nodes that placing other tasks can make allowed for class c: peers of its affinity or of its spread.

        Anti-affinity still applies, and so does affinity to tasks of which none waits.
        """
        return self._affinity.conceivable(c) & self._clear(c) & self._spread.labelled(c)

    def failures(self, c: int) -> dict[str, Bools]:
        """(N,) each: the nodes that fail each constraint of class c, in kube-scheduler's order: a node counts for the
        first that it fails."""
        unlabelled, uneven = self._spread.failures(c)
        return {
            "label": unlabelled,
            "spread": uneven,
            "affinity": ~self._affinity.allowed(c),
            "anti_affinity": ~self._anti_affinity.clear(c),
            "others": ~self._anti_affinity.clear_of_repelling(c),
        }

    def _clear(self, c: int) -> Bools:
        return self._anti_affinity.clear(c) & self._anti_affinity.clear_of_repelling(c)

    def _allowed_together(self, c: int) -> Bools:
        """(N,) nodes that can take one of several tasks of class c, as the others level its spread.

        Only with a single spread over its own tasks: with several, the final counts may meet all of them although no
        order of placements does. Not for the first tasks of an affinity, the first of which is placed alone.
        """
        own = self._spread.own(c)
        together = len(own) == 1 and not self._affinity.may_be_first(c)
        return self._affinity.allowed(c) & self._clear(c) & self._spread.allowed(c, own if together else ())

    # -- how many may go in one solve -------------------------------------------------------------------------

    def limit(self, c: int, slots: I64, waiting: int) -> tuple[I64, list[DomainLimit]]:
        """slots (N,) of class c, 0 on nodes that its tasks cannot use, and what each domain can take in one solve."""
        slots = np.where(self._allowed_together(c), slots, 0)
        if self._affinity.may_be_first(c):
            slots = np.where(self._affinity.first_domain(c, slots), slots, 0)
        limits = [*self._anti_affinity.limits(c), *self._spread.limits(c, slots, waiting)]
        for limit in limits:
            slots = np.minimum(slots, np.append(limit.maximum, UNLIMITED)[limit.domain])
        return slots, limits

    def trim(self, c: int, node: I64, count: I64) -> I64:
        """(K,) how many of the count[i] tasks of class c on node[i] meet all constraints after earlier placements."""
        count = np.where(self._allowed_together(c)[node], count, 0)
        count = self._affinity.trim(c, node, count)
        count = self._anti_affinity.trim(c, node, count)
        return self._spread.trim(c, node, count)

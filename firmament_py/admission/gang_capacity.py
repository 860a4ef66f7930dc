"""How much capacity there is for a gang: bounds that need no solve, and the domains that it may choose from."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from firmament_py.admission.earliest_start import Need, enough_there, first_ends
from firmament_py.model.arrays import I64, Bools
from firmament_py.placement.ledger import Ledger
from firmament_py.snapshot.job_demand import JobDemand
from firmament_py.snapshot.solo_capacity import task_slots


@dataclass(frozen=True, slots=True)
class Choices:
    """D sets of nodes of which one has to take what a gang lacks. of (N,): the number of the set that a node is in, -1:
    none. everywhere: there is one set, of all nodes."""

    of: I64
    count: int
    everywhere: bool

    def nodes(self, number: int) -> Bools | None:
        """(N,) the nodes of one choice; None: all."""
        return None if self.everywhere else self.of == number

    def sums(self, amounts: I64) -> I64:
        """(C, D) the sums of `amounts` (C, N) >= 0 over the nodes of each choice."""
        inside = np.flatnonzero(self.of >= 0)
        sums = np.zeros((len(amounts), self.count), np.int64)
        for row, amount in zip(sums, amounts, strict=True):
            np.add.at(row, self.of[inside], amount[inside])
        return sums


def _choices(domain: I64) -> Choices:
    """Those of the domains (N,)."""
    return Choices(domain, int(domain.max(initial=-1)) + 1, everywhere=False)


class GangCapacity:
    """For gangs of the ledger's snapshot, by what the ledger has left."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._snapshot = ledger.snapshot

    def fitting(self, members: I64, within: Bools | None) -> int:
        """How many of `members` would fit on the nodes `within` (N,), None: any, if their classes did not compete: an
        upper bound."""
        slots = self._slots(members, within)
        return int(np.minimum(slots.sum(axis=1), self._waiting(members)).sum())

    def fitting_each(self, members: I64, choices: Choices) -> I64:
        """(D,) the same for each of the choices."""
        slots = self._slots(members)
        fitting: I64 = np.minimum(choices.sums(slots), self._waiting(members)[:, None]).sum(axis=0)
        return fitting

    def shortest_prefix(self, members: I64, within: Bools | None, order: I64) -> int:
        """Length of the shortest prefix of `order` (N,), at least 1, whose nodes hold all of `members` by that bound; N
        if none does."""
        slots = self._slots(members, within)
        fitting = np.minimum(np.cumsum(slots[:, order], axis=1), self._waiting(members)[:, None]).sum(axis=0)
        return min(int(np.searchsorted(fitting, len(members))) + 1, len(order))

    def first_ends(self, demand: JobDemand, choices: Choices) -> I64:
        """(D,) for each choice the position in `releases.ends` of the first end at which what the gang lacks could fit
        there beside what is reserved for others; len(ends): none. It fits then if all members are of one class without
        intertask constraints."""
        ledger, snapshot = self._ledger, self._snapshot
        need = self._need(demand, self._open_to(np.unique(snapshot.task_class[demand.members])))
        return first_ends(need, ledger.free_less_reserved, choices.of, choices.count, snapshot.releases)

    def some_day(self, demand: JobDemand, choices: Choices) -> Bools:
        """(D,) for each choice whether, by that bound, what the gang lacks could fit there if only tasks that stay were
        on the nodes."""
        snapshot = self._snapshot
        need = self._need(demand, snapshot.suitable[np.unique(snapshot.task_class[demand.members])])
        free = snapshot.allocatable - snapshot.releases.staying(demand.key)[1]
        return enough_there(need, free, choices.of, choices.count)

    def depends(self, demand: JobDemand) -> bool:
        """Whether where its members may go depends on where other tasks are."""
        classes = np.unique(self._snapshot.task_class[demand.members]).tolist()
        return any(self._snapshot.intertask.concerned[c] for c in classes)

    def every_domain(self, demand: JobDemand) -> Choices:
        """The widest domains that the gang may choose from."""
        return _choices(self._snapshot.domains_for(demand))

    def domains(self, demand: JobDemand) -> Iterator[Bools | None]:
        """Domains that could take what the gang lacks, (N,) each, the narrowest level first, then the tightest; of one
        that is required those first that take most of its members, since the others have to join them."""
        slots = self._slots(demand.members)
        largest = min(len(demand.members), demand.quota) if demand.topology_required else demand.lacking
        for domain in self._snapshot.levels_for(demand):
            choices = _choices(domain)
            in_domain = choices.sums(slots).sum(axis=0)
            order = np.lexsort((in_domain, -np.minimum(in_domain, largest)))
            yield from (choices.nodes(d) for d in order[in_domain[order] >= demand.lacking].tolist())

    def affinity_domains(self, demand: JobDemand, limit: int = 4) -> Iterator[Bools]:
        """Domains that members must share with other tasks, (N,) each, those with the most slots first, at most `limit`
        of each topology key."""
        classes = np.unique(self._snapshot.task_class[demand.members]).tolist()
        slots = self._slots(demand.members)
        for key in sorted({key for c in classes for key in self._snapshot.intertask.affine_keys(c)}):
            domain = self._snapshot.domains(key)
            in_domain = _choices(domain).sums(slots).sum(axis=0)
            for d in np.argsort(-in_domain, kind="stable")[:limit].tolist():
                if in_domain[d] >= demand.lacking:
                    yield domain == d

    def choices(self, demand: JobDemand) -> Choices:
        """Where all that the gang lacks may go: to one of these."""
        if demand.topology_required:
            return self.every_domain(demand)
        return Choices(np.zeros(len(self._snapshot.nodes), np.int64), 1, everywhere=True)

    def _slots(self, tasks: I64, within: Bools | None = None) -> I64:
        """(C', N) how many tasks of each class of `tasks`, ascending, each node could take alone."""
        classes, counts = np.unique(self._snapshot.task_class[tasks], return_counts=True)
        suitable = self._open_to(classes)
        suitable = suitable if within is None else suitable & within
        return task_slots(self._ledger.free_for(tasks), self._snapshot.requests[classes], suitable, counts)

    def _open_to(self, classes: I64) -> Bools:
        """(C', N) where tasks of each of `classes` may go, capacity aside, beside others that are placed later."""
        suitable = self._snapshot.suitable[classes]
        for i, c in enumerate(classes.tolist()):
            if self._snapshot.intertask.concerned[c]:
                suitable[i] &= self._snapshot.intertask.conceivable(c)
        return suitable

    def _need(self, demand: JobDemand, suitable: Bools) -> Need:
        """What the gang lacks, of members whose classes may go to `suitable` (C', N)."""
        requests = self._snapshot.requests[np.unique(self._snapshot.task_class[demand.members])]
        return Need(requests, suitable, self._waiting(demand.members), demand.lacking)

    def _waiting(self, members: I64) -> I64:
        """(C',) how many members there are of each of their classes."""
        return np.unique(self._snapshot.task_class[members], return_counts=True)[1]

"""Which flavors the tasks of queues take where a node is of several: those that they were admitted on. Of a task of
which that is not known, since others have placed it, or an engine that has restarted since, the oldest first: the first
flavor of its node in the order of its queue whose quota the others do not use up, or the first one."""

import numpy as np

from firmament_py.model.arrays import I64, Bools, distinct_rows
from firmament_py.queues.quota import capacity, left_to
from firmament_py.queues.tree import Queues
from firmament_py.sharing.flavors import Flavors, add_amounts
from firmament_py.state.cluster import ClusterState


class Choices:
    """of_task (T,): by row of the task table, number in state.flavor_choices, -1: unknown."""

    def __init__(self, state: ClusterState, queues: Queues, flavors: Flavors) -> None:
        self._tasks, self._known = state.tasks, state.flavor_choices
        self._queues, self._flavors = queues, flavors
        self.of_task: I64 = state.tasks.flavors.copy()
        self._flavor_row = {name: row for row, name in enumerate(queues.flavors)}
        self._chosen: I64 = np.full((1, len(queues.resources)), -1)

    # -- kinds of places: of nodes, and of choices ------------------------------------------------------------

    @property
    def kinds(self) -> int:
        return self._flavors.kinds * (len(self._known) + 1) if self._flavors.overlap else self._flavors.kinds

    def kind(self, rows: I64, positions: I64) -> I64:
        """(K,) numbers, below `kinds`, of what decides from which quota task rows (K,), -1: one that is not known, take
        on nodes at positions (K,) among the present ones."""
        kind = self._flavors.kind[positions]
        if not self._flavors.overlap:
            return kind
        return kind * (len(self._known) + 1) + np.where(rows >= 0, self.of_task[rows], -1) + 1

    def columns(self, queue: I64, kind: I64) -> I64:
        """(K, R) see Flavors.columns, for kinds (K,) of places."""
        if not self._flavors.overlap:
            return self._flavors.columns(queue, kind)
        of_nodes, choice = np.divmod(kind, len(self._known) + 1)
        return self._flavors.columns(queue, of_nodes, self._flavors_of(choice - 1))

    # -- choices ----------------------------------------------------------------------------------------------

    def choose(self, flavors: I64) -> I64:
        """(P,) the numbers of choices of a flavor for each resource (P, R), -1: of none. -1 if there is no choice."""
        queues = self._queues
        if len(queues.flavors) < 2 or not flavors.size:
            return np.full(len(flavors), -1)
        first, of = distinct_rows(flavors)
        numbers = [
            self._known.number(tuple((queues.resources[r], queues.flavors[f]) for r, f in enumerate(chosen) if f >= 0))
            for chosen in flavors[first].tolist()
        ]
        return np.array(numbers, np.int64)[of]

    def _flavors_of(self, numbers: I64) -> I64:
        """(K, R) the flavors of choices (K,), -1: unknown."""
        if len(self._chosen) <= len(self._known):
            column = {name: r for r, name in enumerate(self._queues.resources)}
            added = np.full((len(self._known) + 1 - len(self._chosen), len(column)), -1)
            for number in range(len(self._chosen) - 1, len(self._known)):
                for resource, flavor in self._known[number]:
                    if resource in column:
                        added[number + 1 - len(self._chosen), column[resource]] = self._flavor_row.get(flavor, -1)
            self._chosen = np.vstack([self._chosen, added])
        found: I64 = self._chosen[numbers + 1]
        return found

    # -- those that are not known -----------------------------------------------------------------------------

    def settle(self, rows: I64, kind: I64, amounts: I64) -> None:
        """Chooses for those of task rows (K,), all that hold quota, on nodes of kinds (K,), requesting amounts (K, R),
        that have no choice that suits these, beside the others."""
        unknown, open_to = self._unknown(rows, kind, amounts)
        if not unknown.any():
            return
        unit = self._tasks.gang[rows]
        if open_to.any():
            order = self._by_age(rows)
            rows, kind, amounts, unit = rows[order], kind[order], amounts[order], unit[order]
            unknown, open_to = unknown[order], open_to[order]
        queue, chosen = self._tasks.queue_row[rows], self._flavors_of(self.of_task[rows])
        group, columns = self._queues.group[queue], self._flavors.columns(queue, kind, chosen)
        used = np.zeros_like(self._queues.nominal)
        add_amounts(used, queue, np.where(open_to, -1, columns), amounts)
        flavor = np.where(columns >= 0, columns // max(columns.shape[1], 1), -1)
        loose = np.flatnonzero(open_to.any(axis=1))
        alike = np.column_stack([queue, kind, unit, amounts, open_to])[loose]
        begins = np.flatnonzero(np.r_[True, (np.diff(alike, axis=0) != 0).any(axis=1)][: len(loose)])
        within, ends = capacity(self._queues), np.r_[begins[1:], len(loose)][: len(begins)].tolist()
        for begin, end in zip(begins.tolist(), ends, strict=True):  # runs of tasks that are alike
            run, left = loose[begin:end], left_to(self._queues, within, used)
            first, q = int(run[0]), int(queue[run[0]])
            for g in np.unique(group[first][open_to[first]]).tolist():
                request = np.where(open_to[first] & (group[first] == g), amounts[first], 0)
                taken = self._divided(left[q], (q, g, int(kind[first])), request, len(run), whole=unit[first] >= 0)
                flavor[run] = np.where(request > 0, taken[:, None], flavor[run])
                add_amounts(used, queue[run], _columns(taken, request), np.tile(request, (len(run), 1)))
        settled = np.flatnonzero(unknown.any(axis=1))
        self.of_task[rows[settled]] = self.choose(flavor[settled])

    def _unknown(self, rows: I64, kind: I64, amounts: I64) -> tuple[Bools, Bools]:
        """(K, R) each: of what task rows (K,) have no choice that suits them, and of what of it there are several."""
        queue, chosen = self._tasks.queue_row[rows], self._flavors_of(self.of_task[rows])
        group = self._queues.group[queue]
        unknown: Bools = (group >= 0) & (amounts > 0) & ~self._flavors.suits(queue, kind, chosen)
        return unknown, unknown & self._flavors.several[queue[:, None], np.maximum(group, 0), kind[:, None]]

    def _by_age(self, rows: I64) -> I64:
        """The order (K,) of task rows (K,): those on nodes, then nominated ones; the oldest first, gangs together."""
        tasks = self._tasks
        gang, since_us = tasks.gang[rows], tasks.created_us[rows].copy()
        members = np.flatnonzero(gang >= 0)
        gangs, of = np.unique(gang[members], return_inverse=True)
        oldest = np.full(len(gangs), np.iinfo(np.int64).max)
        np.minimum.at(oldest, of.reshape(-1), since_us[members])
        since_us[members] = oldest[of.reshape(-1)]
        return np.lexsort((tasks.uid[rows], tasks.cls[rows], gang, since_us, tasks.node[rows] < 0))

    def _divided(self, left: I64, of: tuple[int, int, int], request: I64, count: int, *, whole: bool) -> I64:
        """(count,) the flavors of so many tasks that request (R,) each; of: their queue, resource group, and the kind
        of their nodes. left (V,): to the queue. whole: all take the same one."""
        q, g, kind = of
        order = self._queues.flavor_order[q, g]
        order = order[order >= 0]
        order = order[self._flavors.of_kind[kind, order]]
        taken, done, some = np.full(count, order[0]), 0, np.flatnonzero(request)
        for f in order.tolist():
            fit = int((np.maximum(left[f * len(request) + some], 0) // request[some]).min())
            fit = min(fit, count - done) if not whole else count * (fit >= count)
            taken[done : done + fit] = f
            done += fit
            if done == count:
                break
        return taken


def _columns(flavor: I64, request: I64) -> I64:
    """(K, R) the columns of flavors (K,) of what is requested (R,), else -1."""
    resources = len(request)
    return np.where(request > 0, flavor[:, None] * resources + np.arange(resources), -1)

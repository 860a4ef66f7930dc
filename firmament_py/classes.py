"""Equivalence classes of tasks: described once, then named by number.

Tasks of one class are interchangeable to the network, so they share one supply vertex per job. Classes are kept
as long as a task refers to them; unused ones go when they outnumber the used ones, and a sender that names one
that has gone is asked to describe it again.
"""

from dataclasses import replace
from typing import ClassVar

import numpy as np

from firmament_py.arrays import I64, U64
from firmament_py.columns import Table
from firmament_py.constraints import NO_PEERS, NodeDemand, Operator, integer
from firmament_py.events import ClassDefined, Refusal
from firmament_py.resources import LIMIT, TASK_SLOTS, TOKEN, Resources, resized, token_requests

_KEEP_UNUSED = 1024


class ClassTable(Table):
    """One row a class. `requests` is (capacity, R), one column a resource; every class takes one task slot."""

    FIELDS: ClassVar = {"id": (np.uint64, 0), "priority": (np.int64, 0), "tasks": (np.int64, 0)}
    id: U64
    priority: I64
    tasks: I64  # rows of the task table that refer to the class

    def __init__(self, resources: Resources) -> None:
        super().__init__()
        self._resources = resources
        self.with_peers = False
        """Whether a class ever demanded anything of other tasks."""
        self._row: dict[int, int] = {}
        self._definition: dict[int, ClassDefined] = {}
        self._requests: I64 = np.zeros((self.capacity, len(resources)), np.int64)

    @property
    def requests(self) -> I64:
        self._requests = resized(self._requests, self.capacity, len(self._resources))
        return self._requests

    def definition(self, row: int) -> ClassDefined:
        return self._definition[row]

    def demand(self, row: int) -> NodeDemand:
        return self._definition[row].demand

    def find(self, ids: U64) -> I64:
        """Rows of classes `ids` (K,) -> (K,), -1 where unknown."""
        unique, inverse = np.unique(ids, return_inverse=True)
        rows = np.array([self._row.get(i, -1) for i in unique.tolist()], np.int64)
        return rows[inverse] if len(unique) else np.zeros(0, np.int64)

    def define(self, new: ClassDefined) -> Refusal | None:
        """Adds a class. The same again is fine; another content under a known id is refused."""
        problem = _problem(new)
        if problem is not None:
            return Refusal("class", str(new.id), *problem)
        known = self._row.get(new.id)
        if known is not None:
            old = self._definition[known]
            if replace(old, name="") != replace(new, name=""):
                return Refusal("class", str(new.id), "id", "already names a different class; use another id")
            return None
        self._drop_unused()
        self.with_peers = (
            self.with_peers or new.peers != NO_PEERS or bool(new.preferences.peers or new.preferences.spread)
        )
        row = int(self.allocate(1)[0])
        self._row[new.id], self._definition[row] = row, new
        amounts = {**new.requests, **token_requests(new.tokens), TASK_SLOTS: 1}
        vector = self._resources.vector(amounts, LIMIT)
        self.requests[row] = 0
        self.requests[row, : len(vector)] = vector
        self.id[row], self.priority[row] = new.id, new.priority
        return None

    def _drop_unused(self) -> None:
        if len(self) < 2 * _KEEP_UNUSED:
            return
        rows = self.rows()
        unused = rows[self.tasks[rows] == 0]
        if 2 * len(unused) < len(rows):
            return
        # the newest stay: their tasks may be on the way
        drop = unused[np.argsort(unused)][:-_KEEP_UNUSED]
        for row in drop.tolist():
            del self._row[int(self.id[row])], self._definition[row]
        self.release(drop)


def _problem(new: ClassDefined) -> tuple[str, str] | None:
    """(field, reason) of the first thing in a definition that makes no sense."""
    if new.id == 0:
        return "id", "must not be 0"
    for resource, amount in new.requests.items():
        if amount < 0:
            return f"requests[{resource}]", f"is {amount}; give an amount of 0 or more"
        if resource.startswith(TOKEN):
            return f"requests[{resource}]", "names a token; say it in tokens"
    requirements = [("node_selector", r) for r in new.demand.selector]
    groups = (*new.demand.affinity, *(terms for _, terms in new.demand.further))
    for term in (term for terms in groups for term in terms):
        requirements += [("node_affinity", r) for r in (*term.labels, *term.fields)]
    for spread in new.peers.spread:
        if spread.max_skew < 1:
            return f"spread[{spread.topology_key}].max_skew", f"is {spread.max_skew}; give 1 or more"
    for where, requirement in requirements:
        if requirement.operator in (Operator.GT, Operator.LT) and (
            len(requirement.values) != 1 or integer(requirement.values[0]) is None
        ):
            return f"{where}[{requirement.key}]", f"{requirement.operator} takes exactly one integer"
    return None

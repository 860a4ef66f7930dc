"""Equivalence classes of tasks: described once, then referred to by number.

Tasks of one class are interchangeable to the network, so they share one supply vertex.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.model.constraints import NO_PEERS, NO_PREFERENCES, NodeDemand, PeerTerm
from firmament_py.model.events import ClassDefined, Refusal
from firmament_py.model.resources import LIMIT, LINKS, TASK_SLOTS, TOKEN, Resources, resized, token_requests
from firmament_py.state.class_bounds import excess, terms
from firmament_py.state.table import KeyedTable

SPARE_ROWS = 1024


class ClassTable(KeyedTable[ClassDefined]):
    """One row per class. `requests` is (capacity, R), one column per resource; every class takes one task slot."""

    FIELDS: ClassVar = {
        **KeyedTable.FIELDS,
        "priority": (np.int64, 0),
        "expected_us": (np.int64, 0),
        "terms": (np.int64, 0),
        "wishes": (np.bool_, False),
        "repels": (np.bool_, False),
        "seeks": (np.bool_, False),
        "prefers": (np.bool_, False),
        "has_traits": (np.bool_, False),
        "never_preempts": (np.bool_, False),
    }
    priority: I64
    expected_us: I64  # expected duration of a task, below LIMIT; 0: unknown
    terms: I64  # terms of affinity, anti-affinity and spread, required and preferred
    wishes: Bools  # whether its tasks have inter-task preferences; see carried
    repels: Bools  # whether it has anti-affinity, which excludes other tasks from the domains of its tasks
    seeks: Bools  # whether it has affinity or spreading, which nodes may meet once other tasks are placed
    prefers: Bools  # whether it has preferences of any kind
    has_traits: Bools
    never_preempts: Bools  # no task is evicted for one of its tasks

    def __init__(self, resources: Resources) -> None:
        super().__init__(SPARE_ROWS)
        self._resources = resources
        self.has_intertask_constraints = False
        """Whether any class ever had inter-task constraints."""
        self.has_intertask_terms = False
        """Whether any class ever had inter-task constraints or preferences."""
        self._requests: I64 = np.zeros((self.capacity, len(resources)), np.int64)
        self._lacking: dict[int, dict[str, int]] = {}

    @property
    def requests(self) -> I64:
        self._requests = resized(self._requests, self.capacity, len(self._resources))
        return self._requests

    def lacking(self, row: int) -> Mapping[str, int]:
        """Amounts > 0 that a class requests of resources without a column, which no node offers."""
        return self._lacking.get(row, {})

    def demand(self, row: int) -> NodeDemand:
        return self._definition[row].demand

    def define(self, new: ClassDefined) -> Refusal | None:
        """Adds a class, or returns why it is refused. Defining the same class again changes nothing."""
        problem = _problem(new)
        if problem is not None:
            return Refusal("class", str(new.id), *problem)
        known = self._row.get(new.id)
        if known is not None:
            old = self._definition[known]
            if replace(old, name="") != replace(new, name=""):
                return Refusal("class", str(new.id), "id", "already names a different class; use another id")
            return None
        self.has_intertask_constraints |= new.peers != NO_PEERS
        self.has_intertask_terms |= new.peers != NO_PEERS or bool(new.preferences.peers or new.preferences.spread)
        row = self.add(new.id, new)
        for link in LINKS:
            if link in new.requests:
                self._resources.column(link)
        amounts = {**new.requests, **token_requests(new.tokens), TASK_SLOTS: 1}
        self.requests[row] = self._resources.vector(amounts, LIMIT)
        lacking = {name: amount for name, amount in amounts.items() if amount and name not in self._resources}
        if lacking:
            self._lacking[row] = lacking
        self.priority[row], self.expected_us[row] = new.priority, min(new.expected_us, LIMIT)
        self.terms[row] = sum(terms(new).values())
        self.wishes[row] = bool(carried(new))
        self.prefers[row] = new.preferences != NO_PREFERENCES
        self.repels[row], self.has_traits[row] = bool(new.peers.anti_affinity), bool(new.traits)
        self.seeks[row] = bool(new.peers.affinity or new.peers.spread)
        self.never_preempts[row] = new.never_preempts
        return None

    def add_token_columns(self, rows: I64) -> None:
        """Adds columns for the tokens of class rows (K,), which are about to get tasks."""
        names = {name for row in set(rows.tolist()) for name in self.lacking(row) if name.startswith(TOKEN)}
        if names:
            self.add_columns(sorted(names))

    def add_columns(self, names: Iterable[str]) -> None:
        """Adds columns for resources, filled with the requests of classes."""
        columns = {name: self._resources.column(name) for name in names}
        for row, lacking in list(self._lacking.items()):
            for name in columns.keys() & lacking.keys():
                self.requests[row, columns[name]] = min(lacking.pop(name), LIMIT)
            if not lacking:
                del self._lacking[row]

    def keep_columns(self, columns: I64) -> None:
        """Removes all other columns; called before the same columns of `Resources` are removed."""
        names, requests = self._resources.names, self.requests
        rows = self.rows()
        dropped = np.setdiff1d(np.arange(len(names)), columns)
        for r in dropped.tolist():
            for row in rows[requests[rows, r] > 0].tolist():
                self._lacking.setdefault(row, {})[names[r]] = int(requests[row, r])
        self._requests = np.ascontiguousarray(requests[:, columns])

    def sweep(self) -> None:
        """Removes classes that no task has referred to for a while, if there are many of them."""
        for row in self.remove_unused().tolist():
            self._lacking.pop(row, None)


def carried(definition: ClassDefined) -> tuple[tuple[int, PeerTerm], ...]:
    """(weight, term) by which running tasks of a class attract or repel tasks that the term matches.

    A required affinity has weight 1, the default of kube-scheduler's hardPodAffinityWeight.
    """
    return (*definition.preferences.peers, *((1, term) for term in definition.peers.affinity))


def _problem(new: ClassDefined) -> tuple[str, str] | None:
    """Field and reason of the first invalid value of a definition; None if all are valid."""
    if new.id == 0:
        return "id", "must not be 0"
    for resource, amount in new.requests.items():
        if amount < 0:
            return f"requests[{resource}]", f"is {amount}; give an amount of 0 or more"
        if resource.startswith(TOKEN):
            return f"requests[{resource}]", "names a token; list it in tokens"
    if new.expected_us < 0:
        return "expected_us", f"is {new.expected_us}; give 0 for unknown, or more"
    for spread in new.peers.spread:
        if spread.max_skew < 1:
            return f"spread[{spread.topology_key}].max_skew", f"is {spread.max_skew}; give 1 or more"
    return excess(new)

"""The capacities of one solve: slots of nodes, limits of topology domains, limits set by the policy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from firmament_py.model.arrays import I64, U8, Bools
from firmament_py.policy import Costs
from firmament_py.snapshot.domain_limits import UNLIMITED, DomainLimit
from firmament_py.snapshot.solo_capacity import SoloCapacity

BY_CLASS, BY_RACK = np.uint8(1), np.uint8(2)

_LEAST_SHARE = 50
"""With a node limit, a solve can still place one in this number of the waiting tasks."""


def built_in(limits: Sequence[DomainLimit]) -> list[DomainLimit]:
    """The limits of a class that are built into a network: the first that spans nodes, and the first per node."""
    first: dict[bool, DomainLimit] = {}
    for limit in limits:
        first.setdefault(limit.is_per_node, limit)
    return list(first.values())


@dataclass(frozen=True, slots=True)
class SharedLimits:
    """The limits of J classes on the same domains, which nodes share: see DomainLimit. domain (N,), classes (J,),
    maximum and soft_limit (J, D), soft_limit_cost (J,)."""

    domain: I64
    classes: I64
    maximum: I64
    soft_limit: I64
    soft_limit_cost: I64


@dataclass(frozen=True, slots=True)
class Capacities:
    """C classes, N nodes.

    slots (C, N): number of tasks of a class that a node can take without other classes. depth (N,): largest number of
    tasks of all classes on a node, > 0 if and only if it has a slot for any. limits: by class, of domains. nodes (N,),
    ascending: in a part of other capacities, the position of each node in these; None: the same ones. alone: the slots
    if more tasks of each class were waiting; None: not known.

    If classes share rows (network/alike.py), `slots` has a row for several, `limits` are those of rows with one class,
    and row_of (C,) is the row of each class, -1 of those without tasks; shared: of other rows, the limits of their
    classes on domains that nodes share. Otherwise each class has its own row.

    entries (C, N): in a part of capacities with costs of data, whether the class and the class in the node's rack have
    arcs to the node, BY_CLASS | BY_RACK; None: all have, where there are slots.
    """

    slots: I64
    depth: I64
    limits: Mapping[int, Sequence[DomainLimit]]
    nodes: I64 | None = None
    alone: SoloCapacity | None = None
    row_of: I64 | None = None
    entries: U8 | None = None
    shared: Mapping[int, "SharedLimits"] = field(default_factory=dict)

    @property
    def has_slots(self) -> Bools:
        """(C,) whether any node can take a task of each class."""
        some: Bools = (self.slots if self.alone is None else self.alone.slots).max(axis=1, initial=0) > 0
        return some if self.alone is None else some[self.alone.of_class]

    def of_rows(self, task_class: I64) -> I64:
        """(T,) the row of each task's class."""
        return task_class if self.row_of is None else self.row_of[task_class]

    def shared_domains(self, row: int) -> tuple[I64, int]:
        """(N,) the domains that nodes share by a row's limits, -1: none, and their number; it must have such limits."""
        if row in self.shared:
            return self.shared[row].domain, self.shared[row].maximum.shape[1]
        limit = next(limit for limit in self.limits[row] if not limit.is_per_node)
        return limit.domain, len(limit.maximum)


def selected(capacities: Capacities, nodes: I64) -> Capacities:
    """The part of the capacities on `nodes` (K,), ascending."""
    limits = {c: [limit.on(nodes) for limit in of_class] for c, of_class in capacities.limits.items()}
    shared = {k: replace(of_row, domain=of_row.domain[nodes]) for k, of_row in capacities.shared.items()}
    return Capacities(
        capacities.slots[:, nodes], capacities.depth[nodes], limits, nodes, row_of=capacities.row_of, shared=shared
    )


def with_policy_limits(capacities: Capacities, costs: Costs, waiting: int) -> Capacities:
    """The capacities reduced by the limits of the policy, for `waiting` tasks."""
    if costs.node_limit is not None:
        capacities = with_node_limit(capacities, costs.node_limit, waiting)
    return _with_aggregators(_with_soft_limit(capacities, costs), costs)


def with_node_limit(capacities: Capacities, node_limit: I64, waiting: int) -> Capacities:
    """At most node_limit (N,) >= 0 tasks on each node. If less than a fiftieth of the `waiting` tasks, or of the
    capacity, could be placed with it, the limit is doubled until that is possible; a limit of 0 becomes 1 first."""
    target = min(-(-waiting // _LEAST_SHARE), int(capacities.depth.sum()))
    while int(np.minimum(capacities.depth, node_limit).sum()) < target:
        node_limit = np.maximum(2 * node_limit, 1)
    alone = capacities.alone
    return Capacities(
        np.minimum(capacities.slots, node_limit),
        np.minimum(capacities.depth, node_limit),
        capacities.limits,
        alone=None if alone is None else replace(alone, slots=np.minimum(alone.slots, node_limit)),
    )


def _with_soft_limit(capacities: Capacities, costs: Costs) -> Capacities:
    """Adds the policy's soft limit after the limits from the tasks' own constraints and preferences."""
    if costs.soft_limit is None or costs.soft_limit_cost is None:
        return capacities
    classes, nodes = capacities.slots.shape
    soft_limit = np.broadcast_to(costs.soft_limit, (classes, nodes))
    domain, unlimited = np.arange(nodes), np.full(nodes, UNLIMITED)
    limits = dict(capacities.limits)
    for c in np.flatnonzero(costs.soft_limit_cost).tolist():
        of_policy = DomainLimit(domain, unlimited, soft_limit[c], int(costs.soft_limit_cost[c]))
        limits[c] = [*limits.get(c, ()), of_policy]
    return replace(capacities, limits=limits)


def _with_aggregators(capacities: Capacities, costs: Costs) -> Capacities:
    """Adds the policy's aggregators after the limits from the tasks' own constraints and preferences."""
    if costs.aggregators is None:
        return capacities
    limits = dict(capacities.limits)
    groups = costs.aggregators
    unlimited = np.full(groups.soft_limit.shape[1], UNLIMITED)
    for c in np.flatnonzero(groups.cost).tolist():
        of_policy = DomainLimit(
            groups.of_node, unlimited, np.minimum(groups.soft_limit[c], UNLIMITED), int(groups.cost[c])
        )
        limits[c] = [*limits.get(c, ()), of_policy]
    return replace(capacities, limits=limits)

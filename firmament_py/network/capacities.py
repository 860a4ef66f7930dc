"""The capacities of one solve: slots of nodes, limits of topology domains, limits set by the policy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from firmament_py.model.arrays import I64
from firmament_py.policy import Costs
from firmament_py.snapshot.domain_limits import UNLIMITED, DomainLimit
from firmament_py.snapshot.solo_capacity import SoloCapacity

_LEAST_SHARE = 50
"""With a node limit, a solve can still place one in this number of the waiting tasks."""


def built_in(limits: Sequence[DomainLimit]) -> list[DomainLimit]:
    """The limits of a class that are built into a network: the first that spans nodes, and the first per node."""
    first: dict[bool, DomainLimit] = {}
    for limit in limits:
        first.setdefault(limit.is_per_node, limit)
    return list(first.values())


@dataclass(frozen=True, slots=True)
class Capacities:
    """C classes, N nodes.

    slots (C, N): number of tasks of a class that a node can take without other classes. depth (N,): largest number of
    tasks of all classes on a node, > 0 if and only if it has a slot for any. limits: by class, of domains. nodes (N,),
    ascending: in a part of other capacities, the position of each node in these; None: the same ones. alone: the slots
    if more tasks of each class were waiting; None: not known.
    """

    slots: I64
    depth: I64
    limits: Mapping[int, Sequence[DomainLimit]]
    nodes: I64 | None = None
    alone: SoloCapacity | None = None


def selected(capacities: Capacities, nodes: I64) -> Capacities:
    """The part of the capacities on `nodes` (K,), ascending."""
    limits = {c: [limit.on(nodes) for limit in of_class] for c, of_class in capacities.limits.items()}
    return Capacities(capacities.slots[:, nodes], capacities.depth[nodes], limits, nodes)


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

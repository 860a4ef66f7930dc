"""Groups of nodes that are equal for all waiting classes: each is one vertex of a network."""

import numpy as np

from firmament_py.model.arrays import I64, mix
from firmament_py.network.capacities import Capacities, built_in
from firmament_py.network.preference_arcs import node_columns
from firmament_py.policy import Costs
from firmament_py.snapshot.domain_limits import DomainLimit


def node_groups(capacities: Capacities, costs: Costs) -> tuple[I64, I64, I64]:
    """members, member_start and the first node of each group; nodes without slots for any class are left out."""
    usable = np.flatnonzero(capacities.depth)
    slots = capacities.slots if len(usable) == len(capacities.depth) else capacities.slots[:, usable]
    signatures = mix([*slots, capacities.depth[usable]], seed=1)
    if costs.place.shape[1] > 1:
        signatures = signatures + mix(costs.place[:, usable], seed=2)
    if costs.slot.shape[0] > 1:
        signatures = signatures + mix(np.ascontiguousarray(costs.slot[usable].T), seed=3)
    rows = [
        _signature_of_limit(limit)[usable] for of_class in capacities.limits.values() for limit in built_in(of_class)
    ]
    rows += [shared.domain[usable] for shared in capacities.shared.values()]
    if rows:
        signatures = signatures + mix(np.stack(rows), seed=5)
    if capacities.entries is not None:
        signatures = signatures + mix(capacities.entries[:, usable].astype(np.int64), seed=8)
    if costs.data is not None:
        signatures = signatures + mix(node_columns(costs.data)[:, usable], seed=6)
    _, first, group, sizes = np.unique(signatures, return_index=True, return_inverse=True, return_counts=True)
    members = usable[np.argsort(group, kind="stable")]
    return members, np.r_[0, np.cumsum(sizes)].astype(np.int64), usable[first]


def _signature_of_limit(limit: DomainLimit) -> I64:
    """(N,) equal for nodes that can share a group: those of one domain, or of single-node domains with equal limits."""
    if not limit.is_per_node:
        return limit.domain
    alike = limit.maximum * (int(limit.soft_limit.max(initial=0)) + 1) + limit.soft_limit
    return np.append(alike, -1)[limit.domain]

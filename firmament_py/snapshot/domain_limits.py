"""Limits on the number of tasks of a class that one solve places in each topology domain."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from firmament_py.model.arrays import I64

UNLIMITED = 2**40
"""More tasks than any cluster has, and few enough that sums over nodes are exact."""


@dataclass(frozen=True)
class DomainLimit:
    """The number of tasks of a class that one solve can place in each domain.

    domain (N,): each node's domain, -1: no limit. maximum, soft_limit (D,): tasks, 0 <= soft_limit <= maximum.
    soft_limit_cost: added for each task above a domain's soft limit. per_node: whether no domain has more than one
    node, where `domain` leaves out nodes or that is known; None: it leaves out none.
    """

    domain: I64
    maximum: I64
    soft_limit: I64
    soft_limit_cost: int
    per_node: bool | None = None

    @cached_property
    def is_per_node(self) -> bool:
        """Whether no domain has more than one node."""
        return has_one_node_each(self.domain) if self.per_node is None else self.per_node

    def on(self, nodes: I64) -> "DomainLimit":
        """The limit with `nodes` (K,) alone: a domain that spans nodes still does if one of them is left."""
        return replace(self, domain=self.domain[nodes], per_node=self.is_per_node)

    def soft_limit_on(self, nodes: I64) -> I64:
        """(K,) the soft limit of the domain of each of `nodes` (K,), UNLIMITED without a domain."""
        return np.append(self.soft_limit, UNLIMITED)[self.domain[nodes]]


def has_one_node_each(domain: I64) -> bool:
    """Whether no domain of domain (N,) has more than one node, -1: none."""
    return int(np.bincount(domain[domain >= 0]).max(initial=0)) <= 1

"""Limits on the number of tasks of a class that one solve places in each topology domain."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from firmament_py.model.arrays import I64

UNLIMITED = 2**40


@dataclass(frozen=True)
class DomainLimit:
    """The number of tasks of a class that one solve can place in each domain.

    domain (N,): each node's domain, -1: no limit. maximum, soft_limit (D,): tasks, 0 <= soft_limit <= maximum.
    soft_limit_cost: added for each task above a domain's soft limit.
    """

    domain: I64
    maximum: I64
    soft_limit: I64
    soft_limit_cost: int

    @cached_property
    def is_per_node(self) -> bool:
        """Whether no domain has more than one node."""
        return int(np.bincount(self.domain[self.domain >= 0]).max(initial=0)) <= 1

"""Limits on what topology domains may take of a class in one solve."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from firmament_py.arrays import I64


@dataclass(frozen=True)
class DomainLimit:
    """What one solve may place of a class in each domain: at most `most`, and `wanted` before any more elsewhere.

    domain (N,): each node's domain, -1: no limit. most, wanted: (D,), 0 <= wanted <= most.
    """

    domain: I64
    most: I64
    wanted: I64

    @cached_property
    def is_per_node(self) -> bool:
        """Whether no domain has more than one node."""
        domains = self.domain[self.domain >= 0]
        return len(domains) == len(np.unique(domains))

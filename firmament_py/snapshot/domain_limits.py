"""How many tasks of a class one solve may place in each topology domain."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from firmament_py.model.arrays import I64

UNLIMITED = 2**40


@dataclass(frozen=True)
class DomainLimit:
    """What one solve may place of a class in each domain: at most `most`, and `wanted` before any more elsewhere.

    domain (N,): each node's domain, -1: no limit. most, wanted: (D,), 0 <= wanted <= most. beyond: what each task
    beyond `wanted` costs more.
    """

    domain: I64
    most: I64
    wanted: I64
    beyond: int

    @cached_property
    def is_per_node(self) -> bool:
        """Whether no domain has more than one node."""
        domains = self.domain[self.domain >= 0]
        return len(domains) == len(np.unique(domains))

"""What a policy sees of running tasks that could be evicted, and the usual costs of evicting and of moving them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64
from firmament_py.policy.api import MOVING_MAX

EVICTION_COST = 10_000
"""The usual cost of evicting a task that has just started."""

_HALVING_S = 60.0
_STEPS_OF_DOUBLING, _COST_OF_STEP = 4, 250


@dataclass(frozen=True, slots=True)
class Victims:
    """P running tasks of C classes that could be evicted, R resources. Read-only.

    Amounts are as in View. run_us, lost_us: microseconds since the start of the task, and since its start or its last
    checkpoint: what it has to repeat.
    """

    resources: tuple[str, ...]  # R names
    requests: I64  # (C, R) amounts of one task of each class
    priority: I64  # (C,)
    traits: tuple[Mapping[str, str], ...]  # (C,) name -> value
    task_class: I64  # (P,)
    run_us: I64  # (P,) >= 0
    lost_us: I64  # (P,) >= 0, at most run_us

    def trait(self, name: str) -> tuple[str, ...]:
        """(C,) the value of a trait of each class, "" where it has none."""
        return tuple(of_class.get(name, "") for of_class in self.traits)


def eviction_cost(victims: Victims) -> I64:
    """(P,) the usual cost of evicting each: EVICTION_COST, and a tenth of it each time that a minute and the lost work
    double.

    So one task that loses ten hours costs nearly as much as two that have just started. In steps of a quarter of a
    doubling, so that tasks of similar age are alike.
    """
    return EVICTION_COST + _COST_OF_STEP * _steps(victims)


def moving_cost(victims: Victims, base: int) -> I64:
    """(P,) a cost of moving each: `base` for one that has nothing to repeat, and as much again each time that a minute
    and the lost work quadruple."""
    return np.minimum(base + base * _steps(victims) // (2 * _STEPS_OF_DOUBLING), MOVING_MAX)


def _steps(victims: Victims) -> I64:
    """(P,) quarters of a doubling of a minute and the lost work."""
    doublings = np.log2(1.0 + victims.lost_us / (_HALVING_S * 1e6))
    steps: I64 = np.floor(_STEPS_OF_DOUBLING * doublings).astype(np.int64)
    return steps

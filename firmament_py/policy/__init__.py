"""All that the author of a policy imports: what a policy sees and answers, and what holds for every answer."""

from firmament_py.model.arrays import F64, I32, I64, U8, U64, Bools
from firmament_py.policy.anywhere import AnywherePolicy
from firmament_py.policy.api import (
    API_VERSION,
    COST_MAX,
    MOVING_MAX,
    NODE_LIMIT_MAX,
    PRIORITY_STEP,
    WAIT_MAX,
    WAIT_MIN,
    Costs,
    NodeUsage,
    Policy,
    Surroundings,
    View,
    counts_links,
    rack_labels,
    waiting_cost,
)
from firmament_py.policy.locality import DataCosts, Inputs
from firmament_py.policy.preemption import EVICTION_COST, Victims, eviction_cost, moving_cost
from firmament_py.policy.validation import (
    FAILURES,
    PolicyError,
    checked_costs,
    checked_eviction_costs,
    checked_moving_costs,
    failure,
)
from firmament_py.policy.version_1 import MOST_MAX, DataPrices, Prices, checked_prices

__all__ = [
    "API_VERSION",
    "COST_MAX",
    "EVICTION_COST",
    "F64",
    "FAILURES",
    "I32",
    "I64",
    "MOST_MAX",
    "MOVING_MAX",
    "NODE_LIMIT_MAX",
    "PRIORITY_STEP",
    "U8",
    "U64",
    "WAIT_MAX",
    "WAIT_MIN",
    "AnywherePolicy",
    "Bools",
    "Costs",
    "DataCosts",
    "DataPrices",
    "Inputs",
    "NodeUsage",
    "Policy",
    "PolicyError",
    "Prices",
    "Surroundings",
    "Victims",
    "View",
    "checked_costs",
    "checked_eviction_costs",
    "checked_moving_costs",
    "checked_prices",
    "counts_links",
    "eviction_cost",
    "failure",
    "moving_cost",
    "rack_labels",
    "waiting_cost",
]

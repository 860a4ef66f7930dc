"""Version 1 of the policy interface, so that policies written for it keep working.

Such a policy has a method `price(view)` that returns Prices. They hold what Costs hold, under other names:

    most   -> node_limit          enough -> soft_limit
    turn   -> stage               beyond -> soft_limit_cost
"""

from dataclasses import dataclass
from typing import Any, Protocol, cast

from firmament_py.model.arrays import I64
from firmament_py.policy.api import NODE_LIMIT_MAX, Costs, Policy, View
from firmament_py.policy.locality import DataCosts
from firmament_py.policy.validation import checked_costs

MOST_MAX = NODE_LIMIT_MAX
DataPrices = DataCosts


@dataclass(frozen=True, slots=True)
class Prices:
    """What a policy of version 1 answers; each field is described in Costs under its new name."""

    place: I64
    slot: I64
    wait: I64
    fill: bool = False
    enough: I64 | None = None
    beyond: I64 | None = None
    turn: I64 | None = None
    most: I64 | None = None
    data: DataPrices | None = None


class PricingPolicy(Protocol):
    """What a policy was in version 1."""

    @property
    def name(self) -> str: ...

    def price(self, view: View) -> Prices: ...


class Version1Policy:
    """A policy of version 1 as one of the current version. All other attributes are those of the policy."""

    def __init__(self, policy: PricingPolicy) -> None:
        self._policy = policy

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # nothing private is passed on, and a copy under construction has no policy yet
            raise AttributeError(name)
        return getattr(self._policy, name)

    @property
    def name(self) -> str:
        return self._policy.name

    def costs(self, view: View) -> Costs:
        """Raises TypeError if the policy does not answer with Prices."""
        prices = self._policy.price(view)
        if not isinstance(prices, Prices):
            raise TypeError(f"price() returned {type(prices).__name__}, not Prices")
        return Costs(
            prices.place,
            prices.slot,
            prices.wait,
            prices.fill,
            soft_limit=prices.enough,
            soft_limit_cost=prices.beyond,
            stage=prices.turn,
            node_limit=prices.most,
            data=prices.data,
        )


def in_current_version(policy: Policy | PricingPolicy) -> Policy:
    """`policy` itself, or a Version1Policy around it if it was written for version 1: its class, or the nearest base
    that has either method, defines `price` and no `costs`. One that states a later api_version is left as it is."""
    methods = next((names for cls in type(policy).__mro__ if (names := {"price", "costs"} & vars(cls).keys())), set())
    if methods == {"price"} and getattr(policy, "api_version", 1) == 1:
        return Version1Policy(cast(PricingPolicy, policy))
    return cast(Policy, policy)


def prices_of(costs: Costs) -> Prices:
    """The same under the names of version 1."""
    return Prices(
        costs.place,
        costs.slot,
        costs.wait,
        costs.fill,
        enough=costs.soft_limit,
        beyond=costs.soft_limit_cost,
        turn=costs.stage,
        most=costs.node_limit,
        data=costs.data,
    )


def checked_prices(policy: Policy | PricingPolicy, view: View) -> Prices:
    """The prices of a policy of either version. Raises PolicyError as checked_costs does."""
    return prices_of(checked_costs(in_current_version(policy), view))

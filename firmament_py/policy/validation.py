"""Checks that a policy's answer keeps its contract. Policies can be third-party code, so nothing is taken on trust."""

from functools import partial

import numpy as np

from firmament_py.model.arrays import I64
from firmament_py.policy import locality
from firmament_py.policy.api import (
    COST_MAX,
    DELAY_MAX,
    MOVING_MAX,
    NODE_LIMIT_MAX,
    PRIORITY_STEP,
    WAIT_MAX,
    WAIT_MIN,
    Aggregators,
    Costs,
    Policy,
    View,
)
from firmament_py.policy.locality import DataCosts
from firmament_py.policy.preemption import Victims, eviction_cost

SOFT_LIMIT_MAX = 2**40
STAGE_MAX = 2**40
KINDS_MAX = 2**62

FAILURES = (Exception, SystemExit, GeneratorExit)
"""What third-party code may raise. sys.exit() is one of them: it would end the thread that runs a round and leave its
caller without an answer."""


def failure(error: BaseException) -> str:
    """The error's type and message, if it has a message that can be read."""
    try:
        return f"{type(error).__name__}: {error}"
    except FAILURES:
        return f"{type(error).__name__}, whose message cannot be read"


class PolicyError(Exception):
    """A policy raised, or broke its contract with its answer; the message names policy and field."""


def checked_costs(policy: Policy, view: View) -> Costs:
    """The costs that `policy` gives, after checking that they keep the contract.

    Raises PolicyError if the policy raises, or if an array has the wrong shape or type or leaves its range.
    """
    try:
        costs = policy.costs(view)
    except FAILURES as error:
        raise PolicyError(f"policy {policy.name}: costs() raised {failure(error)}") from error
    if not isinstance(costs, Costs):
        raise PolicyError(f"policy {policy.name}: costs() returned {type(costs).__name__}, not Costs")
    classes, nodes = len(view.requests), len(view.allocatable)
    _check(policy, "place", costs.place, (classes, nodes), 0, COST_MAX)
    _check(policy, "slot", costs.slot, (nodes, len(view.slot_offsets)), 0, COST_MAX)
    _check(policy, "wait", costs.wait, (len(view.task_class),), WAIT_MIN, WAIT_MAX)
    if costs.delay is not None:
        _check(policy, "delay", costs.delay, (len(view.task_class),), 0, DELAY_MAX)
    if not isinstance(costs.fill, bool | np.bool_):
        raise PolicyError(f"policy {policy.name}: fill is {type(costs.fill).__name__}, not bool")
    _check_limits(policy, costs, classes, nodes)
    _check_priorities(policy, costs, view)
    _check_slots(policy, costs)
    if costs.data is not None:
        if not isinstance(costs.data, DataCosts):
            raise PolicyError(f"policy {policy.name}: data is {type(costs.data).__name__}, not DataCosts")
        locality.check(costs.data, len(view.task_class), nodes, COST_MAX, partial(_check, policy))
    return costs


def checked_eviction_costs(policy: Policy, victims: Victims) -> I64:
    """(P,) the costs of evicting running tasks that `policy` gives, or the usual ones if it has no opinion.

    Raises PolicyError as checked_costs does.
    """
    costs = _costs_of_each(policy, "eviction_costs", victims, COST_MAX)
    return eviction_cost(victims) if costs is None else costs


def checked_moving_costs(policy: Policy, victims: Victims) -> I64 | None:
    """(P,) the costs of moving running tasks that `policy` gives; None: it moves none.

    Raises PolicyError as checked_costs does.
    """
    return _costs_of_each(policy, "moving_costs", victims, MOVING_MAX)


def checked_place_kinds(policy: Policy, victims: Victims) -> I64 | None:
    """(C,) numbers of the classes of running tasks, equal for classes with the same placement costs on every node, as
    `policy` gives them; None: it does not.

    Raises PolicyError as checked_costs does.
    """
    return _answer(policy, "place_kinds", victims, len(victims.requests), 0, KINDS_MAX)


def _costs_of_each(policy: Policy, name: str, victims: Victims, high: int) -> I64 | None:
    """(P,) the answer, 1 .. high, of an optional method of a policy; None: it has no such method."""
    return _answer(policy, name, victims, len(victims.task_class), 1, high)


def _answer(policy: Policy, name: str, victims: Victims, size: int, low: int, high: int) -> I64 | None:
    """(size,) the answer, low .. high, of an optional method of a policy; None: it has no such method."""
    method = getattr(policy, name, None)
    if method is None:
        return None
    try:
        answer: I64 = method(victims)
    except FAILURES as error:
        raise PolicyError(f"policy {policy.name}: {name}() raised {failure(error)}") from error
    _check(policy, f"{name}()", answer, (size,), low, high)
    return answer


def _check_limits(policy: Policy, costs: Costs, classes: int, nodes: int) -> None:
    if (costs.soft_limit is None) != (costs.soft_limit_cost is None):
        raise PolicyError(
            f"policy {policy.name}: soft_limit and soft_limit_cost go together; give both, or neither of them"
        )
    if costs.fill and costs.soft_limit is not None:
        raise PolicyError(
            f"policy {policy.name}: fill sends a node all it can take and does not go with soft_limit; give one of them"
        )
    if costs.soft_limit is not None and costs.soft_limit_cost is not None:
        _check(policy, "soft_limit", costs.soft_limit, (classes, nodes), 0, SOFT_LIMIT_MAX)
        _check(policy, "soft_limit_cost", costs.soft_limit_cost, (classes,), 0, COST_MAX)
    if costs.aggregators is not None:
        _check_aggregators(policy, costs.aggregators, classes, nodes)
    if costs.stage is not None:
        _check(policy, "stage", costs.stage, (classes,), 0, STAGE_MAX)
    if costs.node_limit is not None:
        _check(policy, "node_limit", costs.node_limit, (nodes,), 0, NODE_LIMIT_MAX)


def _check_aggregators(policy: Policy, groups: Aggregators, classes: int, nodes: int) -> None:
    if not isinstance(groups, Aggregators):
        raise PolicyError(f"policy {policy.name}: aggregators is {type(groups).__name__}, not Aggregators")
    limit = groups.soft_limit
    count = limit.shape[1] if isinstance(limit, np.ndarray) and limit.ndim == 2 else 0
    _check(policy, "aggregators.of_node", groups.of_node, (nodes,), -1, count - 1)
    _check(policy, "aggregators.cost", groups.cost, (classes,), 0, COST_MAX)
    if not isinstance(limit, np.ndarray) or limit.shape != (classes, count):
        raise PolicyError(f"policy {policy.name}: aggregators.soft_limit is not an array of shape ({classes}, A)")
    _check(policy, "aggregators.soft_limit", limit, (classes, count), 0, SOFT_LIMIT_MAX)


def _check_priorities(policy: Policy, costs: Costs, view: View) -> None:
    if not len(costs.wait):
        return
    priority = view.priority[view.task_class]
    if (priority == priority[0]).all():
        return
    ranks = np.unique(priority, return_inverse=True)[1]
    lowest = np.full(int(ranks.max()) + 1, WAIT_MAX)
    highest = np.zeros(len(lowest), np.int64)
    np.minimum.at(lowest, ranks, costs.wait)
    np.maximum.at(highest, ranks, costs.wait)
    if (lowest[1:] < highest[:-1] + PRIORITY_STEP).any():
        raise PolicyError(
            f"policy {policy.name}: wait lets a lower priority outweigh a higher one; keep them {PRIORITY_STEP} apart"
        )


def _check_slots(policy: Policy, costs: Costs) -> None:
    before, after = costs.slot[:, :-1], costs.slot[:, 1:]
    if costs.fill and (after != before).any():
        raise PolicyError(f"policy {policy.name}: fill goes with slot costs that do not rise along K")
    if (after < before).any():
        raise PolicyError(f"policy {policy.name}: slot falls along K; the cost of a further task must not fall")


def _check(policy: Policy, field: str, array: I64, shape: tuple[int, ...], low: int, high: int) -> None:
    where = f"policy {policy.name}: {field}"
    # not isinstance: masked arrays and matrices are subclasses that behave differently
    if type(array) is not np.ndarray or array.dtype != np.int64:
        raise PolicyError(f"{where} is {getattr(array, 'dtype', type(array).__name__)}, not an int64 array")
    repeatable = len(shape) == 2 and array.ndim == 2
    if array.shape != shape and not (
        repeatable and all(have in (1, want) for have, want in zip(array.shape, shape, strict=True))
    ):
        raise PolicyError(f"{where} has shape {array.shape}, not {shape}")
    if array.size and (array.min() < low or array.max() > high):
        raise PolicyError(f"{where} leaves the range {low} .. {high}: {array.min()} .. {array.max()}")

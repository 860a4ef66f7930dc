"""Makes sure that what a policy answers keeps its contract: other people's code, so nothing of it is believed."""

from functools import partial

import numpy as np

from firmament_py.model.arrays import I64
from firmament_py.policy import locality
from firmament_py.policy.api import COST_MAX, MOST_MAX, PRIORITY_STEP, WAIT_MAX, WAIT_MIN, Policy, Prices, View
from firmament_py.policy.locality import DataPrices

FAILURES = (Exception, SystemExit, GeneratorExit)
"""What somebody else's code may raise: sys.exit(), too, would end the thread that runs a round, and leave who asked
without an answer."""


def failure(error: BaseException) -> str:
    """Its kind and what it says, if it can say anything."""
    try:
        return f"{type(error).__name__}: {error}"
    except FAILURES:
        return f"{type(error).__name__}, which cannot be put into words"


class PolicyError(Exception):
    """A policy raised, or answered with something outside its contract; the message names policy and field."""


def checked_prices(policy: Policy, view: View) -> Prices:
    """The prices of `policy`, after making sure that they keep the contract.

    Raises PolicyError if the policy raises or an array has the wrong shape or type or leaves its range.
    """
    try:
        prices = policy.price(view)
    except FAILURES as error:
        raise PolicyError(f"policy {policy.name}: price() raised {failure(error)}") from error
    if not isinstance(prices, Prices):
        raise PolicyError(f"policy {policy.name}: price() returned {type(prices).__name__}, not Prices")
    classes, nodes = len(view.requests), len(view.allocatable)
    _check(policy, "place", prices.place, (classes, nodes), 0, COST_MAX)
    _check(policy, "slot", prices.slot, (nodes, len(view.slot_offsets)), 0, COST_MAX)
    _check(policy, "wait", prices.wait, (len(view.task_class),), WAIT_MIN, WAIT_MAX)
    if not isinstance(prices.fill, bool | np.bool_):
        raise PolicyError(f"policy {policy.name}: fill is {type(prices.fill).__name__}, not bool")
    if (prices.enough is None) != (prices.beyond is None):
        raise PolicyError(f"policy {policy.name}: enough and beyond go together; give both or neither")
    if prices.fill and prices.enough is not None:
        raise PolicyError(f"policy {policy.name}: fill sends a node all it can; it does not go with enough")
    if prices.enough is not None and prices.beyond is not None:
        _check(policy, "enough", prices.enough, (classes, nodes), 0, 2**40)
        _check(policy, "beyond", prices.beyond, (classes,), 0, COST_MAX)
    if prices.turn is not None:
        _check(policy, "turn", prices.turn, (classes,), 0, 2**40)
    if prices.most is not None:
        _check(policy, "most", prices.most, (nodes,), 0, MOST_MAX)
    if len(prices.wait):
        ranks = np.unique(view.priority[view.task_class], return_inverse=True)[1]
        lowest = np.full(int(ranks.max()) + 1, WAIT_MAX)
        highest = np.zeros(len(lowest), np.int64)
        np.minimum.at(lowest, ranks, prices.wait)
        np.maximum.at(highest, ranks, prices.wait)
        if (lowest[1:] < highest[:-1] + PRIORITY_STEP).any():
            raise PolicyError(
                f"policy {policy.name}: wait lets a lower priority outweigh a higher one; "
                f"keep them {PRIORITY_STEP} apart"
            )
    rises = np.diff(prices.slot, axis=1)
    if prices.fill and rises.any():
        raise PolicyError(f"policy {policy.name}: fill goes with slot prices that do not rise along K")
    if (rises < 0).any():
        raise PolicyError(f"policy {policy.name}: slot falls along K; the cost of a further task must not fall")
    if prices.data is not None:
        if not isinstance(prices.data, DataPrices):
            raise PolicyError(f"policy {policy.name}: data is {type(prices.data).__name__}, not DataPrices")
        locality.check(prices.data, len(view.task_class), nodes, COST_MAX, partial(_check, policy))
    return prices


def _check(policy: Policy, field: str, array: I64, shape: tuple[int, ...], low: int, high: int) -> None:
    where = f"policy {policy.name}: {field}"
    # not isinstance: masked arrays and matrices are not what they look like
    if type(array) is not np.ndarray or array.dtype != np.int64:
        raise PolicyError(f"{where} is {getattr(array, 'dtype', type(array).__name__)}, not an int64 array")
    repeatable = len(shape) == 2 and array.ndim == 2
    if array.shape != shape and not (
        repeatable and all(have in (1, want) for have, want in zip(array.shape, shape, strict=True))
    ):
        raise PolicyError(f"{where} has shape {array.shape}, not {shape}")
    if array.size and (array.min() < low or array.max() > high):
        raise PolicyError(f"{where} leaves the range {low} .. {high}: {array.min()} .. {array.max()}")

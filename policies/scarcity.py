"""Scarcity in a view: the used shares of nodes, and which resources are devices."""

import numpy as np

from firmament_py.policy import F64, I64, Bools, Victims, View

PLAIN = ("cpu", "memory", "ephemeral-storage", "pods")
"""These are not devices, even if some nodes lack them."""
_PLAIN = frozenset(PLAIN)


def used(view: View, of: Bools | None = None) -> F64:
    """(N,) used share (View.load), 0 .. 1, of each node's scarcest resource, of those that `of` (R,) selects."""
    share = view.load / np.maximum(view.allocatable, 1)
    share[view.allocatable == 0] = 0.0
    if of is not None:
        share = share[:, of]
    result: F64 = np.minimum(share.max(axis=1, initial=0.0), 1.0)
    return result


def left(view: View, of: Bools | None = None) -> F64:
    """(N,) what is left (allocatable less View.load) of each node's scarcest resource, 0 .. 1 of the largest node's
    allocatable amount, of the resources that `of` (R,) selects."""
    share = (view.allocatable - view.load) / np.maximum(view.allocatable.max(axis=0, initial=0), 1)
    share[view.allocatable == 0] = 1.0
    if of is not None:
        share = share[:, of]
    result: F64 = np.clip(share.min(axis=1, initial=1.0), 0.0, 1.0)
    return result


def devices(view: View) -> Bools:
    """(R,) whether a resource is a device, such as a GPU: some nodes have it and others lack it."""
    has = view.allocatable > 0
    plain = np.array([name in PLAIN for name in view.resources], np.bool_)
    nodes = np.count_nonzero(has, axis=0)
    result: Bools = (nodes > 0) & (nodes < len(has)) & ~plain
    return result


def requested_devices(victims: Victims) -> I64:
    """(C,) equal for classes that request the same resources, of whichever amounts, of those that may be devices."""
    kinds = np.zeros(len(victims.requests), np.int64)
    for name, amounts in zip(victims.resources, victims.requests.T, strict=True):
        if name not in PLAIN:
            kinds = np.unique(2 * kinds + (amounts > 0), return_inverse=True)[1].astype(np.int64)
    return kinds


def wasted(view: View) -> Bools | None:
    """(C, N) whether a node has devices and the class requests none; None if that holds nowhere."""
    if set(view.resources) <= _PLAIN:
        return None
    of = devices(view)
    if not of.any():
        return None
    has: Bools = np.any(view.allocatable[:, of] > 0, axis=1)
    requests: Bools = np.any(view.requests[:, of] > 0, axis=1)
    if requests.all():
        return None
    return ~requests[:, None] & has[None, :]

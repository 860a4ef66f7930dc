"""Scarcity in a view: the used shares of nodes, and which resources are devices."""

import numpy as np

from firmament_py.policy import F64, Bools, View

PLAIN = ("cpu", "memory", "ephemeral-storage", "pods")
"""These are not devices, even if some nodes lack them."""


def used(view: View, of: Bools | None = None) -> F64:
    """(N,) used share (View.load), 0 .. 1, of each node's scarcest resource, of those that `of` (R,) selects."""
    share = view.load / np.maximum(view.allocatable, 1)
    share[view.allocatable == 0] = 0.0
    if of is not None:
        share = share[:, of]
    result: F64 = np.clip(share.max(axis=1, initial=0.0), 0.0, 1.0)
    return result


def devices(view: View) -> Bools:
    """(R,) whether a resource is a device, such as a GPU: some nodes have it and others lack it."""
    has = view.allocatable > 0
    plain = np.isin(np.array(view.resources, dtype=str), PLAIN)
    result: Bools = np.any(has, axis=0) & ~np.all(has, axis=0) & ~plain
    return result


def wasted(view: View) -> Bools | None:
    """(C, N) whether a node has devices and the class requests none; None if that holds nowhere."""
    of = devices(view)
    if not of.any():
        return None
    has: Bools = np.any(view.allocatable[:, of] > 0, axis=1)
    requests: Bools = np.any(view.requests[:, of] > 0, axis=1)
    if requests.all():
        return None
    return ~requests[:, None] & has[None, :]

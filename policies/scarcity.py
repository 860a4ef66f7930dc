"""Scarcity in a view: how full nodes are, and which resources are devices."""

import numpy as np

from firmament_py.policy import F64, Bools, View

PLAIN = ("cpu", "memory", "ephemeral-storage", "pods")
"""Never devices, even if some node offers none."""


def used(view: View, of: Bools | None = None) -> F64:
    """(N,) used share (View.load), 0 .. 1, of the scarcest resource of each node, or of those that `of` (R,) marks."""
    share = view.load / np.maximum(view.allocatable, 1)
    share[view.allocatable == 0] = 0.0
    if of is not None:
        share = share[:, of]
    result: F64 = np.clip(share.max(axis=1, initial=0.0), 0.0, 1.0)
    return result


def devices(view: View) -> Bools:
    """(R,) which resources some nodes have and others lack, such as GPUs."""
    has = view.allocatable > 0
    plain = np.isin(np.array(view.resources, dtype=str), PLAIN)
    result: Bools = np.any(has, axis=0) & ~np.all(has, axis=0) & ~plain
    return result


def wasted(view: View) -> Bools | None:
    """(C, N) whether a node has devices and tasks of a class request none; None: nowhere."""
    of = devices(view)
    if not of.any():
        return None
    has: Bools = np.any(view.allocatable[:, of] > 0, axis=1)
    requests: Bools = np.any(view.requests[:, of] > 0, axis=1)
    if requests.all():
        return None
    return ~requests[:, None] & has[None, :]

"""Samples of tasks and nodes, and the load that follows from them."""

import math

import numpy as np

from firmament_py.usage.usage import Basis, Usage, UsageOptions
from tests.builders import NOW_US

SECOND = 1_000_000


def usage(basis=Basis.USED, **fields):
    return Usage(UsageOptions(basis, **fields))


def measure(usage, state, uid, cpu=math.nan, memory=math.nan, rx=math.nan, tx=math.nan, *, at=NOW_US, now=None):
    """A sample of one task."""
    rows = state.task_rows(np.array([uid], np.uint64))
    values = np.array([[cpu, memory, rx, tx]], np.float64)
    return usage.note_tasks(state, rows, np.array([at], np.int64), values, at if now is None else now)


def measure_node(usage, state, name, cpu=math.nan, memory=math.nan, rx=math.nan, tx=math.nan, *, at=NOW_US):
    values = np.array([[cpu, memory, rx, tx]], np.float64)
    return usage.note_nodes(state, state.node_rows([f"id-{name}"]), np.array([at], np.int64), values, at)


def load(usage, state, now=NOW_US):
    """Name of node -> resource -> load."""
    nodes = state.present_nodes()
    reading = usage.read(state, nodes, now)
    names = [state.nodes.observed[row].name for row in nodes.tolist()]
    return {
        name: dict(zip(state.resources.names, row, strict=True))
        for name, row in zip(names, reading.load.tolist(), strict=True)
    }

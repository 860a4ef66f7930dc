"""The figures of one poll of all sources, by name."""

import math
from typing import TypeVar

from poseidon_py.kube.quantity import NANO, nanos

AT, CPU, MEMORY, RX, TX = range(5)
"""Columns of a row: microseconds since the epoch, 0 if unknown; millicores; bytes; bytes per second in and out."""

Row = list[float]
PodName = tuple[str, str]
"""Namespace and name."""

K = TypeVar("K")


class SourceError(Exception):
    """A source did not answer, or not completely; the message is for the user."""


class Gathered:
    """Rows by pod and by node; NaN: unknown. `refused`: number of invalid readings."""

    def __init__(self) -> None:
        self.pods: dict[PodName, Row] = {}
        self.nodes: dict[str, Row] = {}
        self.refused = 0

    def pod(self, namespace: str, name: str) -> Row:
        return _row(self.pods, (namespace, name))

    def node(self, name: str) -> Row:
        return _row(self.nodes, name)


def _row(rows: dict[K, Row], key: K) -> Row:
    row = rows.get(key)
    if row is None:
        row = rows[key] = [0, math.nan, math.nan, math.nan, math.nan]
    return row


def billionths(quantity: str) -> int:
    """A quantity in billionths of its unit. Raises QuantityError.

    It does not use the cache of `nanos`: measured values hardly ever repeat, and would evict the requests of pods.
    """
    if quantity.isascii() and len(quantity) <= 16:  # longer ones may exceed the largest amount
        if quantity[:-1].isdigit() and quantity[-1] == "n":
            return int(quantity[:-1])
        if quantity[:-2].isdigit() and quantity[-2:] == "Ki":
            return int(quantity[:-2]) * 1024 * NANO
    return nanos.__wrapped__(quantity)

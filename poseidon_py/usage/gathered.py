"""What one poll has found, by name, whichever sources it came from."""

import math
from typing import TypeVar

from poseidon_py.kube.quantity import NANO, nanos

AT, CPU, MEMORY, RX, TX = range(5)
"""Of a row: microseconds since the epoch, 0: the source said none; millicores; bytes; bytes a second in and out."""

Row = list[float]
PodName = tuple[str, str]
"""Namespace and name."""

K = TypeVar("K")


class SourceError(Exception):
    """A source did not answer, or not with all that it was asked; the message is for the user."""


class Gathered:
    """Rows by pod and by node; NaN: nobody has said. `refused`: readings that could not be understood."""

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

    What kubelets report is hardly ever the same twice: it would only push what pods request out of nanos' cache.
    """
    if quantity.isascii() and len(quantity) <= 16:  # longer ones may exceed what an amount can be
        if quantity[:-1].isdigit() and quantity[-1] == "n":
            return int(quantity[:-1])
        if quantity[:-2].isdigit() and quantity[-2:] == "Ki":
            return int(quantity[:-2]) * 1024 * NANO
    return nanos.__wrapped__(quantity)

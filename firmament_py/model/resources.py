"""Resource dimensions: which column of every amount matrix belongs to which resource.

A resource has a column while a node offers some of it or a token while a class that has tasks names it, so extended
resources need no registration, and one that nobody has costs nothing: what requests it fits nowhere.
Amounts are non-negative integers in whatever unit the sender uses for that resource on nodes and classes alike
(the bridge: millicores, bytes, pieces). Amounts are held below LIMIT, so that thousands of them add up in an
int64 and a float64 holds each exactly: a request above it counts as LIMIT, which no node has.

Tokens are resources that every node has of itself. No two tasks of a node may hold the same token: each takes all
of what a node has of it. A qualified token "a/b" takes one piece of "a" and all of "a/b": it conflicts with "a" and
with "a/b", not with "a/c". (A host port on every address, and on one.) A shared token "a/" takes
one piece of "a" only: it conflicts with "a" and not with other shares. (A disk that is only read.)

Links are a node's connections to the network, in bits a second. A node that says nothing of one has no limit on it.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from firmament_py.model.arrays import I64

LIMIT = 2**50
"""No node has this much of anything; larger requests are counted as this."""

TASK_SLOTS = "pods"
"""The resource of which every task takes one. (Its name in the contract; Kubernetes calls it so.)"""

LINKS = ("bandwidth.ingress", "bandwidth.egress")
"""What tasks receive and send."""

UNLIMITED_LINK = LIMIT - 1
"""What a node has of a link of which it says nothing."""

TOKEN = "token:"
"""Prefix of the resources that stand for tokens."""

TOKEN_PIECES = 2**20
"""What every node has of each token."""


def token_requests(tokens: Iterable[str]) -> dict[str, int]:
    """What holding `tokens` takes of the resources that stand for them."""
    amounts: dict[str, int] = {}
    for token in tokens:
        whole, slash, qualifier = token.partition("/")
        if slash:
            amounts[TOKEN + whole] = min(amounts.get(TOKEN + whole, 0) + 1, TOKEN_PIECES)
        if qualifier or not slash:
            amounts[TOKEN + token] = TOKEN_PIECES
    return amounts


class Resources:
    """Resource name <-> column number."""

    def __init__(self) -> None:
        self._column: dict[str, int] = {}
        self.column(TASK_SLOTS)

    def __len__(self) -> int:
        return len(self._column)

    def __contains__(self, name: str) -> bool:
        return name in self._column

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._column)

    def column(self, name: str) -> int:
        """The column of resource `name`, a new one, the last, if it has none."""
        return self._column.setdefault(name, len(self._column))

    def keep(self, columns: I64) -> None:
        """Forgets all columns but these, ascending; they are numbered anew in their order."""
        names = self.names
        self._column = {names[old]: new for new, old in enumerate(columns.tolist())}

    def given(self) -> I64:
        """(len(self),) what every node has without saying so: tokens and links."""
        return np.array([_given(name) for name in self._column], np.int64)

    def offered(self, stated: Mapping[str, int]) -> I64:
        """(len(self),) what a node has that states these amounts, of resources that have a column."""
        vector, given = self.vector(stated, LIMIT - 1), self.given()
        given[[self._column[link] for link in LINKS if link in stated and link in self._column]] = 0
        return np.maximum(given, vector)

    def vector(self, amounts: Mapping[str, int], ceiling: int) -> I64:
        """`amounts` as a row (len(self),), each <= ceiling; those of resources without a column are left out."""
        known = {self._column[name]: amount for name, amount in amounts.items() if name in self._column}
        row = np.zeros(len(self), np.int64)
        row[list(known)] = [min(amount, ceiling) for amount in known.values()]
        return row


def _given(name: str) -> int:
    if name in LINKS:
        return UNLIMITED_LINK
    return TOKEN_PIECES if name.startswith(TOKEN) else 0


def resized(matrix: I64, rows: int, columns: int) -> I64:
    """`matrix` with zeros added up to the shape (rows, columns); itself if it has that shape."""
    if matrix.shape == (rows, columns):
        return matrix
    return np.pad(matrix, ((0, rows - matrix.shape[0]), (0, columns - matrix.shape[1])))

"""Resource dimensions: the mapping of resources to the columns of amount matrices.

A resource has a column while a node offers some of it, a token while a class with tasks names it. So extended
resources need no registration, and a resource that no node has takes no space: tasks that request it fit nowhere.
Amounts are non-negative integers in the unit that the sender uses for that resource on both nodes and classes (the
bridge: millicores, bytes, pieces). Amounts are kept below LIMIT, so that an int64 holds the sum of thousands of them
and a float64 each one exactly: a larger request counts as LIMIT, which no node has.

Tokens are resources that every node has implicitly. Two tasks on one node cannot hold the same token, as each takes the
whole amount. A qualified token "a/b" takes one piece of "a" and all of "a/b": it conflicts with "a" and with "a/b", not
with "a/c". (A host port on every address, and on one.) A shared token "a/" takes one piece of "a" only: it conflicts
with "a" and not with other shares. (A disk that is only read.)

Links are a node's connections to the network, in bits per second. A node that does not state one has no limit on it.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from firmament_py.model.arrays import I64

LIMIT = 2**50
"""No node has this amount of any resource; larger requests count as this."""

TASK_SLOTS = "pods"
"""The resource of which every task takes one. (Its name in the contract and in Kubernetes.)"""

LINKS = ("bandwidth.ingress", "bandwidth.egress")
"""Bandwidth that tasks receive and send."""

UNLIMITED_LINK = LIMIT - 1
"""The capacity of a link that the node does not state."""

TOKEN = "token:"
"""Prefix of the resources that stand for tokens."""

TOKEN_PIECES = 2**20
"""The amount of each token on every node."""


def has_quota(resource: str) -> bool:
    """Whether a queue without a quota of a resource may not use it."""
    return resource != TASK_SLOTS and resource not in LINKS and not resource.startswith(TOKEN)


def token_requests(tokens: Iterable[str]) -> dict[str, int]:
    """The requests that stand for `tokens`: resource -> amount."""
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
        """The column of resource `name`; appended if there is none yet."""
        return self._column.setdefault(name, len(self._column))

    def keep(self, columns: I64) -> None:
        """Drops all columns but these, ascending; they are renumbered in their order."""
        names = self.names
        self._column = {names[old]: new for new, old in enumerate(columns.tolist())}

    def given(self) -> I64:
        """(len(self),) amounts that nodes have without stating them: tokens and links."""
        return np.array([_given(name) for name in self._column], np.int64)

    def offered(self, stated: Mapping[str, int]) -> I64:
        """(len(self),) amounts of a node that states `amounts`, of resources that have a column."""
        vector, given = self.vector(stated, LIMIT - 1), self.given()
        given[[self._column[link] for link in LINKS if link in stated and link in self._column]] = 0
        return np.maximum(given, vector)

    def vector(self, amounts: Mapping[str, int], ceiling: int) -> I64:
        """`amounts` as a row (len(self),), each <= ceiling; resources without a column are left out."""
        known = {self._column[name]: amount for name, amount in amounts.items() if name in self._column}
        row = np.zeros(len(self), np.int64)
        row[list(known)] = [min(amount, ceiling) for amount in known.values()]
        return row


def _given(name: str) -> int:
    if name in LINKS:
        return UNLIMITED_LINK
    return TOKEN_PIECES if name.startswith(TOKEN) else 0


def resized(matrix: I64, rows: int, columns: int) -> I64:
    """`matrix` padded with zeros to the shape (rows, columns); `matrix` itself if it has that shape."""
    if matrix.shape == (rows, columns):
        return matrix
    return np.pad(matrix, ((0, rows - matrix.shape[0]), (0, columns - matrix.shape[1])))

"""Descriptions that many pods share: each is made once, and pods refer to it by its id.

A description is found by a key of undecoded bytes of the pod, so that a pod like an earlier one costs one dictionary
lookup. Ids are hashes of the content: keys that differ in spelling only lead to the same id.
"""

from collections.abc import Callable, Hashable, KeysView
from typing import Generic, Protocol, TypeVar


class Description(Protocol):
    """A message of the contract with an id; 0: it describes nothing and is not kept."""

    @property
    def id(self) -> int: ...


K = TypeVar("K", bound=Hashable)
D = TypeVar("D", bound=Description)


class Vocabulary(Generic[K, D]):
    """Descriptions by id, and ids by key."""

    def __init__(self) -> None:
        self._ids: dict[K, int] = {}
        self._descriptions: dict[int, D] = {}

    def __len__(self) -> int:
        """Number of keys, which bounds the number of descriptions."""
        return len(self._ids)

    @property
    def ids(self) -> KeysView[int]:
        """Those of all descriptions."""
        return self._descriptions.keys()

    def id_of(self, key: K, describe: Callable[[], D]) -> int:
        """The id of the description with this key. If the key is new, `describe` makes it, and may raise."""
        found = self._ids.get(key)
        if found is None:
            description = describe()
            found = self._ids[key] = description.id
            if found:
                self._descriptions.setdefault(found, description)
        return found

    def get(self, ident: int) -> D | None:
        """The description with this id; None: unknown, or dropped since."""
        return self._descriptions.get(ident)

    def keep(self, in_use: set[int]) -> None:
        """Drop all descriptions but those with the ids `in_use`."""
        self._descriptions = {ident: each for ident, each in self._descriptions.items() if ident in in_use}
        self._ids = {key: ident for key, ident in self._ids.items() if ident in in_use}

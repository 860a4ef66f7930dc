"""Copies of large objects in the time that their arrays take."""

from copy import copy, deepcopy
from typing import Any, ClassVar, Self

import numpy as np


class Copyable:
    """A base of objects that `copy.deepcopy` copies without a look at each element: arrays, and the containers in FLAT.

    FLAT: names of attributes whose elements never change, so that copies may share them. Those of base classes count,
    too.
    """

    FLAT: ClassVar[frozenset[str]] = frozenset()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        flat = frozenset().union(*(vars(cls).get("FLAT", ()) for cls in type(self).__mro__))
        other = object.__new__(type(self))
        memo[id(self)] = other
        for name, value in vars(self).items():
            shallow = name in flat or isinstance(value, np.ndarray)
            vars(other)[name] = copy(value) if shallow else deepcopy(value, memo)
        return other

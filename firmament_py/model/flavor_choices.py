"""On which flavors tasks take what they request: choices by number, which the task table refers to."""

import numpy as np

from firmament_py.model.arrays import I64

Choice = tuple[tuple[str, str], ...]
"""(resource, flavor), in a fixed order: names, so that a choice outlives the tree of queues that it was made in."""


class FlavorChoices:
    """Numbers are dense, from 0, and stay as they are until `keep` is called."""

    def __init__(self) -> None:
        self._choices: list[Choice] = []
        self._number: dict[Choice, int] = {}

    def __len__(self) -> int:
        return len(self._choices)

    def __getitem__(self, number: int) -> Choice:
        return self._choices[number]

    def number(self, choice: Choice) -> int:
        """Of a choice; a new one if it has none."""
        if choice not in self._number:
            self._number[choice] = len(self._choices)
            self._choices.append(choice)
        return self._number[choice]

    def keep(self, numbers: I64) -> I64:
        """Forgets all choices but these (K,), -1: none, and numbers them anew: (K,)."""
        used, of = np.unique(numbers, return_inverse=True)
        choices = [self._choices[number] if number >= 0 else None for number in used.tolist()]
        self._choices, self._number = [], {}
        anew = np.array([-1 if choice is None else self.number(choice) for choice in choices], np.int64)
        return anew[of.reshape(-1)]

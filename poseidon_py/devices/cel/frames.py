"""One evaluation of an expression: its variables, and what it costs."""

from collections.abc import Callable
from typing import TypeAlias

from poseidon_py.devices.cel.checker import DEVICE_SLOT
from poseidon_py.devices.cel.errors import LimitError
from poseidon_py.devices.cel.values import DeviceValue, Value

LARGEST_COST = 1_000_000
"""Of one evaluation, as upstream limits it."""


class Frame:
    """The values of the variables by slot, and the cost so far."""

    __slots__ = ("slots", "spent")

    def __init__(self, slots: int, device: DeviceValue) -> None:
        self.slots: list[Value] = [None] * slots
        self.slots[DEVICE_SLOT] = device
        self.spent = 0

    def spend(self, cost: int) -> None:
        """Raises LimitError above LARGEST_COST."""
        self.spent += cost
        if self.spent > LARGEST_COST:
            raise LimitError("operation cancelled: actual cost limit exceeded")


Evaluation: TypeAlias = Callable[[Frame], Value]
"""It raises EvaluationError and LimitError."""

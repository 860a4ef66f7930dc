"""Nodes of the syntax tree after macros are expanded; told apart by identity. `position` is as in SelectorError."""

from dataclasses import dataclass
from typing import TypeAlias

from poseidon_py.devices.cel.values import Value


@dataclass(slots=True, eq=False)
class Literal:
    position: int
    value: Value


@dataclass(slots=True, eq=False)
class Name:
    """A variable or type; a dot in front is looked over, except in the names that a macro declares."""

    position: int
    name: str


@dataclass(slots=True, eq=False)
class Select:
    """`operand.field`, `operand.?field` (optional), or `has(operand.field)` (test)."""

    position: int
    operand: "Node"
    field: str
    optional: bool = False
    test: bool = False


@dataclass(slots=True, eq=False)
class Call:
    """A function, an operator by its name in CEL (`_+_`, `_[_]`), or a method if there is a target."""

    position: int
    function: str
    arguments: list["Node"]
    target: "Node | None" = None


@dataclass(slots=True, eq=False)
class Logical:
    """A chain of `&&` or of `||`."""

    position: int
    conjunction: bool
    operands: list["Node"]


@dataclass(slots=True, eq=False)
class ListDisplay:
    position: int
    elements: list["Node"]
    optional: list[bool]


@dataclass(slots=True, eq=False)
class MapDisplay:
    position: int
    keys: list["Node"]
    values: list["Node"]
    optional: list[bool]


@dataclass(slots=True, eq=False)
class Fold:
    """CEL's comprehension, which all macros over lists and maps become.

    `accumulator` starts as `initial`; for each element of `range`, while `condition` is not false, it becomes `step`.
    With `second`, `first` is the index or key and `second` the element or value.
    """

    position: int
    range: "Node"
    first: str
    second: str | None
    accumulator: str
    initial: "Node"
    condition: "Node"
    step: "Node"
    result: "Node"


Node: TypeAlias = Literal | Name | Select | Call | Logical | ListDisplay | MapDisplay | Fold

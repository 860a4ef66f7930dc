"""Macros as the nodes that they stand for: those of cel-spec, and of cel-go's extensions.

A macro is recognised by its name, its number of arguments, and whether it has a target. The names that macros bring in
begin with "@", which no expression can write.
"""

from collections.abc import Callable

from poseidon_py.devices.cel.errors import SelectorError
from poseidon_py.devices.cel.syntax import Call, Fold, ListDisplay, Literal, Logical, Name, Node, Select

ACCUMULATOR = "@result"
_INPUT = "@input"
_UNUSED = "@unused"


def expand(call: Call) -> Node:
    """What the call stands for, or the call itself where it is no macro. Raises SelectorError."""
    key = (call.function, len(call.arguments), call.target is not None)
    macro = _MACROS.get(key)
    if macro is None or (call.function == "bind" and not _is_cel(call.target)):
        return call
    return macro(call)


def _is_cel(target: Node | None) -> bool:
    return isinstance(target, Name) and target.name == "cel"


def _variable(node: Node) -> str:
    if not isinstance(node, Name):
        raise SelectorError("argument must be a simple name", node.position)
    if node.name == "__result__":
        raise SelectorError("iteration variable overwrites accumulator variable", node.position)
    return node.name


def _target(call: Call) -> Node:
    assert call.target is not None
    return call.target


def _has(call: Call) -> Node:
    argument = call.arguments[0]
    if not isinstance(argument, Select) or argument.optional:
        raise SelectorError("invalid argument to has() macro", argument.position)
    return Select(argument.position, argument.operand, argument.field, test=True)


def _accumulator(call: Call) -> Name:
    return Name(call.position, ACCUMULATOR)


def _variables(call: Call, two: bool) -> tuple[str, str | None]:
    first = _variable(call.arguments[0])
    if not two:
        return first, None
    second = _variable(call.arguments[1])
    if first == second:
        raise SelectorError(f"duplicate variable name: {first}", call.arguments[1].position)
    return first, second


def _fold(call: Call, two: bool, initial: Node, condition: Node, step: Node, result: Node | None = None) -> Fold:
    first, second = _variables(call, two)
    final = result or _accumulator(call)
    return Fold(call.position, _target(call), first, second, ACCUMULATOR, initial, condition, step, final)


def _quantifier(universal: bool, two: bool) -> Callable[[Call], Node]:
    """`all` or `exists`: an error of one element counts only if no other element decides."""

    def macro(call: Call) -> Node:
        at = call.position
        reached: Node = _accumulator(call)
        going = reached if universal else Call(at, "!_", [reached])
        condition = Call(at, "@not_strictly_false", [going])
        step = Logical(at, universal, [_accumulator(call), call.arguments[-1]])
        return _fold(call, two, Literal(at, universal), condition, step)

    return macro


def _exists_one(two: bool) -> Callable[[Call], Node]:
    def macro(call: Call) -> Node:
        at = call.position
        increased = Call(at, "_+_", [_accumulator(call), Literal(at, 1)])
        step = Call(at, "_?_:_", [call.arguments[-1], increased, _accumulator(call)])
        result = Call(at, "_==_", [_accumulator(call), Literal(at, 1)])
        return _fold(call, two, Literal(at, 0), Literal(at, True), step, result)

    return macro


def _listed(call: Call, two: bool, element: Node, condition: Node | None) -> Node:
    at = call.position
    step: Node = Call(at, "_+_", [_accumulator(call), ListDisplay(at, [element], [False])])
    if condition is not None:
        step = Call(at, "_?_:_", [condition, step, _accumulator(call)])
    return _fold(call, two, ListDisplay(at, [], []), Literal(at, True), step)


def _map(call: Call) -> Node:
    return _listed(call, False, call.arguments[-1], call.arguments[1] if len(call.arguments) == 3 else None)


def _filter(call: Call) -> Node:
    return _listed(call, False, call.arguments[0], call.arguments[1])


def _transform_list(call: Call) -> Node:
    return _listed(call, True, call.arguments[-1], call.arguments[2] if len(call.arguments) == 4 else None)


def _transform_map(entries: bool) -> Callable[[Call], Node]:
    """`transformMap` keeps the keys, `transformMapEntry` makes maps whose entries are inserted."""

    def macro(call: Call) -> Node:
        at = call.position
        inserted = [call.arguments[-1]] if entries else [Name(at, _variable(call.arguments[0])), call.arguments[-1]]
        step: Node = Call(at, "@insert", [_accumulator(call), *inserted])
        if len(call.arguments) == 4:
            step = Call(at, "_?_:_", [call.arguments[2], step, _accumulator(call)])
        return _fold(call, True, Call(at, "@empty_map", []), Literal(at, True), step)

    return macro


def _bound(at: int, name: str, value: Node, result: Node) -> Fold:
    """A fold over nothing: its accumulator is a variable for the result."""
    nothing = ListDisplay(at, [], [])
    return Fold(at, nothing, _UNUSED, None, name, value, Literal(at, False), Name(at, name), result)


def _bind(call: Call) -> Node:
    return _bound(call.position, _variable(call.arguments[0]), call.arguments[1], call.arguments[2])


def _optional(flat: bool) -> Callable[[Call], Node]:
    """`optMap` and `optFlatMap`; the target is evaluated once."""

    def macro(call: Call) -> Node:
        at = call.position
        value = Call(at, "value", [], Name(at, _INPUT))
        mapped: Node = _bound(at, _variable(call.arguments[0]), value, call.arguments[1])
        mapped = mapped if flat else Call(at, "of", [mapped], Name(at, "optional"))
        absent = Call(at, "none", [], Name(at, "optional"))
        chosen = Call(at, "_?_:_", [Call(at, "hasValue", [], Name(at, _INPUT)), mapped, absent])
        return _bound(at, _INPUT, _target(call), chosen)

    return macro


def _sort_by(call: Call) -> Node:
    at = call.position
    keys = _map(Call(at, "map", call.arguments, Name(at, _INPUT)))
    return _bound(at, _INPUT, _target(call), Call(at, "@sort_by_keys", [keys], Name(at, _INPUT)))


_MACROS: dict[tuple[str, int, bool], Callable[[Call], Node]] = {
    ("has", 1, False): _has,
    ("all", 2, True): _quantifier(True, False),
    ("all", 3, True): _quantifier(True, True),
    ("exists", 2, True): _quantifier(False, False),
    ("exists", 3, True): _quantifier(False, True),
    ("exists_one", 2, True): _exists_one(False),
    ("exists_one", 3, True): _exists_one(True),
    ("existsOne", 3, True): _exists_one(True),
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
    ("transformList", 3, True): _transform_list,
    ("transformList", 4, True): _transform_list,
    ("transformMap", 3, True): _transform_map(False),
    ("transformMap", 4, True): _transform_map(False),
    ("transformMapEntry", 3, True): _transform_map(True),
    ("transformMapEntry", 4, True): _transform_map(True),
    ("bind", 3, True): _bind,
    ("optMap", 2, True): _optional(False),
    ("optFlatMap", 2, True): _optional(True),
    ("sortBy", 2, True): _sort_by,
}

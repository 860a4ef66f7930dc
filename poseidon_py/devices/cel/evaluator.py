"""Checked trees as functions of a device.

Each node becomes a closure over those of its operands. An error is an exception, which `&&` and `||` keep until they
know whether another operand decides, and which a fold keeps as the value of its accumulator (cel-spec, "Evaluation").
"""

from poseidon_py.devices.cel.checker import Checked
from poseidon_py.devices.cel.closures import (
    alternative,
    called,
    conditional,
    equality,
    inserted,
    logical,
    named,
    not_strictly_false,
    placed,
    present,
    selected,
)
from poseidon_py.devices.cel.errors import EvaluationError, SelectorError
from poseidon_py.devices.cel.folding import accumulated, collected
from poseidon_py.devices.cel.frames import Evaluation, Frame
from poseidon_py.devices.cel.library.regexes import compiled
from poseidon_py.devices.cel.syntax import Call, Fold, ListDisplay, Literal, Logical, MapDisplay, Name, Node, Select
from poseidon_py.devices.cel.values import ListValue, MapValue, Uint, Value, type_name

_LIST_COST, _MAP_COST = 10, 30

_FOLDED = dict.fromkeys(("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "uint"), False)
_FOLDED |= dict.fromkeys(("quantity", "semver"), True)
"""Functions of a literal that are evaluated beforehand, and whether what they refuse fails only the evaluation."""


def build(tree: Node, checked: Checked) -> Evaluation:
    """What evaluates the tree in a frame of `checked.slots` slots. Raises SelectorError for conversions that fail."""
    return _Builder(checked).build(tree)


class _Builder:
    def __init__(self, checked: Checked) -> None:
        self._checked = checked

    def build(self, node: Node) -> Evaluation:
        if node in self._checked.names:
            return named(self._checked.names[node])
        match node:
            case Literal():
                value = node.value
                return lambda frame: value
            case Select():
                return selected(node, self.build(node.operand))
            case Call():
                return self._call(node)
            case Logical():
                return logical(node, [self.build(each) for each in node.operands])
            case ListDisplay():
                return placed(node, self._list(node))
            case MapDisplay():
                return placed(node, self._map(node))
            case Fold():
                return placed(node.range, self._fold(node))
            case Name():
                raise AssertionError(f"{node.name} was not looked up")

    def _call(self, node: Call) -> Evaluation:
        arguments = [self.build(each) for each in node.arguments]
        match node.function:
            case "_?_:_":
                return conditional(node, *arguments)
            case "_==_":
                return equality(node, *arguments, expected=True)
            case "_!=_":
                return equality(node, *arguments, expected=False)
            case "@not_strictly_false":
                return not_strictly_false(arguments[0])
            case "@insert":
                return placed(node, inserted(arguments))
            case "matches" | "find" | "findAll":
                _check_pattern(node)
        if node.target is not None and node not in self._checked.free:
            target = self.build(node.target)
            if node.function in ("or", "orValue"):
                return alternative(node, target, arguments[0], unwrap=node.function == "orValue")
            arguments = [target, *arguments]
        return self._dispatch(node, arguments)

    def _dispatch(self, node: Call, arguments: list[Evaluation]) -> Evaluation:
        """The first implementation whose types the arguments have."""
        candidates = self._checked.calls[node]
        if node.function in _FOLDED and node.target is None and len(node.arguments) == 1:
            constant = self._constant(node)
            if constant is not None:
                return constant

        return called(node, candidates, arguments)

    def _constant(self, node: Call) -> Evaluation | None:
        """A conversion of a literal, made once. One that fails is refused where the API server refuses it."""
        argument = node.arguments[0]
        if not isinstance(argument, Literal):
            return None
        [candidate] = self._checked.calls[node]
        try:
            value = candidate.function(argument.value)
        except EvaluationError as error:
            if _FOLDED[node.function]:
                return None
            raise SelectorError(error.message, node.position) from None
        cost = candidate.cost(argument.value)

        def constant(frame: Frame) -> Value:
            frame.spend(cost)
            return value

        return constant

    def _list(self, node: ListDisplay) -> Evaluation:
        if all(isinstance(each, Literal) for each in node.elements):
            constant = ListValue(each.value for each in node.elements if isinstance(each, Literal))
            return lambda frame: constant
        elements = [(self.build(each), flag) for each, flag in zip(node.elements, node.optional, strict=True)]

        def display(frame: Frame) -> Value:
            frame.spend(_LIST_COST)
            values = ((each(frame), flag) for each, flag in elements)
            return ListValue(present(values))

        return display

    def _map(self, node: MapDisplay) -> Evaluation:
        keys = [self.build(each) for each in node.keys]
        values = [self.build(each) for each in node.values]
        flags = node.optional

        def display(frame: Frame) -> Value:
            frame.spend(_MAP_COST)
            entries: list[tuple[Value, Value]] = []
            for key, value, flag in zip(keys, values, flags, strict=True):
                name = key(frame)
                if type(name) not in (int, Uint, bool, str):
                    raise EvaluationError(f"unsupported key type: {type_name(name)}")
                entries += [(name, found) for found in present([(value(frame), flag)])]
            return MapValue(entries)

        return display

    def _fold(self, node: Fold) -> Evaluation:
        ranged, two, slots = self.build(node.range), node.second is not None, self._checked.folds[node]
        appended = _appended(node)
        if appended is not None:
            condition, element = appended
            chosen = self.build(condition) if condition is not None else None
            return collected(ranged, two, slots, chosen, self.build(element))
        parts = (node.initial, node.condition, node.step, node.result)
        return accumulated(ranged, two, slots, *map(self.build, parts))


def _appended(node: Fold) -> tuple[Node | None, Node] | None:
    """The condition and the element of a fold that does nothing but to append elements to a list."""
    step, condition = node.step, None
    if isinstance(step, Call) and step.function == "_?_:_":
        condition, step = step.arguments[0], step.arguments[1]
    if not isinstance(node.initial, ListDisplay) or not isinstance(step, Call) or step.function != "_+_":
        return None
    display = step.arguments[1]
    return (condition, display.elements[0]) if isinstance(display, ListDisplay) else None


def _check_pattern(node: Call) -> None:
    """A literal pattern is compiled once, and refused if it is none."""
    pattern = node.arguments[-1 if node.function == "matches" else 0]
    if isinstance(pattern, Literal) and isinstance(pattern.value, str):
        try:
            compiled(pattern.value)
        except EvaluationError as error:
            raise SelectorError(error.message, pattern.position) from None

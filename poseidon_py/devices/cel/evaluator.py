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
from poseidon_py.devices.cel.library.regexes import compilation_cost, compiled
from poseidon_py.devices.cel.syntax import Call, Fold, ListDisplay, Literal, Logical, MapDisplay, Name, Node, Select
from poseidon_py.devices.cel.values import ListValue, MapValue, Uint, Value, type_name

_LIST_COST, _MAP_COST = 10, 30

_KEYS = (bool, int, Uint, str)
"""The types of a map's keys."""

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
                return equality(node, *arguments, negated=False)
            case "_!=_":
                return equality(node, *arguments, negated=True)
            case "@not_strictly_false":
                return not_strictly_false(arguments[0])
            case "@insert":
                return placed(node, inserted(arguments))
            case "_[_]" | "_[?_]":
                self._check_key(node.arguments[1])
            case "@in" if isinstance(node.arguments[1], ListDisplay) and not node.arguments[1].elements:
                return lambda frame: False
            case "matches" | "find" | "findAll":
                index = 0 if node.target is not None else 1
                constant = self._constant(node.arguments[index])
                arguments[index] = _pattern(constant or node.arguments[index], arguments[index])
        if node.target is not None and node not in self._checked.free:
            target = self.build(node.target)
            if node.function in ("or", "orValue"):
                return alternative(node, target, arguments[0], unwrap=node.function == "orValue")
            arguments = [target, *arguments]
        return self._dispatch(node, arguments)

    def _dispatch(self, node: Call, arguments: list[Evaluation]) -> Evaluation:
        """The first implementation whose types the arguments have."""
        candidates = self._checked.calls[node]
        constant = self._constant(node)
        if constant is None:
            return called(node, candidates, arguments)

        def folded(frame: Frame) -> Value:
            frame.spend(1)
            return constant.value

        return folded

    def _constant(self, node: Node) -> Literal | None:
        """A literal, or a conversion of one made beforehand; where that fails the API server refuses the expression."""
        if isinstance(node, Literal):
            return node
        if not isinstance(node, Call) or node.function not in _FOLDED or node.target or len(node.arguments) != 1:
            return None
        argument = self._constant(node.arguments[0])
        if argument is None:
            return None
        accepting = [each for each in self._checked.calls[node] if each.accepts([argument.value])]
        if not accepting:
            return None
        candidate = accepting[0]
        try:
            return Literal(node.position, candidate.function(argument.value))
        except EvaluationError as error:
            if _FOLDED[node.function]:
                return None
            raise SelectorError(error.message, node.position) from None

    def _check_key(self, node: Node) -> None:
        """A constant of another type is refused where the API server refuses it, and so are displays of constants."""
        constant = self._constant(node)
        if constant is not None and (constant.value is None or isinstance(constant.value, bytes)):
            raise SelectorError(f"invalid qualifier type: {type_name(constant.value)}", node.position)
        if isinstance(node, ListDisplay | MapDisplay):
            raise SelectorError("invalid qualifier type", node.position)

    def _list(self, node: ListDisplay) -> Evaluation:
        literals = [each.value for each in node.elements if isinstance(each, Literal)]
        if len(literals) == len(node.elements):
            constant = ListValue(literals)
            return lambda frame: constant
        elements = [(self.build(each), flag) for each, flag in zip(node.elements, node.optional, strict=True)]

        def display(frame: Frame) -> Value:
            frame.spend(_LIST_COST)
            values = ((each(frame), flag) for each, flag in elements)
            return ListValue(present(values))

        return display

    def _map(self, node: MapDisplay) -> Evaluation:
        literals = [
            (key.value, value.value)
            for key, value in zip(node.keys, node.values, strict=True)
            if isinstance(key, Literal) and type(key.value) in _KEYS and isinstance(value, Literal)
        ]
        if len(literals) == len(node.keys):
            constant = MapValue(literals)
            return lambda frame: constant
        entries = [
            (self.build(key), self.build(value), flag)
            for key, value, flag in zip(node.keys, node.values, node.optional, strict=True)
        ]

        def display(frame: Frame) -> Value:
            frame.spend(_MAP_COST)
            made: list[tuple[Value, Value]] = []
            for key, value, flag in entries:
                name = key(frame)
                if type(name) not in _KEYS:
                    raise EvaluationError(f"unsupported key type: {type_name(name)}")
                made += [(name, found) for found in present([(value(frame), flag)])]
            return MapValue(made)

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


def _pattern(node: Node, evaluation: Evaluation) -> Evaluation:
    """A pattern: a literal is compiled once, and refused if it is none; another one costs what compiling costs."""
    if isinstance(node, Literal):
        try:
            if isinstance(node.value, str):
                compiled(node.value)
        except EvaluationError as error:
            raise SelectorError(error.message, node.position) from None
        return evaluation

    def pattern(frame: Frame) -> Value:
        value = evaluation(frame)
        if isinstance(value, str):
            frame.spend(len(value) // 4)
            frame.spend(compilation_cost(value))
        return value

    return placed(node, pattern)

"""Type checks as the API server makes them before it stores a selector (the rules of cel-go's checker).

What is found out is kept for the evaluation: which implementations of a function may be meant, what names stand for.
"""

from dataclasses import dataclass, field

from poseidon_py.devices.cel.celtypes import (
    BOOL,
    BYTES,
    DEVICE,
    DOUBLE,
    DYN,
    INT,
    NULL,
    STRING,
    UINT,
    CelType,
    list_of,
    map_of,
    optional_of,
    type_from,
    type_of,
)
from poseidon_py.devices.cel.errors import SelectorError
from poseidon_py.devices.cel.functions import FUNCTIONS
from poseidon_py.devices.cel.library.overload import Overload
from poseidon_py.devices.cel.library.strings_format import refused_argument
from poseidon_py.devices.cel.syntax import Call, Fold, ListDisplay, Literal, Logical, MapDisplay, Name, Node, Select
from poseidon_py.devices.cel.unification import Unifier
from poseidon_py.devices.cel.values import TypeValue, Uint

_LITERALS = {bool: BOOL, int: INT, Uint: UINT, float: DOUBLE, str: STRING, bytes: BYTES, type(None): NULL}

_TYPE_NAMES = {
    name: CelType(name) for name in ("bool", "bytes", "double", "int", "null_type", "string", "type", "uint")
}
_TYPE_NAMES |= {"list": list_of(DYN), "map": map_of(DYN, DYN), "optional_type": optional_of(DYN)}
_TYPE_NAMES |= {kind.name: kind for kind in map(type_from, ("ip", "cidr", "duration", "timestamp"))}

_FIELDS = {
    "driver": STRING,
    "attributes": map_of(STRING, map_of(STRING, DYN)),
    "capacity": map_of(STRING, map_of(STRING, type_from("quantity"))),
    "allowMultipleAllocations": BOOL,
}
"""Of `device`."""

_BY_VALUES = frozenset(("size", "sort", "@sort_by_keys", "_[_]", "@in", "-_", "_+_", "_-_", "_*_", "_/_", "_%_"))
_BY_VALUES |= {"_<_", "_<=_", "_>_", "_>=_"}
"""Functions whose arguments decide at run time alone which implementation is meant, whatever their types are here."""

DEVICE_SLOT = 0
"""The variable `device`; those of macros have the slots behind it."""


@dataclass(slots=True)
class Checked:
    """What the checks of a tree found out."""

    result: CelType
    slots: int = 1
    names: dict[Node, int | TypeValue] = field(default_factory=dict)
    """The slot of a variable, or the type that is meant."""
    folds: dict[Node, tuple[int, int, int]] = field(default_factory=dict)
    """The slots of a fold's first and second variable and of its accumulator."""
    calls: dict[Node, tuple[Overload, ...]] = field(default_factory=dict)
    free: set[Node] = field(default_factory=set)
    """Calls of functions with a dot in their name: what looks like their target is none."""


def check(tree: Node) -> Checked:
    """Raises SelectorError."""
    checker = _Checker()
    checker.checked.result = checker.final(checker.type(tree))
    checker.refuse_mixed_displays()
    checker.refuse_format_arguments()
    return checker.checked


def qualified_name(node: Node | None) -> str | None:
    """`a.b` of a name and selections from it."""
    match node:
        case Name():
            return node.name
        case Select(optional=False, test=False):
            prefix = qualified_name(node.operand)
            return None if prefix is None else f"{prefix}.{node.field}"
        case _:
            return None


class _Checker:
    def __init__(self) -> None:
        self.checked = Checked(DYN)
        self._unifier = Unifier()
        self._scopes: dict[str, tuple[CelType, int]] = {"device": (DEVICE, DEVICE_SLOT)}
        self._formatted = 0
        self._displays: list[list[tuple[Node, CelType]]] = []
        self._types_to_format: dict[Node, CelType] = {}
        self._format_calls: list[Call] = []

    def final(self, kind: CelType) -> CelType:
        return self._unifier.resolve(kind, free=DYN)

    def type(self, node: Node) -> CelType:
        kind = self._type(node)
        if self._formatted:
            self._types_to_format[node] = kind
        return kind

    def _type(self, node: Node) -> CelType:
        match node:
            case Literal():
                return _LITERALS[type(node.value)]
            case Name():
                return self._name(node, node.name)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case Logical():
                for operand in node.operands:
                    self._expect(operand, BOOL)
                return BOOL
            case ListDisplay():
                return list_of(self._joined(node.elements, node.optional))
            case MapDisplay():
                key = self._joined(node.keys, [False] * len(node.keys))
                return map_of(key, self._joined(node.values, node.optional))
            case Fold():
                return self._fold(node)

    def _expect(self, node: Node, expected: CelType) -> None:
        kind = self.type(node)
        if not self._unifier.agree((expected,), (kind,)):
            message = f"expected type '{self.final(expected)}' but found '{self.final(kind)}'"
            raise SelectorError(message, node.position)

    def _name(self, node: Name | Select, name: str) -> CelType:
        name = name.removeprefix(".")
        if name in self._scopes:
            kind, slot = self._scopes[name]
            self.checked.names[node] = slot
            return kind
        if name in _TYPE_NAMES:
            self.checked.names[node] = TypeValue(name)
            return type_of(_TYPE_NAMES[name])
        raise SelectorError(f"undeclared reference to '{name}'", node.position)

    def _select(self, node: Select) -> CelType:
        name = qualified_name(node)
        if name is not None and name.removeprefix(".") in _TYPE_NAMES:
            return self._name(node, name)
        operand = self._unifier.resolve(self.type(node.operand))
        within = operand.name == "optional_type"
        kind = self._field(node, operand.parameters[0] if within else operand)
        if node.test:
            return BOOL
        return optional_of(kind) if within or node.optional else kind

    def _field(self, node: Select, operand: CelType) -> CelType:
        if operand.name == "map":
            return operand.parameters[1]
        if operand == DEVICE:
            if node.field not in _FIELDS:
                raise SelectorError(f"undefined field '{node.field}'", node.position)
            return _FIELDS[node.field]
        if operand.variable or operand == DYN:
            self._unifier.agree((DYN,), (operand,))
            return DYN
        raise SelectorError(f"type '{self.final(operand)}' does not support field selection", node.position)

    def _call(self, node: Call) -> CelType:
        prefix = qualified_name(node.target)
        function = node.function
        if prefix is not None and f"{prefix}.{function}" in FUNCTIONS:
            function = f"{prefix}.{function}"
            self.checked.free.add(node)
        if function not in FUNCTIONS and function not in ("_==_", "_!=_", "_?_:_", "@not_strictly_false", "@insert"):
            raise SelectorError(f"undeclared reference to '{function}'", node.position)
        self._formatted += function == "format"
        method = node.target is not None and node not in self.checked.free
        operands = [node.target, *node.arguments] if method and node.target else node.arguments
        types = tuple(map(self.type, operands))
        self._formatted -= function == "format"
        if function == "format":
            self._format_calls.append(node)
        match function:
            case "_?_:_":
                return self._same(node, types[1:], self._agrees(BOOL, types[0], node))
            case "_==_" | "_!=_":
                self._same(node, types)
                return BOOL
            case "@not_strictly_false":
                return BOOL
            case "@insert":
                return self._inserted(node, types)
        return self._resolved(node, function, method, types)

    def _agrees(self, expected: CelType, kind: CelType, node: Call) -> bool:
        return self._unifier.agree((expected,), (kind,))

    def _same(self, node: Call, types: tuple[CelType, ...], valid: bool = True) -> CelType:
        """The type of two operands that must have one in common."""
        joined = self._unifier.fresh()
        if not valid or not self._unifier.agree(types, (joined, joined)):
            raise self._no_overload(node, node.function, types, method=False)
        return self._unifier.resolve(joined)

    def _inserted(self, node: Call, types: tuple[CelType, ...]) -> CelType:
        key, value = self._unifier.fresh(), self._unifier.fresh()
        entries = map_of(key, value)
        expected = (entries, key, value) if len(types) == 3 else (entries, entries)
        if not self._unifier.agree(types, expected):
            raise self._no_overload(node, "transformMap", types, method=False)
        return self._unifier.resolve(entries)

    def _resolved(self, node: Call, function: str, method: bool, types: tuple[CelType, ...]) -> CelType:
        """The result's type if all candidates have the same, else dyn; each may bind type variables."""
        result: CelType | None = None
        candidates = []
        for candidate in FUNCTIONS[function]:
            signature = candidate.signature
            if signature.method != method:
                continue
            *arguments, returned = self._unifier.instance((*signature.arguments, signature.result))
            if not self._unifier.agree(types, tuple(arguments)):
                continue
            candidates.append(candidate)
            kind = self._unifier.resolve(returned)
            if result is None:
                result = kind
            elif result not in (kind, DYN):
                result = DYN
        if result is None:
            raise self._no_overload(node, function, types, method)
        if function in _BY_VALUES:
            candidates = [each for each in FUNCTIONS[function] if len(each.predicates) == len(types)]
        self.checked.calls[node] = tuple(candidates)
        return result

    def _no_overload(self, node: Call, function: str, types: tuple[CelType, ...], method: bool) -> SelectorError:
        shown = [str(self.final(kind)) for kind in types]
        applied = f"{shown[0]}.({', '.join(shown[1:])})" if method else f"({', '.join(shown)})"
        return SelectorError(f"found no matching overload for '{function}' applied to '{applied}'", node.position)

    def _joined(self, nodes: list[Node], optional: list[bool]) -> CelType:
        """The type of a display's elements; of literals it must be one, which is looked at when all types are known."""
        joined: CelType | None = None
        kinds = []
        for node, flag in zip(nodes, optional, strict=True):
            kind = self._unifier.resolve(self.type(node))
            if flag:
                if kind.name != "optional_type" and kind != DYN:
                    raise SelectorError(f"expected type 'optional_type({kind})' but found '{kind}'", node.position)
                kind = kind.parameters[0] if kind.parameters else DYN
            kinds.append((node, kind))
            joined = kind if joined is None else (self._unifier.join(joined, kind) or DYN)
        if not self._formatted:
            self._displays.append(kinds)
        return joined or self._unifier.fresh()

    def refuse_mixed_displays(self) -> None:
        """Elements of displays have the same type, except in the arguments of `format`."""
        for kinds in self._displays:
            for node, kind in kinds[1:]:
                first, found = self.final(kinds[0][1]), self.final(kind)
                if first != found:
                    raise SelectorError(f"expected type '{first}' but found '{found}'", node.position)

    def refuse_format_arguments(self) -> None:
        """Those of a literal template, if they are listed, have types that it can show."""
        for call in self._format_calls:
            match call:
                case Call(target=Literal(value=str(template)), arguments=[ListDisplay(elements=elements)]):
                    kinds = [self._shown_type(each) for each in elements]
                    refused = refused_argument(template, kinds)
                    if refused is not None:
                        index, reason = refused
                        raise SelectorError(reason, (call if index is None else elements[index]).position)

    def _shown_type(self, node: Node) -> str:
        return self.final(self._types_to_format[node]).name

    def _fold(self, node: Fold) -> CelType:
        ranged = self._unifier.resolve(self.type(node.range))
        initial = self.type(node.initial)
        outer = self._scopes
        slots = self.checked.slots
        self.checked.slots += 3
        self.checked.folds[node] = (slots, slots + 1, slots + 2)
        first, second = self._variables(node, ranged)
        accumulator = {node.accumulator: (initial, slots + 2)}
        self._scopes = outer | accumulator | {node.first: (first, slots)}
        if node.second is not None:
            self._scopes[node.second] = (second, slots + 1)
        self._expect(node.condition, BOOL)
        self._expect(node.step, initial)
        self._scopes = outer | accumulator
        result = self._unifier.resolve(self.type(node.result))
        self._scopes = outer
        return result

    def _variables(self, node: Fold, ranged: CelType) -> tuple[CelType, CelType]:
        """The types of a fold's variables."""
        if ranged.name == "list":
            element = ranged.parameters[0]
            return (INT, element) if node.second is not None else (element, DYN)
        if ranged.name == "map":
            return ranged.parameters[0], ranged.parameters[1]
        if ranged.variable or ranged == DYN:
            self._unifier.agree((DYN,), (ranged,))
            return DYN, DYN
        message = f"expression of type '{self.final(ranged)}' cannot be range of a comprehension"
        raise SelectorError(f"{message} (must be list, map, or dynamic)", node.range.position)

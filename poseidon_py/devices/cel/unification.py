"""Which types agree, and what type variables stand for then (the rules of cel-go's checker).

A variable stands for one type; where it is met again, the more general of two agreeing types is what it stands for.
`dyn` agrees with all, null with messages, optionals and the types of Kubernetes' libraries.
"""

from poseidon_py.devices.cel.celtypes import DYN, CelType

_NOT_NULLABLE = frozenset(("bool", "int", "uint", "double", "string", "bytes", "list", "map", "type"))


class Unifier:
    def __init__(self) -> None:
        self._bindings: dict[CelType, CelType] = {}
        self._count = 0

    def fresh(self) -> CelType:
        """A variable that stands for nothing yet."""
        self._count += 1
        return CelType(f"${self._count}")

    def instance(self, types: tuple[CelType, ...]) -> tuple[CelType, ...]:
        """The types with fresh variables for their parameters, the same one for the same parameter."""
        variables: dict[CelType, CelType] = {}

        def replaced(each: CelType) -> CelType:
            if each.variable:
                if each not in variables:
                    variables[each] = self.fresh()
                return variables[each]
            return CelType(each.name, tuple(map(replaced, each.parameters)))

        return tuple(map(replaced, types))

    def agree(self, first: tuple[CelType, ...], second: tuple[CelType, ...]) -> bool:
        """Whether the types agree one by one. What variables stand for changes only if all do."""
        before = dict(self._bindings)
        if len(first) == len(second) and all(map(self._agrees, first, second)):
            return True
        self._bindings = before
        return False

    def resolve(self, kind: CelType, *, free: CelType | None = None) -> CelType:
        """The type with what its variables stand for; `free` replaces those that stand for nothing."""
        while kind in self._bindings:
            kind = self._bindings[kind]
        if kind.variable:
            return free or kind
        return CelType(kind.name, tuple(self.resolve(each, free=free) for each in kind.parameters))

    def join(self, first: CelType, second: CelType) -> CelType | None:
        """The more general of two types that agree, None if they do not."""
        return _more_general(first, second) if self.agree((first,), (second,)) else None

    def _agrees(self, first: CelType, second: CelType) -> bool:
        if second.variable:
            valid, bound = self._stands_for(second, first)
            if valid or bound:
                return valid
        if first.variable:
            return self._stands_for(first, second)[0]
        if DYN in (first, second):
            return True
        if "null_type" in (first.name, second.name):
            return first.name == second.name or not {first.name, second.name} & _NOT_NULLABLE
        if first.name == "type":
            return second.name == "type"
        return (
            first.name == second.name
            and len(first.parameters) == len(second.parameters)
            and all(map(self._agrees, first.parameters, second.parameters))
        )

    def _stands_for(self, variable: CelType, other: CelType) -> tuple[bool, bool]:
        """Whether the variable can stand for the other type, and whether it stands for a type already."""
        if variable == other:
            return True, True
        current = self._bindings.get(variable)
        if current is not None:
            if other == current:
                return True, True
            if self._agrees(other, current):
                general = _more_general(other, current)
                if not self._occurs(variable, general):
                    self._bindings[variable] = general
                return True, True
            return False, True
        if self._occurs(variable, other):
            return False, False
        self._bindings[variable] = other
        return True, False

    def _occurs(self, variable: CelType, within: CelType) -> bool:
        if variable == within:
            return True
        if within.variable:
            return within in self._bindings and self._occurs(variable, self._bindings[within])
        return any(self._occurs(variable, each) for each in within.parameters)


def _more_general(first: CelType, second: CelType) -> CelType:
    return first if _as_general(first, second) else second


def _as_general(first: CelType, second: CelType) -> bool:
    if first == DYN or first.variable:
        return True
    if second == DYN or second.variable or first.name != second.name:
        return False
    return first.name == "type" or all(map(_as_general, first.parameters, second.parameters))

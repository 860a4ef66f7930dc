"""Reads the fields of an object one by one, so that an invalid one does not hide the others.

Every invalid field is recorded with what was found and the remedy, and counts as missing. A field that limits something
would limit nothing then: it closes the queue until it can be read. The kinds name the fields that limit nothing.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from poseidon_py.kube.object_details import LabelSelector
from poseidon_py.kube.objects import NOTHING, Metadata
from poseidon_py.kube.quantity import QuantityError, nanos, offered
from poseidon_py.util.decoding import MalformedError, decode_json
from poseidon_py.util.durations import seconds_of
from poseidon_py.util.quoting import quoted

LARGEST = 2**63 - 1
"""The largest amount that the contract carries."""
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_MAX_PROBLEMS = 10
"""Problems that are recorded of one object."""


class QueueObject(Struct):
    """An object of any kind that describes queues, undecoded."""

    metadata: Metadata = field(default_factory=Metadata)
    spec: Raw = NOTHING
    status: Raw = NOTHING
    data: Raw = NOTHING
    """Of a ConfigMap."""
    value: Raw = NOTHING
    """Of a priority class."""


class Problems:
    """What is wrong with an object, as `path: what was found; remedy`."""

    def __init__(self, limits_nothing: tuple[str, ...] = ("",)) -> None:
        """`limits_nothing`: paths of the fields that are ignored if they cannot be read, with all below them; an empty
        path: all fields. Any other one closes the queue."""
        self._found: list[str] = []
        self._limits_nothing = limits_nothing
        self.closing = ""
        """The first problem that closes the queue; empty: none does."""

    def add(self, path: str, reason: str) -> None:
        """Records that a field has no effect, or another one than its user expects."""
        if len(self._found) < _MAX_PROBLEMS:
            self._found.append(f"{path}: {reason}")

    def unreadable(self, path: str, found: str, remedy: str) -> None:
        """Records that a field cannot be read. `found`: what is there, as a clause."""
        if any(_is_below(path, each) for each in self._limits_nothing):
            self.add(path, f"{found} and is ignored; {remedy}")
            return
        reason = f"{found}, so the queue is closed; {remedy}"
        self.closing = self.closing or f"{path}: {reason}"
        self.add(path, reason)

    def refuse(self, problem: str) -> None:
        """Records that a field asks for what cannot be kept, so that the queue is closed."""
        self.closing = self.closing or problem
        self.extend((problem,))

    def extend(self, problems: tuple[str, ...]) -> None:
        """Adds those of a part, which has been closed for them if need be."""
        self._found += problems[: _MAX_PROBLEMS - len(self._found)]

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(self._found)


def _is_below(path: str, above: str) -> bool:
    return not above or (path.startswith(above) and path[len(above) : len(above) + 1] in ("", ".", "["))


def decoded(raw: Raw, path: str, problems: Problems) -> object:
    """The value of an undecoded field; None if it is missing or malformed."""
    data = bytes(raw)
    if not data:
        return None
    try:
        return decode_json(data, Any, path)
    except MalformedError as error:
        problems.unreadable(path, error.reason, "correct it")
        return None


class Fields:
    """The fields of a mapping at `path` of an object. A null counts as missing."""

    def __init__(self, content: object, path: str, problems: Problems) -> None:
        self.path = path
        self.problems = problems
        self._values: Mapping[str, Any] = {}
        if isinstance(content, Mapping):
            self._values = content
        elif content is not None:
            problems.unreadable(path, f"{quoted(content)} is not valid", "give a mapping")

    @property
    def content(self) -> Mapping[str, Any]:
        """The fields as they are."""
        return self._values

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def apart(self, problems: Problems) -> "Fields":
        """The same fields, whose problems are recorded elsewhere."""
        return Fields(self._values, self.path, problems)

    def names(self) -> tuple[str, ...]:
        """The names of the fields that are set."""
        return tuple(str(name) for name, value in self._values.items() if value is not None)

    def at(self, name: str) -> str:
        """The path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def remark(self, name: str, reason: str) -> None:
        """Records that a field has no effect, or another one than its user expects."""
        self.problems.add(self.at(name), reason)

    def _invalid(self, name: str, expected: str) -> None:
        self.problems.unreadable(self.at(name), f"{quoted(self._values.get(name))} is not valid", expected)

    def text(self, name: str, default: str = "") -> str:
        found = self._values.get(name)
        if found is None:
            return default
        if not isinstance(found, str) or not _is_unicode(found):
            self._invalid(name, "give a text")
            return default
        return found

    def choice(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        """One of several words."""
        found = self._values.get(name)
        if found is None or found in ("", default):
            return default
        if found not in allowed:
            self._invalid(name, f"give {', '.join(allowed)}")
            return default
        return str(found)

    def flag(self, name: str, *, default: bool) -> bool:
        found = self._values.get(name)
        if found is None:
            return default
        if not isinstance(found, bool):
            self._invalid(name, "give true or false")
            return default
        return found

    def whole(self, name: str, default: int | None = None, least: int = -(2**31), largest: int = 2**31 - 1) -> int:
        """A whole number. `default`: None counts as 0."""
        found = self.optional_whole(name, least, largest)
        return (default or 0) if found is None else found

    def optional_whole(self, name: str, least: int = -(2**31), largest: int = 2**31 - 1) -> int | None:
        """A whole number; None: missing or invalid."""
        found = self._values.get(name)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= largest:
            self._invalid(name, f"give a whole number from {least} to {largest}")
            return None
        return found

    def number(self, name: str, default: float, *, least: float = 0.0, largest: float = LARGEST) -> float:
        """A number, which may be written as a quantity."""
        found = self._values.get(name)
        if found is None:
            return default
        number = _number(found)
        if number is None or not least <= number <= largest:
            bounds = f"of at least {least:g}" if largest == LARGEST else f"from {least:.10g} to {largest:.10g}"
            self._invalid(name, f"give a number {bounds}")
            return default
        return number

    def duration(self, name: str, default: float = 0.0) -> float:
        """Seconds."""
        found = self._values.get(name)
        if found is None:
            return default
        seconds = seconds_of(found) if isinstance(found, str) else None
        if seconds is None:
            self._invalid(name, "give a duration like 90s, 10m or 1h30m")
            return default
        return seconds

    def amount(self, name: str, resource: str) -> int | None:
        """An amount of a resource in the engine's units, rounded down; None: missing or invalid."""
        return self._amount(name, self._values.get(name), resource)

    def _amount(self, name: str, found: object, resource: str) -> int | None:
        if found is None:
            return None
        try:
            if isinstance(found, bool) or not isinstance(found, (str, int, float)):
                raise QuantityError("")
            amount = nanos(str(found))
        except (QuantityError, ValueError):
            self._invalid(name, "give a quantity like 8, 500m or 64Gi")
            return None
        if amount < 0:
            self._invalid(name, "give 0 or more")
            return None
        return offered(resource, amount)

    def amounts(self, name: str) -> dict[str, int]:
        """Resource -> amount in the engine's units. Invalid amounts are left out."""
        part = self.part(name)
        found = {resource: part.amount(resource, resource) for resource in part.names()}
        return {resource: amount for resource, amount in found.items() if amount is not None}

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        found = self._values.get(name)
        if found is None:
            return ()
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            self._invalid(name, "give a list of texts")
            return ()
        return tuple(found)

    def labels(self, name: str) -> dict[str, str]:
        """A mapping of texts to texts."""
        found = self._values.get(name)
        if found is None:
            return {}
        if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
            self._invalid(name, "give a mapping of labels to texts")
            return {}
        return dict(found)

    def selector(self, name: str) -> LabelSelector | None:
        """A label selector; None: missing. An invalid one selects nothing."""
        found = self._values.get(name)
        if found is None:
            return None
        try:
            selector = msgspec.convert(found, LabelSelector)
        except msgspec.ValidationError as error:
            self.problems.add(self.at(name), f"{error}; give matchLabels or matchExpressions; it selects nothing")
            return NOTHING_SELECTED
        for each in selector.expressions or ():
            if each.operator not in _OPERATORS:
                self.problems.add(
                    f"{self.at(name)}.matchExpressions",
                    f"operator {quoted(each.operator)} is not valid; give {', '.join(_OPERATORS)}; it selects nothing",
                )
                return NOTHING_SELECTED
        return selector

    def part(self, name: str) -> "Fields":
        """A mapping; empty if it is missing."""
        return Fields(self._values.get(name), self.at(name), self.problems)

    def parts(self, name: str) -> Iterator["Fields"]:
        """A list of mappings."""
        found = self._values.get(name)
        if found is None:
            return
        if not isinstance(found, list):
            self._invalid(name, "give a list")
            return
        for at, each in enumerate(found):
            yield Fields(each, f"{self.at(name)}[{at}]", self.problems)


NOTHING_SELECTED = msgspec.convert(
    {"matchExpressions": [{"key": "a", "operator": "Exists"}, {"key": "a", "operator": "DoesNotExist"}]}, LabelSelector
)
"""A selector that selects nothing."""


def _is_unicode(found: str) -> bool:
    """Whether a text can be encoded: YAML can have half a surrogate pair."""
    return found.isascii() or not any("\ud800" <= each <= "\udfff" for each in found)


def _number(found: object) -> float | None:
    if isinstance(found, bool):
        return None
    if isinstance(found, (int, float)):
        return float(found) if abs(found) < LARGEST else None
    if not isinstance(found, str):
        return None
    try:
        return nanos(found) / 1e9
    except QuantityError:
        return None


def spec_of(item: QueueObject, problems: Problems) -> Fields:
    """The fields of an object's spec."""
    return Fields(decoded(item.spec, "spec", problems), "spec", problems)

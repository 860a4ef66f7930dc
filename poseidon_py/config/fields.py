"""The fields of Settings with their annotations; flags and messages are generated from them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from msgspec import inspect

from poseidon_py.config.settings import Settings


@dataclass(frozen=True, slots=True)
class Field:
    """One field of Settings."""

    name: str
    hint: Any
    """Its annotation, with ranges, as msgspec.convert takes it."""
    kinds: tuple[inspect.Type, ...]
    """Its types, without None; mostly one."""
    words: tuple[str, ...]
    """The words that it may hold, in their order."""
    default: Any
    text: str
    """The help text."""
    metavar: str | None
    """The placeholder of the value in the help; None: by its type."""
    is_flag: bool
    shown_default: str
    """The default in the help; empty: none."""

    @property
    def key(self) -> str:
        """The name in flags, files and the documentation."""
        return self.name.replace("_", "-")

    @property
    def in_seconds(self) -> bool:
        """Whether it is a duration."""
        return (self.metavar or "").startswith("SECONDS")

    @property
    def is_switch(self) -> bool:
        """Whether its words are on and off, so that it is a boolean in documents."""
        return set(self.words) == {"on", "off"} and len(self.kinds) == 1

    @property
    def expected(self) -> str:
        """The valid values, to follow "give"."""
        if self.in_seconds:
            return self._durations("a number of seconds{range}, or a duration such as 15s")
        return " or ".join(_described(kind, self.words) for kind in self.kinds)

    @property
    def expected_in_document(self) -> str:
        """The valid values in a PoseidonConfiguration."""
        if self.is_switch:
            return "true or false"
        if self.in_seconds:
            return self._durations("a duration such as 15s or 1h30m{range}", "s")
        return self.expected.replace("a text or a list of texts", "a list of texts")

    def _durations(self, form: str, unit: str = "") -> str:
        return " or ".join(
            form.format(range=_range(kind, unit))
            if isinstance(kind, inspect.FloatType)
            else _described(kind, self.words)
            for kind in self.kinds
        )

    def takes(self, kind: type[inspect.Type]) -> bool:
        """Whether it accepts values of that type."""
        return any(isinstance(each, kind) for each in self.kinds)


def number_text(number: float) -> str:
    """A number without a superfluous fraction."""
    return f"{number:.15g}"


def _fields() -> Iterable[Field]:
    hints = get_type_hints(Settings, include_extras=True)
    info = inspect.type_info(Settings)
    assert isinstance(info, inspect.StructType)
    for field in info.fields:
        annotation = field.type
        assert isinstance(annotation, inspect.Metadata), f"{field.name} is not annotated with a setting"
        extra = annotation.extra or {}
        kinds = annotation.type.types if isinstance(annotation.type, inspect.UnionType) else (annotation.type,)
        yield Field(
            field.name,
            hints[field.name],
            tuple(kind for kind in kinds if not isinstance(kind, inspect.NoneType)),
            tuple(_words(hints[field.name])),
            field.default,
            (annotation.extra_json_schema or {})["description"],
            extra["metavar"] or None,
            extra["flag"],
            extra["shown"] or _shown(field.default),
        )


def _shown(default: Any) -> str:
    if default in (None, "", ()) or default is False:
        return ""
    if isinstance(default, tuple):
        return ", ".join(default)
    return number_text(default) if isinstance(default, float) else str(default)


def _words(hint: Any) -> Iterable[str]:
    """The words of all Literals in an annotation, in their order, which msgspec does not keep."""
    if get_origin(hint) is Literal:
        yield from get_args(hint)
    else:
        for part in get_args(hint):
            yield from _words(part)


def _described(kind: inspect.Type, words: tuple[str, ...]) -> str:
    match kind:
        case inspect.IntType():
            return f"a whole number{_range(kind)}"
        case inspect.FloatType():
            return f"a number{_range(kind)}"
        case inspect.LiteralType():
            return words[0] if len(words) == 1 else f"one of {', '.join(words)}"
        case inspect.StrType():
            return "a text"
        case inspect.BoolType():
            return "true or false"
        case inspect.DictType(value_type=inspect.StrType()):
            return "a mapping of texts to texts"
        case inspect.DictType():
            return "a mapping"
        case inspect.VarTupleType():
            return "a text or a list of texts"
        case _:
            return "a path"


def _range(kind: inspect.IntType | inspect.FloatType, unit: str = "") -> str:
    if kind.le is not None:
        return f" from {number_text(kind.ge or 0)}{unit} to {number_text(kind.le)}{unit}"
    if kind.gt is not None:
        return f" above {number_text(kind.gt)}{unit}"
    return f" of {number_text(kind.ge)}{unit} or more" if kind.ge is not None else ""


FIELDS: Mapping[str, Field] = {field.name: field for field in _fields()}
"""By name."""

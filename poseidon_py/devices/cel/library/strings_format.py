"""`format` of cel-go's extension `strings`: "%s %.2f" with a list of values."""

import math
import re
from collections.abc import Callable

from poseidon_py.devices.cel.errors import EvaluationError
from poseidon_py.devices.cel.library.conversions import bool_text, double_text, text_from_bytes
from poseidon_py.devices.cel.library.overload import tenth
from poseidon_py.devices.cel.moments import Duration, Timestamp
from poseidon_py.devices.cel.values import (
    ListValue,
    MapValue,
    TypeValue,
    Uint,
    Value,
    limited,
    type_name,
    weight_of,
)

_CLAUSE = re.compile(r"%(?:(?P<percent>%)|(?:\.(?P<precision>[0-9]{1,9}))?(?P<verb>[A-Za-z])|(?P<wrong>[\s\S]?))")
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def formatted(template: str, arguments: ListValue) -> str:
    """The template with each clause replaced by the next argument. Raises EvaluationError."""
    values = iter(arguments)
    size = len(template)

    def replacement(found: re.Match[str]) -> str:
        nonlocal size
        if found["percent"]:
            return "%"
        try:
            value = next(values)
        except StopIteration:
            raise EvaluationError(f"index {len(arguments)} out of range") from None
        if found["verb"] is None:
            raise EvaluationError(f"unrecognized formatting clause {found.group()!r}")
        text = _clause(found["verb"], int(found["precision"] or 6), value)
        size = limited(size + len(text))
        return text

    return _CLAUSE.sub(replacement, template)


_NUMBERS = {"int", "uint"}
_ACCEPTED = {"d": _NUMBERS, "o": _NUMBERS, "b": _NUMBERS | {"bool"}, "x": _NUMBERS | {"string", "bytes"}}
_ACCEPTED |= {"X": _ACCEPTED["x"], "f": {"double", "string"}, "e": {"double", "string"}}
_ACCEPTED["s"] = _NUMBERS | {"list", "map", "double", "bool", "string", "bytes", "type", "null_type"}
_ACCEPTED["s"] |= {"google.protobuf.Duration", "google.protobuf.Timestamp"}


def refused_argument(template: str, kinds: list[str]) -> tuple[int | None, str] | None:
    """What is wrong with arguments of these types: the index of one, None where it is their number, and the reason."""
    index = 0
    for found in _CLAUSE.finditer(template):
        if found["percent"]:
            continue
        verb = found["verb"]
        if index >= len(kinds):
            return None, f"index {index} out of range"
        if verb not in _ACCEPTED:
            return index, f"unrecognized formatting clause {found.group()!r}"
        if kinds[index] != "dyn" and kinds[index] not in _ACCEPTED[verb]:
            return index, f"error during formatting: %{verb} cannot be used on {kinds[index]}"
        index += 1
    if index < len(kinds):
        return None, f"too many arguments supplied to string.format (expected {index}, got {len(kinds)})"
    return None


def format_cost(template: str, arguments: ListValue) -> int:
    """Reading the template, as upstream has it, all that the arguments hold, and the digits that are asked for."""
    digits = sum(int(found["precision"]) for found in _CLAUSE.finditer(template) if found["precision"])
    return tenth(len(template)) + (arguments.weight - len(arguments) - 1) + digits // 10


def _clause(verb: str, precision: int, value: Value) -> str:
    limited(precision)
    if verb in ("f", "e"):
        return _number(verb, precision, value)
    if verb not in _VERBS:
        raise EvaluationError(f'unrecognized formatting clause "{verb}"')
    return _VERBS[verb](value)


def _refused(clause: str, value: Value) -> EvaluationError:
    return EvaluationError(f"{clause}, was given {type_name(value)}")


def _plain(value: Value) -> str:
    if isinstance(value, bool):
        return bool_text(value)
    if isinstance(value, float):
        return double_text(value)
    return _text(value)


def _text(value: Value) -> str:
    """A value that is not within a list or map, where it is not a number with a fraction."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return bool_text(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, bytes):
        return text_from_bytes(value)
    if isinstance(value, TypeValue):
        return value.name
    if isinstance(value, Duration | Timestamp):
        return str(value)
    if isinstance(value, ListValue | MapValue):
        limited(weight_of(value))
        return _collection(value)
    kinds = "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
    raise _refused(f"string clause can only be used on {kinds}", value)


def _collection(value: ListValue | MapValue) -> str:
    if isinstance(value, ListValue):
        return f"[{', '.join(map(_element, value))}]"
    entries = sorted((_element(key), _element(each)) for key, each in value.items())
    return f"{{{', '.join(f'{key}:{each}' for key, each in entries)}}}"


def _element(value: Value) -> str:
    """As a literal of CEL."""
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, bytes):
        return f"b{_quoted(text_from_bytes(value))}"
    if isinstance(value, float):
        text = _finite(value) or f"{value:.6f}"
        return f'"{text}"' if _finite(value) else text
    if isinstance(value, Duration | Timestamp):
        return f'{type_name(value).rpartition(".")[2].lower()}("{value}")'
    return _text(value)


def _quoted(text: str) -> str:
    escaped = text.encode("unicode_escape").decode().replace('"', '\\"')
    return (
        f'"{re.sub(r"[^ -~]", lambda found: found.group(), escaped)}"'
        if not text.isprintable()
        else f'"{_escaped(text)}"'
    )


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _finite(value: float) -> str:
    """How a number that is none is written, empty for the others."""
    if math.isnan(value):
        return "NaN"
    return ("+Inf" if value > 0 else "-Inf") if math.isinf(value) else ""


def _decimal(value: Value) -> str:
    if type(value) not in (int, Uint):
        raise _refused("decimal clause can only be used on integers", value)
    return str(int(value))


def _number(verb: str, precision: int, value: Value) -> str:
    """`%f` and `%e` as Go's printer for English writes them: 1,234.50 and 1.234500×10⁰³.

    As in cel-go 0.26, what stands for the precision of `%e` is the least width of the text.
    """
    if isinstance(value, str) and value in _SPECIAL:
        value = _SPECIAL[value]
    if not isinstance(value, float):
        name = "fixed-point" if verb == "f" else "scientific"
        raise _refused(f"{name} clause can only be used on doubles", value)
    if math.isnan(value):
        text = "NaN"
    elif math.isinf(value):
        text = "∞" if value > 0 else "-∞"
    elif verb == "f":
        text = f"{value:,.{precision}f}"
    else:
        mantissa, exponent = f"{value:e}".split("e")
        text = f"{mantissa}×10{exponent.removeprefix('+').translate(_SUPERSCRIPTS)}"
    return text if verb == "f" else text.rjust(precision)


def _based(base: str, clause: str, *kinds: type) -> Callable[[Value], str]:
    def written(value: Value) -> str:
        if type(value) not in (int, Uint, *kinds):
            raise _refused(clause, value)
        if isinstance(value, str | bytes):
            digits = (value.encode() if isinstance(value, str) else value).hex()
            return digits.upper() if base == "X" else digits
        return f"{int(value):{base}}"

    return written


_HEX = "only integers, byte buffers, and strings can be formatted as hex"
_VERBS: dict[str, Callable[[Value], str]] = {
    "s": _plain,
    "d": _decimal,
    "b": _based("b", "only integers and bools can be formatted as binary", bool),
    "o": _based("o", "octal clause can only be used on integers"),
    "x": _based("x", _HEX, str, bytes),
    "X": _based("X", _HEX, str, bytes),
}

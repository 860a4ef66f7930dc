"""Conversions between the basic types: `int("3")`, `string(2.5)`, `type(x)`."""

import math
import re
from decimal import Decimal

from poseidon_py.devices.cel.errors import EvaluationError
from poseidon_py.devices.cel.library.operators import as_int, as_uint
from poseidon_py.devices.cel.library.overload import overload, reads_first
from poseidon_py.devices.cel.values import TypeValue, Uint, Value, type_name

_BOOLS = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True)
_BOOLS |= dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False)
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NATURAL = re.compile(r"[0-9]+")
_DECIMAL = re.compile(
    r"[+-]?(?:[0-9]+(?:_[0-9]+)*\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?:inf|infinity|nan)", re.IGNORECASE
)


def _error(text: str, kind: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from {text[:60]!r} to {kind}")


def _int_from_text(text: str) -> int:
    if not _INTEGER.fullmatch(text) or len(text) > 30:
        raise _error(text, "int")
    return as_int(int(text))


def _uint_from_text(text: str) -> Uint:
    if not _NATURAL.fullmatch(text) or len(text) > 30:
        raise _error(text, "uint")
    return as_uint(int(text))


def _int_from_double(value: float) -> int:
    if math.isnan(value) or not -(2.0**63) < value < 2.0**63:
        raise EvaluationError("integer overflow")
    return int(value)


def _uint_from_double(value: float) -> Uint:
    if math.isnan(value) or not 0 <= value < 2.0**64:
        raise EvaluationError("unsigned integer overflow")
    return Uint(value)


def _double_from_text(text: str) -> float:
    if not _DECIMAL.fullmatch(text):
        raise _error(text, "double")
    number = float(text)
    if math.isinf(number) and "n" not in text.lower():
        raise _error(text, "double")
    return number


def _bool_from_text(text: str) -> bool:
    if text not in _BOOLS:
        raise _error(text, "bool")
    return _BOOLS[text]


def double_text(value: float) -> str:
    """The shortest digits that read back as the value, in the form of Go's %g: an exponent below -4 and from 6 on."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    number = Decimal(repr(value))
    order = number.adjusted() if value else 0
    if -4 <= order < 6:
        return f"{number:f}".removesuffix(".0")
    figures = "".join(map(str, number.normalize().as_tuple().digits))
    fraction = f".{figures[1:]}" if figures[1:] else ""
    return f"{'-' if value < 0 else ''}{figures[0]}{fraction}e{'-' if order < 0 else '+'}{abs(order):02d}"


def text_from_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def _same(value: Value) -> Value:
    return value


def bool_text(value: bool) -> str:
    return "true" if value else "false"


OVERLOADS = [
    overload("type(A) -> type(A)", lambda value: TypeValue(type_name(value))),
    overload("dyn(A) -> dyn", _same),
    *(overload(f"{kind}({kind}) -> {kind}", _same) for kind in ("bool", "bytes", "double", "int", "string", "uint")),
    overload("bool(string) -> bool", _bool_from_text),
    overload("bytes(string) -> bytes", str.encode, reads_first),
    overload("double(int) -> double", float),
    overload("double(uint) -> double", float),
    overload("double(string) -> double", _double_from_text),
    overload("int(double) -> int", _int_from_double),
    overload("int(uint) -> int", lambda value: as_int(int(value))),
    overload("int(string) -> int", _int_from_text),
    overload("uint(double) -> uint", _uint_from_double),
    overload("uint(int) -> uint", as_uint),
    overload("uint(string) -> uint", _uint_from_text),
    overload("string(bool) -> string", bool_text),
    overload("string(int) -> string", str),
    overload("string(uint) -> string", lambda value: str(int(value))),
    overload("string(double) -> string", double_text),
    overload("string(bytes) -> string", text_from_bytes, reads_first),
]

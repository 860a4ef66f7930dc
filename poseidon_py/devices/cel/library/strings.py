"""Functions of strings: those of the standard, and of cel-go's extension `strings`, version 2."""

from poseidon_py.devices.cel.errors import EvaluationError
from poseidon_py.devices.cel.library.overload import overload, reads_first, reads_twice, size_of, tenth
from poseidon_py.devices.cel.library.strings_format import format_cost, formatted
from poseidon_py.devices.cel.values import ListValue, limited, type_name

_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_QUOTED = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def _out_of_range(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    return text.find(part, start)


def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    """The last place at or before `start`."""
    if not part:
        return len(text) if start is None else start
    if start is None:
        return text.rfind(part)
    if start < 0:
        raise _out_of_range(start)
    return -1 if start >= len(text) else text.rfind(part, 0, start + len(part))


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    found = text.count(old)
    replaced = found if count < 0 else min(count, found)
    limited(len(text) + replaced * (len(new) - len(old)))
    return text.replace(old, new, count if count >= 0 else -1)


def _split(text: str, separator: str, count: int = -1) -> ListValue:
    """At most `count` parts, the last with all that follows; all for a negative count."""
    if count == 0:
        return ListValue()
    if separator:
        return ListValue(text.split(separator, count - 1 if count > 0 else -1))
    if 0 < count < len(text):
        return ListValue([*text[: count - 1], text[count - 1 :]])
    return ListValue(text)


def _substring(text: str, start: int, end: int | None = None) -> str:
    last = len(text) if end is None else end
    if end is not None and start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, last):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:last]


def _join(parts: ListValue, separator: str = "") -> str:
    for part in parts:
        if not isinstance(part, str):
            raise EvaluationError(f"join: invalid input of type {type_name(part)}")
    limited(_joined_size(parts, separator))
    return separator.join(parts)


def _joined_size(parts: ListValue, separator: str = "") -> int:
    return sum(map(size_of, parts)) + max(0, len(parts) - 1) * len(separator)


def _joined_cost(parts: ListValue, separator: str = "") -> int:
    return max(tenth(2 * _joined_size(parts, separator)), len(parts) // 4)


def _areas(text: str, part: str) -> int:
    return tenth(len(text)) * tenth(len(part))


def _quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


OVERLOADS = [
    overload("string::contains(string) -> bool", lambda text, part: part in text, _areas),
    overload("string::startsWith(string) -> bool", str.startswith, reads_first),
    overload("string::endsWith(string) -> bool", str.endswith, reads_first),
    overload("string::charAt(int) -> string", _char_at),
    overload("string::indexOf(string) -> int", _index_of, reads_first),
    overload("string::indexOf(string, int) -> int", _index_of, reads_first),
    overload("string::lastIndexOf(string) -> int", _last_index_of, reads_first),
    overload("string::lastIndexOf(string, int) -> int", _last_index_of, reads_first),
    overload("string::lowerAscii() -> string", lambda text: text.translate(_LOWER), reads_first),
    overload("string::upperAscii() -> string", lambda text: text.translate(_UPPER), reads_first),
    overload("string::replace(string, string) -> string", _replace, reads_twice),
    overload("string::replace(string, string, int) -> string", _replace, reads_twice),
    overload("string::split(string) -> list(string)", _split, reads_twice),
    overload("string::split(string, int) -> list(string)", _split, reads_twice),
    overload("string::substring(int) -> string", _substring, reads_first),
    overload("string::substring(int, int) -> string", _substring, reads_first),
    overload("string::trim() -> string", lambda text: text.strip(_SPACE), reads_first),
    overload("string::format(list(dyn)) -> string", formatted, format_cost),
    overload("strings.quote(string) -> string", _quote, reads_first),
    overload("list(string)::join() -> string", _join, _joined_cost),
    overload("list(string)::join(string) -> string", _join, _joined_cost),
]

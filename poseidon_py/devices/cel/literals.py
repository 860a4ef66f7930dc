"""The values of literals: numbers in their ranges, strings and bytes with their escape sequences."""

import re

from poseidon_py.devices.cel.errors import SelectorError
from poseidon_py.devices.cel.lexer import Token
from poseidon_py.devices.cel.values import INT_MAX, INT_MIN, UINT_MAX, Uint, Value

_ESCAPE = re.compile(
    r"\\(?:(?P<plain>[abfnrtv\"'\\?`])|[xX](?P<byte>[0-9a-fA-F]{2})|(?P<octal>[0-3][0-7]{2})"
    r"|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})|(?P<wrong>[\s\S]?))"
)
_PLAIN = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def literal_value(token: Token, *, negative: bool = False) -> Value:
    """The value of a token of kind int, uint, double, string or bytes. Raises SelectorError."""
    match token.kind:
        case "int":
            return _integer(token, negative)
        case "uint":
            value = int(token.text[:-1], 0 if token.text.startswith("0x") else 10)
            if value > UINT_MAX:
                raise SelectorError(f"Syntax error: invalid uint literal {token.text}", token.position)
            return Uint(value)
        case "double":
            number = float(token.text)
            if number == float("inf"):
                raise SelectorError(f"Syntax error: invalid double literal {token.text}", token.position)
            return -number if negative else number
        case "bytes":
            return _text(token, token.text[1:], binary=True)
        case _:
            return _text(token, token.text, binary=False)


def _integer(token: Token, negative: bool) -> int:
    value = int(token.text, 0 if token.text.startswith("0x") else 10)
    value = -value if negative else value
    if not INT_MIN <= value <= INT_MAX:
        raise SelectorError(f"Syntax error: invalid int literal {token.text}", token.position)
    return value


def _text(token: Token, text: str, *, binary: bool) -> str | bytes:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    body = text[1:] if raw else text
    width = 3 if body[:3] in ('"""', "'''") else 1
    body = body[width:-width]
    if raw:
        return body.encode() if binary else body
    return _unescaped_bytes(token, body) if binary else _unescaped_text(token, body)


def _refuse(token: Token, found: re.Match[str]) -> SelectorError:
    return SelectorError(f"Syntax error: invalid escape sequence {found.group()!r}", token.position)


def _code_point(token: Token, found: re.Match[str]) -> str:
    code = int(found["short"] or found["long"], 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise _refuse(token, found)
    return chr(code)


def _unescaped_text(token: Token, body: str) -> str:
    def replacement(found: re.Match[str]) -> str:
        if found["plain"]:
            return _PLAIN.get(found["plain"], found["plain"])
        if found["byte"] or found["octal"]:
            return chr(int(found["byte"], 16) if found["byte"] else int(found["octal"], 8))
        if found["wrong"] is not None:
            raise _refuse(token, found)
        return _code_point(token, found)

    return _ESCAPE.sub(replacement, body)


def _unescaped_bytes(token: Token, body: str) -> bytes:
    """`\\x` and octal sequences are single bytes; code points have no place in bytes."""
    parts: list[bytes] = []
    end = 0
    for found in _ESCAPE.finditer(body):
        parts.append(body[end : found.start()].encode())
        end = found.end()
        if found["plain"]:
            parts.append(_PLAIN.get(found["plain"], found["plain"]).encode())
        elif found["byte"] or found["octal"]:
            parts.append(bytes([int(found["byte"], 16) if found["byte"] else int(found["octal"], 8)]))
        else:
            raise _refuse(token, found)
    return b"".join([*parts, body[end:].encode()])

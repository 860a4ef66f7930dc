"""The tokens of a CEL expression (cel-spec, language definition, "Syntax")."""

import re
from typing import NamedTuple

from poseidon_py.devices.cel.errors import SelectorError


class Token(NamedTuple):
    kind: str  # "int", "uint", "double", "string", "bytes", "name", "quoted name", "operator", "end"
    text: str
    position: int


_BODY = r"(?:\\(?s:.)|(?!{quote})[^\\\n\r])*"
_LONG_BODY = r"(?:\\(?s:.)|(?!{quote})[^\\])*"
_QUOTES = ('"""', "'''", '"', "'")


def _strings() -> str:
    """Strings in single or triple quotes, with escape sequences or raw."""
    forms = []
    for quote in _QUOTES:
        long = len(quote) == 3
        body = (_LONG_BODY if long else _BODY).format(quote=quote)
        raw = rf"(?:(?!{quote})[\s\S])*" if long else rf"[^{quote}\n\r]*"
        forms += [f"[rR]{quote}{raw}{quote}", f"{quote}{body}{quote}"]
    return "|".join(forms)


_TOKEN = re.compile(
    rf"""
    (?P<skipped>[\t \r\n\f]+|//[^\n]*)
    |(?P<bytes>[bB](?:{_strings()}))
    |(?P<string>{_strings()})
    |(?P<double>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<uint>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])
    |(?P<int>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<quoted>`[A-Za-z0-9_.\-/\ ]+`)
    |(?P<operator>==|!=|<=|>=|&&|\|\||[<>\[\]{{}}().,\-!?:+*/%])
    """,
    re.VERBOSE,
)


def tokens_of(expression: str) -> list[Token]:
    """The tokens in order, the last of kind "end". Raises SelectorError."""
    tokens = []
    position = 0
    while position < len(expression):
        found = _TOKEN.match(expression, position)
        if found is None:
            raise SelectorError(f"Syntax error: token recognition error at {expression[position]!r}", position)
        kind = found.lastgroup or ""
        if kind != "skipped":
            tokens.append(Token(kind, found.group(), position))
        position = found.end()
    return [*tokens, Token("end", "", len(expression))]

"""Expressions as syntax trees: recursive descent over the grammar of cel-spec, macros expanded as they are met."""

from collections.abc import Iterator

from poseidon_py.devices.cel.errors import SelectorError
from poseidon_py.devices.cel.lexer import Token, tokens_of
from poseidon_py.devices.cel.literals import literal_value
from poseidon_py.devices.cel.macros import expand
from poseidon_py.devices.cel.syntax import (
    Call,
    Fold,
    ListDisplay,
    Literal,
    Logical,
    MapDisplay,
    Name,
    Node,
    Select,
)

LONGEST_EXPRESSION = 10 * 1024
"""Bytes of an expression, as the API server accepts them."""

_DEEPEST_NESTING = 60
_DEEPEST_TREE = 180
"""Levels: what is deeper would exhaust Python's stack in what works through the tree."""

_RESERVED = frozenset(
    "as break const continue else for function if import let loop package namespace return var void while".split()  # noqa: SIM905
)
_KEYWORDS = frozenset(("in", "true", "false", "null"))
_CONSTANTS = {"true": True, "false": False, "null": None}
_PRECEDENCE = {"*": 6, "/": 6, "%": 6, "+": 5, "-": 5}
_PRECEDENCE |= dict.fromkeys(("<", "<=", ">=", ">", "==", "!=", "in"), 4)
_PRECEDENCE |= {"&&": 3, "||": 2}


def parse(expression: str) -> Node:
    """The tree of an expression. Raises SelectorError with the place of what is wrong."""
    if len(expression.encode()) > LONGEST_EXPRESSION:
        raise SelectorError(f"the expression is longer than {LONGEST_EXPRESSION} bytes")
    parser = _Parser(tokens_of(expression))
    tree = parser.expression()
    parser.expect("")
    _refuse_deep(tree)
    return tree


def _children(node: Node) -> list[Node]:
    match node:
        case Select():
            return [node.operand]
        case Call():
            return [*node.arguments, *([node.target] if node.target else [])]
        case Logical():
            return node.operands
        case ListDisplay():
            return node.elements
        case MapDisplay():
            return [*node.keys, *node.values]
        case Fold():
            return [node.range, node.initial, node.condition, node.step, node.result]
        case _:
            return []


def _refuse_deep(tree: Node) -> None:
    level: list[Node] = [tree]
    for _ in range(_DEEPEST_TREE):
        level = [child for node in level for child in _children(node)]
        if not level:
            return
    raise SelectorError(f"the expression is nested more than {_DEEPEST_TREE} levels deep", level[0].position)


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._index = 0
        self._depth = 0

    @property
    def _token(self) -> Token:
        return self._tokens[self._index]

    def _next(self) -> Token:
        token = self._token
        self._index += 1
        return token

    def _at(self, text: str) -> bool:
        return self._token.text == text and self._token.kind in ("operator", "name", "end")

    def _accept(self, text: str) -> bool:
        if self._at(text):
            self._index += 1
            return True
        return False

    def _unexpected(self) -> SelectorError:
        found = repr(self._token.text) if self._token.kind != "end" else "the end of the expression"
        return SelectorError(f"Syntax error: {found} is not expected here", self._token.position)

    def expect(self, text: str) -> Token:
        """The token with this text; the empty one is the end."""
        if not self._at(text):
            raise self._unexpected()
        return self._token if not text else self._next()

    def expression(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST_NESTING:
            message = f"the expression is nested more than {_DEEPEST_NESTING} levels deep"
            raise SelectorError(message, self._token.position)
        condition = self._binary(2)
        if self._at("?"):
            position = self._next().position
            chosen = self._binary(2)
            self.expect(":")
            condition = Call(position, "_?_:_", [condition, chosen, self.expression()])
        self._depth -= 1
        return condition

    def _binary(self, lowest: int) -> Node:
        """Operators of at least this precedence; all group from the left."""
        left = self._unary()
        while self._token.kind in ("operator", "name") and _PRECEDENCE.get(self._token.text, 0) >= lowest:
            operator = self._next()
            right = self._binary(_PRECEDENCE[operator.text] + 1)
            if operator.text in ("&&", "||"):
                if isinstance(left, Logical) and left.conjunction == (operator.text == "&&"):
                    left.operands.append(right)
                else:
                    left = Logical(operator.position, operator.text == "&&", [left, right])
            else:
                function = "@in" if operator.text == "in" else f"_{operator.text}_"
                left = Call(operator.position, function, [left, right])
        return left

    def _unary(self) -> Node:
        position = self._token.position
        for sign in ("!", "-"):
            count = 0
            while self._at(sign) and not (sign == "-" and self._signed_number()):
                self._index += 1
                count += 1
            if count:
                # an even number of signs is none at all: the operand's type is not looked at
                operand = self._member()
                return Call(position, f"{sign}_", [operand]) if count % 2 else operand
        return self._member()

    def _signed_number(self) -> bool:
        return self._at("-") and self._tokens[self._index + 1].kind in ("int", "double")

    def _member(self) -> Node:
        node = self._primary()
        while True:
            position = self._token.position
            if self._accept("."):
                optional = self._accept("?")
                field = self._field()
                if not optional and self._accept("("):
                    node = expand(Call(position, field, self._arguments(")"), node))
                else:
                    node = Select(position, node, field, optional)
            elif self._accept("["):
                function = "_[?_]" if self._accept("?") else "_[_]"
                node = Call(position, function, [node, self.expression()])
                self.expect("]")
            elif self._at("{") and isinstance(node, Name | Select):
                raise SelectorError("messages cannot be constructed in a selector", position)
            else:
                return node

    def _field(self) -> str:
        token = self._token
        if token.kind == "quoted":
            raise SelectorError("unsupported syntax: '`'", token.position)
        if token.kind != "name" or token.text in _KEYWORDS:
            raise self._unexpected()
        return self._next().text

    def _arguments(self, closing: str) -> list[Node]:
        if self._accept(closing):
            return []
        arguments = [self.expression()]
        while self._accept(","):
            arguments.append(self.expression())
        self.expect(closing)
        return arguments

    def _primary(self) -> Node:
        token = self._token
        if self._signed_number():
            self._index += 1
            return Literal(token.position, literal_value(self._next(), negative=True))
        if token.kind in ("int", "uint", "double", "string", "bytes"):
            return Literal(token.position, literal_value(self._next()))
        if token.kind == "name" and token.text in _CONSTANTS:
            self._index += 1
            return Literal(token.position, _CONSTANTS[token.text])
        if self._accept("("):
            inner = self.expression()
            self.expect(")")
            return inner
        if self._accept("["):
            return self._list(token.position)
        if self._accept("{"):
            return self._map(token.position)
        root = "." if self._accept(".") else ""
        if self._token.kind != "name" or self._token.text in _KEYWORDS:
            raise self._unexpected()
        name = self._next()
        if name.text in _RESERVED:
            raise SelectorError(f"Syntax error: reserved identifier: {name.text}", name.position)
        if self._accept("("):
            return expand(Call(name.position, name.text, self._arguments(")")))
        return Name(name.position, root + name.text)

    def _elements(self, closing: str) -> Iterator[bool]:
        """Whether each element is optional, up to the closing bracket; the consumer reads the element itself.

        A comma may follow the last element, or stand alone.
        """
        if not self._accept(","):
            while not self._at(closing):
                yield self._accept("?")
                if not self._accept(","):
                    break
        self.expect(closing)

    def _list(self, position: int) -> ListDisplay:
        elements: list[Node] = []
        optional: list[bool] = []
        for flag in self._elements("]"):
            optional.append(flag)
            elements.append(self.expression())
        return ListDisplay(position, elements, optional)

    def _map(self, position: int) -> MapDisplay:
        keys: list[Node] = []
        values: list[Node] = []
        optional: list[bool] = []
        for flag in self._elements("}"):
            optional.append(flag)
            keys.append(self.expression())
            self.expect(":")
            values.append(self.expression())
        return MapDisplay(position, keys, values, optional)

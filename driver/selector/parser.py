"""How an expression is built from its tokens: precedence, literals, macros.

Source of the grammar: the CEL specification and cel-go's parser. What a name means is left to
the checker. Nesting is bounded, so that no expression can exhaust the stack.
"""

from collections.abc import Callable

from driver.selector import literals
from driver.selector.errors import CompileError
from driver.selector.lexer import Token, syntax_error, tokens
from driver.selector.macros import expand
from driver.selector.syntax import (
    Call,
    Entry,
    Field,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
    StructNode,
)

# cel-go's limit on how deep an expression may nest, and how long a chain of operators may be.
MAX_DEPTH = 250

# Binary operators by how tightly they bind.
_LEVELS: dict[str, int] = {
    "||": 1, "&&": 2,
    "<": 3, "<=": 3, ">": 3, ">=": 3, "==": 3, "!=": 3, "in": 3,
    "+": 4, "-": 4, "*": 5, "/": 5, "%": 5,
}  # fmt: skip
_LOGICAL = frozenset({"||", "&&"})
_NAMES = {operator: f"_{operator}_" for operator in _LEVELS} | {"in": "@in"}
_CONSTANTS: dict[str, object] = {"true": True, "false": False, "null": None}
_LITERALS: dict[str, Callable[[str], object]] = {
    "int": literals.integer,
    "uint": literals.unsigned,
    "double": literals.double,
    "string": literals.string,
    "bytes": literals.bytestring,
}
_RESERVED = {
    "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import",
    "in", "let", "loop", "package", "namespace", "null", "return", "true", "var", "void",
    "while",
}  # fmt: skip


def parse(source: str) -> Node:
    """The tree of an expression. Raises `CompileError` with line and column."""
    return _Parser(source).whole()


class _Parser:
    """One pass over the tokens of one expression."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._tokens = tokens(source)
        self._next = 0
        self._depth = 0
        self._ids = 0

    def whole(self) -> Node:
        node = self._expression()
        if self._peek() != "end":
            raise self._unexpected()
        return node

    # Tokens

    def _peek(self) -> str:
        return self._tokens[self._next].kind

    def _take(self) -> Token:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _accept(self, kind: str) -> bool:
        if self._peek() != kind:
            return False
        self._next += 1
        return True

    def _expect(self, kind: str) -> Token:
        if self._peek() != kind:
            raise self._unexpected(kind)
        return self._take()

    def _unexpected(self, wanted: str = "") -> CompileError:
        token = self._tokens[self._next]
        found = "<EOF>" if token.kind == "end" else token.text
        reason = f"Syntax error: unexpected {found!r}"
        return self._error(f"{reason}, expected {wanted!r}" if wanted else reason)

    def _error(self, reason: str) -> CompileError:
        position = self._tokens[min(self._next, len(self._tokens) - 1)].position
        return syntax_error(self._source, position, reason)

    def _id(self) -> int:
        self._ids += 1
        return self._ids

    def _call(self, function: str, *args: Node) -> Call:
        return Call(self._id(), function, None, args)

    # Operators

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._too_deep()
        node = self._binary(1)
        if self._accept("?"):
            chosen = self._binary(1)
            self._expect(":")
            node = self._call("_?_:_", node, chosen, self._expression())
        self._depth -= 1
        return node

    def _too_deep(self) -> CompileError:
        return self._error(f"expression recursion limit exceeded: {MAX_DEPTH}")

    def _binary(self, lowest: int) -> Node:
        """Operands joined by operators that bind at least this tightly."""
        node = self._unary()
        length = 0
        while (level := _LEVELS.get(self._peek(), 0)) >= lowest:
            operator = self._take().kind
            length += 1
            if length > MAX_DEPTH and operator not in _LOGICAL:
                raise self._too_deep()
            node = self._joined(operator, node, self._binary(level + 1))
        return node

    def _joined(self, operator: str, left: Node, right: Node) -> Node:
        name = _NAMES[operator]
        # A chain of && or || is one node: any operand may decide it, and none nests in another.
        if operator in _LOGICAL and isinstance(left, Call) and left.function == name:
            return self._call(name, *left.args, right)
        return self._call(name, left, right)

    def _unary(self) -> Node:
        operator = self._peek()
        if operator not in ("!", "-"):
            return self._member(self._primary())
        count = 0
        while self._accept(operator):
            count += 1
        if operator == "-" and count == 1 and self._peek() in ("int", "double"):
            return self._member(self._number(sign="-"))
        operand = self._member(self._primary())
        return operand if count % 2 == 0 else self._call(f"{operator}_", operand)

    # Members

    def _member(self, node: Node) -> Node:
        length = 0
        while self._peek() in (".", "["):
            length += 1
            if length > MAX_DEPTH:
                raise self._too_deep()
            node = self._index(node) if self._take().kind == "[" else self._dotted(node)
        return node

    def _index(self, node: Node) -> Node:
        function = "_[?_]" if self._accept("?") else "_[_]"
        key = self._expression()
        self._expect("]")
        return self._call(function, node, key)

    def _dotted(self, node: Node) -> Node:
        optional = self._accept("?")
        quoted = self._peek() == "quoted"
        name = self._take().text.strip("`") if quoted else self._expect("ident").text
        if not optional and not quoted and self._accept("("):
            return self._method(name, node)
        return Select(id=self._id(), operand=node, field=name, optional=optional)

    def _method(self, name: str, target: Node | None) -> Node:
        start = self._next
        call = Call(self._id(), name, target, self._list_of(self._expression, ")"))
        try:
            return expand(call, self._id)
        except ValueError as error:
            self._next = start
            raise self._error(str(error)) from None

    def _list_of(
        self, one: Callable[[], Node], end: str, *, trailing: bool = False
    ) -> tuple[Node, ...]:
        found: list[Node] = []
        while not self._accept(end):
            if found:
                self._expect(",")
                if trailing and self._accept(end):
                    break
            found.append(one())
        return tuple(found)

    # Primaries

    def _primary(self) -> Node:
        kind = self._peek()
        if kind in _LITERALS:
            return self._number(sign="")
        if kind in _CONSTANTS:
            return Literal(self._id(), _CONSTANTS[self._take().kind])
        if kind in ("ident", "."):
            return self._name()
        if self._accept("("):
            node = self._expression()
            self._expect(")")
            return node
        if self._accept("["):
            return self._list()
        if self._accept("{"):
            return self._map()
        raise self._unexpected()

    def _number(self, *, sign: str) -> Node:
        token = self._take()
        try:
            return Literal(self._id(), _LITERALS[token.kind](sign + token.text))
        except ValueError as error:
            self._next -= 1
            raise self._error(str(error)) from None

    def _name(self) -> Node:
        dot = "." if self._accept(".") else ""
        token = self._expect("ident")
        if token.text in _RESERVED:
            self._next -= 1
            raise self._error(f"reserved identifier: {token.text}")
        if self._accept("("):
            return self._method(dot + token.text, None)
        message = self._message(dot + token.text)
        return message or Ident(self._id(), dot + token.text)

    def _message(self, name: str) -> Node | None:
        """`a.b.C{field: value}`, or None when no brace follows the dotted name."""
        start = self._next
        while self._peek() == "." and self._tokens[self._next + 1].kind == "ident":
            self._next += 1
            name = f"{name}.{self._take().text}"
        if self._accept("{"):
            return StructNode(self._id(), name, self._fields())
        self._next = start
        return None

    def _fields(self) -> tuple[Field, ...]:
        found: list[Field] = []
        while not self._accept("}"):
            if found:
                self._expect(",")
                if self._accept("}"):
                    break
            self._accept("?")
            name = self._take() if self._peek() == "quoted" else self._expect("ident")
            self._expect(":")
            found.append(Field(name.text.strip("`"), self._expression()))
        return tuple(found)

    def _list(self) -> Node:
        optional: list[int] = []
        count = 0

        def element() -> Node:
            nonlocal count
            if self._accept("?"):
                optional.append(count)
            count += 1
            return self._expression()

        elements = self._list_of(element, "]", trailing=True)
        return ListNode(self._id(), elements, frozenset(optional))

    def _map(self) -> Node:
        entries: list[Entry] = []
        while not self._accept("}"):
            if entries:
                self._expect(",")
                if self._accept("}"):
                    break
            optional = self._accept("?")
            key = self._expression()
            self._expect(":")
            entries.append(Entry(key, self._expression(), optional))
        return MapNode(self._id(), tuple(entries))

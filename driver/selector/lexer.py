"""Which tokens an expression is made of, and where each stands."""

import re
from typing import NamedTuple

from driver.selector.errors import CompileError

_TOKEN = re.compile(
    r"""
      (?P<space>[\t\n\f\r ]+|//[^\n]*)
    | (?P<bytes>[bB][rR](?:'''.*?'''|\"""(?:.*?)\"""|'[^'\n\r]*'|"[^"\n\r]*")
        | [rR][bB](?:'''.*?'''|\"""(?:.*?)\"""|'[^'\n\r]*'|"[^"\n\r]*")
        | [bB](?:'''(?:\\.|[^\\])*?'''|\"""(?:\\.|[^\\])*?\"""
        | '(?:\\.|[^\\'\n\r])*'|"(?:\\.|[^\\"\n\r])*"))
    | (?P<string>[rR](?:'''.*?'''|\"""(?:.*?)\"""|'[^'\n\r]*'|"[^"\n\r]*")
        | '''(?:\\.|[^\\])*?'''|\"""(?:\\.|[^\\])*?\"""
        | '(?:\\.|[^\\'\n\r])*'|"(?:\\.|[^\\"\n\r])*")
    | (?P<double>(?:[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+
        | \.[0-9]+(?:[eE][+-]?[0-9]+)?))
    | (?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
    | (?P<int>0x[0-9a-fA-F]+|[0-9]+)
    | (?P<ident>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<quoted>`[A-Za-z0-9_.\-/ ]+`)
    | (?P<op>==|!=|<=|>=|&&|\|\||[-+*/%<>!?:.,()\[\]{}])
    """,
    re.VERBOSE | re.DOTALL,
)

# Words that the grammar claims; the others that are reserved may still be field names.
KEYWORDS = frozenset({"in", "true", "false", "null"})


class Token(NamedTuple):
    """One token: its kind (for operators and keywords the text itself), text and place."""

    kind: str
    text: str
    position: int


def tokens(source: str) -> list[Token]:
    """All tokens, closed by one of kind `end`. Raises `CompileError` at what is no token."""
    try:
        source.encode()
    except UnicodeEncodeError as error:
        raise syntax_error(source, error.start, "the text is no valid Unicode") from None
    found: list[Token] = []
    position = 0
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None:
            raise syntax_error(
                source, position, f"token recognition error at {_glimpse(source, position)}"
            )
        position = match.end()
        if match.lastgroup != "space":
            found.append(_token(match))
    found.append(Token("end", "", position))
    return found


def syntax_error(source: str, position: int, reason: str) -> CompileError:
    """The error of a text that is no expression, with line and column as people count them."""
    before = source[:position]
    line = before.count("\n") + 1
    column = position - (before.rfind("\n") + 1) + 1
    return CompileError(f"compilation failed: ERROR: <input>:{line}:{column}: {reason}")


def _token(match: re.Match[str]) -> Token:
    kind, text = str(match.lastgroup), match[0]
    if kind == "op" or text in KEYWORDS:
        kind = text
    return Token(kind, text, match.start())


def _glimpse(source: str, position: int) -> str:
    return repr(source[position : position + 10])

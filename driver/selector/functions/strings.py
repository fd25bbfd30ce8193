"""Texts: cel-go's strings library, version 2, and the standard string functions.

Positions count code points. `format` has a file of its own.
"""

from driver.selector import cost
from driver.selector.cost import MAX_CHARACTERS, limit_exceeded
from driver.selector.errors import CelError
from driver.selector.functions.library import Overload, function, method
from driver.selector.types import BOOL, INT, STRING, list_of

# What Go's unicode.IsSpace takes for white space; Python's strip() takes more.
_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_UPPER = {lower: lower - 32 for lower in range(ord("a"), ord("z") + 1)}
_QUOTED = str.maketrans(
    {
        "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
        "\v": "\\v", "\\": "\\\\", '"': '\\"',
    }
)  # fmt: skip


def _char_at(text: str, position: int) -> str:
    if not 0 <= position <= len(text):
        raise CelError(f"index out of range: {position}")
    return text[position : position + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if not part:
        return offset
    if offset < 0:
        raise CelError(f"index out of range: {offset}")
    return text.find(part, offset)


def _last_index_of(text: str, part: str) -> int:
    return text.rfind(part) if part else len(text)


def _last_index_from(text: str, part: str, offset: int) -> int:
    if not part:
        return offset
    if offset < 0:
        raise CelError(f"index out of range: {offset}")
    return -1 if offset >= len(text) else text.rfind(part, 0, offset + len(part))


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    found = text.count(old)
    times = found if limit < 0 else min(found, limit)
    if len(text) + times * (len(new) - len(old)) > MAX_CHARACTERS:
        raise limit_exceeded()
    return text.replace(old, new, times)


def _split(text: str, separator: str, limit: int = -1) -> list[object]:
    if limit == 0:
        return []
    if separator:
        return [*text.split(separator, limit - 1 if limit > 0 else -1)]
    if limit < 0 or limit >= len(text):
        return [*text]
    return [*text[: limit - 1], text[limit - 1 :]]


def _substring(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    for position in (start, end):
        if not 0 <= position <= len(text):
            raise CelError(f"index out of range: {position}")
    if start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    return text[start:end]


def _join(parts: list[object], separator: str = "") -> str:
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) < len(parts):
        raise CelError("join: a list of strings is needed")
    return separator.join(texts)


def quote(text: str) -> str:
    """The text in double quotes, with the escapes of the language."""
    return f'"{text.translate(_QUOTED)}"'


_PAIR = (STRING, STRING)

OVERLOADS: tuple[Overload, ...] = (
    method("contains", _PAIR, BOOL, lambda text, part: part in text, cost=cost.substring),
    method("startsWith", _PAIR, BOOL, str.startswith, cost=cost.scan),
    method("endsWith", _PAIR, BOOL, str.endswith, cost=cost.scan),
    method("charAt", (STRING, INT), STRING, _char_at),
    method("indexOf", _PAIR, INT, _index_of, cost=cost.each),
    method("indexOf", (*_PAIR, INT), INT, _index_of, cost=cost.each),
    method("lastIndexOf", _PAIR, INT, _last_index_of, cost=cost.each),
    method("lastIndexOf", (*_PAIR, INT), INT, _last_index_from, cost=cost.each),
    method("lowerAscii", (STRING,), STRING, lambda t: t.translate(_LOWER), cost=cost.scan),
    method("upperAscii", (STRING,), STRING, lambda t: t.translate(_UPPER), cost=cost.scan),
    method("replace", (STRING, STRING, STRING), STRING, _replace, cost=cost.replaced),
    method("replace", (STRING, STRING, STRING, INT), STRING, _replace, cost=cost.replaced),
    method("split", _PAIR, list_of(STRING), _split, cost=cost.rewrite),
    method("split", (*_PAIR, INT), list_of(STRING), _split, cost=cost.rewrite),
    method("substring", (STRING, INT), STRING, _substring, cost=cost.scan),
    method("substring", (STRING, INT, INT), STRING, _substring, cost=cost.scan),
    method("trim", (STRING,), STRING, lambda text: text.strip(_SPACE), cost=cost.scan),
    method("join", (list_of(STRING),), STRING, _join, cost=cost.join),
    method("join", (list_of(STRING), STRING), STRING, _join, cost=cost.join),
    function("strings.quote", (STRING,), STRING, quote, cost=cost.scan),
)

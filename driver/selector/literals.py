"""What a literal's text stands for: numbers, strings and bytes with their escapes.

Raises `ValueError` with a reason; the parser adds the place.
"""

import re

from driver.selector.values import INT_MAX, INT_MIN, UINT_MAX, Uint

_ESCAPE = re.compile(
    r"\\(?:[xX](?P<hex>[0-9a-fA-F]{2})|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})"
    r"|(?P<octal>[0-3][0-7]{2})|(?P<plain>[abfnrtv\"'`?\\])|(?P<bad>.|$))",
    re.DOTALL,
)
_PLAIN = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_QUOTES = ('"""', "'''", '"', "'")
_SURROGATES = range(0xD800, 0xE000)
_LAST_CODE_POINT = 0x10FFFF
_MAX_DIGITS = 1000  # Python refuses to read many more


def integer(text: str) -> int:
    """An `int` literal with its sign, decimal or hexadecimal."""
    value = _whole(text)
    if not INT_MIN <= value <= INT_MAX:
        raise ValueError(f"invalid int literal {text}: beyond 64 bits")
    return value


def unsigned(text: str) -> Uint:
    """A `uint` literal, which ends in u."""
    value = _whole(text[:-1])
    if value > UINT_MAX:
        raise ValueError(f"invalid uint literal {text}: beyond 64 bits")
    return Uint(value)


def _whole(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"invalid integer literal of {len(text)} digits: beyond 64 bits")
    return int(text, 16) if "x" in text else int(text)


def double(text: str) -> float:
    """A `double` literal; one too big to hold is none."""
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"invalid double literal {text}: out of range")
    return value


def string(text: str) -> str:
    """A string literal, raw or not, with any of the four quotes."""
    raw, body = _unquoted(text)
    return body if raw else _ESCAPE.sub(_code_point, body)


def bytestring(text: str) -> bytes:
    """A bytes literal: its characters in UTF-8, and its escapes as single bytes."""
    raw, body = _unquoted(text[1:] if text[0] in "bB" else text[0] + text[2:])
    if raw:
        return body.encode()
    parts: list[bytes] = []
    end = 0
    for match in _ESCAPE.finditer(body):
        parts += (body[end : match.start()].encode(), _byte(match))
        end = match.end()
    return b"".join((*parts, body[end:].encode()))


def _unquoted(text: str) -> tuple[bool, str]:
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    width = next(len(quote) for quote in _QUOTES if text.startswith(quote))
    return raw, text[width:-width]


def _code_point(match: re.Match[str]) -> str:
    if match["plain"] is not None:
        return _PLAIN.get(match["plain"], match["plain"])
    if match["bad"] is not None:
        raise ValueError(f"invalid escape {match[0]} in a string literal")
    digits = match["hex"] or match["short"] or match["long"]
    value = int(digits, 16) if digits else int(match["octal"], 8)
    if value in _SURROGATES or value > _LAST_CODE_POINT:
        raise ValueError(f"invalid code point {match[0]} in a string literal")
    return chr(value)


def _byte(match: re.Match[str]) -> bytes:
    if match["plain"] is not None:
        return _PLAIN.get(match["plain"], match["plain"]).encode()
    if match["hex"] is not None:
        return bytes([int(match["hex"], 16)])
    if match["octal"] is not None:
        return bytes([int(match["octal"], 8)])
    raise ValueError(f"invalid escape {match[0]} in a bytes literal")

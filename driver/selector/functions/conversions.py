"""What turns a value of one type into another: `int()`, `string()`, `type()` and their like."""

import math
import re

from driver.selector import cost
from driver.selector.errors import CelError
from driver.selector.functions.library import Overload, function
from driver.selector.functions.times import (
    SECOND,
    duration_text,
    instant,
    parse_duration,
    parse_timestamp,
    timestamp_text,
)
from driver.selector.types import (
    BOOL,
    BYTES,
    CIDR,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    IP,
    STRING,
    TIMESTAMP,
    UINT,
    A,
    Type,
    type_of,
)
from driver.selector.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    TypeValue,
    Uint,
    int64,
    type_name,
    uint64,
)

_INT = re.compile(r"[+-]?[0-9]+")
_UINT = re.compile(r"[0-9]+")
_DOUBLE = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE
)
_HEX_DOUBLE = re.compile(r"[+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)p[+-]?[0-9]+", re.IGNORECASE)
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_MAX_DIGITS = 4000  # more than Python reads; far more than 64 bits hold
_SMALLEST_EXPONENT = -4
_PRECISION = 6


def _int_of_double(value: float) -> int:
    if not INT_MIN < value < INT_MAX:
        raise CelError("integer overflow")
    return math.trunc(value)


def _int_of_text(text: str) -> int:
    if len(text) > _MAX_DIGITS or not _INT.fullmatch(text) or not INT_MIN <= int(text) <= INT_MAX:
        raise CelError(f"cannot convert string {text[:64]!r} to int")
    return int(text)


def _uint_of_double(value: float) -> Uint:
    if not 0 <= value < UINT_MAX:
        raise CelError("unsigned integer overflow")
    return Uint(math.trunc(value))


def _uint_of_text(text: str) -> Uint:
    if len(text) > _MAX_DIGITS or not _UINT.fullmatch(text) or int(text) > UINT_MAX:
        raise CelError(f"cannot convert string {text[:64]!r} to uint")
    return Uint(int(text))


def _double_of_text(text: str) -> float:
    if len(text) < _MAX_DIGITS and _HEX_DOUBLE.fullmatch(text):
        try:
            return float.fromhex(text)
        except OverflowError:
            raise CelError(f"cannot convert string {text[:64]!r} to double") from None
    if len(text) > _MAX_DIGITS or not _DOUBLE.fullmatch(text):
        raise CelError(f"cannot convert string {text[:64]!r} to double")
    value = float(text)
    if math.isinf(value) and "i" not in text.lower():
        raise CelError(f"cannot convert string {text[:64]!r} to double: out of range")
    return value


def _bool_of_text(text: str) -> bool:
    if text not in _TRUE | _FALSE:
        raise CelError(f"cannot convert string {text[:64]!r} to bool")
    return text in _TRUE


def double_text(value: float) -> str:
    """The shortest text that reads back as this value, as Go's format %g writes it."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    digits, exponent = _digits(abs(value))
    if not _SMALLEST_EXPONENT <= exponent < _PRECISION:
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    return sign + _plain(digits, exponent)


def _digits(value: float) -> tuple[str, int]:
    """The significant digits of a value, and the power of ten of the first of them."""
    mantissa, _, exponent = f"{value!r}e0".partition("e")
    whole, _, fraction = mantissa.partition(".")
    power = int(exponent.removesuffix("e0")) + len(whole) - 1
    digits = whole + fraction
    lead = len(digits) - len(digits.lstrip("0"))
    return digits.strip("0") or "0", power - lead if digits.strip("0") else 0


def _plain(digits: str, exponent: int) -> str:
    """The digits with the point where the exponent says."""
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    rest = digits[exponent + 1 :]
    return f"{whole}.{rest}" if rest else whole


def _text_of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None


def _same(value: object) -> object:
    return value


def _type(value: object) -> TypeValue:
    return TypeValue(type_name(value))


def _identities() -> list[Overload]:
    kinds: tuple[Type, ...] = (BOOL, BYTES, DOUBLE, INT, STRING, UINT)
    named = [(kind.name, kind) for kind in kinds]
    named += [("duration", DURATION), ("timestamp", TIMESTAMP)]
    return [function(name, (kind,), kind, _same) for name, kind in named]


OVERLOADS: tuple[Overload, ...] = (
    *_identities(),
    function("bool", (STRING,), BOOL, _bool_of_text),
    function("bytes", (STRING,), BYTES, str.encode, cost=cost.scan),
    function("double", (INT,), DOUBLE, float),
    function("double", (UINT,), DOUBLE, float),
    function("double", (STRING,), DOUBLE, _double_of_text),
    function("int", (DOUBLE,), INT, _int_of_double),
    function("int", (UINT,), INT, lambda value: int64(int(value))),
    function("int", (STRING,), INT, _int_of_text),
    function("int", (DURATION,), INT, lambda value: value.nanos),
    function("int", (TIMESTAMP,), INT, lambda value: value.nanos // SECOND),
    function("uint", (DOUBLE,), UINT, _uint_of_double),
    function("uint", (INT,), UINT, uint64),
    function("uint", (STRING,), UINT, _uint_of_text),
    function("duration", (STRING,), DURATION, parse_duration),
    function("timestamp", (STRING,), TIMESTAMP, parse_timestamp),
    function("timestamp", (INT,), TIMESTAMP, lambda value: instant(value * SECOND)),
    function("string", (BOOL,), STRING, lambda value: "true" if value else "false"),
    function("string", (BYTES,), STRING, _text_of_bytes, cost=cost.scan),
    function("string", (DOUBLE,), STRING, double_text),
    function("string", (INT,), STRING, str),
    function("string", (UINT,), STRING, lambda value: str(int(value))),
    function("string", (DURATION,), STRING, duration_text),
    function("string", (TIMESTAMP,), STRING, timestamp_text),
    function("string", (IP,), STRING, str),
    function("string", (CIDR,), STRING, str),
    function("dyn", (A,), DYN, _same),
    function("type", (A,), type_of(A), _type),
)

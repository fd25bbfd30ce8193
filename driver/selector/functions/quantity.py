"""Kubernetes quantities in an expression.

Source: `kubernetes.quantity` and apimachinery's resource.Quantity, with its two ways of holding a
number: a 64 bit integer with a power of ten, or an arbitrary decimal. `isInteger` and `asInteger`
only know the first, and only a power of zero or more; `==` fails when its right side came out of
`add` or `sub`. Both can be seen from an expression, so both are kept.
"""

import re
from typing import ClassVar, Final

import msgspec

from driver.model.quantity import NANO, Quantity
from driver.selector import cost
from driver.selector.errors import CelError, no_such_overload
from driver.selector.functions.library import Overload, function, method
from driver.selector.types import BOOL, DOUBLE, INT, QUANTITY, STRING
from driver.selector.values import INT_MAX, INT_MIN

_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_GRAMMAR = re.compile(
    r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eE][+-]?[0-9]+|Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E)?"
)
# How many decimal digits an int64 surely holds, and how many of them a binary suffix leaves.
_DIGITS = 18
_BINARY_DIGITS = 14
_SMALLEST: Final = -9
# Legal text may have any power of ten; ten to the power of a billion does not fit a machine.
_MAX_POWER = 1000


class QuantityValue(msgspec.Struct, frozen=True, eq=False):
    """`digits` times ten to the power of `scale`.

    `wide` when it is held as an arbitrary decimal; `computed` when it is a result of `add` or
    `sub`.
    """

    digits: int
    scale: int
    wide: bool = False
    computed: bool = False

    cel_type: ClassVar[str] = QUANTITY.name

    def equals(self, other: object) -> bool:
        """Whether both have the same value; a computed one cannot stand on the right."""
        if not isinstance(other, QuantityValue) or other.computed:
            raise no_such_overload()
        return compare(self, other) == 0

    def nano(self) -> int:
        """The exact value in billionths."""
        power = self.scale - _SMALLEST
        if power > _MAX_POWER:
            raise CelError(f"quantity with the power of ten {self.scale} is out of range")
        return self.digits * int(10**power)


def parse(text: str) -> QuantityValue:
    """Read a quantity; raises `CelError`."""
    match = _GRAMMAR.fullmatch(text)
    if match is None or not (match[2] or match[3]):
        raise CelError(
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    sign = -1 if match[1] == "-" else 1
    whole, fraction, suffix = match[2].lstrip("0") or "0", match[3] or "", match[4] or ""
    if len(whole) + len(fraction) > _MAX_POWER:
        raise CelError(f"quantity with {len(whole) + len(fraction)} digits is out of range")
    if suffix in _BINARY:
        return _binary(sign, whole, fraction, _BINARY[suffix])
    power = _DECIMAL[suffix] if suffix in _DECIMAL else _power(suffix[1:])
    scale = power - len(fraction)
    digits = sign * int(whole + fraction)
    if len(whole) + len(fraction) <= _DIGITS and scale >= _SMALLEST:
        return QuantityValue(digits, scale)
    return _decimal(digits, scale)


def _power(text: str) -> int:
    if len(text) > len("+2147483647"):
        raise CelError("unable to parse quantity's suffix")
    return int(text)


def _binary(sign: int, whole: str, fraction: str, bits: int) -> QuantityValue:
    if not fraction and len(whole) + bits * 3 // 10 <= _BINARY_DIGITS:
        return QuantityValue(sign * (int(whole) << bits), 0)
    return _decimal(sign * (int(whole + fraction) << bits), -len(fraction))


def _decimal(digits: int, scale: int) -> QuantityValue:
    """A wide value: rounded away from zero to billionths, and kept within 64 bits."""
    if scale > _MAX_POWER:
        raise CelError(f"quantity with the power of ten {scale} is out of range")
    if scale < _SMALLEST:
        surplus = _SMALLEST - scale
        divisor = 10 ** min(surplus, _MAX_POWER)
        rounded = -(-abs(digits) // divisor)
        digits, scale = (-rounded if digits < 0 else rounded), _SMALLEST
    factor = 10 ** (scale - _SMALLEST)
    if abs(digits) * factor > INT_MAX * NANO:
        return QuantityValue(-INT_MAX if digits < 0 else INT_MAX, 0, wide=True)
    return QuantityValue(digits, scale, wide=True)


def of_model(quantity: Quantity) -> QuantityValue:
    """The value of a device's capacity, as its canonical text would be read."""
    return parse(str(quantity))


def is_quantity(text: str) -> bool:
    """`isQuantity(text)`."""
    try:
        parse(text)
    except CelError:
        return False
    return True


def compare(left: QuantityValue, right: QuantityValue) -> int:
    """-1, 0 or 1."""
    if left.scale == right.scale:
        return (left.digits > right.digits) - (left.digits < right.digits)
    one, other = left.nano(), right.nano()
    return (one > other) - (one < other)


def add(left: QuantityValue, right: QuantityValue) -> QuantityValue:
    """`left.add(right)`: narrow as long as both are and 64 bits hold the sum."""
    if not (left.wide or right.wide):
        if left.digits == 0:
            return msgspec.structs.replace(right, computed=True)
        if right.digits == 0:
            return msgspec.structs.replace(left, computed=True)
    scale = min(left.scale, right.scale)
    if max(left.scale, right.scale) - scale > _MAX_POWER:
        raise CelError("quantities too far apart to add")
    digits = left.digits * 10 ** (left.scale - scale) + right.digits * 10 ** (right.scale - scale)
    wide = left.wide or right.wide or not INT_MIN <= digits <= INT_MAX
    return QuantityValue(digits, scale, wide=wide, computed=True)


def _negative(value: QuantityValue) -> QuantityValue:
    return msgspec.structs.replace(value, digits=-value.digits)


def sub(left: QuantityValue, right: QuantityValue) -> QuantityValue:
    """`left.sub(right)`."""
    return add(left, _negative(right))


def _is_integer(value: QuantityValue) -> bool:
    return (
        not value.wide
        and 0 <= value.scale <= _DIGITS
        and INT_MIN <= value.digits * 10**value.scale <= INT_MAX
    )


def _as_integer(value: QuantityValue) -> int:
    if not _is_integer(value):
        raise CelError("cannot convert value to integer")
    return value.digits * int(10**value.scale)


def _as_float(value: QuantityValue) -> float:
    try:
        if value.scale <= 0:
            return value.digits * float(f"1e{value.scale}")
        return float(value.digits * 10 ** min(value.scale, _MAX_POWER))
    except OverflowError:
        return float("inf") if value.digits > 0 else float("-inf")


def _sign(value: QuantityValue) -> int:
    return (value.digits > 0) - (value.digits < 0)


_PAIR = (QUANTITY, QUANTITY)

OVERLOADS: tuple[Overload, ...] = (
    function("quantity", (STRING,), QUANTITY, parse, cost=cost.scan),
    function("isQuantity", (STRING,), BOOL, is_quantity, cost=cost.scan),
    function("sign", (QUANTITY,), INT, _sign),
    method("isGreaterThan", _PAIR, BOOL, lambda a, b: compare(a, b) > 0),
    method("isLessThan", _PAIR, BOOL, lambda a, b: compare(a, b) < 0),
    method("compareTo", _PAIR, INT, compare),
    method("asApproximateFloat", (QUANTITY,), DOUBLE, _as_float),
    method("asInteger", (QUANTITY,), INT, _as_integer),
    method("isInteger", (QUANTITY,), BOOL, _is_integer),
    method("add", _PAIR, QUANTITY, add),
    method("add", (QUANTITY, INT), QUANTITY, lambda a, b: add(a, QuantityValue(b, 0))),
    method("sub", _PAIR, QUANTITY, sub),
    method("sub", (QUANTITY, INT), QUANTITY, lambda a, b: sub(a, QuantityValue(b, 0))),
)

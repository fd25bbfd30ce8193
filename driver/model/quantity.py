"""What a Kubernetes quantity is: an exact number with a preferred way of writing it.

Source of the grammar and of the canonical form: `k8s.io/apimachinery/pkg/api/resource`.
A value is held as a whole number of nano units, so that every legal quantity is exact.
"""

import re
from functools import lru_cache
from typing import Final, Literal

from driver.model.errors import InvalidObjectError

Format = Literal["BinarySI", "DecimalSI", "DecimalExponent"]

NANO = 10**9
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX = {power: suffix for suffix, power in _DECIMAL.items()}
_GRAMMAR = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>\d*)(?:\.(?P<fraction>\d*))?"
    r"(?P<suffix>[eE][+-]?\d+|Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E)?",
    re.ASCII,
)
# Beyond so many digits a number is as good as endless, or as nothing: texts such as 1e999999999
# are legal, and reading one must neither fail nor take the process down.
_MAX_DIGITS = 60


class Quantity:
    """An amount: `nano` is the exact value times 10^9; `format` is how it likes to be written.

    Immutable. Two quantities are equal when their values are, whatever their format. A plain
    class, because on the wire it is a string (`driver.wire.decode`), which no struct can be.
    """

    __slots__ = ("format", "nano")

    def __init__(self, nano: int, form: Format = "DecimalSI") -> None:
        self.nano: Final = nano
        self.format: Final = form

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nano == other.nano

    def __hash__(self) -> int:
        return hash(self.nano)

    def __lt__(self, other: "Quantity") -> bool:
        return self.nano < other.nano

    def __le__(self, other: "Quantity") -> bool:
        return self.nano <= other.nano

    def __add__(self, other: "Quantity") -> "Quantity":
        return Quantity(self.nano + other.nano, self.format if self.nano else other.format)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return Quantity(self.nano - other.nano, self.format if self.nano else other.format)

    def __str__(self) -> str:
        return _canonical(self.nano, self.format)

    def ceil(self) -> int:
        """The value in whole units, rounded up (bytes for a memory quantity)."""
        return -(-self.nano // NANO)


def whole(units: int, form: Format = "DecimalSI") -> Quantity:
    """The quantity of so many whole units."""
    return Quantity(units * NANO, form)


@lru_cache(maxsize=65536)
def parse(text: str) -> Quantity:
    """Read a quantity; what is finer than nano is rounded away from zero, as Kubernetes does.

    Raises `InvalidObjectError` with the text when it is none.
    """
    match = _GRAMMAR.fullmatch(text)
    if match is None or not (match["whole"] or match["fraction"]):
        raise InvalidObjectError(
            f"quantity {text[:80]!r} cannot be read: expected a number with an optional suffix, "
            "such as 500m, 16Gi or 1e3"
        )
    fraction = (match["fraction"] or "").rstrip("0")
    digits = _bounded(match["whole"] + fraction[:_MAX_DIGITS])
    numerator, denominator, form = _scale(match["suffix"] or "")
    nano = -(-digits * NANO * numerator // (denominator * 10 ** len(fraction[:_MAX_DIGITS])))
    if nano == 0 and fraction:
        nano = 1
    return Quantity(-nano if match["sign"] == "-" else nano, form)


def _bounded(digits: str) -> int:
    digits = digits.lstrip("0")
    return 10**_MAX_DIGITS if len(digits) > 2 * _MAX_DIGITS else int(digits or "0")


def _scale(suffix: str) -> tuple[int, int, Format]:
    if suffix in _BINARY:
        return 1024 ** _BINARY[suffix], 1, "BinarySI"
    form: Format = "DecimalSI"
    power = _DECIMAL.get(suffix)
    if power is None:
        form, power = "DecimalExponent", _exponent(suffix[1:])
    return (10**power, 1, form) if power >= 0 else (1, 10**-power, form)


def _exponent(text: str) -> int:
    power = min(_bounded(text.lstrip("+-")), _MAX_DIGITS)
    return -power if text.startswith("-") else power


def _canonical(nano: int, form: Format) -> str:
    if nano == 0:
        return "0"
    if form == "BinarySI" and nano % NANO == 0 and abs(nano) >= 1024 * NANO:
        return _binary(nano // NANO)
    return _decimal(nano, form)


def _binary(value: int) -> str:
    power = 0
    while value % 1024 == 0 and power < len(_BINARY):
        value, power = value // 1024, power + 1
    suffix = next((name for name, p in _BINARY.items() if p == power), "")
    return f"{value}{suffix}"


def _decimal(nano: int, form: Format) -> str:
    power = -9
    while nano % 1000 == 0 and (power < max(_DECIMAL_SUFFIX) or form == "DecimalExponent"):
        nano, power = nano // 1000, power + 3
    if form == "DecimalExponent":
        return f"{nano}e{power}" if power else str(nano)
    return f"{nano}{_DECIMAL_SUFFIX[power]}"

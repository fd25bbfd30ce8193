"""`"%s has %d".format([...])`: cel-go's strings library, version 2, in its default locale."""

import re
from collections.abc import Callable
from functools import partial

from driver.selector.cost import MAX_CHARACTERS, limit_exceeded, written
from driver.selector.errors import CelError
from driver.selector.functions.conversions import double_text
from driver.selector.functions.library import Overload, method
from driver.selector.functions.strings import quote
from driver.selector.functions.times import duration_text, timestamp_text
from driver.selector.types import DYN, STRING, Type, list_of
from driver.selector.values import Duration, Timestamp, TypeValue, key_value, type_name

_CLAUSE = re.compile(
    r"%(?:(?P<percent>%)|(?:\.(?P<precision>[0-9]+))?(?P<verb>[A-Za-z])|(?P<bad>.|$))",
    re.DOTALL,
)
_DEFAULT_PRECISION = 6
_MAX_PRECISION = 1000
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# A multiplication sign between narrow spaces.
_TIMES = "\u202f\u00d7\u202f"

# Which static types each verb takes; dyn always passes.
_STRING_KINDS = {
    "bool", "bytes", "double", "duration", "int", "list", "map", "null", "string", "timestamp",
    "type", "uint",
}  # fmt: skip
_KINDS = {
    "s": _STRING_KINDS,
    "d": {"int", "uint"},
    # Texts, too: "NaN" and "Infinity" are numbers here.
    "f": {"double", "string"},
    "e": {"double", "string"},
    "b": {"bool", "int", "uint"},
    "o": {"int", "uint"},
    "x": {"bytes", "int", "string", "uint"},
    "X": {"bytes", "int", "string", "uint"},
}


def clauses(text: str) -> list[re.Match[str]]:
    """The clauses of a format, percent signs left out. Raises `CelError` at a bad one."""
    found = []
    for match in _CLAUSE.finditer(text):
        verb = match["verb"]
        if match["bad"] is not None or (verb is not None and verb not in _KINDS):
            raise CelError(f'could not parse formatting clause: unrecognized clause "{match[0]}"')
        if match["precision"] and (len(match["precision"]) > len(str(_MAX_PRECISION))):
            raise CelError(f"precision {match['precision'][:64]} is out of range")
        if verb is not None:
            found.append(match)
    return found


def check_types(text: str, types: list[list[Type]]) -> None:
    """Check a constant format against its arguments' types; raises `CelError`.

    Of an argument that is written out as a list the types of its elements follow its own.
    """
    found = clauses(text)
    _check_count(len(found), len(types))
    for clause, given in zip(found, types, strict=True):
        verb = clause["verb"]
        for one in given if verb == "s" else given[:1]:
            if one.kind not in _KINDS[verb] | {"dyn"}:
                raise CelError(f"error during formatting: %{verb} cannot be used on {one}")


def _check_count(wanted: int, given: int) -> None:
    if wanted > given:
        raise CelError(f"index {given} out of range")
    if given > wanted:
        raise CelError(
            f"too many arguments supplied to string.format (expected {wanted}, got {given})"
        )


def _format(text: str, args: list[object]) -> str:
    _check_count(len(clauses(text)), len(args))
    writer = _Writer()
    left = iter(args)
    end = 0
    for match in _CLAUSE.finditer(text):
        writer.write(text[end : match.start()])
        end = match.end()
        if match["percent"]:
            writer.write("%")
        else:
            precision = int(match["precision"]) if match["precision"] else _DEFAULT_PRECISION
            _VERBS[match["verb"]](writer, next(left), min(precision, _MAX_PRECISION))
    writer.write(text[end:])
    return writer.text()


class _Writer:
    """Collects a text, up to what an evaluation may hold."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0

    def write(self, part: str) -> None:
        self._length += len(part) + 1
        if self._length > MAX_CHARACTERS:
            raise limit_exceeded()
        self._parts.append(part)

    def text(self) -> str:
        return "".join(self._parts)


def _wrong(verb: str, value: object) -> CelError:
    return CelError(f"error during formatting: %{verb} cannot be used on {type_name(value)}")


def _string(writer: _Writer, value: object, _: int) -> None:
    if isinstance(value, str):
        writer.write(value)
    elif isinstance(value, float):
        writer.write(double_text(value))
    elif isinstance(value, bytes):
        writer.write(_decoded(value))
    elif isinstance(value, Duration):
        writer.write(duration_text(value))
    elif isinstance(value, Timestamp):
        writer.write(timestamp_text(value))
    else:
        _nested(writer, value)


def _nested(writer: _Writer, value: object) -> None:
    """A value inside of a list or map, written so that its type can be told."""
    plain = _plain(value)
    if plain is not None:
        writer.write(plain)
    elif isinstance(value, list):
        _sequence(writer, "[]", [partial(_nested, writer, item) for item in value])
    elif isinstance(value, dict):
        entries = sorted(value.items(), key=lambda entry: str(key_value(entry[0])))
        _sequence(writer, "{}", [partial(_entry, writer, *entry) for entry in entries])
    else:
        raise _wrong("s", value)


def _entry(writer: _Writer, key: object, value: object) -> None:
    _nested(writer, key_value(key))
    writer.write(":")
    _nested(writer, value)


def _sequence(writer: _Writer, brackets: str, parts: list[Callable[[], None]]) -> None:
    writer.write(brackets[0])
    for position, part in enumerate(parts):
        if position:
            writer.write(", ")
        part()
    writer.write(brackets[1])


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelError("error during formatting: invalid UTF-8 in bytes") from None


def _nested_double(value: float) -> str:
    return quote(double_text(value)) if _special(value) else f"{value:.{_DEFAULT_PRECISION}f}"


def _plain(value: object) -> str | None:
    writers: dict[type, Callable[..., str]] = {
        type(None): lambda _: "null",
        bool: lambda v: "true" if v else "false",
        str: quote,
        float: _nested_double,
        bytes: lambda v: f"b{quote(_decoded(v))}",
        Duration: lambda v: f'duration("{duration_text(v)}")',
        Timestamp: lambda v: f'timestamp("{timestamp_text(v)}")',
        TypeValue: lambda v: v.name,
    }
    write = writers.get(type(value))
    if write is not None:
        return write(value)
    return str(int(value)) if isinstance(value, int) else None


def _decimal(writer: _Writer, value: object, _: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong("d", value)
    writer.write(str(int(value)))


def _fixed(writer: _Writer, value: object, precision: int) -> None:
    number = _double("f", value)
    writer.write(_special(number) or f"{number:,.{precision}f}")


def _scientific(writer: _Writer, value: object, precision: int) -> None:
    number = _double("e", value)
    mantissa, _, exponent = f"{number:.{precision}e}".partition("e")
    power = f"{'-' if int(exponent or 0) < 0 else ''}{abs(int(exponent or 0)):02d}"
    text = f"{mantissa}{_TIMES}10{power.translate(_SUPERSCRIPTS)}"
    writer.write(_special(number) or text)


def _double(verb: str, value: object) -> float:
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    if not isinstance(value, float):
        raise _wrong(verb, value)
    return value


def _special(value: float) -> str:
    return {"inf": "∞", "-inf": "-∞", "nan": "NaN"}.get(str(value), "")


def _binary(writer: _Writer, value: object, _: int) -> None:
    if not isinstance(value, int):
        raise _wrong("b", value)
    writer.write(f"{int(value):b}")


def _octal(writer: _Writer, value: object, _: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong("o", value)
    writer.write(f"{value:o}")


def _hex(verb: str) -> Callable[[_Writer, object, int], None]:
    def write(writer: _Writer, value: object, _: int) -> None:
        if isinstance(value, (str, bytes)):
            text = (value.encode() if isinstance(value, str) else value).hex()
        elif isinstance(value, int) and not isinstance(value, bool):
            text = f"{value:x}"
        else:
            raise _wrong(verb, value)
        writer.write(text.upper() if verb == "X" else text)

    return write


_VERBS: dict[str, Callable[[_Writer, object, int], None]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "o": _octal,
    "x": _hex("x"),
    "X": _hex("X"),
}

OVERLOADS: tuple[Overload, ...] = (
    method("format", (STRING, list_of(DYN)), STRING, _format, cost=written),
)

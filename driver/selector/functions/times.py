"""Timestamps and durations: how they are written, reckoned with, and taken apart."""

import datetime as dt
import re
import zoneinfo
from collections.abc import Callable
from typing import Final

from driver.selector.errors import CelError
from driver.selector.functions.library import Overload, method
from driver.selector.types import DURATION, INT, STRING, TIMESTAMP
from driver.selector.values import INT_MAX, INT_MIN, Duration, Timestamp

SECOND: Final = 1_000_000_000
_UNITS = {
    "ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": 1_000_000,
    "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND,
}  # fmt: skip
_SPAN = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_INSTANT = re.compile(
    r"(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2})(?:[.,](\d+))?(?:Z|([+-])(\d{2}):(\d{2}))", re.ASCII
)
_OFFSET = re.compile(r"([+-]?)(\d{2}):(\d{2})", re.ASCII)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FIRST = -62135596800 * SECOND
_LAST = 253402300799 * SECOND + SECOND - 1
_HOURS, _MINUTES = 24, 60
# Far more than a readable duration or timestamp has.
_MAX_TEXT = 1000


def span(nanos: int) -> Duration:
    """The duration of so many nanoseconds, when 64 bits hold them."""
    if not INT_MIN <= nanos <= INT_MAX:
        raise CelError("duration overflow")
    return Duration(nanos)


def instant(nanos: int) -> Timestamp:
    """The timestamp so many nanoseconds after 1970, in the years 1 to 9999."""
    if not _FIRST <= nanos <= _LAST:
        raise CelError("timestamp overflow")
    return Timestamp(nanos)


def shifted(start: Timestamp, nanos: int) -> Timestamp:
    """The timestamp that much later."""
    return instant(start.nanos + nanos)


def parse_duration(text: str) -> Duration:
    """`1h2m3.5s`, as Go's time.ParseDuration reads it."""
    if len(text) > _MAX_TEXT:
        raise CelError(f"time: invalid duration {text[:64]!r}")
    sign, rest = (text[:1], text[1:]) if text[:1] in ("+", "-") else ("", text)
    if rest == "0":
        return Duration(0)
    total, position = 0, 0
    while position < len(rest):
        match = _SPAN.match(rest, position)
        if match is None or not (match[1] or match[2]):
            break
        fraction = match[2] or ""
        total += int((match[1] or "0") + fraction) * _UNITS[match[3]] // 10 ** len(fraction)
        position = match.end()
    if not rest or position < len(rest) or total > INT_MAX:
        raise CelError(f"time: invalid duration {text[:64]!r}")
    return Duration(-total if sign == "-" else total)


def parse_timestamp(text: str) -> Timestamp:
    """An RFC 3339 timestamp."""
    match = _INSTANT.fullmatch(text[:_MAX_TEXT])
    if match is None:
        raise CelError(f"parsing time {text[:64]!r} as RFC 3339 failed")
    try:
        moment = dt.datetime.fromisoformat(f"{match[1]}T{match[2]}+00:00")
        offset = _minutes(match[4], match[5], match[6]) if match[4] else 0
    except ValueError:
        raise CelError(f"parsing time {text[:64]!r} as RFC 3339 failed") from None
    fraction = int((match[3] or "").ljust(9, "0")[:9])
    return instant(_nanos(moment) - offset * 60 * SECOND + fraction)


def _minutes(sign: str, hours: str, minutes: str) -> int:
    if int(hours) >= _HOURS or int(minutes) >= _MINUTES:
        raise ValueError(f"{hours}:{minutes} is no offset")
    return (-1 if sign == "-" else 1) * (int(hours) * 60 + int(minutes))


def _nanos(moment: dt.datetime) -> int:
    passed = moment - _EPOCH
    return (passed.days * 86400 + passed.seconds) * SECOND


def duration_text(value: Duration) -> str:
    """The duration in seconds, as protobuf writes it."""
    seconds, rest = divmod(abs(value.nanos), SECOND)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{'-' if value.nanos < 0 else ''}{seconds}{fraction}s"


def timestamp_text(value: Timestamp) -> str:
    """The timestamp in RFC 3339, in UTC."""
    seconds, rest = divmod(value.nanos, SECOND)
    moment = _EPOCH + dt.timedelta(seconds=seconds)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{moment:%H:%M:%S}".join((f"{moment.year:04d}-{moment:%m-%d}T", f"{fraction}Z"))


def _zone(name: str) -> dt.tzinfo:
    match = _OFFSET.fullmatch(name)
    try:
        if match:
            return dt.timezone(dt.timedelta(minutes=_minutes(*match.groups())))
        return zoneinfo.ZoneInfo(name or "UTC")
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        raise CelError(f"unknown time zone {name}") from None


Part = Callable[[dt.datetime], int]


def _getter(part: Part) -> Callable[..., int]:
    def get(value: Timestamp, zone: str = "UTC") -> int:
        local = _EPOCH + dt.timedelta(seconds=value.nanos // SECOND)
        try:
            return part(local.astimezone(_zone(zone)))
        except OverflowError:
            raise CelError("timestamp overflow") from None

    return get


def _milliseconds(value: Timestamp, zone: str = "UTC") -> int:
    _zone(zone)
    return value.nanos % SECOND // 1_000_000


_PARTS: dict[str, Part] = {
    "getFullYear": lambda moment: moment.year,
    "getMonth": lambda moment: moment.month - 1,
    "getDate": lambda moment: moment.day,
    "getDayOfMonth": lambda moment: moment.day - 1,
    "getDayOfWeek": lambda moment: moment.isoweekday() % 7,
    "getDayOfYear": lambda moment: moment.timetuple().tm_yday - 1,
    "getHours": lambda moment: moment.hour,
    "getMinutes": lambda moment: moment.minute,
    "getSeconds": lambda moment: moment.second,
}
_SPANS = {
    "getHours": 3600 * SECOND,
    "getMinutes": 60 * SECOND,
    "getSeconds": SECOND,
    "getMilliseconds": 1_000_000,
}


def _whole(unit: int) -> Callable[[Duration], int]:
    def get(value: Duration) -> int:
        count = abs(value.nanos) // unit
        return -count if value.nanos < 0 else count

    return get


def _getters() -> list[Overload]:
    runs = {name: _getter(part) for name, part in _PARTS.items()}
    runs["getMilliseconds"] = _milliseconds
    return [
        method(name, params, INT, run)
        for name, run in runs.items()
        for params in ((TIMESTAMP,), (TIMESTAMP, STRING))
    ]


OVERLOADS: tuple[Overload, ...] = (
    *_getters(),
    *(method(name, (DURATION,), INT, _whole(unit)) for name, unit in _SPANS.items()),
)

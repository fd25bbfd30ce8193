"""Kubernetes' named formats: which texts are labels, names, dates, and what is wrong with others.

Source: `kubernetes.format` on apimachinery's validation and kube-openapi's strfmt.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import ClassVar

import msgspec

from driver.selector.cost import Args, pattern_cost
from driver.selector.errors import CelError, no_such_overload
from driver.selector.functions.library import Overload, function, method
from driver.selector.functions.times import parse_timestamp
from driver.selector.functions.url import is_url
from driver.selector.types import FORMAT, STRING, list_of, optional_of
from driver.selector.values import ABSENT, Optional, size_of

Errors = list[str]

_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_OLD_LABEL = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_NAME = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE = re.compile(r"(?:(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_UUID = re.compile(
    r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE
)
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MAX_LABEL, _MAX_SUBDOMAIN = 63, 253


class FormatValue(msgspec.Struct, frozen=True, eq=False):
    """One format; `size` is the length of the pattern that its cost is reckoned by."""

    name: str
    errors: Callable[[str], Errors]
    size: int

    cel_type: ClassVar[str] = FORMAT.name

    def equals(self, other: object) -> bool:
        """Whether both are the same format."""
        if not isinstance(other, FormatValue):
            raise no_such_overload()
        return self.name == other.name


def _limited(pattern: re.Pattern[str], limit: int, text: str) -> Errors:
    errors = [] if pattern.fullmatch(text) else [f"must match the pattern {pattern.pattern}"]
    # The API counts bytes.
    if len(text.encode()) > limit:
        errors.append(f"must be no more than {limit} bytes")
    return errors


def _prefix(pattern: re.Pattern[str], limit: int, text: str) -> Errors:
    """A name that something is yet to be added to may end in a dash."""
    if len(text) > 1 and text.endswith("-"):
        text = f"{text[:-1]}a"
    return _limited(pattern, limit, text)


def _qualified(text: str) -> Errors:
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return ["a qualified name must be a name with an optional DNS prefix, as example.com/Name"]
    errors = []
    if slash:
        errors += ["prefix part must be non-empty"] if not prefix else []
        errors += _limited(_SUBDOMAIN, _MAX_SUBDOMAIN, prefix) if prefix else []
    return errors + (_limited(_NAME, _MAX_LABEL, name) if name else ["name part must be non-empty"])


def _uri(text: str) -> Errors:
    return [] if is_url(text) else ["invalid URI for request"]


def _whole(pattern: re.Pattern[str], reason: str, text: str) -> Errors:
    return [] if pattern.fullmatch(text) else [reason]


def _byte(text: str) -> Errors:
    return _whole(_BASE64, "invalid base64", text) if text else ["invalid base64"]


def _date(text: str) -> Errors:
    return (
        _datetime(f"{text}T00:00:00Z") and ["invalid date"]
        if _DATE.fullmatch(text)
        else ["invalid date"]
    )


def _datetime(text: str) -> Errors:
    try:
        parse_timestamp(text.upper())
    except CelError:
        return ["invalid datetime"]
    return []


def _format(name: str, size: int, errors: Callable[[str], Errors]) -> FormatValue:
    return FormatValue(name, errors, size)


FORMATS: dict[str, FormatValue] = {
    "dns1123Label": _format("DNS1123Label", 30, partial(_limited, _LABEL, _MAX_LABEL)),
    "dns1123LabelPrefix": _format("DNS1123LabelPrefix", 30, partial(_prefix, _LABEL, _MAX_LABEL)),
    "dns1123Subdomain": _format(
        "DNS1123Subdomain", 60, partial(_limited, _SUBDOMAIN, _MAX_SUBDOMAIN)
    ),
    "dns1123SubdomainPrefix": _format(
        "DNS1123SubdomainPrefix", 60, partial(_prefix, _SUBDOMAIN, _MAX_SUBDOMAIN)
    ),
    "dns1035Label": _format("DNS1035Label", 30, partial(_limited, _OLD_LABEL, _MAX_LABEL)),
    "dns1035LabelPrefix": _format(
        "DNS1035LabelPrefix", 30, partial(_prefix, _OLD_LABEL, _MAX_LABEL)
    ),
    "qualifiedName": _format("QualifiedName", 60, _qualified),
    "labelValue": _format("LabelValue", 40, partial(_limited, _LABEL_VALUE, _MAX_LABEL)),
    "uri": _format("URI", 1500, _uri),
    "uuid": _format("uuid", 100, partial(_whole, _UUID, "does not match the UUID format")),
    "byte": _format("byte", 90, _byte),
    "date": _format("date", 120, _date),
    "datetime": _format("datetime", 120, _datetime),
}


def _named(name: str) -> Optional:
    return Optional(FORMATS[name]) if name in FORMATS else ABSENT


def _validate(form: FormatValue, text: str) -> Optional:
    errors = form.errors(text)
    return Optional([*errors]) if errors else ABSENT


def _cost(args: Args) -> int:
    form = args[0]
    return pattern_cost(size_of(args[1]), form.size if isinstance(form, FormatValue) else 0)


def _constant(form: FormatValue) -> Callable[[], FormatValue]:
    return lambda: form


OVERLOADS: tuple[Overload, ...] = (
    function("format.named", (STRING,), optional_of(FORMAT), _named),
    *(function(f"format.{name}", (), FORMAT, _constant(form)) for name, form in FORMATS.items()),
    method("validate", (FORMAT, STRING), optional_of(list_of(STRING)), _validate, cost=_cost),
)

"""Which names and values of attributes the API takes, and which of them a rule may set. Pure.

Source: the validation of `ResourceSlice` in `k8s.io/kubernetes` (`pkg/apis/resource/validation`).
"""

import re

import semver

from driver.model.names import INDEX, UUID
from driver.model.resourceslice import DeviceAttribute

_ID_MAX = 32
_DOMAIN_MAX = 63
_TEXT_MAX = 64
_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_LABEL = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_DOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*", re.ASCII)
_INT64 = range(-(2**63), 2**63)
# What says which device it is: others find it by these.
_IDENTITY = frozenset({"type", UUID, INDEX, "parentUUID", "profile"})


def canonical(name: str, *, driver: str) -> str:
    """The name as it is published: our own domain is left out."""
    return name.removeprefix(f"{driver}/")


def name_fault(name: str) -> str | None:
    """What is wrong with a canonical name, None when a rule may set it."""
    domain, slash, short = name.rpartition("/")
    if slash and (len(domain) > _DOMAIN_MAX or not _DOMAIN.fullmatch(domain)):
        return f"the domain {domain!r} is no DNS name of at most {_DOMAIN_MAX} characters"
    if len(short) > _ID_MAX or not _ID.fullmatch(short):
        return (
            f"{short!r} is no identifier: expected letters, digits and underscores, no digit "
            f"first, at most {_ID_MAX} characters"
        )
    if name in _IDENTITY:
        return "it says which device this is, and no rule may set it"
    return None


def value_fault(value: DeviceAttribute) -> str | None:
    """What is wrong with a value of one type, None when the API takes it."""
    text = value.version if value.version is not None else value.string
    length = len((text or "").encode())
    if length > _TEXT_MAX:
        return f"it has {length} bytes in UTF-8, at most {_TEXT_MAX} are allowed"
    if value.version is not None and not semver.Version.is_valid(value.version):
        return f"{value.version!r} is no semantic version, such as 1.2.3"
    if value.int_ is not None and value.int_ not in _INT64:
        return f"{value.int_} does not fit into 64 bits"
    return None

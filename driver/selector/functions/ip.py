"""IP addresses: Kubernetes' library on Go's net/netip."""

import ipaddress
from typing import ClassVar

import msgspec

from driver.selector import cost
from driver.selector.errors import CelError, no_such_overload
from driver.selector.functions.library import Overload, function, method
from driver.selector.types import BOOL, INT, IP, STRING

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_BROADCAST = ipaddress.IPv4Address("255.255.255.255")
_LINK_LOCAL_MULTICAST_4 = ipaddress.IPv4Network("224.0.0.0/24")
_LINK_LOCAL_SCOPE = 0xFF02
_MULTICAST_SCOPE = 0xFF0F
_LAST_WORDS = 112


class IpValue(msgspec.Struct, frozen=True):
    """One address; never one with a zone, nor an IPv4 address inside of IPv6."""

    address: Address

    cel_type: ClassVar[str] = IP.name

    def __str__(self) -> str:
        return str(self.address)

    def equals(self, other: object) -> bool:
        """Whether both are the same address."""
        if not isinstance(other, IpValue):
            raise no_such_overload()
        return self.address == other.address


def parse_address(text: str) -> Address:
    """Read an address; raises `CelError`."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise CelError(
            f"IP Address {text[:64]!r} parse error during conversion from string"
        ) from None
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            raise CelError(f"IP address {text[:64]!r} with zone value is not allowed")
        if address.ipv4_mapped is not None:
            raise CelError(f"IPv4-mapped IPv6 address {text[:64]!r} is not allowed")
    return address


def _ip(text: str) -> IpValue:
    return IpValue(parse_address(text))


def _is_ip(text: str) -> bool:
    try:
        parse_address(text)
    except CelError:
        return False
    return True


def _is_canonical(text: str) -> bool:
    return str(parse_address(text)) == text


def _is_link_local_multicast(ip: IpValue) -> bool:
    if isinstance(ip.address, ipaddress.IPv4Address):
        return ip.address in _LINK_LOCAL_MULTICAST_4
    return int(ip.address) >> _LAST_WORDS & _MULTICAST_SCOPE == _LINK_LOCAL_SCOPE


def _is_global_unicast(ip: IpValue) -> bool:
    address = ip.address
    return not (
        address == _BROADCAST
        or address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
    )


OVERLOADS: tuple[Overload, ...] = (
    function("ip", (STRING,), IP, _ip, cost=cost.scan),
    function("isIP", (STRING,), BOOL, _is_ip, cost=cost.scan),
    function("ip.isCanonical", (STRING,), BOOL, _is_canonical, cost=cost.rewrite),
    method("family", (IP,), INT, lambda ip: ip.address.version),
    method("isUnspecified", (IP,), BOOL, lambda ip: ip.address.is_unspecified),
    method("isLoopback", (IP,), BOOL, lambda ip: ip.address.is_loopback),
    method("isLinkLocalMulticast", (IP,), BOOL, _is_link_local_multicast),
    method("isLinkLocalUnicast", (IP,), BOOL, lambda ip: ip.address.is_link_local),
    method("isGlobalUnicast", (IP,), BOOL, _is_global_unicast),
)

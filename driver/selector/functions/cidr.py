"""CIDR ranges: Kubernetes' library on Go's net/netip."""

import re
from typing import ClassVar

import msgspec

from driver.selector import cost
from driver.selector.cost import Args, traversal
from driver.selector.errors import CelError, no_such_overload
from driver.selector.functions.ip import Address, IpValue, parse_address
from driver.selector.functions.library import Overload, function, method
from driver.selector.types import BOOL, CIDR, INT, IP, STRING
from driver.selector.values import size_of

_LENGTH = re.compile(r"0|[1-9][0-9]{0,2}")


class CidrValue(msgspec.Struct, frozen=True):
    """An address and how many of its bits name the range; the others need not be zero."""

    address: Address
    length: int

    cel_type: ClassVar[str] = CIDR.name

    def __str__(self) -> str:
        return f"{self.address}/{self.length}"

    def equals(self, other: object) -> bool:
        """Whether address and length are the same."""
        if not isinstance(other, CidrValue):
            raise no_such_overload()
        return (self.address, self.length) == (other.address, other.length)

    def holds(self, address: Address) -> bool:
        """Whether the address is in the range; one of the other family never is."""
        if address.version != self.address.version:
            return False
        shift = self.address.max_prefixlen - self.length
        return int(address) >> shift == int(self.address) >> shift


def _parse(text: str) -> CidrValue:
    head, slash, tail = text.rpartition("/")
    try:
        if slash and _LENGTH.fullmatch(tail):
            address = parse_address(head)
            if int(tail) <= address.max_prefixlen:
                return CidrValue(address, int(tail))
    except CelError as error:
        raise CelError(f"network address parse error: {error}") from None
    raise CelError(f"network address parse error: {text[:64]!r} is no CIDR")


def _is_cidr(text: str) -> bool:
    try:
        _parse(text)
    except CelError:
        return False
    return True


def _masked(cidr: CidrValue) -> CidrValue:
    shift = cidr.address.max_prefixlen - cidr.length
    return CidrValue(type(cidr.address)(int(cidr.address) >> shift << shift), cidr.length)


def _contains_ip(cidr: CidrValue, ip: IpValue) -> bool:
    return cidr.holds(ip.address)


def _contains_cidr(cidr: CidrValue, other: CidrValue) -> bool:
    return cidr.length <= other.length and cidr.holds(other.address)


def _bytes(cidr: object) -> int:
    return 4 if isinstance(cidr, CidrValue) and cidr.address.version == 4 else 16  # noqa: PLR2004


def _ip_cost(args: Args) -> int:
    own = traversal(2 * _bytes(args[0]))
    return own + (traversal(size_of(args[1])) if isinstance(args[1], str) else 0)


def _cidr_cost(args: Args) -> int:
    return _ip_cost(args) + traversal(_bytes(args[0])) + 1


OVERLOADS: tuple[Overload, ...] = (
    function("cidr", (STRING,), CIDR, _parse, cost=cost.scan),
    function("isCIDR", (STRING,), BOOL, _is_cidr, cost=cost.scan),
    method("ip", (CIDR,), IP, lambda cidr: IpValue(cidr.address)),
    method("masked", (CIDR,), CIDR, _masked),
    method("prefixLength", (CIDR,), INT, lambda cidr: cidr.length),
    method("containsIP", (CIDR, IP), BOOL, _contains_ip, cost=_ip_cost),
    method(
        "containsIP",
        (CIDR, STRING),
        BOOL,
        lambda cidr, text: cidr.holds(parse_address(text)),
        cost=_ip_cost,
    ),
    method("containsCIDR", (CIDR, CIDR), BOOL, _contains_cidr, cost=_cidr_cost),
    method(
        "containsCIDR",
        (CIDR, STRING),
        BOOL,
        lambda cidr, text: _contains_cidr(cidr, _parse(text)),
        cost=_cidr_cost,
    ),
)

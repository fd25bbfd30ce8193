"""What a claim or a class can say of how its devices are used: the opaque kind `GpuConfig`.

Read strictly and the same everywhere: at admission and again before a claim is prepared. What a
particular device makes of it is not known here.
"""

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from driver.model import quantity
from driver.model.errors import InvalidObjectError
from driver.model.names import DOMAIN
from driver.model.quantity import Quantity
from driver.model.resourceclaim import DeviceAllocationConfiguration

API_VERSION = f"config.{DOMAIN}/v1alpha1"
KIND = "GpuConfig"
# The other kind that is understood for our driver: policies of placement, which only the controller
# reads (`driver.controller.policies`).
POLICY_API_VERSION = f"{DOMAIN}/v1alpha1"
POLICY_KIND = "PlacementPolicy"

_FROM_CLAIM = "FromClaim"
_MIB = 1024 * 1024


class Strategy(StrEnum):
    """How processes share a card."""

    TIME_SLICING = "TimeSlicing"
    MPS = "MPS"


class Interval(StrEnum):
    """How long one process has the card before the next one's turn; the driver knows the times."""

    DEFAULT = "Default"
    SHORT = "Short"
    MEDIUM = "Medium"
    LONG = "Long"


class TimeSlicing(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """Processes take turns."""

    interval: Interval | None = None


class Mps(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Processes run side by side, each within limits; what is not said comes from the share."""

    # Of the card's multiprocessors, in percent.
    active_thread_percentage: int | None = None
    # A quantity, as it was written.
    pinned_device_memory_limit: str | int | None = None

    def memory_limit(self) -> int | None:
        """The limit in bytes."""
        text = self.pinned_device_memory_limit
        return None if text is None else _quantity(text).ceil()


class Sharing(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """How the processes of all claims on a card share it."""

    strategy: Strategy
    time_slicing: TimeSlicing | None = None
    mps: Mps | None = None

    def interval(self) -> Interval:
        """The rhythm of time-slicing."""
        given = self.time_slicing.interval if self.time_slicing else None
        return given or Interval.DEFAULT


class GpuConfig(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """One configuration. Without `sharing` devices are used as they are."""

    api_version: str
    kind: str
    sharing: Sharing | None = None


class _TypeMeta(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""


def decode(parameters: bytes) -> GpuConfig | None:
    """The configuration in these parameters; None for policies of placement.

    Raises `InvalidObjectError` with the path of what is wrong: another kind or version, a field
    that is not known, a value that cannot be.
    """
    try:
        meta = msgspec.json.decode(parameters, type=_TypeMeta)
        if (meta.api_version, meta.kind) == (POLICY_API_VERSION, POLICY_KIND):
            return None
        if (meta.api_version, meta.kind) != (API_VERSION, KIND):
            raise InvalidObjectError(
                f"configuration is of kind {meta.kind[:80]!r} in {meta.api_version[:80]!r}: "
                f"expected {KIND} in {API_VERSION}, or {POLICY_KIND} in {POLICY_API_VERSION}"
            )
        config = msgspec.json.decode(parameters, type=GpuConfig)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidObjectError(f"{KIND} cannot be read: {error}") from error
    if config.sharing is not None:
        _check(config.sharing)
    return config


def sharing_of(
    request: str, configs: Iterable[DeviceAllocationConfiguration], *, driver: str
) -> Sharing | None:
    """How the devices of a request ("gpu", or "gpu/small" with the alternative) are to be shared.

    What the claim says goes before what its class says; of one source the later goes before the
    earlier. A configuration counts for the requests that it names, and for all when it names none.
    The one that decides does so alone: sharing is not put together from several.
    Raises `InvalidObjectError` when any configuration for our driver is wrong, also one that is
    overruled.
    """
    decided: dict[bool, Sharing] = {}
    for entry in configs:
        if entry.opaque is None or entry.opaque.driver != driver:
            continue
        config = decode(bytes(entry.opaque.parameters))
        if config is not None and config.sharing is not None and _names(entry.requests, request):
            decided[entry.source == _FROM_CLAIM] = config.sharing
    return decided.get(True) or decided.get(False)


def _names(requests: tuple[str, ...], request: str) -> bool:
    return not requests or request in requests or request.partition("/")[0] in requests


def _check(sharing: Sharing) -> None:
    slicing, mps = sharing.time_slicing, sharing.mps
    if slicing is not None and sharing.strategy != Strategy.TIME_SLICING:
        raise InvalidObjectError(_misplaced("timeSlicing", sharing.strategy))
    if mps is None:
        return
    if sharing.strategy != Strategy.MPS:
        raise InvalidObjectError(_misplaced("mps", sharing.strategy))
    percentage = mps.active_thread_percentage
    if percentage is not None and not 1 <= percentage <= 100:  # noqa: PLR2004  (per cent)
        raise InvalidObjectError(
            f"sharing.mps.activeThreadPercentage is {percentage}: expected 1 to 100"
        )
    limit = mps.memory_limit()
    if limit is not None and limit < _MIB:
        raise InvalidObjectError(
            f"sharing.mps.pinnedDeviceMemoryLimit is {mps.pinned_device_memory_limit}: expected "
            "at least 1Mi, as in 4Gi"
        )


def _misplaced(field: str, strategy: Strategy) -> str:
    return f"sharing.{field} is set, but sharing.strategy is {strategy}: remove one of them"


def _quantity(value: str | int) -> Quantity:
    try:
        return quantity.parse(str(value))
    except InvalidObjectError as error:
        raise InvalidObjectError(f"sharing.mps.pinnedDeviceMemoryLimit: {error}") from error

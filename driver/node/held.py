"""What claims hold on this node, and when one claim may not have what another holds.

Pure. This is the last line of defence: nothing in Kubernetes itself keeps two claims from being
allocated the same device.
"""

from collections.abc import Iterable
from typing import Literal

import msgspec

from driver.model.quantity import whole
from driver.node.card import ALL_CORES

Phase = Literal["intent", "done"]


class HeldDevice(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One allocation result of ours, with what a container is told of the card.

    The card's facts are kept with the claim, so that its CDI file can be made anew even when the
    card no longer answers.
    """

    # Name of the request, without the subrequest: that is what the kubelet compares with.
    request: str
    pool: str
    device: str
    # Set for a share of a card; without it the claim has the whole card to itself.
    share_id: str | None = None
    # Admin access looks at a card that others hold and takes nothing from it.
    admin_access: bool = False
    # Bytes and hundredths of the card that this result consumes.
    memory: int
    cores: int
    index: int
    uuid: str
    model: str
    # Bytes that are published of the whole card.
    card_memory: int
    # The CDI device of the vendor's own file, which brings device nodes and libraries.
    vendor_device: str | None = None

    def is_whole(self) -> bool:
        """Whether all of the card is this claim's, be it as a share."""
        return self.memory >= self.card_memory and self.cores >= ALL_CORES


class PreparedClaim(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A claim that is prepared here, or is being prepared (`intent`)."""

    uid: str
    namespace: str
    name: str
    phase: Phase = "intent"
    # The boot of the machine in which it was prepared. No container survives a reboot, so an entry
    # of an earlier boot holds nothing until it is prepared again.
    boot: str
    devices: tuple[HeldDevice, ...]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name} ({self.uid})"


def conflict(wanted: PreparedClaim, others: Iterable[PreparedClaim]) -> str | None:
    """Why `wanted` may not have its devices beside what `others` hold; None when it may.

    Entries of `wanted` itself and of earlier boots do not count.
    """
    rivals = [other for other in others if other.uid != wanted.uid and other.boot == wanted.boot]
    names = {device.device for device in _takes(wanted)}
    return next(filter(None, (_clash(name, wanted, rivals) for name in sorted(names))), None)


def _takes(claim: PreparedClaim) -> tuple[HeldDevice, ...]:
    return tuple(device for device in claim.devices if not device.admin_access)


def _clash(name: str, wanted: PreparedClaim, rivals: list[PreparedClaim]) -> str | None:
    ours = [device for device in _takes(wanted) if device.device == name]
    theirs = [(rival, d) for rival in rivals for d in _takes(rival) if d.device == name]
    holders = ", ".join(sorted({str(rival) for rival, _ in theirs}))
    if any(device.share_id is None for device in ours) and (theirs or len(ours) > 1):
        return (
            f"{name} is wanted whole, but held by claim {holders}, which is prepared on this node"
            if theirs
            else f"{name} is allocated whole and more than once to this claim"
        )
    whole_holder = next((str(rival) for rival, d in theirs if d.share_id is None), None)
    if whole_holder is not None:
        return f"{name} is held whole by claim {whole_holder}, which is prepared on this node"
    return _overrun(name, ours, [device for _, device in theirs], holders)


def _overrun(
    name: str, ours: list[HeldDevice], theirs: list[HeldDevice], holders: str
) -> str | None:
    needed, used = sum(d.memory for d in ours), sum(d.memory for d in theirs)
    limit = ours[0].card_memory
    if needed + used > limit:
        return (
            f"{name} has {_size(limit)} of memory, {_size(needed)} are wanted and "
            f"{_size(used)} are held by claim {holders or '(none)'}"
        )
    needed, used = sum(d.cores for d in ours), sum(d.cores for d in theirs)
    if needed + used > ALL_CORES:
        return (
            f"{name} has {ALL_CORES} cores, {needed} are wanted and {used} are held by claim "
            f"{holders or '(none)'}"
        )
    return None


def _size(amount: int) -> str:
    return str(whole(amount, "BinarySI")) if amount else "0"

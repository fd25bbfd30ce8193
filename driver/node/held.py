"""What claims hold on this node, and when one claim may not have what another holds.

Pure. This is the last line of defence: nothing in Kubernetes itself keeps two claims from being
allocated the same device.
"""

from collections.abc import Iterable
from typing import Literal

import msgspec

from driver.model.gpuconfig import Interval, Strategy
from driver.model.quantity import whole
from driver.node.card import ALL_CORES

Phase = Literal["intent", "done"]


class Partition(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Which part of its card a device is, where it is not all of it (MIG)."""

    # UUID of the card.
    parent: str
    # "3g.40gb", and the memory slices from `start` on.
    profile: str
    start: int
    size: int
    # Made for the claim and removed after it; otherwise it was there before, and stays.
    made: bool = False
    # Written before the hardware is told to make it: what then lies in this place is the claim's.
    begun: bool = False

    def overlaps(self, other: "Partition") -> bool:
        """Whether both need some memory slice of the card."""
        return self.start < other.start + other.size and other.start < self.start + self.size


class CardSharing(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How the claim's processes share the card with those of others, as its configuration says."""

    strategy: Strategy
    # Of time-slicing.
    interval: Interval = Interval.DEFAULT
    # Of MPS: limits of this claim in per cent of the threads and in bytes, and the daemon's folder.
    threads: int | None = None
    memory_limit: int | None = None
    daemon: str = ""


class HeldDevice(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One allocation result of ours, with what a container is told of the card.

    The card's facts are kept with the claim, so that its CDI file can be made anew even when the
    card no longer answers.
    """

    # Name of the request, without the subrequest: that is what the kubelet compares with.
    request: str
    pool: str
    device: str
    # Which subrequest it became, where there was a choice.
    subrequest: str = ""
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
    # Where the card is, as the kernel writes it.
    pci_bus_id: str | None = None
    # Bytes that are published of the device.
    card_memory: int
    # The CDI device of the vendor's own file, which brings device nodes and libraries.
    vendor_device: str | None = None
    # Device nodes that a container needs, where the inventory knows them.
    device_nodes: tuple[str, ...] = ()
    # A part of the card; `uuid` is then the part's own, and empty until it is made.
    partition: Partition | None = None
    sharing: CardSharing | None = None
    # A whole card that other claims have in parts at other times (dynamic MIG).
    can_be_cut: bool = False

    def is_whole(self) -> bool:
        """Whether all of the device is this claim's, be it as a share."""
        return self.memory >= self.card_memory and self.cores >= ALL_CORES

    def by_mps(self) -> bool:
        """Whether it is used through an MPS daemon, which keeps its limits."""
        return self.sharing is not None and self.sharing.strategy is Strategy.MPS

    def card(self) -> str:
        """UUID of the card that the device is, or is a part of."""
        return self.partition.parent if self.partition else self.uuid


class Limiter(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """HAMi-core on this host: the folder of the library, and the one of the claim's own state."""

    library: str
    state: str


class Metadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The files by which programs in containers learn of the claim's devices."""

    # On the host.
    folder: str
    # What the pod calls the claim, where the claim was made from the pod's template.
    pod_claim: str = ""


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
    # Entered after the checkpoint was lost because the API server says so. The kubelet may never
    # have had it prepared, and then unprepares nothing.
    found: bool = False
    # What keeps the limits of shares, where something does.
    limiter: Limiter | None = None
    # None: prepared by a version that wrote none.
    metadata: Metadata | None = None

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name} ({self.uid})"


def resumed(wanted: PreparedClaim, held: PreparedClaim | None) -> PreparedClaim:
    """`wanted` with what was done for the same claim before: partitions made or begun.

    What was done in an earlier boot, or for an earlier allocation, does not count.
    """
    if held is None or held.boot != wanted.boot:
        return wanted
    before = {(d.device, d.request): d for d in held.devices if d.partition}
    devices = tuple(_with_partition(d, before.get((d.device, d.request))) for d in wanted.devices)
    return msgspec.structs.replace(wanted, devices=devices)


def _with_partition(wanted: HeldDevice, held: HeldDevice | None) -> HeldDevice:
    if held is None or held.partition is None or wanted.partition is None:
        return wanted
    same = msgspec.structs.replace(held.partition, begun=False) == wanted.partition
    if not same or not held.partition.begun:
        return wanted
    return msgspec.structs.replace(wanted, partition=held.partition, uuid=held.uuid)


def conflict(wanted: PreparedClaim, others: Iterable[PreparedClaim]) -> str | None:
    """Why `wanted` may not have its devices beside what `others` hold; None when it may.

    Entries of `wanted` itself and of earlier boots do not count.
    """
    rivals = [other for other in others if other.uid != wanted.uid and other.boot == wanted.boot]
    cards = sorted({device.index for device in takes(wanted)})
    return next(filter(None, (_clash(index, wanted, rivals) for index in cards)), None)


def takes(claim: PreparedClaim) -> tuple[HeldDevice, ...]:
    """The devices that the claim takes from others: all but those that it only looks at."""
    return tuple(device for device in claim.devices if not device.admin_access)


def _clash(index: int, wanted: PreparedClaim, rivals: list[PreparedClaim]) -> str | None:
    ours = [device for device in takes(wanted) if device.index == index]
    theirs = [(rival, d) for rival in rivals for d in takes(rival) if d.index == index]
    if any(device.partition for device in (*ours, *(d for _, d in theirs))):
        return _overlap(ours, theirs)
    name = ours[0].device
    if any(device.share_id is None for device in ours) and (theirs or len(ours) > 1):
        return (
            f"{name} is wanted whole, but held by claim {_names(theirs)}, which is prepared on "
            "this node"
            if theirs
            else f"{name} is allocated whole and more than once to this claim"
        )
    whole_holder = next((str(rival) for rival, d in theirs if d.share_id is None), None)
    if whole_holder is not None:
        return f"{name} is held whole by claim {whole_holder}, which is prepared on this node"
    return _overrun(name, ours, theirs)


def _overlap(ours: list[HeldDevice], theirs: list[tuple[PreparedClaim, HeldDevice]]) -> str | None:
    """Why a card that is cut up cannot give these parts beside the others."""
    for position, device in enumerate(ours):
        for other in ours[position + 1 :]:
            if _collide(device, other):
                return f"{device.device} and {other.device} of this claim need the same part"
        for rival, other in theirs:
            if _collide(device, other):
                return (
                    f"{device.device} needs what {other.device} is made of, which is held by claim "
                    f"{rival}, which is prepared on this node"
                )
    return None


def _collide(left: HeldDevice, right: HeldDevice) -> bool:
    if left.partition is None or right.partition is None:
        return True
    return left.partition.overlaps(right.partition)


def _overrun(
    name: str, ours: list[HeldDevice], theirs: list[tuple[PreparedClaim, HeldDevice]]
) -> str | None:
    needed, used = sum(d.memory for d in ours), sum(d.memory for _, d in theirs)
    limit = ours[0].card_memory
    if needed + used > limit:
        return (
            f"{name} has {_size(limit)} of memory, {_size(needed)} are wanted and "
            f"{_size(used)} are held by claim {_names(theirs)}"
        )
    needed, used = sum(d.cores for d in ours), sum(d.cores for _, d in theirs)
    if needed + used > ALL_CORES:
        return (
            f"{name} has {ALL_CORES} cores, {needed} are wanted and {used} are held by claim "
            f"{_names(theirs)}"
        )
    return None


def _names(theirs: list[tuple[PreparedClaim, HeldDevice]]) -> str:
    """Who holds it; worked out only where somebody is told."""
    return ", ".join(sorted({str(rival) for rival, _ in theirs})) or "(none)"


def _size(amount: int) -> str:
    return str(whole(amount, "BinarySI")) if amount else "0"

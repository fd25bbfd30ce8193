"""What a claim's configuration means for the devices that it got, and what it may not mean.

Pure. A card is used in one way at a time: what claims on it say of it must agree.
"""

import hashlib
from collections.abc import Iterable

from msgspec import structs

from driver.model.errors import InvalidObjectError
from driver.model.gpuconfig import Interval, Mps, Sharing, Strategy
from driver.model.quantity import whole
from driver.node.card import ALL_CORES
from driver.node.held import CardSharing, HeldDevice, PreparedClaim, takes

_NAME_LENGTH = 12


def card_sharing(asked: Sharing | None, device: HeldDevice) -> CardSharing | None:
    """How this device is shared when its claim asks for `asked`; None: as the device is.

    Raises `InvalidObjectError` for what this device cannot do, or the claim has no right to.
    """
    if asked is None or device.admin_access:
        return None
    if device.partition is not None:
        raise InvalidObjectError(
            f"sharing.strategy is {asked.strategy}, but {device.device} is a MIG partition, which "
            "its claim has to itself: leave sharing out, or ask for shares of whole cards"
        )
    if asked.strategy is Strategy.TIME_SLICING:
        return CardSharing(strategy=asked.strategy, interval=asked.interval())
    mps = asked.mps or Mps()
    return CardSharing(
        strategy=asked.strategy, threads=_threads(mps, device), memory_limit=_memory(mps, device)
    )


def with_daemon(claim: PreparedClaim, folder: str) -> PreparedClaim:
    """The claim with the folder of the MPS daemon that serves its cards, one for all of them.

    A process talks to one daemon, so a claim's cards have a daemon together. `folder` is the one
    that all daemons' folders are in. Raises `InvalidObjectError` when there is none.
    """
    cards = daemon_cards(claim)
    if not cards:
        return claim
    if not folder:
        raise InvalidObjectError(
            "sharing.strategy is MPS, but MPS is not set up on this node: install the chart with "
            "node.mps.enabled=true"
        )
    daemon = f"{folder}/{daemon_name(cards)}"
    return structs.replace(
        claim,
        devices=tuple(
            structs.replace(d, sharing=structs.replace(d.sharing, daemon=daemon))
            if d.sharing is not None and d.by_mps()
            else d
            for d in claim.devices
        ),
    )


def daemon_cards(claim: PreparedClaim) -> tuple[str, ...]:
    """UUIDs of the cards that the claim uses through MPS, in the order of their index."""
    devices = sorted((d for d in takes(claim) if d.by_mps()), key=lambda device: device.index)
    return tuple(dict.fromkeys(device.uuid for device in devices))


def daemon_name(cards: Iterable[str]) -> str:
    """What the daemon for these cards is called; short, as its sockets lie in such a folder."""
    return hashlib.sha256(" ".join(cards).encode()).hexdigest()[:_NAME_LENGTH]


def disagreement(wanted: PreparedClaim, others: Iterable[PreparedClaim]) -> str | None:
    """Why `wanted` may not use its cards as it says beside what `others` say; None when it may.

    Its own requests must agree as well. Who says nothing of time slices takes them as they are.
    """
    rivals = [other for other in others if other.uid != wanted.uid and other.boot == wanted.boot]
    theirs = [(other, device) for other in (wanted, *rivals) for device in takes(other)]
    pairs = (
        (ours, other, device)
        for ours in takes(wanted)
        for other, device in theirs
        if device.index == ours.index
    )
    return next(filter(None, (_differ(wanted, *pair) for pair in pairs)), None)


def slices_time(claim: PreparedClaim, card: str) -> Interval | None:
    """The rhythm that the claim asks for on a card; None when it asks for none."""
    found = (
        d.sharing.interval
        for d in takes(claim)
        if d.sharing is not None and not d.by_mps() and d.card() == card
    )
    return next(found, None)


def _differ(
    wanted: PreparedClaim, ours: HeldDevice, other: PreparedClaim, theirs: HeldDevice
) -> str | None:
    here, there = ours.sharing, theirs.sharing
    by_mps = [ours.by_mps(), theirs.by_mps()]
    if any(by_mps) and not all(by_mps):
        ways = ["through MPS" if mps else "without MPS" for mps in by_mps]
        return (
            f"{ours.device} is wanted {ways[0]}, and claim {other} uses it {ways[1]}: a card is "
            "used in one way at a time"
        )
    if all(by_mps) and daemon_cards(wanted) != daemon_cards(other):
        return (
            f"{ours.device} is wanted through MPS together with other cards than claim {other} "
            "uses it with: all claims on a card must have the same cards"
        )
    if here is not None and there is not None and here.interval != there.interval:
        return (
            f"{ours.device} is wanted with the time slice {here.interval}, and claim {other} has "
            f"set it to {there.interval}: a card has one for all"
        )
    return None


def _threads(mps: Mps, device: HeldDevice) -> int | None:
    # No cores at all means no part of them, not none to run on (docs/hami.md).
    part = device.cores if 0 < device.cores < ALL_CORES else None
    asked = mps.active_thread_percentage
    if asked is not None and part is not None and asked > part:
        raise InvalidObjectError(
            f"sharing.mps.activeThreadPercentage is {asked}, but the claim has {part} of the "
            f"{ALL_CORES} cores of {device.device}: ask for more cores, or for a lower percentage"
        )
    return asked if asked is not None else part


def _memory(mps: Mps, device: HeldDevice) -> int | None:
    part = device.memory if device.memory < device.card_memory else None
    asked = mps.memory_limit()
    if asked is not None and asked > device.memory:
        raise InvalidObjectError(
            f"sharing.mps.pinnedDeviceMemoryLimit is {mps.pinned_device_memory_limit}, but the "
            f"claim has {whole(device.memory, 'BinarySI')} of {device.device}: ask for more "
            "memory, or for a lower limit"
        )
    return asked if asked is not None else part

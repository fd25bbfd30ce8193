"""Parts of a card, made for the claims that have them and removed after them (dynamic MIG).

What is ours is known at every moment: the checkpoint says which part a claim has begun before it
is made, and a file of its own bears witness to every one that was made. Parts that somebody else
has made are never touched.
"""

import asyncio
from collections.abc import Awaitable, Callable, Container, Iterable

import structlog
from msgspec import structs

from driver.node.errors import CardFailedError, HardwareError
from driver.node.faults import FaultPoint, Reach, pass_by
from driver.node.held import HeldDevice, Partition, PreparedClaim, takes
from driver.node.mig import MigInstance
from driver.node.sharing.port import CardControl
from driver.node.sharing.witness import MadePart, Witness

# Writes the claim as it is now into the checkpoint, durable.
Note = Callable[[PreparedClaim], Awaitable[None]]

log = structlog.get_logger(__name__)


def made_parts(claim: PreparedClaim, card: str) -> list[HeldDevice]:
    """The parts of a card that are made for this claim."""
    return [d for d in takes(claim) if d.partition and d.partition.made and d.card() == card]


class Parts:
    """Makes and removes parts; the caller holds the card's lock."""

    def __init__(self, control: CardControl, witness: Witness, *, reach: Reach = pass_by) -> None:
        self._control = control
        self._witness = witness
        self._reach = reach

    async def make(self, claim: PreparedClaim, card: str, note: Note) -> PreparedClaim:
        """Have all parts of the card there that the claim holds; the claim, with their UUIDs.

        Raises `HardwareError` when something is in the way, or the card does not do it.
        """
        there = await asyncio.to_thread(self._ready, card)
        for device in made_parts(claim, card):
            claim, found = await self._one(claim, device, there, note)
            there = (*there, found)
        return claim

    async def remove(self, claim: PreparedClaim, card: str) -> None:
        """Have none of the card's parts there that were made, or begun, for the claim.

        On a card that has failed they stay, and are nobody's until `clear` can remove them.
        """
        for device in made_parts(claim, card):
            await asyncio.to_thread(self._let_go, device)

    async def join(self, card: str) -> None:
        """Have the card whole; raises `HardwareError` when parts of it are there."""
        await asyncio.to_thread(self._join, card)

    def clear(self, claims: Iterable[PreparedClaim], card: str | None = None) -> None:
        """Remove the parts, of one card or of all, that were made here and that no claim has.

        One that cannot be removed, being in use still, stays and is logged.
        """
        devices = [device for claim in claims for device in claim.devices if device.partition]
        held = {device.uuid for device in devices}
        places = {_made_as(_place(device)) for device in devices}
        for uuid, part in self._witness.parts().items():
            if uuid not in held and part not in places and card in (None, part.card):
                self._clear(part.card, uuid)

    def _clear(self, card: str, uuid: str) -> None:
        try:
            self._control.destroy_instance(card, uuid)
        except HardwareError as error:
            log.warning("partition that no claim has not removed", error=str(error))
            return
        self._witness.forget(uuid)
        log.info("removed a partition that no claim has", card=card, partition=uuid)

    async def _one(
        self, claim: PreparedClaim, device: HeldDevice, there: tuple[MigInstance, ...], note: Note
    ) -> tuple[PreparedClaim, MigInstance]:
        made = [uuid for uuid, part in self._witness.parts().items() if not part.left]
        found = _own(device, there, made)
        if found is None:
            _require_room(device, there)
        if found is None or not _place(device).begun:
            claim = _with(claim, device, uuid="")
            await note(claim)
            self._reach(FaultPoint.PART_BEGUN)
        if found is None:
            found = await asyncio.to_thread(self._create, device)
        await asyncio.to_thread(self._witness.note, device.card(), found)
        return _with(claim, device, uuid=found.uuid), found

    def _ready(self, card: str) -> tuple[MigInstance, ...]:
        if not self._control.mig_enabled(card):
            self._control.set_mig(card, enabled=True)
        return self._control.instances(card)

    def _create(self, device: HeldDevice) -> MigInstance:
        place = _place(device)
        made = self._control.create_instance(place.parent, place.profile, place.start)
        self._reach(FaultPoint.PART_MADE)
        return made

    def _let_go(self, device: HeldDevice) -> None:
        try:
            self._remove(device)
        except CardFailedError as error:
            # It must not keep the pod from ending.
            made = _made_as(_place(device))
            for uuid, part in self._witness.parts().items():
                if part == made:
                    self._witness.leave(uuid, part)
            log.warning("partition left on a card that has failed", error=str(error))

    def _remove(self, device: HeldDevice) -> None:
        place = _place(device)
        if not place.begun or not self._control.mig_enabled(place.parent):
            return
        found = _own(device, self._control.instances(place.parent), ())
        if found is not None:
            self._control.destroy_instance(place.parent, found.uuid)
            self._reach(FaultPoint.PART_REMOVED)
        # It may have gone just before a crash.
        if uuid := found.uuid if found is not None else device.uuid:
            self._witness.forget(uuid)

    def _join(self, card: str) -> None:
        if not self._control.mig_enabled(card):
            return
        there = self._control.instances(card)
        if there:
            names = ", ".join(f"{one.profile} ({one.uuid})" for one in there)
            raise HardwareError(
                f"card {card} is wanted whole, but is cut into {names}, which no claim has: remove "
                "them with nvidia-smi mig, or run the plugin with mig=static"
            )
        self._control.set_mig(card, enabled=False)


def _made_as(place: Partition) -> MadePart:
    return MadePart(place.parent, place.profile, place.start)


def _place(device: HeldDevice) -> Partition:
    if device.partition is None:
        raise HardwareError(f"{device.device} is no part of a card")
    return device.partition


def _own(
    device: HeldDevice, there: Iterable[MigInstance], made: Container[str]
) -> MigInstance | None:
    """The part that was made for this device.

    Its UUID may not have been written down, and all that was known of its claim may be lost: then
    what was made here in this very place is what it had.
    """
    place = _place(device)
    for one in there:
        if (one.profile, one.start) != (place.profile, place.start):
            continue
        if device.uuid in ("", one.uuid) if place.begun else one.uuid in made:
            return one
    return None


def _require_room(device: HeldDevice, there: Iterable[MigInstance]) -> None:
    place = _place(device)
    for one in there:
        if one.start < place.start + place.size and place.start < one.start + one.size:
            raise HardwareError(
                f"{device.device} cannot be made: partition {one.profile} at {one.start} "
                f"({one.uuid}) is in its place, which no claim has and this plugin has not made or "
                "cannot remove: remove it with nvidia-smi mig or reset the card, or run the plugin "
                "with mig=static"
            )


def _with(claim: PreparedClaim, device: HeldDevice, *, uuid: str) -> PreparedClaim:
    partition = structs.replace(_place(device), begun=True)
    changed = structs.replace(device, partition=partition, uuid=uuid)
    # Another request of the claim may look at the same part, and has nothing made for it.
    devices = tuple(
        changed if one.device == device.device and not one.admin_access else one
        for one in claim.devices
    )
    return structs.replace(claim, devices=devices)

"""The card port for cards that are not there: what they are set to is kept on disk.

So a restart of the plugin finds the partitions that its claims have, as with real cards, and
anybody can try every way of sharing without a GPU. Blocking; one file for each card.
"""

import uuid as uuids
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import structs

from driver.model.gpuconfig import Interval
from driver.node.card import Card
from driver.node.errors import HardwareError
from driver.node.files import replace_file
from driver.node.mig import MigInstance, MigProfile
from driver.node.sharing.port import ComputeMode

_NAMESPACE = uuids.uuid5(uuids.NAMESPACE_DNS, "mig.simulated.gpu.quadrant.dev")


class CardState(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a simulated card is set to."""

    # A reboot sets all back.
    boot: str = ""
    interval: Interval = Interval.DEFAULT
    compute_mode: ComputeMode = ComputeMode.DEFAULT
    mig: bool = False
    instances: tuple[MigInstance, ...] = ()


class SimulatedControl:
    """The port over files in one folder, for these cards."""

    def __init__(self, cards: Iterable[Card], folder: Path, *, boot: str) -> None:
        self._cards = {card.uuid: card for card in cards}
        self._folder = folder
        self._boot = boot

    def state(self, uuid: str) -> CardState:
        """What the card is set to."""
        try:
            state = msgspec.json.decode(self._path(uuid).read_bytes(), type=CardState)
        except (FileNotFoundError, msgspec.MsgspecError):
            return CardState(boot=self._boot)
        return state if state.boot == self._boot else CardState(boot=self._boot)

    def set_time_slice(self, uuid: str, interval: Interval) -> None:
        """As the port says."""
        self._change(uuid, interval=interval)

    def set_compute_mode(self, uuid: str, mode: ComputeMode) -> None:
        """As the port says."""
        self._change(uuid, compute_mode=mode)

    def mig_enabled(self, uuid: str) -> bool:
        """As the port says."""
        return self.state(uuid).mig

    def set_mig(self, uuid: str, *, enabled: bool) -> None:
        """As the port says."""
        if self.state(uuid).instances:
            raise HardwareError(f"MIG mode of card {uuid} cannot be changed: it has partitions")
        self._change(uuid, mig=enabled)

    def instances(self, uuid: str) -> tuple[MigInstance, ...]:
        """As the port says."""
        return self.state(uuid).instances

    def create_instance(self, uuid: str, profile: str, start: int) -> MigInstance:
        """As the port says."""
        kind = self._profile(uuid, profile)
        there = self.state(uuid).instances
        end = start + kind.size
        if start not in kind.starts or any(
            one.start < end and start < one.start + one.size for one in there
        ):
            raise HardwareError(f"card {uuid} has no room for {profile} at {start}")
        name = uuids.uuid5(_NAMESPACE, f"{uuid}/{profile}/{start}")
        made = MigInstance(uuid=f"MIG-{name}", profile=profile, start=start, size=kind.size)
        self._change(uuid, instances=(*there, made))
        return made

    def destroy_instance(self, uuid: str, instance: str) -> None:
        """As the port says."""
        there = self.state(uuid).instances
        self._change(uuid, instances=tuple(one for one in there if one.uuid != instance))

    def _profile(self, uuid: str, name: str) -> MigProfile:
        card = self._cards.get(uuid)
        for profile in card.mig.profiles if card and card.mig else ():
            if profile.name == name:
                return profile
        raise HardwareError(f"card {uuid} has no MIG profile {name}")

    def _change(self, uuid: str, **changes: object) -> None:
        state = structs.replace(self.state(uuid), boot=self._boot, **changes)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            replace_file(self._path(uuid), msgspec.json.encode(state))
        except OSError as error:
            raise HardwareError(f"state of simulated card {uuid} not kept: {error}") from error

    def _path(self, uuid: str) -> Path:
        return self._folder / f"{uuid}.json"

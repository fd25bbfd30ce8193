"""The card port for cards that nothing here can set: those of other vendors' inventories."""

from typing import NoReturn

from driver.model.gpuconfig import Interval
from driver.node.errors import HardwareError
from driver.node.mig import MigInstance
from driver.node.sharing.port import ComputeMode


class FixedCards:
    """Refuses every change, in a sentence for the pod that wants it."""

    def __init__(self, inventory: str) -> None:
        self._inventory = inventory

    def set_time_slice(self, uuid: str, interval: Interval) -> None:
        """As the port says."""
        self._refuse(uuid, f"the time slice {interval}")

    def set_compute_mode(self, uuid: str, mode: ComputeMode) -> None:
        """As the port says."""
        self._refuse(uuid, f"the compute mode {mode}")

    def mig_enabled(self, uuid: str) -> bool:  # noqa: ARG002
        """As the port says."""
        return False

    def set_mig(self, uuid: str, *, enabled: bool) -> None:
        """As the port says."""
        if enabled:
            self._refuse(uuid, "MIG mode")

    def instances(self, uuid: str) -> tuple[MigInstance, ...]:  # noqa: ARG002
        """As the port says."""
        return ()

    def create_instance(self, uuid: str, profile: str, start: int) -> NoReturn:
        """As the port says."""
        self._refuse(uuid, f"a part {profile} at {start}")

    def destroy_instance(self, uuid: str, instance: str) -> None:
        """As the port says."""

    def _refuse(self, uuid: str, what: str) -> NoReturn:
        raise HardwareError(
            f"card {uuid} cannot be given {what}: cards of the inventory {self._inventory!r} are "
            "used as they are"
        )

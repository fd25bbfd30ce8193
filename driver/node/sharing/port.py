"""The port through which a card's settings are changed: whatever touches hardware goes through it.

Knows nothing of claims. The real one calls NVML; tests and simulated cards have others.
"""

from enum import StrEnum
from typing import Protocol

from driver.model.gpuconfig import Interval
from driver.node.mig import MigInstance


class ComputeMode(StrEnum):
    """Who may open a context on a card."""

    DEFAULT = "default"
    EXCLUSIVE_PROCESS = "exclusive-process"


class CardControl(Protocol):
    """Changes settings of single cards, by the card's UUID.

    Every call blocks until the hardware has done it, so it is made in a thread; calls about one
    card are made one at a time. All but `create_instance` may be repeated. Each raises
    `HardwareError` with the card and what was wanted when the hardware refuses, and of these
    `CardFailedError` when it will go on refusing until the card is reset.
    """

    def set_time_slice(self, uuid: str, interval: Interval) -> None:
        """Let processes take turns on the card in this rhythm."""
        ...

    def set_compute_mode(self, uuid: str, mode: ComputeMode) -> None:
        """Say who may open contexts on the card."""
        ...

    def mig_enabled(self, uuid: str) -> bool:
        """Whether the card is in MIG mode now."""
        ...

    def set_mig(self, uuid: str, *, enabled: bool) -> None:
        """Have MIG mode on or off now; the card has no partition and no process on it."""
        ...

    def instances(self, uuid: str) -> tuple[MigInstance, ...]:
        """The partitions that the card has now; none when it is not in MIG mode."""
        ...

    def create_instance(self, uuid: str, profile: str, start: int) -> MigInstance:
        """Make a partition of this profile, by its name, from this memory slice on.

        That is a GPU instance and the compute instance that fills it; nothing is left when it
        fails.
        """
        ...

    def destroy_instance(self, uuid: str, instance: str) -> None:
        """Have this partition (by its own UUID) gone; no error when it is."""
        ...

"""What a card is, as its hardware reports it, and the port through which cards are read.

Knows nothing of Kubernetes: `driver.node.device` says what of a card is published.
"""

from typing import Protocol

import msgspec

from driver.node.mig import MigCapability

MIB = 1024 * 1024
# What a card is divided into when its compute power is shared.
ALL_CORES = 100


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU. What the hardware does not tell is None and is left out when published.

    Of a card that does not answer (`lost`) nothing but the index is sure to be known.
    """

    # The same for as long as the machine runs: a card that goes leaves its number unused.
    index: int
    # Empty where the card has never told.
    uuid: str = ""
    product_name: str = ""
    brand: str | None = None
    architecture: str | None = None
    # Bytes, as NVML reports the total: the sum that a workload can be promised. 0: unknown.
    memory: int = 0
    cuda_compute_capability: str | None = None
    driver_version: str | None = None
    cuda_driver_version: str | None = None
    pci_bus_id: str | None = None
    pcie_root: str | None = None
    # Equal for cards that are plugged into one PCIe switch; None: there is none.
    pcie_switch: str | None = None
    numa_node: int | None = None
    # How it reaches the memory of the machine: "HMM", "ATS" or "None".
    addressing_mode: str | None = None
    # Its place on the board, which is not the order of the index.
    module_id: int | None = None
    # Cards of one node with the same group reach each other over NVLink; None: no link.
    nvlink_group: str | None = None
    # How it can be cut into parts; None: it cannot.
    mig: MigCapability | None = None
    # Files of the machine that a container needs to use it, such as /dev/dri/renderD128. Empty:
    # others know (the NVIDIA Container Toolkit).
    device_nodes: tuple[str, ...] = ()
    # Why it does not answer, or not to everything; None: it does.
    lost: str | None = None

    def usable_memory(self) -> int:
        """Bytes that are published: whole mebibytes, the step in which shares are given."""
        return self.memory - self.memory % MIB


class Inventory(Protocol):
    """Where cards come from.

    `cards` may block (the NVML library does), so it is called in a thread. It returns the cards
    in the order of their index, raises `InventoryError` when the hardware cannot be read at all,
    and may be called again at any time.
    """

    def cards(self) -> tuple[Card, ...]:
        """All cards of this node, now."""
        ...

"""The cards that NVIDIA's library tells of: the real bindings on a library of ours."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from driver.node.card import MIB, Card
from driver.node.errors import InventoryError
from driver.node.nvidia.inventory import NvmlInventory
from tests.node.conftest import Boot
from tests.node.nvml import fake

CLIQUE = "4f1e0c5a-2b3d-4e6f-8091-a2b3c4d5e6f7.7"
LOST = "nvmlDeviceGetHandleByIndex: GPU is lost"


def tree(root: Path, addresses: Iterable[str]) -> dict[str, Path]:
    """`/sys` and `/proc/driver/nvidia/gpus` with NVIDIA cards, each on a switch of its own."""
    for number, address in enumerate(addresses):
        ports = f"0000:{number:02x}:01.0/0000:{number:02x}:02.0/0000:{number:02x}:03.0"
        device = root / f"sys/devices/pci0000:{number:02x}/{ports}/{address}"
        device.mkdir(parents=True)
        (device / "vendor").write_text("0x10de\n")
        (device / "class").write_text("0x030200\n")
        (device / "numa_node").write_text(f"{number - 1}\n")
        link = root / "sys/bus/pci/devices" / address
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(device)
        facts = root / "proc" / address / "information"
        facts.parent.mkdir(parents=True)
        facts.write_text(f"Model: \t\t NVIDIA A100-SXM4-40GB\nGPU UUID: \t GPU-at-{address}\n")
    return {"sys": root / "sys", "proc": root / "proc"}


def test_eight_cards_on_a_switch(boot: Boot, tmp_path: Path) -> None:
    """All that a usual training machine tells of its cards."""
    boot("a100x8")
    addresses = [f"0000:{bus}:00.0" for bus in ("07", "0f", "47", "4e", "87", "90", "b7", "bd")]
    found = NvmlInventory(**tree(tmp_path, addresses)).cards()
    assert [card.pci_bus_id for card in found] == addresses
    assert [card.module_id for card in found] == [2, 3, 0, 1, 6, 7, 4, 5]
    assert [card.pcie_root for card in found] == [f"pci0000:{n:02x}" for n in range(8)]
    assert [card.pcie_switch for card in found] == [f"0000:{n:02x}:02.0" for n in range(8)]
    assert [card.numa_node for card in found] == [None, 0, 1, 2, 3, 4, 5, 6]
    assert {card.nvlink_group for card in found} == {"0"}
    first = found[0]
    assert first.mig is not None
    assert [profile.name for profile in first.mig.profiles] == [
        *("1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb", "1g.5gb+me", "1g.10gb")
    ]
    assert not first.mig.enabled
    assert msgspec.structs.replace(first, mig=None, pcie_root=None, pcie_switch=None) == Card(
        index=0,
        uuid="GPU-a1000000-0000-4000-8000-000000000000",
        product_name="NVIDIA A100-SXM4-40GB",
        brand="Nvidia",
        architecture="Ampere",
        memory=40960 * MIB,
        cuda_compute_capability="8.0",
        driver_version="580.95.05",
        cuda_driver_version="13.0",
        pci_bus_id="0000:07:00.0",
        addressing_mode="None",
        module_id=2,
        nvlink_group="0",
    )


def test_what_a_card_does_not_know_is_left_out(boot: Boot) -> None:
    """No NVLink, no MIG, no addressing mode, no place on a board: nothing is made up."""
    boot("t4x4")
    found = NvmlInventory().cards()
    assert [card.index for card in found] == [0, 1, 2, 3]
    for card in found:
        assert (card.lost, card.mig, card.nvlink_group) == (None, None, None)
        assert (card.addressing_mode, card.module_id) == (None, None)
        assert (card.product_name, card.brand) == ("Tesla T4", "Tesla")


def test_a_clique_names_the_group(boot: Boot) -> None:
    """It is the same on all machines of a fabric; the form is that of the node label."""
    boot("h100x2-mig")
    assert {card.nvlink_group for card in NvmlInventory().cards()} == {CLIQUE}


@pytest.mark.parametrize(
    ("fabric", "group"),
    [
        ("0" * 32 + " 0 3", "0"),
        ("4f1e0c5a2b3d4e6f8091a2b3c4d5e6f7 7 2", None),
        ("4f1e0c5a2b3d4e6f8091a2b3c4d5e6f7 7 1", None),
        ("4f1e0c5a2b3d4e6f8091a2b3c4d5e6f7 7 0", "0"),
        ("4f1e0c5a2b3d4e6f8091a2b3c4d5e6f7 7 3 999", None),
    ],
    ids=["fabric of one machine", "in progress", "not started", "not supported", "failed"],
)
def test_a_fabric_counts_once_it_connects(boot: Boot, fabric: str, group: str | None) -> None:
    """Links into switches lead nowhere until the fabric manager has connected them."""
    machine = boot("h100x2-mig")
    text = machine.description.read_text()
    described = text.replace("4f1e0c5a2b3d4e6f8091a2b3c4d5e6f7 7 3", fabric)
    machine.description.write_text(described)
    assert {card.nvlink_group for card in NvmlInventory().cards()} == {group}


def test_a_card_that_fails_is_told_and_the_others_go_on(boot: Boot, tmp_path: Path) -> None:
    """What is known without it: its address, and what the kernel driver remembers."""
    boot("broken")
    addresses = [f"0000:{bus:02x}:00.0" for bus in range(0x1B, 0x1F)]
    found = NvmlInventory(**tree(tmp_path, addresses)).cards()
    assert [card.lost for card in found] == [
        *(None, LOST, None, "nvmlDeviceGetMemoryInfo: Unknown Error")
    ]
    assert [card.nvlink_group for card in found] == ["0", None, "2", "2"]
    assert [card.brand for card in found] == ["Nvidia", None, None, "Nvidia"]
    assert (found[1].uuid, found[1].product_name) == (
        *("GPU-at-0000:1c:00.0", "NVIDIA A100-SXM4-40GB"),
    )
    assert (found[1].pci_bus_id, found[1].pcie_root) == ("0000:1c:00.0", "pci0000:01")
    assert found[1].pcie_switch == "0000:01:02.0"
    assert (found[3].uuid, found[3].memory) == ("GPU-ba000003-0000-4000-8000-000000000003", 0)
    assert found[2].memory == 40960 * MIB


def test_lost_cards_are_found_by_the_addresses_that_are_left(boot: Boot, tmp_path: Path) -> None:
    """In their order; a card's sound device is none, and a UUID that was never told is none."""
    machine = boot("t4x4")
    for card in (1, 2):
        machine.errors(card, {"*": fake.LOST})
    paths = tree(tmp_path, [f"0000:00:{slot:02x}.0" for slot in (0x1E, 0x1D, 0x1B, 0x1C)])
    audio = paths["sys"] / "bus/pci/devices/0000:00:05.0"
    audio.mkdir()
    (audio / "vendor").write_text("0x10de\n")
    (audio / "class").write_text("0x040300\n")
    facts = paths["proc"] / "0000:00:1d.0" / "information"
    facts.write_text(
        "Model: \t\t Tesla T4\nGPU UUID: \t GPU-????????-????-????-????-????????????\n"
    )
    found = NvmlInventory(**paths).cards()
    assert [card.pci_bus_id for card in found] == [
        f"0000:00:{slot:02x}.0" for slot in (0x1B, 0x1C, 0x1D, 0x1E)
    ]
    assert [(card.uuid, card.product_name) for card in found[1:3]] == [
        ("GPU-at-0000:00:1c.0", "NVIDIA A100-SXM4-40GB"),
        ("", "Tesla T4"),
    ]


def test_a_card_of_which_nothing_is_known_has_its_number(boot: Boot, tmp_path: Path) -> None:
    """Nothing is made up either."""
    boot("broken")
    card = NvmlInventory(sys=tmp_path, proc=tmp_path).cards()[1]
    assert msgspec.structs.replace(card, driver_version=None, cuda_driver_version=None) == Card(
        index=1, lost=LOST
    )


@pytest.mark.parametrize(
    ("errors", "lost"),
    [
        ({"nvmlDeviceGetBrand": 999}, None),
        ({"nvmlDeviceGetNvLinkState": 999, "nvmlDeviceGetGpuFabricInfoV": 999}, None),
        ({"nvmlDeviceGetMemoryInfo": 4, "nvmlDeviceGetMaxMigDeviceCount": 4}, None),
        ({"nvmlDeviceGetBrand": 15}, "nvmlDeviceGetBrand: GPU is lost"),
        ({"nvmlDeviceGetModuleId": 16}, "nvmlDeviceGetModuleId: GPU requires restart"),
        ({"nvmlDeviceGetName": 999}, "nvmlDeviceGetName: Unknown Error"),
        ({"nvmlDeviceGetMigMode": 999}, "nvmlDeviceGetMigMode: Unknown Error"),
        ({"nvmlDeviceGetGpuInstanceProfileInfoV": 999}, "profiles: Unknown Error"),
    ],
)
def test_what_a_failure_says_of_a_card(
    boot: Boot, errors: dict[str, int], lost: str | None
) -> None:
    """A fact less is a fact less; a card without name, memory or mode is not to be relied on."""
    machine = boot("h100x2-mig")
    machine.errors(0, errors)
    first, second = NvmlInventory().cards()
    assert (first.lost, second.lost) == (lost, None)
    assert first.uuid == "GPU-b1000000-0000-4000-8000-000000000000"


def test_a_card_answers_again(boot: Boot) -> None:
    """The same inventory, asked later."""
    machine = boot("t4x4")
    inventory = NvmlInventory()
    machine.errors(2, {"*": fake.LOST})
    assert [card.lost for card in inventory.cards()] == [None, None, LOST, None]
    machine.errors(2, {})
    assert [card.lost for card in inventory.cards()] == [None] * 4


@pytest.mark.parametrize("function", ["nvmlInitWithFlags", "nvmlDeviceGetCount_v2"])
def test_a_library_that_fails_as_a_whole(boot: Boot, function: str) -> None:
    """Then nothing is known, and the plugin must not say that the node has no cards."""
    machine = boot("t4x4")
    (machine.state / "errors").write_text(f"{function} 9\n")
    with pytest.raises(InventoryError, match="Driver Not Loaded"):
        NvmlInventory().cards()


def test_without_the_driver_nvml_says_what_to_do() -> None:
    """The usual first mistake: no NVIDIA driver, or its library not given to the plugin."""
    if list(Path("/proc/driver").glob("nvidia")):
        pytest.skip("this machine has an NVIDIA driver")
    script = "from driver.node.nvidia.inventory import NvmlInventory\nNvmlInventory().cards()\n"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert "install the NVIDIA driver" in run.stderr
    assert "or simulate" in run.stderr

"""What is read of real hardware, from made-up trees and from libraries that are not there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from driver.node import nvlink, sysfs
from driver.node.card import MIB, Card
from driver.node.errors import InventoryError
from driver.node.nvlink import SWITCH


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ({0: set(), 1: set()}, {}),
        ({0: {"b"}, 1: {"a"}, 2: set()}, {0: "0", 1: "0"}),
        ({0: {"b"}, 1: {"a"}, 2: {"d"}, 3: {"c"}}, {0: "0", 1: "0", 2: "2", 3: "2"}),
        ({0: {"c"}, 1: {"c"}, 2: {"a", "b"}}, {0: "0", 1: "0", 2: "0"}),
        ({0: {"b"}, 1: {"c"}, 2: {"d"}, 3: {"c"}}, {0: "0", 1: "0", 2: "0", 3: "0"}),
        ({0: {SWITCH}, 1: {SWITCH}, 2: {SWITCH}, 3: set()}, {0: "0", 1: "0", 2: "0"}),
        ({0: {"elsewhere"}, 1: set()}, {0: "0"}),
    ],
    ids=["none", "pair", "two pairs", "star", "chain", "NVSwitch", "end outside the node"],
)
def test_groups_of_linked_cards(ends: dict[int, set[str]], expected: dict[int, str]) -> None:
    """Cards that reach each other share a group; NVSwitch is not "no NVLink"."""
    addresses = dict(enumerate("abcd"))
    assert nvlink.groups({i: frozenset(e) for i, e in ends.items()}, addresses) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("00000000:1B:00.0", "0000:1b:00.0"),
        ("0000:1b:00.0", "0000:1b:00.0"),
        ("00010000:03:00.0", "10000:03:00.0"),
        ("1b:00.0", None),
        ("", None),
    ],
)
def test_pci_addresses_as_linux_writes_them(text: str, expected: str | None) -> None:
    """NVML has eight digits of domain and capitals."""
    assert sysfs.pci_address(text) == expected


def test_root_and_numa_node_from_sysfs(tmp_path: Path) -> None:
    """The root complex is in the path of the device, NUMA -1 means unknown."""
    device = tmp_path / "devices/pci0000:15/0000:15:01.0/0000:1b:00.0"
    device.mkdir(parents=True)
    link = tmp_path / "bus/pci/devices/0000:1b:00.0"
    link.parent.mkdir(parents=True)
    link.symlink_to(device)
    assert sysfs.pcie_root("0000:1b:00.0", tmp_path) == "pci0000:15"
    for text, expected in (("1\n", 1), ("0\n", 0), ("-1\n", None), ("?", None)):
        (device / "numa_node").write_text(text)
        assert sysfs.numa_node("0000:1b:00.0", tmp_path) == expected
    assert sysfs.pcie_root("0000:ff:00.0", tmp_path) is None
    assert sysfs.numa_node("0000:ff:00.0", tmp_path) is None


def test_cards_are_read_through_a_library_like_nvidias(tmp_path: Path) -> None:
    """The real bindings on a library of ours: topology, and what a card does not know."""
    pytest.importorskip("pynvml")
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    library = tmp_path / "libnvidia-ml.so.1"
    source = Path(__file__).parent / "nvml" / "fake.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    script = (
        "import sys, msgspec\n"
        "from driver.node.nvml import NvmlInventory\n"
        "sys.stdout.buffer.write(msgspec.json.encode(NvmlInventory().cards()))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True,
        check=True,
        timeout=60,
    )
    found = msgspec.json.decode(run.stdout, type=tuple[Card, ...])
    assert [card.uuid for card in found] == [f"GPU-{index}" for index in range(5)]
    assert [card.nvlink_group for card in found] == ["0", "0", "2", "2", None]
    assert [card.pci_bus_id for card in found] == [f"0000:{n:02x}:00.0" for n in range(27, 32)]
    assert [card.brand for card in found] == ["Nvidia"] * 4 + [None]
    assert {
        (c.product_name, c.architecture, c.memory, c.cuda_compute_capability) for c in found
    } == {("NVIDIA A100-SXM4-40GB", "Ampere", 40960 * MIB, "8.0")}
    assert {(c.driver_version, c.cuda_driver_version) for c in found} == {("580.95.05", "12.8")}


def test_without_the_driver_nvml_says_what_to_do() -> None:
    """The usual first mistake: no NVIDIA driver, or its library not given to the plugin."""
    pytest.importorskip("pynvml")
    if list(Path("/proc/driver").glob("nvidia")):
        pytest.skip("this machine has an NVIDIA driver")
    from driver.node.nvml import NvmlInventory  # noqa: PLC0415  (an optional dependency)

    with pytest.raises(InventoryError, match=r"install the NVIDIA driver .* or simulate"):
        NvmlInventory().cards()

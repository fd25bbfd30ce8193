"""What Linux knows of cards, from made-up trees."""

from pathlib import Path

import pytest

from driver.node import sysfs


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


@pytest.mark.parametrize(
    ("above", "expected"),
    [
        pytest.param("pci0000:15", None, id="on the root bus"),
        pytest.param("pci0000:15/0000:15:01.0", None, id="on a root port"),
        pytest.param("pci0000:15/0000:15:01.0/0000:16:00.0", None, id="behind a bridge"),
        pytest.param(
            "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:04.0", "0000:16:00.0", id="on a switch"
        ),
        pytest.param(
            "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:04.0/0000:18:00.0/0000:19:10.0",
            "0000:18:00.0",
            id="the nearest of two in a row",
        ),
        pytest.param(
            "pci0000:15/0000:15:05.5/pci10000:00/10000:00:02.0/10000:01:00.0/10000:02:04.0",
            "10000:01:00.0",
            id="below a host bridge that is a device",
        ),
    ],
)
def test_the_switch_above_a_card(tmp_path: Path, above: str, expected: str | None) -> None:
    """Its upstream port: a root port or a bridge by itself is no switch."""
    device = tmp_path / "devices" / above / "0000:1b:00.0"
    device.mkdir(parents=True)
    link = tmp_path / "bus/pci/devices/0000:1b:00.0"
    link.parent.mkdir(parents=True)
    link.symlink_to(device)
    assert sysfs.pcie_switch("0000:1b:00.0", tmp_path) == expected
    assert sysfs.pcie_switch("0000:ff:00.0", tmp_path) is None

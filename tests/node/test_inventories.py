"""Inventories of other packages: the worked example installed, and what is refused."""

import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import msgspec
import pytest

from driver.node.card import MIB, Card
from driver.node.errors import SettingsError
from driver.node.inventories import GROUP, make, numbered
from driver.node.settings import NodeSettings
from driver.node.simulated import SimulatedInventory
from tests.cli.test_scorers import install

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "inventory"
MI300X = 196592 * MIB


def settings(*, simulate: str = "", inventory: str = "") -> NodeSettings:
    """The settings of some node."""
    return NodeSettings(node_name="n1", simulate=simulate, inventory=inventory)


class Tree:
    """A `/sys` of a machine with AMD cards."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("class/drm", "bus/pci/devices", "bus/pci/drivers/amdgpu", "module/amdgpu"):
            (root / folder).mkdir(parents=True)
        (root / "module/amdgpu/version").write_text("6.12.12\n")

    def card(self, address: str, minor: int, *, driver: str = "amdgpu", **files: str) -> None:
        """A card that a driver serves, as `/dev/dri/card<minor>`, with files of this content."""
        device = self.root / f"devices/pci0000:{minor:02x}" / address
        for node in (f"card{minor}", f"renderD{128 + minor}"):
            (device / "drm" / node).mkdir(parents=True)
        (self.root / "bus/pci/devices" / address).symlink_to(device)
        (device / "driver").symlink_to(self.root / "bus/pci/drivers" / driver)
        (device / "numa_node").write_text(f"{minor - 1}\n")
        for name, content in files.items():
            path = device / name.replace("__", "/")
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{content}\n")
        entry = self.root / "class/drm" / f"card{minor}"
        entry.mkdir()
        (entry / "device").symlink_to(device)
        (self.root / "class/drm" / f"card{minor}-DP-1").mkdir()


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Two linked cards in the order opposite to their minors, one that fails, one of another."""
    made = Tree(tmp_path / "sys")
    facts = {
        "mem_info_vram_total": str(MI300X),
        "product_name": "AMD Instinct MI300X OAM",
        "xgmi_hive_info__xgmi_hive_id": "8651",
    }
    made.card("0000:26:00.0", 1, unique_id="b", **facts)
    made.card("0000:05:00.0", 2, unique_id="a", **facts)
    made.card("0000:46:00.0", 0, device="0x74a1")
    made.card("0000:66:00.0", 3, driver="nvidia", mem_info_vram_total="1")
    return made


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """Where the example is installed."""
    folder = tmp_path / "packages"
    folder.mkdir()
    install(EXAMPLE, folder)
    return folder


def run(packages: Path | None, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python in a process of its own, which sees the installed packages."""
    path = os.pathsep.join(str(one) for one in (packages, ROOT) if one)
    return subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def instinct(index: int, uuid: str, address: str, minor: int) -> Card:
    """The card of the tree with this minor."""
    return Card(
        index=index,
        uuid=uuid,
        product_name="AMD Instinct MI300X OAM",
        brand="AMD",
        memory=MI300X,
        driver_version="6.12.12",
        pci_bus_id=address,
        pcie_root=f"pci0000:{minor:02x}",
        numa_node=minor - 1,
        nvlink_group="8651",
        device_nodes=("/dev/kfd", f"/dev/dri/card{minor}", f"/dev/dri/renderD{128 + minor}"),
    )


def test_the_worked_example_reads_a_machine(packages: Path, tree: Tree) -> None:
    """In the order of the addresses; what fails is told, what another driver has is left out."""
    done = run(packages, "-m", "quadrant_amdgpu", str(tree.root))
    first, second, failed = msgspec.json.decode(done.stdout, type=tuple[Card, ...])
    assert first == instinct(0, "GPU-a", "0000:05:00.0", 2)
    assert second == instinct(1, "GPU-b", "0000:26:00.0", 1)
    assert failed == Card(
        index=2,
        product_name="AMD 0x74a1",
        brand="AMD",
        driver_version="6.12.12",
        pci_bus_id="0000:46:00.0",
        pcie_root="pci0000:00",
        device_nodes=("/dev/kfd", "/dev/dri/card0", "/dev/dri/renderD128"),
        lost="mem_info_vram_total cannot be read",
    )


def test_a_tree_that_is_not_there_is_no_machine_without_cards(packages: Path) -> None:
    """A plugin without /sys must not say that the node has no cards."""
    done = run(packages, "-m", "quadrant_amdgpu", "/nonexistent")
    assert done.returncode == 1
    (told,) = done.stderr.splitlines()
    assert told.startswith("/nonexistent/class/drm cannot be read")


def test_the_program_takes_it_by_its_name_once_it_is_installed(packages: Path) -> None:
    """Before the installation nobody knows it, and the known ones are named."""
    script = (
        "from driver.node.inventories import inventory\n"
        "from driver.node.settings import NodeSettings\n"
        "print(type(inventory(NodeSettings(node_name='n1', inventory='amdgpu'))).__name__)\n"
    )
    before = run(None, "-c", script)
    assert "no inventory is called 'amdgpu'; known are nvml, simulated" in before.stderr
    assert run(packages, "-c", script).stdout == "AmdCards\n"


def entry(name: str, value: str) -> EntryPoint:
    """As a package declares it."""
    return EntryPoint(name=name, value=value, group=GROUP)


def test_simulated_cards_need_no_name() -> None:
    """With `simulate` they are meant; another inventory beside it is a mistake."""
    made = make(settings(simulate="2xT4"), [entry("broken", "no_such_module:X")])
    assert isinstance(made, SimulatedInventory)
    assert len(made.cards()) == 2
    settings(simulate="2xT4", inventory="simulated").check()
    with pytest.raises(SettingsError, match=r"simulate is '2xT4', but .* inventory 'nvml'"):
        settings(simulate="2xT4", inventory="nvml").check()


@pytest.mark.parametrize(("simulate", "lost"), [("4xT4", 0), ("", 2)])
def test_cards_that_are_no_longer_told_are_lost_unless_they_never_were(
    tmp_path: Path, simulate: str, lost: int
) -> None:
    """Simulated cards come and go with the settings; real ones are missed."""
    node = NodeSettings(node_name="n1", simulate=simulate, plugins_dir=str(tmp_path))
    Path(node.data_dir()).mkdir()
    counts = []
    for spec in ("4xT4", "2xT4"):
        cards = numbered(node, SimulatedInventory(spec, "n1"), boot="one").cards()
        counts.append((len(cards), sum(card.lost is not None for card in cards)))
    assert counts == [(4, 0), (2 + lost, lost)]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("no_such_module:X", "'other' of no_such_module:X cannot be imported: No module named"),
        ("builtins:str", "'other' of builtins:str is none: builtins:str returned a str; expected"),
        ("builtins:int", "'other' of builtins:int cannot be made: TypeError"),
        ("builtins:nothing", "'other' of builtins:nothing cannot be made: AttributeError"),
    ],
)
def test_a_package_that_brings_none_is_named(value: str, said: str) -> None:
    """With what it points to, and what went wrong."""
    with pytest.raises(SettingsError) as refused:
        make(settings(inventory="other"), [entry("other", value)])
    assert said in str(refused.value)


def test_two_packages_of_one_name_are_refused() -> None:
    """Also where one of them would replace ours; the same twice is found twice."""
    for name in ("a", "nvml"):
        with pytest.raises(SettingsError, match=f"'{name}' comes from two packages"):
            make(settings(inventory="a"), [entry(name, "one:A"), entry(name, "other:A")])
    same = [entry("a", "driver.node.simulated:SimulatedInventory.of")] * 2
    with pytest.raises(SettingsError, match="expected COUNTxMODEL"):
        make(settings(inventory="a"), same)


def test_a_package_that_raises_our_errors_is_passed_on() -> None:
    """Its sentence is for the user already."""
    named = [entry("mine", "driver.node.simulated:SimulatedInventory.of")]
    with pytest.raises(SettingsError, match=r"^cannot simulate ''"):
        make(settings(inventory="mine"), named)

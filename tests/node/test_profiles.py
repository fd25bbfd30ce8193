"""The simulated cards."""

import pytest

from driver.node.card import MIB
from driver.node.errors import SettingsError
from driver.node.simulated import cards, models, profile

CARDS = {
    # Model: product as NVML spells it, MiB as NVML counts, architecture, capability, most cards,
    # cards per PCIe root, NUMA nodes, linked by NVLink.
    "T4": ("Tesla T4", 15360, "Turing", "7.5", 4, 4, 1, False),
    "A10G": ("NVIDIA A10G", 23028, "Ampere", "8.6", 4, 4, 1, False),
    "A100-SXM4-40GB": ("NVIDIA A100-SXM4-40GB", 40960, "Ampere", "8.0", 8, 2, 4, True),
    "A100-SXM4-80GB": ("NVIDIA A100-SXM4-80GB", 81920, "Ampere", "8.0", 8, 2, 4, True),
    "H100-SXM": ("NVIDIA H100 80GB HBM3", 81559, "Hopper", "9.0", 8, 1, 2, True),
    "H200": ("NVIDIA H200", 143771, "Hopper", "9.0", 8, 1, 2, True),
    "L40S": ("NVIDIA L40S", 46068, "Ada Lovelace", "8.9", 8, 2, 2, False),
    "B200": ("NVIDIA B200", 183359, "Blackwell", "10.0", 8, 1, 2, True),
}

# Profile of the smallest and of the largest partition, of each model that has MIG.
PARTITIONS = {
    "A100-SXM4-40GB": ("1g.5gb", "7g.40gb"),
    "A100-SXM4-80GB": ("1g.10gb", "7g.80gb"),
    "H100-SXM": ("1g.10gb", "7g.80gb"),
    "H200": ("1g.18gb", "7g.141gb"),
    "B200": ("1g.23gb", "7g.180gb"),
}


def test_every_profile_is_in_the_table() -> None:
    """A profile without a line above is untested."""
    assert set(models()) == set(CARDS)


@pytest.mark.parametrize("model", CARDS)
def test_a_full_machine_of_each_model(model: str) -> None:
    """Facts, topology and identity of all cards of a machine."""
    product, memory, architecture, capability, count, per_root, numa, linked = CARDS[model]
    found = cards(f"{count}x{model}", "n1")
    assert [card.index for card in found] == list(range(count))
    assert {(c.product_name, c.architecture, c.cuda_compute_capability) for c in found} == {
        (product, architecture, capability)
    }
    assert {card.memory for card in found} == {memory * MIB}
    roots = [card.pcie_root for card in found]
    assert {roots.count(root) for root in roots} == {per_root}
    # Boards with NVSwitch have PCIe switches too, one for the cards of a root.
    switches = {(card.pcie_root, card.pcie_switch) for card in found}
    assert len(switches) == len({*roots})
    assert len({switch for _, switch in switches if switch}) == (len({*roots}) if linked else 0)
    assert len({card.numa_node for card in found}) == numa
    assert {card.nvlink_group for card in found} == ({"0"} if linked else {None})
    assert len({card.uuid for card in found}) == len({card.pci_bus_id for card in found}) == count
    assert len(profile(model).slots) == count


@pytest.mark.parametrize("model", CARDS)
def test_how_a_model_can_be_cut_up(model: str) -> None:
    """Names as NVIDIA's; every partition lies inside the card and is smaller than it."""
    (card,) = cards(f"1x{model}", "n1")
    if card.mig is None:
        assert model not in PARTITIONS
        return
    profiles = card.mig.profiles
    assert (profiles[0].name, profiles[-1].name) == PARTITIONS[model]
    assert all(start + part.size <= 8 for part in profiles for start in part.starts)
    assert all(part.memory <= card.memory * part.size // 8 for part in profiles)
    whole = profiles[-1]
    assert all(part.multiprocessors <= whole.multiprocessors for part in profiles)
    assert 7 * profiles[0].multiprocessors <= whole.multiprocessors
    assert not card.mig.enabled


def test_places_on_the_board_are_each_one_cards() -> None:
    """A model has them for all cards of a machine or for none."""
    for model, row in CARDS.items():
        places = [card.module_id for card in cards(f"{row[4]}x{model}", "n1")]
        assert places == [None] * row[4] or len(set(places)) == row[4]


def test_addresses_are_in_the_order_of_the_index() -> None:
    """The index of a card is its place in PCI order, as NVML counts."""
    for model in models():
        addresses = [slot.pci_bus_id for slot in profile(model).slots]
        assert addresses == sorted(addresses)


def test_cards_depend_on_the_node_and_on_nothing_else() -> None:
    """A restart finds the same cards, another node has others."""
    assert cards("4xT4", "n1") == cards("4xT4", "n1")
    here, there = (cards("4xT4", node) for node in ("n1", "n2"))
    assert not {card.uuid for card in here} & {card.uuid for card in there}
    assert cards("2xT4", "n1") == here[:2]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("4xK80", "known are A100-SXM4-40GB, A100-SXM4-80GB, A10G"),
        ("9xH200", "holds at most 8"),
        ("T4", "COUNTxMODEL"),
        ("0xT4", "COUNTxMODEL"),
        ("4xT4,4xA10G", "COUNTxMODEL"),
        ("4x../T4", "COUNTxMODEL"),
    ],
)
def test_a_wrong_spec_says_what_would_be_right(spec: str, said: str) -> None:
    """Every error names the way out."""
    with pytest.raises(SettingsError, match=said):
        cards(spec, "n1")

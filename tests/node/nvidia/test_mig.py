"""How a card can be cut up, as NVIDIA's library tells it."""

import ctypes
from collections.abc import Callable

import pynvml
import pytest

from driver.node.card import MIB
from driver.node.mig import MigInstance, MigProfile
from driver.node.nvidia.inventory import NvmlInventory
from driver.node.nvidia.library import opened
from tests.node.conftest import Boot

ONE_SLICE, TWO_SLICES, SEVEN_SLICES = 0, 1, 4


def make(profile: int, start: int, size: int, compute: int) -> None:
    """A GPU instance in card 0, with a compute instance in it."""
    with opened():
        card = pynvml.nvmlDeviceGetHandleByIndex(0)
        number = pynvml.nvmlDeviceGetGpuInstanceProfileInfoV(card, profile).id
        place = pynvml.c_nvmlGpuInstancePlacement_t(start, size)
        gpu = pynvml.nvmlDeviceCreateGpuInstanceWithPlacement(card, number, ctypes.byref(place))
        pynvml.nvmlGpuInstanceCreateComputeInstance(gpu, compute)


def test_profiles_with_all_their_places(boot: Boot) -> None:
    """Names without NVML's prefix, memory in bytes, the first slice of every place."""
    boot("h100x2-mig")
    mig = NvmlInventory().cards()[0].mig
    assert mig is not None
    by_name = {profile.name: profile for profile in mig.profiles}
    assert list(by_name) == [
        *("1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb", "1g.10gb+me", "1g.20gb")
    ]
    assert by_name["3g.40gb"] == MigProfile(
        name="3g.40gb",
        size=4,
        starts=(0, 4),
        memory=40448 * MIB,
        multiprocessors=60,
        copy_engines=3,
        decoders=3,
        jpeg_engines=3,
    )
    assert by_name["1g.10gb"].starts == (0, 1, 2, 3, 4, 5, 6)


def test_the_mode_and_the_one_that_waits(boot: Boot) -> None:
    """A card in use keeps its mode until it is reset."""
    machine = boot("h100x2-mig")
    machine.write(1, "busy", "")
    with opened():
        card = pynvml.nvmlDeviceGetHandleByIndex(1)
        assert pynvml.nvmlDeviceSetMigMode(card, 1) == pynvml.NVML_ERROR_IN_USE
    modes = [(card.mig.enabled, card.mig.pending) for card in NvmlInventory().cards() if card.mig]
    assert modes == [(True, True), (False, True)]


def test_partitions_that_are_there(boot: Boot) -> None:
    """Found with UUID, profile and place, whoever made them; none without the mode."""
    boot("h100x2-mig")
    make(TWO_SLICES, 2, 2, TWO_SLICES)
    make(ONE_SLICE, 6, 1, ONE_SLICE)
    first, second = NvmlInventory().cards()
    assert first.mig is not None
    assert second.mig is not None
    found = first.mig.instances
    assert [(one.profile, one.start, one.size) for one in found] == [
        ("2g.20gb", 2, 2),
        ("1g.10gb", 6, 1),
    ]
    assert len({one.uuid for one in found}) == 2
    assert all(one.uuid.startswith("MIG-") for one in found)
    assert second.mig.instances == ()


def test_a_part_of_a_partition_has_its_own_profile(boot: Boot) -> None:
    """Somebody has divided the compute slices of one GPU instance."""
    boot("h100x2-mig")
    make(SEVEN_SLICES, 0, 8, ONE_SLICE)
    mig = NvmlInventory().cards()[0].mig
    assert mig is not None
    (found,) = mig.instances
    assert isinstance(found, MigInstance)
    assert found.profile == "1c.7g.80gb"


def test_a_partition_that_goes_while_it_is_read(
    boot: Boot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no longer there, and the card is well."""
    boot("h100x2-mig")
    make(ONE_SLICE, 6, 1, ONE_SLICE)
    gone: Callable[..., object] = pynvml.nvmlDeviceGetGpuInstanceById

    def vanish(card: object, number: int) -> object:
        return gone(card, number + 1)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetGpuInstanceById", vanish)
    card = NvmlInventory().cards()[0]
    assert card.lost is None
    assert card.mig is not None
    assert card.mig.instances == ()

"""Cards are changed through NVML: partitions, modes, time slices; errors name card and wish."""

import pytest

from driver.model.gpuconfig import Interval
from driver.node.errors import CardFailedError, HardwareError
from driver.node.nvidia.control import NvmlControl
from driver.node.nvidia.inventory import NvmlInventory
from driver.node.sharing.port import ComputeMode
from tests.node.conftest import Boot
from tests.node.nvml import fake

MIG_CARD = "GPU-b1000000-0000-4000-8000-000000000000"
WHOLE_CARD = "GPU-b1000001-0000-4000-8000-000000000001"


def test_partitions_come_and_go(boot: Boot) -> None:
    """What is made is where it was wanted, is seen by discovery, and is gone afterwards."""
    boot("h100x2-mig")
    control = NvmlControl()
    small = control.create_instance(MIG_CARD, "1g.10gb", 6)
    large = control.create_instance(MIG_CARD, "3g.40gb", 0)
    assert [(one.profile, one.start, one.size) for one in (small, large)] == [
        ("1g.10gb", 6, 1),
        ("3g.40gb", 0, 4),
    ]
    assert small.uuid.startswith("MIG-")
    card = NvmlInventory().cards()[0]
    assert card.mig is not None
    assert set(card.mig.instances) == set(control.instances(MIG_CARD)) == {small, large}
    control.destroy_instance(MIG_CARD, small.uuid)
    control.destroy_instance(MIG_CARD, small.uuid)
    assert control.instances(MIG_CARD) == (large,)


@pytest.mark.parametrize(("profile", "start"), [("1g.10gb", 3), ("2g.20gb", 1), ("9g.1tb", 0)])
def test_a_partition_without_room_leaves_nothing(boot: Boot, profile: str, start: int) -> None:
    """Taken places, impossible ones, and profiles that the card does not know."""
    boot("h100x2-mig")
    control = NvmlControl()
    large = control.create_instance(MIG_CARD, "3g.40gb", 0)
    with pytest.raises(HardwareError):
        control.create_instance(MIG_CARD, profile, start)
    assert control.instances(MIG_CARD) == (large,)


def test_a_card_without_mig_mode_cannot_be_cut(boot: Boot) -> None:
    """The sentence has the card and what was wanted of it."""
    boot("h100x2-mig")
    with pytest.raises(HardwareError, match=f"{WHOLE_CARD} cannot be given a partition 1g.10gb at"):
        NvmlControl().create_instance(WHOLE_CARD, "1g.10gb", 0)
    assert NvmlControl().instances(WHOLE_CARD) == ()


def test_half_a_partition_is_made_anew(boot: Boot) -> None:
    """A crash between GPU instance and compute instance leaves one that has no UUID."""
    machine = boot("h100x2-mig")
    machine.write(0, "instances", "gpu 1 0 6 1\n")
    made = NvmlControl().create_instance(MIG_CARD, "1g.10gb", 6)
    assert NvmlControl().instances(MIG_CARD) == (made,)


def test_a_partition_in_use_stays_and_says_so(boot: Boot) -> None:
    """Its program goes on; the next try succeeds."""
    machine = boot("h100x2-mig")
    control = NvmlControl()
    made = control.create_instance(MIG_CARD, "1g.10gb", 0)
    machine.write(0, "busy", "")
    with pytest.raises(HardwareError, match=made.uuid):
        control.destroy_instance(MIG_CARD, made.uuid)
    (machine.state / "card-0" / "busy").unlink()
    control.destroy_instance(MIG_CARD, made.uuid)
    assert control.instances(MIG_CARD) == ()


def test_what_was_on_a_lost_card_is_gone(boot: Boot) -> None:
    """No pod waits for ever to end because its card has failed."""
    machine = boot("h100x2-mig")
    made = NvmlControl().create_instance(MIG_CARD, "1g.10gb", 0)
    machine.errors(0, {"*": fake.LOST})
    NvmlControl().destroy_instance(MIG_CARD, made.uuid)
    assert not NvmlControl().mig_enabled(MIG_CARD)
    assert NvmlControl().instances(MIG_CARD) == ()
    with pytest.raises(HardwareError, match="GPU is lost"):
        NvmlControl().create_instance(MIG_CARD, "1g.10gb", 0)


@pytest.mark.parametrize("code", [fake.RESET_REQUIRED, fake.UNKNOWN])
def test_a_card_that_has_failed_says_what_helps(boot: Boot, code: int) -> None:
    """It still has its partitions, so they are not gone; whoever asks is told not to wait."""
    machine = boot("h100x2-mig")
    made = NvmlControl().create_instance(MIG_CARD, "1g.10gb", 0)
    machine.errors(0, {"*": code})
    for ask in (
        lambda: NvmlControl().mig_enabled(MIG_CARD),
        lambda: NvmlControl().destroy_instance(MIG_CARD, made.uuid),
    ):
        with pytest.raises(CardFailedError, match="reset it"):
            ask()
    machine.errors(0, {})
    assert NvmlControl().instances(MIG_CARD) == (made,)


def test_mig_mode_changes_when_nobody_is_there(boot: Boot) -> None:
    """A program on the card keeps the change waiting; that is told, not hoped away."""
    machine = boot("h100x2-mig")
    control = NvmlControl()
    assert [control.mig_enabled(card) for card in (MIG_CARD, WHOLE_CARD)] == [True, False]
    control.set_mig(WHOLE_CARD, enabled=True)
    assert control.mig_enabled(WHOLE_CARD)
    machine.write(1, "busy", "")
    with pytest.raises(HardwareError, match="MIG mode off only when no program uses it"):
        control.set_mig(WHOLE_CARD, enabled=False)


def test_modes_and_time_slices(boot: Boot) -> None:
    """As they stand on the card afterwards."""
    machine = boot("t4x4")
    uuid = NvmlInventory().cards()[2].uuid
    NvmlControl().set_compute_mode(uuid, ComputeMode.EXCLUSIVE_PROCESS)
    NvmlControl().set_time_slice(uuid, Interval.LONG)
    card = machine.state / "card-2"
    assert (card / "compute-mode").read_text().strip() == "3"
    assert (card / "timeslice").read_text().strip() == "3"
    NvmlControl().set_compute_mode(uuid, ComputeMode.DEFAULT)
    NvmlControl().set_time_slice(uuid, Interval.DEFAULT)
    assert (card / "compute-mode").read_text().strip() == "0"
    assert (card / "timeslice").read_text().strip() == "0"


def test_a_refusal_is_told_in_the_words_of_the_tool(
    boot: Boot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A card that does not exist, and a tool that is not there."""
    boot("t4x4")
    with pytest.raises(HardwareError, match="set-timeslice=1 failed: "):
        NvmlControl().set_time_slice("GPU-none", Interval.SHORT)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(HardwareError, match="No such file"):
        NvmlControl().set_time_slice("GPU-none", Interval.SHORT)

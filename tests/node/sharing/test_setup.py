"""Cards follow the claims that hold them: set up, shared, set back, whatever happens in between."""

import asyncio
import json
from pathlib import Path

import pytest

from driver.model.gpuconfig import Interval
from driver.model.resourceclaim import ResourceClaim
from driver.node.claims import entry
from driver.node.errors import CardFailedError, ClaimRefusedError, HardwareError
from driver.node.mig import MigInstance
from driver.node.sharing.simulated import SimulatedControl
from driver.node.state.checkpoint import drop, put
from tests.node.builders import UIDS, claim, ref, result, slicing
from tests.node.machine import Machine


def sliced(number: int, interval: str = "Long") -> ResourceClaim:
    """A claim with a share and a rhythm."""
    return claim(number, result("gpu-0", memory="1Gi", cores="5"), config=[slicing(interval)])


PARTS = [
    claim(0, result("gpu-3-mig-1g4gb-0")),
    claim(1, result("gpu-3-mig-2g8gb-2")),
    claim(2, result("gpu-3", share="whole")),
    claim(3, result("gpu-3-mig-1g4gb-1"), result("gpu-3-mig-2g8gb-2", "b")),
]


def uuid(node: Machine, name: str) -> str:
    """A card's UUID."""
    return node.facts().cards[name].uuid


def there(node: Machine) -> list[tuple[str, int]]:
    """The parts that the last card has."""
    return sorted((one.profile, one.start) for one in node.control.instances(uuid(node, "gpu-3")))


def interval(node: Machine, name: str = "gpu-0") -> Interval:
    """The rhythm of a card."""
    return node.control.state(uuid(node, name)).interval


def visible(node: Machine, number: int) -> str:
    """What a claim's CDI file makes visible."""
    (path,) = node.cdi.glob(f"*{UIDS[number]}.json")
    lines = [
        line
        for device in json.loads(path.read_bytes())["devices"]
        for line in device["containerEdits"]["env"]
    ]
    (found,) = [line for line in lines if line.startswith("NVIDIA_VISIBLE_DEVICES=")]
    return str(found).partition("=")[2]


async def test_a_part_is_made_for_its_claim_and_removed_after_it(tmp_path: Path) -> None:
    """The container sees the part, and the checkpoint knows it before that."""
    node = Machine(tmp_path, PARTS).start()
    await node.prepare(ref(0))
    await node.prepare(ref(1))
    assert there(node) == [("1g.4gb", 0), ("2g.8gb", 2)]
    (device,) = node.book()[UIDS[0]].devices
    assert device.uuid.startswith("MIG-")
    assert visible(node, 0) == device.uuid
    await node.unprepare(ref(0))
    assert there(node) == [("2g.8gb", 2)]
    await node.unprepare(ref(1))
    assert there(node) == []
    assert list((tmp_path / "mig").iterdir()) == []
    node.stop()


async def test_who_looks_at_the_part_of_its_own_claim_keeps_its_request(tmp_path: Path) -> None:
    """Two results of one device: one has the part, the other only looks."""
    results = (result("gpu-3-mig-1g4gb-0"), result("gpu-3-mig-1g4gb-0", "look", admin=True))
    node = Machine(tmp_path, [claim(0, *results)]).start()
    await node.prepare(ref(0))
    devices = node.book()[UIDS[0]].devices
    assert [(d.request, d.admin_access) for d in devices] == [("gpu", False), ("look", True)]
    await node.unprepare(ref(0))
    assert there(node) == []
    node.stop()


async def test_a_whole_card_is_joined_first(tmp_path: Path) -> None:
    """MIG mode ends when somebody wants the card whole, and comes back with the next part."""
    node = Machine(tmp_path, PARTS).start()
    for number, enabled in ((0, True), (2, False), (1, True)):
        await node.prepare(ref(number))
        assert node.control.mig_enabled(uuid(node, "gpu-3")) == enabled
        await node.unprepare(ref(number))
    node.stop()


@pytest.mark.parametrize(("number", "words"), [(0, "is in its place"), (2, "is wanted whole, but")])
async def test_parts_of_others_are_not_touched(tmp_path: Path, number: int, words: str) -> None:
    """What this plugin has not made is in the way, and the sentence says of what."""
    node = Machine(tmp_path, PARTS).start()
    card = uuid(node, "gpu-3")
    node.control.set_mig(card, enabled=True)
    foreign = node.control.create_instance(card, "1g.4gb", 0)
    for _ in range(2):
        with pytest.raises(HardwareError, match=words):
            await node.prepare(ref(number))
    node.stop()
    node.start()
    assert node.control.instances(card) == (foreign,)
    await node.unprepare(ref(number))
    assert node.control.instances(card) == (foreign,)
    assert node.book() == {}
    node.stop()


async def test_a_part_that_somebody_has_removed_is_made_again(tmp_path: Path) -> None:
    """The kubelet asks again after a restart; the claim gets what it was promised."""
    node = Machine(tmp_path, PARTS).start()
    await node.prepare(ref(0))
    (part,) = node.control.instances(uuid(node, "gpu-3"))
    node.control.destroy_instance(uuid(node, "gpu-3"), part.uuid)
    await node.prepare(ref(0))
    assert there(node) == [("1g.4gb", 0)]
    await node.unprepare(ref(0))
    node.stop()


async def forgotten(folder: Path) -> Machine:
    """Two parts are there whose claims nothing knows: checkpoint and CDI files are lost."""
    node = Machine(folder, PARTS).start()
    await node.prepare(ref(0))
    await node.prepare(ref(1))
    node.stop()
    for path in (node.journal, *node.cdi.iterdir()):
        path.unlink()
    return node.start()


async def test_parts_are_left_until_it_is_known_whose_they_are(tmp_path: Path) -> None:
    """The API says which claims there are; then what was made here and nobody has is removed."""
    node = await forgotten(tmp_path)
    assert there(node) == [("1g.4gb", 0), ("2g.8gb", 2)]
    # As `driver.node.state.adopt` enters what the API knows.
    found = entry(ref(0), PARTS[0], node.facts())
    node.store.locked(lambda _book: put(found))
    node.store.settle()
    node.stop()
    node.start()
    assert there(node) == [("1g.4gb", 0)]
    await node.unprepare(ref(0))
    node.stop()
    node.start()
    assert there(node) == []
    node.stop()


@pytest.mark.parametrize("number", [0, 1, 2, 3])
async def test_what_nobody_has_is_not_in_the_way(tmp_path: Path, number: int) -> None:
    """Neither of a claim that wants the same part, nor of one that wants the card whole."""
    node = await forgotten(tmp_path)
    await node.prepare(ref(number))
    await node.unprepare(ref(number))
    assert there(node) == []
    assert list((tmp_path / "mig").iterdir()) == []
    node.stop()


async def test_after_a_reboot_what_is_there_is_somebody_elses(tmp_path: Path) -> None:
    """Parts do not survive it, and one with the same UUID was made by another."""
    node = Machine(tmp_path, PARTS).start()
    await node.prepare(ref(0))
    (before,) = node.control.instances(uuid(node, "gpu-3"))
    node.reboot()
    card = uuid(node, "gpu-3")
    node.control.set_mig(card, enabled=True)
    assert node.control.create_instance(card, "1g.4gb", 0) == before
    node.stop()
    node.start()
    assert there(node) == [("1g.4gb", 0)]
    await node.unprepare(ref(0))
    assert there(node) == [("1g.4gb", 0)]
    node.stop()


async def test_a_part_in_use_keeps_its_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else gets it; the kubelet's next try removes it."""
    node = Machine(tmp_path, PARTS).start()
    await node.prepare(ref(0))

    def busy(_self: SimulatedControl, _card: str, part: str) -> None:
        raise HardwareError(f"{part} is in use")

    with monkeypatch.context() as patch:
        patch.setattr(SimulatedControl, "destroy_instance", busy)
        with pytest.raises(HardwareError, match="is in use"):
            await node.unprepare(ref(0))
        assert set(node.book()) == {UIDS[0]}
        assert node.cdi_files() == set()
    await node.unprepare(ref(0))
    assert (node.book(), there(node)) == ({}, [])
    node.stop()


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_card_that_has_failed_lets_its_claim_go(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    restarts: bool,
) -> None:
    """The part that stays is given to nobody, and removed as soon as the card does it."""
    node = Machine(tmp_path, [*PARTS[:2], claim(2, result("gpu-3-mig-1g4gb-0"))]).start()
    await node.prepare(ref(0))

    def failed(_self: SimulatedControl, _card: str, part: str) -> None:
        raise CardFailedError(f"{part}: reset required")

    with monkeypatch.context() as patch:
        patch.setattr(SimulatedControl, "destroy_instance", failed)
        for _ in range(2):
            await node.unprepare(ref(0))
        assert (node.book(), there(node)) == ({}, [("1g.4gb", 0)])
        if restarts:
            node.stop()
            node.start()
        with pytest.raises(HardwareError, match="is in its place"):
            await node.prepare(ref(2))
        await node.unprepare(ref(2))
        await node.prepare(ref(1))
    if restarts:
        node.stop()
        node.start()
        assert there(node) == [("2g.8gb", 2)]
    await node.prepare(ref(2))
    for number in (1, 2):
        await node.unprepare(ref(number))
    assert there(node) == []
    assert list((tmp_path / "mig").iterdir()) == []
    node.stop()


async def test_of_two_parts_the_first_goes_when_the_second_cannot_be_made(tmp_path: Path) -> None:
    """The claim stays reserved, and unprepare leaves nothing of it."""
    node = Machine(tmp_path, PARTS).start()
    card = uuid(node, "gpu-3")
    node.control.set_mig(card, enabled=True)
    foreign = node.control.create_instance(card, "1g.4gb", 3)
    with pytest.raises(HardwareError, match="is in its place"):
        await node.prepare(ref(3))
    assert there(node) == [("1g.4gb", 1), ("1g.4gb", 3)]
    await node.unprepare(ref(3))
    assert node.control.instances(card) == (foreign,)
    node.stop()


async def test_time_slices_are_those_of_the_claims(tmp_path: Path) -> None:
    """Set by the first, kept while one has it, set back by the last; others wait."""
    node = Machine(tmp_path, [sliced(0), sliced(1), sliced(2, "Short")]).start()
    await node.prepare(ref(0))
    await node.prepare(ref(1))
    assert interval(node) is Interval.LONG
    with pytest.raises(ClaimRefusedError, match="a card has one for all"):
        await node.prepare(ref(2))
    await node.unprepare(ref(0))
    assert interval(node) is Interval.LONG
    await node.unprepare(ref(1))
    assert interval(node) is Interval.DEFAULT
    await node.prepare(ref(2))
    assert interval(node) is Interval.SHORT
    node.stop()


async def test_a_claim_allocated_anew_leaves_nothing_on_its_old_cards(tmp_path: Path) -> None:
    """Under the same UID and without an unprepare: neither a rhythm nor a part stays."""
    node = Machine(tmp_path, [sliced(0), PARTS[1]]).start()
    for number in range(2):
        await node.prepare(ref(number))
        node.claims[f"claim-{number}"] = claim(number, result("gpu-1", memory="1Gi", cores="5"))
        await node.prepare(ref(number))
        assert node.settings() == {}
    node.stop()


async def test_of_claims_that_leave_together_the_last_one_sets_back(tmp_path: Path) -> None:
    """In two instances: the second waits until the first has left the checkpoint."""
    claims = [sliced(number) for number in range(3)]
    node, other = Machine(tmp_path, claims).start(), Machine(tmp_path, claims).start()
    for number in range(3):
        await node.prepare(ref(number))
    async with node.setup.set_back(node.book()[UIDS[0]]):
        leaving = [asyncio.ensure_future(one.unprepare(ref(1))) for one in (node, other)]
        leaving.append(asyncio.ensure_future(other.unprepare(ref(2))))
        await asyncio.wait(leaving, timeout=0.1)
        assert interval(node) is Interval.LONG
        await node.store.apply(lambda _: drop(UIDS[0]))
    await asyncio.gather(*leaving)
    assert interval(node) is Interval.DEFAULT
    node.stop()
    other.stop()


async def test_a_card_that_fails_does_not_keep_a_pod(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time slice cannot be set back; the next claim on it sets it anyway."""
    node = Machine(tmp_path, [sliced(0)]).start()
    await node.prepare(ref(0))

    def fails(_self: SimulatedControl, _card: str, _interval: Interval) -> None:
        raise HardwareError("the card is lost")

    monkeypatch.setattr(SimulatedControl, "set_time_slice", fails)
    await node.unprepare(ref(0))
    assert node.book() == {}
    with pytest.raises(HardwareError):
        await node.prepare(ref(0))
    node.stop()


async def test_the_state_of_simulated_cards_is_that_of_real_ones(tmp_path: Path) -> None:
    """It survives the process, not the reboot; nothing is made where something is."""
    node = Machine(tmp_path, PARTS).start()
    card = uuid(node, "gpu-3")
    node.control.set_mig(card, enabled=True)
    made = node.control.create_instance(card, "2g.8gb", 2)
    assert made == MigInstance(uuid=made.uuid, profile="2g.8gb", start=2, size=2)
    for profile, start in (("1g.4gb", 3), ("2g.8gb", 1), ("9g.9gb", 0), ("4g.16gb", 0)):
        with pytest.raises(HardwareError):
            node.control.create_instance(card, profile, start)
    with pytest.raises(HardwareError, match="has partitions"):
        node.control.set_mig(card, enabled=False)
    node.stop()
    node.start()
    assert node.control.instances(card) == (made,)
    node.reboot()
    assert node.control.instances(card) == ()
    assert not node.control.mig_enabled(card)
    node.stop()

"""Parts of cards: what is offered, under which names, and what is published of them."""

import re

import pytest
from msgspec import structs

from driver.model.resourceslice import Device
from driver.node.card import Card
from driver.node.claims import entry
from driver.node.errors import ClaimRefusedError
from driver.node.held import Partition
from driver.node.mig import MigInstance, MigProfile
from driver.node.sharing.offered import ADVISORY, BY_HAMI_CORE, cards_by_name, offered
from driver.node.sharing.partitions import MigMode, Offer, offers, part
from driver.node.simulated import cards
from driver.node.slices import counter_sets, pool
from tests.node.builders import DRIVER, NODE, claim, facts, held, prepared, ref, result

# Of devices with counters (k8s.io/api/resource/v1).
MOST_ATTRIBUTES_AND_CAPACITIES = 32
MOST_COUNTERS = 32
MODELS = ["A100-SXM4-40GB", "A100-SXM4-80GB", "H100-SXM", "H200", "B200"]
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def card(model: str = "H100-SXM", **mig: object) -> Card:
    """A simulated card; `mig` is what its MIG state has in place of the usual."""
    (found,) = cards(f"1x{model}", NODE)
    assert found.mig is not None
    return structs.replace(found, mig=structs.replace(found.mig, **mig))


def instance(profile: str = "1g.10gb", start: int = 0, size: int = 1) -> MigInstance:
    """A partition that is there."""
    return MigInstance(uuid=f"MIG-{profile}-{start}", profile=profile, start=start, size=size)


def devices(*found: Card, mig: MigMode = MigMode.DYNAMIC) -> dict[str, Device]:
    """What is published of these cards, by name."""
    shown = offered(found, mig=mig, shareable=True).devices(counters=True)
    return {device.name: device for device in shown}


@pytest.mark.parametrize(
    ("profile", "label"),
    [
        ("1g.10gb", "1g10gb"),
        ("1g.10gb+me", "1g10gb-me"),
        ("1g.24gb-me", "1g24gb-no-me"),
        ("1g.24gb+me.all", "1g24gb-me-all"),
        ("1g.24gb+gfx", "1g24gb-gfx"),
    ],
)
def test_names_are_dns_labels_and_tell_the_place(profile: str, label: str) -> None:
    """Profiles that differ in a sign only have names that differ."""
    kind = MigProfile(name=profile, size=1, starts=(3,), memory=1, multiprocessors=1)
    assert Offer(card=card(), profile=kind, start=3).name() == f"gpu-0-mig-{label}-3"


@pytest.mark.parametrize("model", MODELS)
def test_what_is_published_is_within_the_apis_limits(model: str) -> None:
    """Of every card that can be cut up; names are labels, and no two are the same."""
    found = cards(f"8x{model}", NODE)
    shown = devices(*found)
    for name, device in shown.items():
        assert LABEL.fullmatch(name)
        assert len(device.attributes) + len(device.capacity) <= MOST_ATTRIBUTES_AND_CAPACITIES
        assert len(device.consumes_counters) == 1
    assert len(shown) == 8 + sum(len(offers(one, MigMode.DYNAMIC)) for one in found)
    sets = counter_sets(shown.values())
    assert [one.name for one in sets] == [f"gpu-{index}-counter-set" for index in range(8)]
    assert all(len(one.counters) <= MOST_COUNTERS for one in sets)
    made = pool(list(shown.values()), driver=DRIVER, node=NODE)
    assert all(len(one.devices) <= 64 and len(one.counters) <= 8 for one in made.slices)
    assert not any(one.devices and one.counters for one in made.slices)


@pytest.mark.parametrize("model", MODELS)
def test_a_whole_card_leaves_nothing_and_no_part_takes_more(model: str) -> None:
    """And what a machine can hold at once fits: seven of the smallest, or two halves."""
    shown = devices(card(model))
    (counters,) = counter_sets(shown.values())
    total = {name: counter.value for name, counter in counters.counters.items()}
    (whole,) = shown["gpu-0"].consumes_counters
    assert {name: counter.value for name, counter in whole.counters.items()} == total
    smallest = [d for n, d in shown.items() if re.fullmatch(r"gpu-0-mig-1g\d+gb-\d", n)]
    ones = [d for d in smallest if sum(n.startswith("memorySlice") for n in d.capacity) == 1]
    halves = [d for n, d in shown.items() if re.fullmatch(r"gpu-0-mig-3g\d+gb-\d", n)]
    assert (len(ones), len(halves)) == (7, 2)
    for together in (ones, halves):
        for name, amount in total.items():
            used = [
                draw.counters[name].value.ceil()
                for device in together
                for draw in device.consumes_counters
                if name in draw.counters
            ]
            assert sum(used) <= amount.ceil()


def test_a_part_says_what_it_is_of() -> None:
    """Attributes of its card, but for what is the card's own; capacities with each slice."""
    made = part(Offer(card=card(), profile=_profile("2g.20gb"), start=2))
    texts = {name: value.string for name, value in made.attributes.items()}
    assert (texts["type"], texts["profile"]) == ("mig", "2g.20gb")
    assert texts["parentUUID"] == card().uuid
    assert texts["productName"] == card().product_name
    assert not {"uuid", "nvlinkGroup", "pcieSwitch"} & set(texts)
    amounts = {name: str(one.value) for name, one in made.capacity.items()}
    assert amounts["memory"] == "20096Mi"
    assert amounts["multiprocessors"] == "32"
    assert {name for name in amounts if name.startswith("memorySlice")} == {
        "memorySlice2",
        "memorySlice3",
    }
    assert made.allow_multiple_allocations is None


def _profile(name: str) -> MigProfile:
    mig = card().mig
    assert mig is not None
    return next(profile for profile in mig.profiles if profile.name == name)


@pytest.mark.parametrize(
    ("mig", "enabled", "instances", "names"),
    [
        (MigMode.OFF, False, (), ["gpu-0"]),
        # In MIG mode nothing can run on the card itself.
        (MigMode.OFF, True, (instance(),), []),
        (MigMode.OFF, True, (), []),
        (MigMode.STATIC, False, (), ["gpu-0"]),
        (MigMode.STATIC, True, (), []),
        (
            MigMode.STATIC,
            True,
            (instance(start=4), instance("3g.40gb", 0, 4)),
            ["gpu-0-mig-3g40gb-0", "gpu-0-mig-1g10gb-4"],
        ),
        # A profile that the card does not list cannot be told in full.
        (MigMode.STATIC, True, (instance("1g.5gb"),), []),
        # What somebody else has cut up is left as it is.
        (MigMode.DYNAMIC, True, (instance(start=4),), ["gpu-0-mig-1g10gb-4"]),
    ],
)
def test_a_card_is_offered_in_one_way(
    mig: MigMode, enabled: bool, instances: tuple[MigInstance, ...], names: list[str]
) -> None:
    """Whole, in the parts that are there, or in all parts that can be made; never mixed."""
    found = devices(card(enabled=enabled, instances=instances), mig=mig)
    assert list(found) == names
    assert not any(device.consumes_counters for device in found.values())


def test_parts_that_are_there_have_their_uuid() -> None:
    """They can be asked for by it, and nothing is drawn from counters for them."""
    found = devices(card(enabled=True, instances=(instance(),)), mig=MigMode.STATIC)
    assert found["gpu-0-mig-1g10gb-0"].attributes["uuid"].string == "MIG-1g.10gb-0"


@pytest.mark.parametrize("wanted", MigMode)
def test_a_part_that_a_claim_has_is_never_withdrawn(wanted: MigMode) -> None:
    """Whatever the setting is now: its counters keep the card from being given out whole."""
    found = card(enabled=True, instances=(instance(start=6),))
    place = Partition(parent=found.uuid, profile="1g.10gb", start=6, size=1, made=True, begun=True)
    mine = structs.replace(held(), uuid="MIG-1g.10gb-6", partition=place)
    shown = offered(
        [found],
        mig=wanted,
        shareable=True,
        held=[prepared(0, [mine])],
        ours={"MIG-1g.10gb-6"},
    ).devices(counters=True)
    names = {device.name for device in shown}
    assert {"gpu-0", "gpu-0-mig-1g10gb-6"} <= names


def test_without_counters_only_whole_cards_are_safe() -> None:
    """Parts that are made are left out; those that are there stay."""
    fixed = card(enabled=True, instances=(instance(),))
    free = structs.replace(card(), index=1, uuid="GPU-other")
    shown = offered([fixed, free], mig=MigMode.DYNAMIC, shareable=False).devices(counters=False)
    assert [device.name for device in shown] == ["gpu-1", "gpu-0-mig-1g10gb-0"]
    assert not any(device.consumes_counters for device in shown)


@pytest.mark.parametrize("limits", [ADVISORY, BY_HAMI_CORE])
def test_shareable_cards_say_what_keeps_limits(limits: str) -> None:
    """Whole cards have none to keep."""
    shared, plain = (
        offered([card()], mig=MigMode.OFF, shareable=shareable, limits=limits).devices(
            counters=True
        )
        for shareable in (True, False)
    )
    assert shared[0].attributes["limits"].string == limits
    assert "limits" not in plain[0].attributes


def test_a_claim_for_a_part_holds_that_part() -> None:
    """Until it is made it has no UUID; who only looks sees the card."""
    node = facts(cut=MigMode.DYNAMIC)
    (device,) = entry(ref(), claim(0, result("gpu-3-mig-2g8gb-2")), node).devices
    assert (device.uuid, device.index, device.is_whole()) == ("", 3, True)
    assert device.partition == Partition(
        parent=node.cards["gpu-3"].uuid, profile="2g.8gb", start=2, size=2, made=True
    )
    looks = claim(0, result("gpu-3-mig-2g8gb-2", admin=True))
    (device,) = entry(ref(), looks, node).devices
    assert device.uuid == node.cards["gpu-3"].uuid


@pytest.mark.parametrize("mig", [MigMode.OFF, MigMode.STATIC])
def test_a_card_in_mig_mode_is_not_handed_out_whole(mig: MigMode) -> None:
    """A claim may have been allocated before the setting was changed; who only looks may look."""
    found = card(enabled=True)
    node = structs.replace(
        facts(),
        cards=cards_by_name(offered([found], mig=mig, shareable=True)),
        cuts_cards=False,
    )
    with pytest.raises(ClaimRefusedError, match=f"nvidia-smi -i {found.uuid} -mig 0"):
        entry(ref(), claim(0, result("gpu-0")), node)
    (device,) = entry(ref(), claim(0, result("gpu-0", admin=True)), node).devices
    assert device.uuid == found.uuid


def test_a_lost_card_has_no_parts() -> None:
    """Nothing is known of it by which a part could be told."""
    lost = Card(index=0, lost="it fell off the bus")
    assert [
        d.name for d in offered([lost], mig=MigMode.DYNAMIC, shareable=True).devices(counters=True)
    ] == ["gpu-0"]

"""What configurations mean for a claim's devices, and which ways do not go together."""

import re
from typing import Any

import pytest
from msgspec import structs

from driver.model.gpuconfig import Interval, Strategy
from driver.model.resourceclaim import (
    DeviceAllocationConfiguration,
    DeviceRequestAllocationResult,
)
from driver.node.claims import entry
from driver.node.errors import ClaimRefusedError
from driver.node.held import CardSharing, PreparedClaim, conflict
from driver.node.sharing.partitions import MigMode
from driver.node.sharing.rules import daemon_name, disagreement, slices_time
from tests.node.builders import GIB, claim, config, facts, mps, ref, result, slicing

NODE = facts(cut=MigMode.DYNAMIC, mps_dir="/run/mps")
HALF: Any = {"memory": "8Gi", "cores": "50"}


def prepared(
    number: int,
    *results: DeviceRequestAllocationResult,
    config: tuple[DeviceAllocationConfiguration, ...] = (),
) -> PreparedClaim:
    """A claim as it is held."""
    return entry(ref(number), claim(number, *results, config=config), NODE)


def sharing(
    *config: DeviceAllocationConfiguration, request: str = "gpu", **amounts: Any
) -> CardSharing | None:
    """How a claim with one result uses its card."""
    return prepared(0, result("gpu-0", request, **amounts), config=config).devices[0].sharing


def test_nothing_said_is_nothing_done() -> None:
    """The card is used as it is."""
    assert sharing() is None


def test_time_slicing_is_for_whole_cards_and_shares() -> None:
    """With the rhythm that is asked for."""
    wanted = CardSharing(strategy=Strategy.TIME_SLICING, interval=Interval.SHORT)
    assert sharing(slicing("Short")) == wanted
    assert sharing(slicing("Short"), **HALF) == wanted


@pytest.mark.parametrize(
    ("amounts", "limits", "threads", "memory"),
    [
        # The share is the limit, and a limit within it is one too.
        (HALF, {}, 50, 8 * GIB),
        (HALF, {"activeThreadPercentage": 20}, 20, 8 * GIB),
        (HALF, {"pinnedDeviceMemoryLimit": "1Gi"}, 50, GIB),
        # A whole card has no limits of its own.
        ({}, {}, None, None),
        ({}, {"activeThreadPercentage": 20, "pinnedDeviceMemoryLimit": "1Gi"}, 20, GIB),
        # No cores at all: no part of them is asked for (docs/hami.md).
        ({"memory": "8Gi", "cores": "0"}, {}, None, 8 * GIB),
        ({"memory": "8Gi", "cores": "0"}, {"activeThreadPercentage": 20}, 20, 8 * GIB),
    ],
)
def test_limits_of_mps(
    amounts: dict[str, str], limits: dict[str, Any], threads: int | None, memory: int | None
) -> None:
    """They come from what the claim consumes, and may be lower."""
    found = sharing(mps(**limits), **amounts)
    assert found is not None
    assert (found.threads, found.memory_limit) == (threads, memory)
    assert found.daemon == f"/run/mps/{daemon_name([NODE.cards['gpu-0'].uuid])}"


@pytest.mark.parametrize(
    ("results", "configured", "words"),
    [
        (
            [result("gpu-0", **HALF)],
            mps(activeThreadPercentage=60),
            "is 60, but the claim has 50 of the 100 cores of gpu-0",
        ),
        (
            [result("gpu-0", **HALF)],
            mps(pinnedDeviceMemoryLimit="9Gi"),
            "is 9Gi, but the claim has 8Gi of gpu-0",
        ),
        ([result("gpu-3-mig-2g8gb-0")], slicing(), "gpu-3-mig-2g8gb-0 is a MIG partition"),
        ([result("gpu-3-mig-2g8gb-0")], mps(), "gpu-3-mig-2g8gb-0 is a MIG partition"),
        ([result("gpu-0")], config({"strategy": "Fair"}), r"\$\.sharing\.strategy"),
    ],
)
def test_what_a_device_cannot_do_is_refused(
    results: list[DeviceRequestAllocationResult],
    configured: DeviceAllocationConfiguration,
    words: str,
) -> None:
    """With the claim, the device and the way out."""
    with pytest.raises(ClaimRefusedError, match=words):
        prepared(0, *results, config=(configured,))


def test_mps_needs_its_keeper() -> None:
    """A node without one says how it is set up."""
    asked = claim(0, result("gpu-0"), config=[mps()])
    with pytest.raises(ClaimRefusedError, match=r"node\.mps\.enabled=true"):
        entry(ref(0), asked, facts())


def test_each_request_has_its_own() -> None:
    """A configuration for one request, an alternative of one, or all."""
    results = [result("gpu-0", "a"), result("gpu-1", "b/small"), result("gpu-2", "c")]
    found = prepared(
        0, *results, config=(slicing(), mps("b/small"), config(slicing_of("Short"), "a"))
    )
    ways = [device.sharing for device in found.devices]
    assert [way.strategy if way else None for way in ways] == [
        Strategy.TIME_SLICING,
        Strategy.MPS,
        Strategy.TIME_SLICING,
    ]
    assert [way.interval for way in ways if way] == [
        Interval.SHORT,
        Interval.DEFAULT,
        Interval.LONG,
    ]


def slicing_of(interval: str) -> dict[str, Any]:
    """Time-slicing as it stands in a configuration."""
    return {"strategy": "TimeSlicing", "timeSlicing": {"interval": interval}}


def test_who_only_looks_sets_nothing() -> None:
    """Admin access changes no card, whatever its claim says."""
    assert prepared(0, result("gpu-0", admin=True), config=(mps(),)).devices[0].sharing is None


def test_a_claims_cards_have_one_daemon() -> None:
    """A process talks to one only; the order of the results makes no difference."""
    pairs = [("gpu-0", "gpu-2"), ("gpu-2", "gpu-0")]
    folders = {
        device.sharing.daemon
        for pair in pairs
        for device in prepared(
            0, *(result(name, f"r{name[-1]}") for name in pair), config=(mps(),)
        ).devices
        if device.sharing
    }
    assert len(folders) == 1


SHARE: Any = {"memory": "1Gi", "cores": "5"}
MPS_0 = prepared(0, result("gpu-0", **SHARE), config=(mps(),))
PLAIN = prepared(1, result("gpu-0", **SHARE))
LONG = prepared(2, result("gpu-0", **SHARE), config=(slicing("Long"),))
SHORT = prepared(3, result("gpu-0", **SHARE), config=(slicing("Short"),))
MPS_0_1 = prepared(4, result("gpu-0", "a", **SHARE), result("gpu-1", "b", **SHARE), config=(mps(),))
ELSEWHERE = prepared(5, result("gpu-1", **SHARE), config=(slicing("Short"),))
LOOKS = prepared(6, result("gpu-0", admin=True))
BOTH_WAYS = prepared(
    7, result("gpu-0", "a", **SHARE), result("gpu-0", "b", **SHARE), config=(mps("a"),)
)


@pytest.mark.parametrize(
    ("wanted", "others", "words"),
    [
        (MPS_0, [PLAIN], "through MPS, and claim .* uses it without MPS"),
        (PLAIN, [MPS_0], "without MPS, and claim .* uses it through MPS"),
        (LONG, [MPS_0], "a card is used in one way at a time"),
        (MPS_0_1, [MPS_0], "together with other cards"),
        (LONG, [SHORT], "the time slice Long, and claim .* has set it to Short"),
        (BOTH_WAYS, [], "a card is used in one way at a time"),
        (MPS_0, [structs.replace(MPS_0, uid="other")], None),
        (PLAIN, [LONG], None),
        (LONG, [PLAIN, structs.replace(LONG, uid="other")], None),
        (LONG, [ELSEWHERE], None),
        (MPS_0, [LOOKS], None),
        (LOOKS, [MPS_0], None),
        # Of an earlier boot, or the claim itself.
        (MPS_0, [structs.replace(PLAIN, boot="boot-0")], None),
        (MPS_0, [structs.replace(PLAIN, uid=MPS_0.uid)], None),
    ],
)
def test_a_card_is_used_in_one_way(
    wanted: PreparedClaim, others: list[PreparedClaim], words: str | None
) -> None:
    """And has one rhythm; who says nothing of it takes what there is."""
    said = disagreement(wanted, others)
    if words is None:
        assert said is None
    else:
        assert said is not None
        assert re.search(words, said)


def test_a_claim_has_a_rhythm_for_the_cards_that_it_is_about() -> None:
    """Not for others, and not by MPS."""
    uuid = NODE.cards["gpu-0"].uuid
    assert slices_time(LONG, uuid) is Interval.LONG
    assert slices_time(LONG, NODE.cards["gpu-1"].uuid) is None
    assert slices_time(MPS_0, uuid) is None


PART = prepared(0, result("gpu-3-mig-2g8gb-0"))


@pytest.mark.parametrize(
    ("device", "share", "words"),
    [
        ("gpu-3-mig-2g8gb-0", None, "needs what gpu-3-mig-2g8gb-0 is made of"),
        ("gpu-3-mig-1g4gb-1", None, "needs what gpu-3-mig-2g8gb-0 is made of"),
        ("gpu-3-mig-4g16gb-0", None, "needs what gpu-3-mig-2g8gb-0 is made of"),
        ("gpu-3", None, "gpu-3 needs what gpu-3-mig-2g8gb-0 is made of"),
        ("gpu-3", "share", "gpu-3 needs what gpu-3-mig-2g8gb-0 is made of"),
        ("gpu-3-mig-2g8gb-2", None, None),
        ("gpu-3-mig-1g4gb-2", None, None),
        ("gpu-2", None, None),
    ],
)
def test_two_claims_never_have_one_part(device: str, share: str | None, words: str | None) -> None:
    """Whole cards, their shares and parts that overlap are kept apart, both ways round."""
    wanted = prepared(1, result(device, share=share))
    said = conflict(wanted, [PART])
    assert (said is None) == (words is None)
    assert (conflict(PART, [wanted]) is None) == (words is None)
    if words is not None:
        assert said is not None
        assert words in said

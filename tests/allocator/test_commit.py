"""Re-choosing a part of an allocation, as the commit hook does."""

import itertools

import pytest
from msgspec.structs import replace

from driver.allocator.allocate import allocate
from driver.allocator.outcome import Allocated, choice, node_view
from driver.allocator.results import with_share_ids
from driver.model.errors import AllocationError
from driver.model.names import DRIVER, PCIE_ROOT
from driver.model.quantity import parse
from driver.model.resourceclaim import DeviceRequestAllocationResult
from driver.policy.registry import objective
from tests.allocator.build import (
    card,
    chosen,
    claim,
    device,
    gpus,
    in_use,
    problem,
    request,
    shared,
    slice_of,
)

COMPACT, SPREAD = objective("compact"), objective("spread")
NICS = slice_of(
    device("nic-0").with_links(root="pci0"),
    device("nic-1").with_links(root="pci2"),
    name="nics",
    pool="nics",
    driver="nic.example.com",
)


def _nic(name: str) -> tuple[DeviceRequestAllocationResult, ...]:
    return (
        DeviceRequestAllocationResult(
            request="nic", driver="nic.example.com", pool="nics", device=name
        ),
    )


def test_a_gpu_goes_beside_the_network_card_that_the_scheduler_chose() -> None:
    """The other driver's result stays, and its slice is read for the constraint."""
    asked = claim(request("gpu"), request("nic")).matching(PCIE_ROOT)
    world = problem(
        [slice_of(*gpus(8)), NICS],
        asked,
        fixed={(0, "nic"): _nic("nic-1")},
        driver=DRIVER,
        use=in_use("gpu-0"),
    )
    outcome = allocate(world, objective=COMPACT)
    assert isinstance(outcome, Allocated)
    assert chosen(outcome) == ["gpu-4", "nic-1"]
    assert outcome.allocations[0].devices.results[1] == _nic("nic-1")[0]


def test_a_given_device_without_a_slice_stops_only_where_a_constraint_needs_it() -> None:
    """What cannot be checked must not be guessed."""
    fixed = {(0, "nic"): _nic("gone")}
    free = problem([slice_of(*gpus(8))], claim(request("gpu"), request("nic")), fixed=fixed)
    assert chosen(allocate(free, objective=COMPACT)) == ["gpu-0", "gone"]
    bound = claim(request("gpu"), request("nic")).matching(PCIE_ROOT)
    with pytest.raises(AllocationError, match="constraints of the claim cannot be checked"):
        allocate(problem([slice_of(*gpus(8))], bound, fixed=fixed), objective=COMPACT)


def test_given_shares_count_as_use_within_the_call() -> None:
    """What one request of the claim keeps, the other cannot have again."""
    given = DeviceRequestAllocationResult(
        request="a",
        driver=DRIVER,
        pool="node-1",
        device="gpu-0",
        share_id="kept",
        consumed_capacity={"memory": parse("10Gi")},
    )
    asked = claim(
        request("a").with_capacity(memory="10Gi"), request("b").with_capacity(memory="8Gi")
    )
    cards = [slice_of(card(0, "16Gi"), card(1, "16Gi"))]
    outcome = allocate(problem(cards, asked, fixed={(0, "a"): (given,)}), objective=COMPACT)
    assert chosen(outcome) == ["gpu-0", "gpu-1"]


def test_capacity_is_made_for_the_new_device() -> None:
    """Each device's own request policy rounds."""
    coarse = device("coarse").with_capacity("memory", "16Gi", step="4Gi").shareable()
    fine = device("fine").with_capacity("memory", "16Gi", step="1Gi").shareable()
    asked = claim(request().with_capacity(memory="5Gi"))
    for use, name, amount in (
        (shared("coarse", "4Gi"), "coarse", "8Gi"),
        (shared("fine", "4Gi"), "fine", "5Gi"),
    ):
        outcome = allocate(problem([slice_of(coarse, fine)], asked, use=use), objective=COMPACT)
        assert isinstance(outcome, Allocated)
        result = outcome.allocations[0].devices.results[0]
        assert (result.device, str(result.consumed_capacity["memory"])) == (name, amount)


def test_new_shares_have_no_id_until_the_caller_gives_one() -> None:
    """Whole devices never have one."""
    asked = claim(request("a").with_capacity(memory="1Gi"), request("b"))
    cards = slice_of(card(0, "16Gi"), device("whole"))
    outcome = allocate(problem([cards], asked, use=in_use()))
    assert isinstance(outcome, Allocated)
    numbers = itertools.count(1)
    filled = with_share_ids(outcome.allocations[0], lambda: f"share-{next(numbers)}")
    assert [one.share_id for one in outcome.allocations[0].devices.results] == ["", None]
    assert [one.share_id for one in filled.devices.results] == ["share-1", None]


def test_a_device_released_a_moment_ago_is_no_target() -> None:
    """It is free, but not for a swap; and the explanation says so."""
    world = problem([slice_of(*gpus(2))], claim())
    target = world.pools[0].devices[0].id
    outcome = allocate(replace(world, excluded=frozenset((target,))), objective=SPREAD)
    assert isinstance(outcome, Allocated)
    assert chosen(outcome) == ["gpu-1"]
    assert outcome.explanation.rejections[0].reason == "released a moment ago"


def test_scorers_see_only_our_devices() -> None:
    """Another driver's devices neither fill the node nor count as chosen."""
    asked = claim(request("gpu"), request("nic"))
    world = problem(
        [slice_of(*gpus(4)), NICS], asked, fixed={(0, "nic"): _nic("nic-0")}, driver=DRIVER
    )
    outcome = allocate(world, objective=COMPACT)
    assert isinstance(outcome, Allocated)
    assert [one.id.device for one in node_view(world).devices] == [f"gpu-{n}" for n in range(4)]
    assert [one.index for one in choice(world, outcome.allocations).taken] == [0]

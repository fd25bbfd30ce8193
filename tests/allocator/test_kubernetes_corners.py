"""Corners of Kubernetes' allocator that random problems brought up, each checked against 1.37.2."""

import pytest
from msgspec.structs import replace

from driver.allocator.allocate import allocate
from driver.allocator.outcome import Allocated, Unsatisfiable
from driver.model.core import NodeStatus
from driver.model.errors import AllocationError
from driver.model.names import DRIVER, MEMORY
from tests.allocator.build import (
    ALL_FEATURES,
    chosen,
    claim,
    device,
    in_use,
    node,
    problem,
    request,
    shared,
    slice_of,
)

COLOR = f"{DRIVER}/color"


def test_for_mode_all_a_violated_constraint_comes_before_missing_capacity() -> None:
    """The error says that the claim can never be served, the lack only that it cannot be now."""
    red = device("red").with_attribute("color", "red").with_capacity(MEMORY, "4").shareable()
    asked = claim(request("a").with_capacity(memory="2"), request("b").for_all())
    with pytest.raises(AllocationError, match="a claim constraint would not be satisfied"):
        allocate(problem([slice_of(red)], asked.distinct_in(COLOR)))
    assert isinstance(allocate(problem([slice_of(red)], asked)), Unsatisfiable)


def test_a_selector_is_tried_on_devices_of_other_nodes_too() -> None:
    """A slice that places each device by itself is read whole; one elsewhere can stop it all."""
    near, far = device("near").with_attribute("color", "red"), device("far")
    far = replace(far, made=replace(far.made, node_name="other"))
    near = replace(near, made=replace(near.made, node_name="node-1"))
    mixed = slice_of(far, near).with_spec(node_name=None, per_device_node_selection=True)
    expression = f'device.attributes["{DRIVER}"].color == "red"'
    with pytest.raises(AllocationError, match=r"on device .*/far: CEL runtime error: no such key"):
        allocate(problem([mixed], claim(request().with_selector(expression))))
    assert chosen(allocate(problem([mixed], claim()))) == ["near"]


def test_a_newer_generation_makes_a_pool_obsolete_even_where_it_is_not_understood() -> None:
    """Its slices need a feature that is off; the old ones are still on their way out."""
    grouped = device("gpu-0").with_counters("set", "group", c=1)
    new = slice_of(grouped, name="new", slices=2).on("other")
    new = new.with_spec(pool=replace(new.made.spec.pool, generation=2))
    old = slice_of(device("gpu-1"), name="old", slices=2)
    features = replace(ALL_FEATURES, compatibility_groups=False)
    assert problem([new, old], claim(), features=features).pools == ()


def test_without_the_list_feature_a_list_differs_from_every_scalar() -> None:
    """A list is accepted for the first device, and a scalar that is in it for the second."""
    several = device("several").with_attribute("color", ("red", "blue"))
    one = device("one").with_attribute("color", "red")
    asked = claim(request(count=2)).distinct_in(COLOR)
    off = replace(ALL_FEATURES, list_type_attributes=False)
    outcome = allocate(problem([slice_of(several, one)], asked, features=off))
    assert chosen(outcome) == ["several", "one"]
    assert isinstance(
        allocate(problem([slice_of(one, several)], asked, features=off)), Unsatisfiable
    )
    assert isinstance(allocate(problem([slice_of(several, one)], asked)), Unsatisfiable)


def test_admin_access_to_a_shareable_device_takes_a_share() -> None:
    """It does not matter who holds the device, but the capacity must be there."""
    card = device("card").with_capacity(MEMORY, "4").shareable()
    asked = claim(request().with_capacity(memory="2").with_admin_access())
    outcome = allocate(problem([slice_of(card)], asked, use=shared("card", "2")))
    assert isinstance(outcome, Allocated)
    result = outcome.allocations[0].devices.results[0]
    assert (result.admin_access, result.share_id) == (True, "")
    full = problem([slice_of(card)], asked, use=shared("card", "3"))
    assert isinstance(allocate(full), Unsatisfiable)


def test_admin_access_draws_the_counters_of_a_device_in_use_again() -> None:
    """Odd, but what Kubernetes does: without counters left, there is no admin access."""
    partition = slice_of(device("part").with_counters("set", c=1), slices=2)
    asked = claim(request().with_admin_access())
    for total, allocated in ((1, Unsatisfiable), (2, Allocated)):
        counters = slice_of(name="counters", slices=2).with_counter_set("set", c=total)
        world = problem([partition, counters], asked, use=in_use("part"))
        assert isinstance(allocate(world), allocated)


def test_optional_node_operations_need_a_node_that_declares_them() -> None:
    """Mode All fails on such a device, and does not pass it over."""
    skipping = slice_of(device("gpu-0")).with_spec(skip_node_operations=("*",))
    plain = slice_of(device("gpu-1"), name="plain", pool="plain")
    declares = replace(node(), status=NodeStatus(declared_features=("DRAOptionalNodeOperations",)))
    everything = claim(request().for_all())
    assert isinstance(allocate(problem([skipping, plain], everything)), Unsatisfiable)
    assert chosen(allocate(problem([skipping, plain], claim()))) == ["gpu-1"]
    outcome = allocate(problem([skipping, plain], everything, on=declares))
    assert chosen(outcome) == ["gpu-0", "gpu-1"]

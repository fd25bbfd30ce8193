"""The inventory sees what the slices of the moment say, and works nothing out twice."""

import gc
import tracemalloc

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from driver.allocator.inventory import Inventory
from driver.allocator.pools import Pool
from driver.model.api import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from driver.model.ids import DeviceId
from driver.model.names import DRIVER
from driver.model.resourceslice import ResourceSlice
from tests.allocator.build import (
    ALL_FEATURES,
    ASlice,
    allocate_names,
    claim,
    device,
    node,
    request,
    slice_of,
    taint_rule,
    visible_pools,
)


def _inventory(*slices: ASlice) -> Inventory:
    made = Inventory(ALL_FEATURES)
    for one in slices:
        made.put_slice(one.made)
    return made


def _shown(pools: tuple[Pool, ...]) -> list[tuple[object, ...]]:
    return [
        (pool.id, pool.incomplete, pool.invalid, [one.device for one in pool.devices])
        for pool in pools
    ]


def _in_region(one: ASlice, region: str) -> ASlice:
    wanted = NodeSelectorRequirement(key="region", operator="In", values=(region,))
    term = NodeSelectorTerm(match_expressions=(wanted,))
    return one.with_spec(node_name=None, node_selector=NodeSelector(node_selector_terms=(term,)))


def test_pools_are_the_same_objects_until_something_changes() -> None:
    """A decision rebuilds nothing: another node's slices do not matter either."""
    inventory = _inventory(slice_of(device("gpu-0")))
    before = inventory.pools(node())
    inventory.put_slice(slice_of(device("gpu-0"), name="other", pool="other").on("other").made)
    assert inventory.pools(node()) is before
    inventory.put_slice(slice_of(device("gpu-0")).made)
    assert inventory.pools(node()) is before, "the same slice again is no change"
    inventory.put_slice(slice_of(device("gpu-0"), device("gpu-1")).made)
    assert [one.id.device for one in inventory.pools(node())[0].devices] == ["gpu-0", "gpu-1"]


def test_a_pool_that_several_nodes_reach_is_seen_by_those_nodes() -> None:
    """A node selector decides, and a change of the node's labels is noticed."""
    inventory = _inventory(_in_region(slice_of(device("nic"), pool="fabric"), "north"))
    assert inventory.pools(node("a", region="north"))
    assert not inventory.pools(node("b", region="south"))
    assert inventory.pools(node("b", region="north"))
    inventory.remove_slice("slice")
    assert not inventory.pools(node("a", region="north"))


def test_a_pool_with_counters_concerns_only_the_nodes_it_names() -> None:
    """The slice with the counters is part of the pool, not of every node."""
    counters = slice_of(name="counters", slices=2).with_counter_set("set", c=1)
    devices = slice_of(device("gpu-0").with_counters("set", c=1), slices=2)
    inventory = _inventory(counters, devices)
    elsewhere = node("other")
    assert inventory.pools(elsewhere) == ()
    inventory.remove_slice("slice")
    assert inventory.pools(elsewhere) == ()
    assert [pool.incomplete for pool in inventory.pools(node())] == [True]
    inventory.put_slice(devices.made)
    assert inventory.pools(node())[0].usable


def test_find_takes_the_newest_generation() -> None:
    """A device is found by name, as its newest slice describes it."""
    old = slice_of(device("gpu-0"), name="old")
    new = slice_of(device("gpu-0").shareable(), name="new")
    pool = replace(new.made.spec.pool, generation=2)
    inventory = _inventory(new.with_spec(pool=pool), old)
    found = inventory.find(DeviceId(DRIVER, "node-1", "gpu-0"))
    assert found is not None
    assert found.shareable
    assert inventory.find(DeviceId(DRIVER, "node-1", "gpu-1")) is None
    assert inventory.find(DeviceId(DRIVER, "node-2", "gpu-0")) is None


def test_nodes_are_those_with_pools_of_their_own() -> None:
    """A node whose last slice goes is none any more."""
    inventory = _inventory(slice_of(device("gpu-0")), slice_of(name="b", pool="b").on("b"))
    assert inventory.nodes() == ("b", "node-1")
    inventory.remove_slice("b")
    assert inventory.nodes() == ("node-1",)
    inventory.remove_slice("b")
    assert inventory.nodes() == ("node-1",)


def test_taint_rules_come_and_go() -> None:
    """A rule keeps away who does not tolerate it, for slices before and after it."""
    inventory = _inventory(slice_of(device("gpu-0"), device("gpu-1")))
    asked = claim(request())
    inventory.put_taint_rule(taint_rule("sick", device="gpu-0"))
    assert allocate_names(inventory, asked) == ["gpu-1"]
    assert allocate_names(inventory, claim(request().tolerating("sick"))) == ["gpu-0"]
    inventory.put_slice(slice_of(device("gpu-0"), device("gpu-1"), device("gpu-2")).made)
    assert allocate_names(inventory, asked) == ["gpu-1"]
    inventory.put_taint_rule(taint_rule("sick", device="gpu-1"))
    assert allocate_names(inventory, asked) == ["gpu-0"]
    inventory.remove_taint_rule("sick")
    assert allocate_names(inventory, asked) == ["gpu-0"]
    assert allocate_names(inventory, claim(request(count=3))) == ["gpu-0", "gpu-1", "gpu-2"]


@st.composite
def _changes(draw: st.DrawFn) -> list[ASlice | str]:
    """Slices put and removed, over two nodes and a shared pool."""
    changes: list[ASlice | str] = []
    for _ in range(draw(st.integers(1, 12))):
        name = draw(st.sampled_from("abc"))
        if draw(st.integers(0, 3)) == 0:
            changes.append(name)
            continue
        made = slice_of(
            *(device(f"gpu-{index}") for index in range(draw(st.integers(0, 2)))),
            name=name,
            pool=draw(st.sampled_from(["p", "q"])),
            slices=draw(st.integers(1, 2)),
        ).on(draw(st.sampled_from(["node-1", "node-2"])))
        if draw(st.integers(0, 3)) == 0:
            made = _in_region(made, "north")
        if draw(st.integers(0, 4)) == 0:
            made = made.with_spec(devices=()).with_counter_set("set", c=1)
        changes.append(made)
    return changes


@given(_changes())
@settings(deadline=None, max_examples=80)
def test_changes_add_up_to_what_the_slices_say(changes: list[ASlice | str]) -> None:
    """After every change each node sees what it would see starting afresh."""
    inventory = Inventory(ALL_FEATURES)
    slices: dict[str, ResourceSlice] = {}
    for change in changes:
        if isinstance(change, str):
            inventory.remove_slice(change)
            slices.pop(change, None)
        else:
            inventory.put_slice(change.made)
            slices[change.made.metadata.name] = change.made
        for where in (node("node-1", region="north"), node("node-2", region="south")):
            afresh = visible_pools(slices.values(), where, ALL_FEATURES)
            that_matter = tuple(pool for pool in afresh if pool.devices or not pool.usable)
            assert _shown(inventory.pools(where)) == _shown(that_matter)


def test_nodes_that_came_and_went_leave_nothing_behind() -> None:
    """An autoscaler gives every node a name of its own, for as long as the process lives."""
    inventory = Inventory(ALL_FEATURES)

    def come_and_go(first: int) -> None:
        for number in range(first, first + 200):
            published = slice_of(device("gpu-0"), name=f"s{number}", pool=f"p{number}")
            inventory.put_slice(published.on(f"node-{number}").made)
            assert inventory.pools(node(f"node-{number}"))
            assert inventory.pools(node(f"without-devices-{number}")) == ()
            inventory.remove_slice(f"s{number}")

    come_and_go(0)
    tracemalloc.start()
    try:
        come_and_go(1000)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 20_000
    finally:
        tracemalloc.stop()

"""Which writes make a pool what it should be."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.model.resourceslice import (
    Device,
    DeviceAttribute,
    DeviceTaint,
    ResourceSlice,
)
from driver.node.device import device
from driver.node.simulated import cards
from driver.node.slices import (
    Create,
    Delete,
    Pool,
    Stored,
    Update,
    dropped_fields,
    plan,
    pool,
    slice_name,
)
from driver.wire.decode import convert
from driver.wire.encode import builtins
from tests.kube.patches import merge_patch

DRIVER, NODE = "gpu.quadrant.dev", "n1"


def _pool(*names: str, node: str = NODE) -> Pool:
    return pool([Device(name=name) for name in names], driver=DRIVER, node=node)


def _many(count: int, prefix: str = "gpu") -> Pool:
    return _pool(*(f"{prefix}-{index}" for index in range(count)))


class Slices:
    """The API server's slices, as far as a plan needs them."""

    def __init__(self, drops: str = "") -> None:
        self.items: dict[str, dict[str, Any]] = {}
        self.stored: dict[str, Stored] = {}
        self.generation = 0
        self.version = 0
        self.drops = drops

    def seen(self) -> list[ResourceSlice]:
        """All slices, read back."""
        return [convert(ResourceSlice, item) for item in self.items.values()]

    def plan(self, wanted: Pool) -> tuple[object, ...]:
        """What would be done now."""
        return plan(wanted, self.seen(), stored=self.stored, last_generation=self.generation)

    def reconcile(self, wanted: Pool) -> int:
        """Do it; how much there was to do."""
        actions = self.plan(wanted)
        for action in actions:
            self._act(action)
        return len(actions)

    def complete(self, wanted: Pool) -> bool:
        """Whether a scheduler has the pool exactly as wanted."""
        pools = [item["spec"]["pool"] for item in self.items.values()]
        newest = [p for p in pools if p["generation"] == max(p["generation"] for p in pools)]
        found = sorted(self.items.items())
        return (
            len(newest) == len(pools)
            and all(p["resourceSliceCount"] == len(newest) for p in newest)
            and [name for name, _ in found] == [item.name for item in wanted.slices]
            and [[d["name"] for d in item["spec"]["devices"]] for _, item in found]
            == [[d.name for d in item.devices] for item in wanted.slices]
        )

    def _act(self, action: object) -> None:
        match action:
            case Delete(name=name):
                del self.items[name]
            case Create(slice=wanted, body=body):
                assert wanted.name not in self.items
                self._store(wanted.name, body)
                self._note(wanted.name, wanted.devices)
            case Update(slice=wanted, body=body):
                old = self.items[wanted.name]
                assert body["metadata"]["resourceVersion"] == old["metadata"]["resourceVersion"]
                self._store(wanted.name, merge_patch(old, body))
                self._note(wanted.name, wanted.devices)

    def _store(self, name: str, body: dict[str, Any]) -> None:
        self.version += 1
        metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(self.version)}
        devices = [
            {key: value for key, value in item.items() if key != self.drops}
            for item in body["spec"]["devices"]
        ]
        self.items[name] = {"metadata": metadata, "spec": {**body["spec"], "devices": devices}}

    def _note(self, name: str, sent: Sequence[Device]) -> None:
        kept = convert(ResourceSlice, self.items[name]).spec
        self.stored[name] = Stored(tuple(sent), kept.devices)
        self.generation = max(self.generation, kept.pool.generation)


def test_a_new_pool_is_created_complete_and_then_left_alone() -> None:
    """The count is written out although our structs leave a one out."""
    slices = Slices()
    [action] = slices.plan(_many(4))
    assert isinstance(action, Create)
    assert action.body["spec"]["pool"] == {"name": NODE, "generation": 1, "resourceSliceCount": 1}
    assert (action.body["spec"]["driver"], action.body["spec"]["nodeName"]) == (DRIVER, NODE)
    assert slices.reconcile(_many(4)) == 1
    assert slices.complete(_many(4))
    assert slices.plan(_many(4)) == ()


def test_no_devices_are_one_empty_slice() -> None:
    """The driver is there and has nothing; no slice would mean that it is not there."""
    slices = Slices()
    slices.reconcile(_pool())
    assert slices.complete(_pool())
    assert len(slices.items) == 1


@pytest.mark.parametrize(("count", "expected"), [(1, [1]), (128, [128]), (129, [128, 1])])
def test_slices_hold_as_many_devices_as_the_api_allows(count: int, expected: list[int]) -> None:
    """In the order of the devices, first slice first by name."""
    wanted = _many(count)
    assert [len(item.devices) for item in wanted.slices] == expected
    assert [item.name for item in wanted.slices] == sorted(item.name for item in wanted.slices)


@pytest.mark.parametrize(
    "rich",
    [
        Device(name="gpu-0", taints=(DeviceTaint(key="x", effect="NoSchedule"),)),
        Device(name="gpu-0", attributes={"roots": DeviceAttribute(strings=("a",))}),
    ],
)
def test_devices_with_taints_or_lists_come_64_in_a_slice(rich: Device) -> None:
    """The API's smaller limit."""
    others = [Device(name=f"gpu-{index}") for index in range(1, 100)]
    wanted = pool([rich, *others], driver=DRIVER, node=NODE)
    assert [len(item.devices) for item in wanted.slices] == [64, 36]


def test_one_changed_slice_keeps_the_generation_two_make_a_new_one() -> None:
    """A single write takes effect at once; with several the last one completes the pool."""
    slices = Slices()
    slices.reconcile(_many(200))
    slices.reconcile(_pool(*(f"gpu-{index}" for index in range(128)), "new"))
    assert {item["spec"]["pool"]["generation"] for item in slices.items.values()} == {1}
    slices.reconcile(_many(130, "other"))
    assert {item["spec"]["pool"]["generation"] for item in slices.items.values()} == {2}


def test_a_taint_keeps_the_time_at_which_it_was_published() -> None:
    """Also when a plugin that starts anew says another; a taint that is new brings its own."""

    def tainted(time: str, *values: str) -> Pool:
        taints = tuple(
            DeviceTaint(key="k", value=value, effect="NoSchedule", time_added=time)
            for value in values
        )
        return pool([Device(name="gpu-0", taints=taints)], driver=DRIVER, node=NODE)

    slices = Slices()
    slices.reconcile(tainted("2026-01-01T00:00:00Z", "a"))
    assert slices.reconcile(tainted("2026-01-02T00:00:00Z", "a")) == 0
    assert slices.reconcile(tainted("2026-01-03T00:00:00Z", "a", "b")) == 1
    assert slices.reconcile(tainted("2026-01-04T00:00:00Z", "a", "b")) == 0
    (stored,) = slices.seen()
    seen = stored.spec.devices[0].taints
    assert [taint.time_added for taint in seen] == ["2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z"]
    assert slices.reconcile(_pool("gpu-0")) == 1
    assert slices.reconcile(tainted("2026-01-05T00:00:00Z", "a")) == 1


def test_deleted_slices_come_back() -> None:
    """One, and all: never with a generation that was used for something else."""
    slices, wanted = Slices(), _many(300)
    slices.reconcile(wanted)
    del slices.items[wanted.slices[1].name]
    assert slices.reconcile(wanted) == 1
    assert slices.complete(wanted)
    slices.items.clear()
    slices.reconcile(wanted)
    assert slices.complete(wanted)
    assert {item["spec"]["pool"]["generation"] for item in slices.items.values()} == {2}


@pytest.mark.parametrize(
    "change",
    [
        {"devices": []},
        {"pool": {"name": NODE, "generation": 1, "resourceSliceCount": 2}},
        {"pool": {"name": NODE, "generation": 9, "resourceSliceCount": 1}},
        {"sharedCounters": [{"name": "c", "counters": {}}]},
    ],
)
def test_edited_slices_are_put_right(change: dict[str, Any]) -> None:
    """Whatever somebody changed; a higher generation is not gone back on."""
    slices, wanted = Slices(), _many(4)
    slices.reconcile(wanted)
    [item] = slices.items.values()
    item["spec"].update(change)
    slices.reconcile(wanted)
    assert slices.complete(wanted)
    assert not any(item["spec"].get("sharedCounters") for item in slices.items.values())
    assert slices.plan(wanted) == ()


def test_slices_of_other_names_and_pools_are_removed() -> None:
    """Left by another version of the driver."""
    slices, wanted = Slices(), _many(4)
    slices.reconcile(wanted)
    [ours] = slices.items.values()
    for name, pool_name in (("old", NODE), ("older", "plugin")):
        spec = {**ours["spec"], "pool": {**ours["spec"]["pool"], "name": pool_name}}
        slices.items[name] = {"metadata": {"name": name, "resourceVersion": "1"}, "spec": spec}
    slices.reconcile(wanted)
    assert slices.complete(wanted)


def test_what_the_api_server_drops_is_sent_once() -> None:
    """With a feature off there the slice never becomes what was sent."""
    slices = Slices(drops="allowMultipleAllocations")
    wanted = pool(
        [device(c, shareable=True) for c in cards("4xT4", NODE)], driver=DRIVER, node=NODE
    )
    assert slices.reconcile(wanted) == 1
    assert slices.plan(wanted) == ()
    [item] = slices.items.values()
    item["spec"]["devices"] = item["spec"]["devices"][:2]
    assert slices.reconcile(wanted) == 1
    assert slices.plan(wanted) == ()


def test_dropped_fields_are_named_once_for_all_devices() -> None:
    """What a log line says."""
    sent = [device(card, shareable=True) for card in cards("2xT4", NODE)]
    plain = [device(card, shareable=False) for card in cards("2xT4", NODE)]
    assert dropped_fields(sent, sent) == ()
    assert dropped_fields(plain, sent) == ()
    assert dropped_fields(sent, plain) == (
        "device.allowMultipleAllocations",
        "device.capacity.cores.requestPolicy",
        "device.capacity.memory.requestPolicy",
    )


def test_names_are_legal_distinct_and_ordered() -> None:
    """At any length of the node's name; and not the same for two ways of cutting one text."""
    assert slice_name("0", DRIVER, NODE).startswith("0-gpu.quadrant.dev-n1-")
    assert len(slice_name("0", DRIVER, "n" * 253)) <= 253
    assert slice_name("0", "a", "b-c") != slice_name("0", "a-b", "c")
    assert slice_name("0", DRIVER, "n" * 250) != slice_name("0", DRIVER, "n" * 251)


_COUNTS = st.sampled_from([0, 1, 4, 128, 129, 300])
_EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("want"), _COUNTS),
        st.tuples(st.just("delete"), st.integers(0, 5)),
        st.tuples(st.just("edit"), st.integers(0, 5)),
        st.tuples(st.just("restart"), st.just(0)),
    ),
    max_size=12,
)


@given(_EVENTS, st.sampled_from(["", "taints"]))
def test_any_history_ends_in_a_complete_pool_and_rest(
    events: list[tuple[str, int]], drops: str
) -> None:
    """One round of actions is enough, the next has nothing to do, generations never fall."""
    slices, wanted, highest = Slices(drops), _many(4), 0
    for event, number in events:
        names = sorted(slices.items)
        if event == "want":
            wanted = _many(number)
        elif event == "delete" and number < len(names):
            del slices.items[names[number]]
        elif event == "edit" and number < len(names):
            slices.items[names[number]]["spec"]["devices"] = builtins([Device(name="other")])
        elif event == "restart":
            slices.stored, slices.generation = {}, 0
        slices.reconcile(wanted)
        assert slices.complete(wanted)
        assert slices.plan(wanted) == ()
        generation = max(i["spec"]["pool"]["generation"] for i in slices.items.values())
        assert generation >= highest or event in ("restart", "delete")
        highest = generation

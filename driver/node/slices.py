"""Which ResourceSlices a node's pool should have, and what to do about those that it has.

Pure; modelled on the rules of `k8s.io/dynamic-resource-allocation/resourceslice`. One pool per
node, named after it. Names begin with the index, because the scheduler goes through the slices of
a pool by name and through the devices of a slice in their order. Counters that devices draw from
are in slices of their own, as the API demands from Kubernetes 1.36 on.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import structs

from driver.model.api import OwnerReference
from driver.model.quantity import Quantity
from driver.model.resourceslice import (
    Counter,
    CounterSet,
    Device,
    DeviceTaint,
    ResourcePool,
    ResourceSlice,
)
from driver.wire.encode import builtins

# Limits of the API (k8s.io/api/resource/v1): devices of a slice, and of one whose devices carry
# taints, counters or lists; counter sets of a slice.
_DEVICES_MAX = 128
_RICH_DEVICES_MAX = 64
_COUNTER_SETS_MAX = 8
_NAME_MAX = 253
_HASH_LENGTH = 6

API_VERSION = "resource.k8s.io/v1"

T = TypeVar("T")


class WantedSlice(msgspec.Struct, frozen=True):
    """One slice as it should be: with devices or with counters, never with both."""

    name: str
    devices: tuple[Device, ...]
    counters: tuple[CounterSet, ...] = ()


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """All slices of a node as they should be."""

    driver: str
    node: str
    slices: tuple[WantedSlice, ...]


class Stored(msgspec.Struct, frozen=True):
    """What the API server made of the devices that it was sent.

    It drops fields of features that are off, without a word. Such a slice is as good as it gets
    and is not sent again.
    """

    sent: tuple[Device, ...]
    kept: tuple[Device, ...]


class Create(msgspec.Struct, frozen=True):
    """Create a slice; the body lacks only the owner."""

    slice: WantedSlice
    body: dict[str, Any]


class Update(msgspec.Struct, frozen=True):
    """Change a slice by a merge patch that holds only for the state that was seen."""

    slice: WantedSlice
    body: dict[str, Any]


class Delete(msgspec.Struct, frozen=True):
    """Delete a slice, if it is still the one that was seen."""

    name: str
    uid: str


Action = Create | Update | Delete


def pool(devices: Sequence[Device], *, driver: str, node: str) -> Pool:
    """The pool of a node. Without devices it has one empty slice: the driver is there.

    The counters that devices draw from come with them: see `counter_sets`.
    """
    size = _RICH_DEVICES_MAX if any(_is_rich(device) for device in devices) else _DEVICES_MAX
    device_parts = _cut(tuple(devices), size) or [()]
    counter_parts = _cut(counter_sets(devices), _COUNTER_SETS_MAX)
    count = len(device_parts) + len(counter_parts)
    names = (slice_name(f"{n:0{len(f'{count - 1:x}')}x}", driver, node) for n in range(count))
    slices = [WantedSlice(next(names), part) for part in device_parts]
    slices += [WantedSlice(next(names), (), part) for part in counter_parts]
    return Pool(driver=driver, node=node, slices=tuple(slices))


def counter_sets(devices: Iterable[Device]) -> tuple[CounterSet, ...]:
    """The counters that devices draw from, in the order in which they are first met.

    Of each there is as much as the device draws that takes most: of what a card is cut into, the
    card itself takes all.
    """
    found: dict[str, dict[str, Quantity]] = {}
    for draw in (draw for device in devices for draw in device.consumes_counters):
        amounts = found.setdefault(draw.counter_set, {})
        for name, counter in draw.counters.items():
            amounts[name] = max(amounts.get(name, counter.value), counter.value)
    return tuple(
        CounterSet(name=name, counters={n: Counter(value=v) for n, v in amounts.items()})
        for name, amounts in found.items()
    )


def slice_name(index: str, driver: str, node: str) -> str:
    """`<index>-<driver>-<node>-<hash>`: the same each time, so that a create can be repeated.

    The hash keeps two pairs of driver and node apart that give one text, or are cut.
    """
    digest = hashlib.sha256(f"{driver}\0{node}".encode()).hexdigest()[:_HASH_LENGTH]
    stem = f"{index}-{driver}-{node}"[: _NAME_MAX - _HASH_LENGTH - 1].rstrip("-.")
    return f"{stem}-{digest}"


def plan(
    wanted: Pool,
    seen: Iterable[ResourceSlice],
    *,
    stored: Mapping[str, Stored],
    last_generation: int = 0,
) -> tuple[Action, ...]:
    """What to do, in this order, so that the API server has the pool as wanted; () when it has.

    `seen` are all slices of this driver on this node; `stored` what became of earlier writes, by
    name; `last_generation` the highest that this process knows of. A pool counts for the scheduler
    when as many slices of its highest generation are there as each of them says. So a single
    write may keep the generation; several make a new one, which is complete with the last.
    A taint that is published already keeps its time, whatever `wanted` says: a plugin that starts
    anew knows less of it, and how long pods tolerate a taint is counted from there.
    """
    existing = {item.metadata.name: item for item in seen}
    wanted = _with_times_of(existing.values(), wanted)
    generations = [s.spec.pool.generation for s in existing.values() if _is_of(s, wanted)]
    generation = max([last_generation, *generations])
    names = {item.name for item in wanted.slices}
    obsolete = [
        s for s in existing.values() if s.metadata.name not in names or not _is_of(s, wanted)
    ]
    matched = {name: s for name, s in existing.items() if s not in obsolete}
    target = ResourcePool(
        name=wanted.node, generation=generation, resource_slice_count=len(wanted.slices)
    )
    stale = [
        item
        for item in wanted.slices
        if not _is_current(matched.get(item.name), item, target, stored.get(item.name))
    ]
    if len(stale) + len(obsolete) > 1 or not generation:
        stale, target = list(wanted.slices), structs.replace(target, generation=generation + 1)
    deletes = tuple(Delete(item.metadata.name, item.metadata.uid) for item in obsolete)
    writes = (_write(wanted, item, matched.get(item.name), target) for item in stale)
    return (*deletes, *writes)


def dropped_fields(sent: Iterable[Device], kept: Iterable[Device]) -> tuple[str, ...]:
    """Paths of what the API server did not keep, sorted, each said once for all devices."""
    before, after = builtins({d.name: d for d in sent}), builtins({d.name: d for d in kept})
    missing: set[str] = set()
    for name, device in before.items():
        missing |= _missing(device, after.get(name, {}), "device")
    return tuple(sorted(missing))


def owned_by(body: dict[str, Any], owner: OwnerReference) -> dict[str, Any]:
    """The body with its owner: the node's end is the end of its slices."""
    reference = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
    }
    return {**body, "metadata": {**body["metadata"], "ownerReferences": [reference]}}


def _cut(items: tuple[T, ...], size: int) -> list[tuple[T, ...]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def _is_rich(device: Device) -> bool:
    lists = (
        value
        for a in device.attributes.values()
        for value in (a.ints, a.bools, a.strings, a.versions)
    )
    return bool(device.taints or device.consumes_counters or any(v is not None for v in lists))


def _with_times_of(seen: Iterable[ResourceSlice], wanted: Pool) -> Pool:
    times = {
        (device.name, taint.key, taint.value, taint.effect): taint.time_added
        for item in seen
        if _is_of(item, wanted)
        for device in item.spec.devices
        for taint in device.taints
    }

    def kept(device: Device, taint: DeviceTaint) -> DeviceTaint:
        told = times.get((device.name, taint.key, taint.value, taint.effect))
        return taint if told is None else structs.replace(taint, time_added=told)

    def timed(device: Device) -> Device:
        return structs.replace(device, taints=tuple(kept(device, one) for one in device.taints))

    if not times:
        return wanted
    slices = (structs.replace(one, devices=tuple(map(timed, one.devices))) for one in wanted.slices)
    return structs.replace(wanted, slices=tuple(slices))


def _is_of(item: ResourceSlice, wanted: Pool) -> bool:
    return item.spec.pool.name == wanted.node and item.spec.node_name == wanted.node


def _is_current(
    seen: ResourceSlice | None, wanted: WantedSlice, target: ResourcePool, stored: Stored | None
) -> bool:
    if seen is None or seen.spec.pool != target or seen.spec.shared_counters != wanted.counters:
        return False
    if seen.spec.devices == wanted.devices:
        return True
    return stored is not None and stored.sent == wanted.devices and stored.kept == seen.spec.devices


def _write(
    wanted: Pool, item: WantedSlice, seen: ResourceSlice | None, target: ResourcePool
) -> Create | Update:
    # Written out: our structs leave out what has its default value, also a count of one.
    content = {
        "pool": {
            "name": target.name,
            "generation": target.generation,
            "resourceSliceCount": target.resource_slice_count,
        },
        "devices": builtins(item.devices) if item.devices or not item.counters else None,
        "sharedCounters": builtins(item.counters) or None,
    }
    if seen is not None:
        version = {"resourceVersion": seen.metadata.resource_version}
        return Update(item, {"metadata": version, "spec": content})
    content = {name: value for name, value in content.items() if value is not None}
    body = {
        "apiVersion": API_VERSION,
        "kind": "ResourceSlice",
        "metadata": {"name": item.name},
        "spec": {"driver": wanted.driver, "nodeName": wanted.node, **content},
    }
    return Create(item, body)


def _missing(before: Any, after: Any, path: str) -> set[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        parts = (_missing(value, after.get(key), f"{path}.{key}") for key, value in before.items())
        return set[str]().union(*parts)
    return set() if after is not None else {path}

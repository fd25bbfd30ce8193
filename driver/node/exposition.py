"""The node's devices as Prometheus reads them: one series each, so their number is the node's.

`UUID` is spelt as NVIDIA's DCGM exporter spells it, so that its series join with ours.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from driver.model import names
from driver.model.resourceslice import Device, DeviceTaint
from driver.node.held import HeldDevice, PreparedClaim
from driver.node.state.store import ClaimStore

_LABELS = ["UUID", "device"]


class DeviceCollector(Collector):
    """Gauges of every published device; `refresh` reads what is held, before each collection."""

    def __init__(self, devices: Callable[[], Sequence[Device]], store: ClaimStore) -> None:
        self._devices = devices
        self._store = store
        self._held: tuple[PreparedClaim, ...] = ()

    async def refresh(self) -> None:
        """Read from the checkpoint which claims are prepared; raises `StorageError`."""
        self._held = await self._store.claims()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """All series, as of the last `refresh`."""
        devices = self._devices()
        yield _info(devices)
        yield _memory(devices)
        yield from _use(devices, self._held)
        yield _namespaces(devices, self._held)
        yield _taints(devices)


def _info(devices: Iterable[Device]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "quadrant_device_info", "Always 1.", labels=[*_LABELS, "index", "model", "type"]
    )
    for device in devices:
        index = device.attributes.get(names.INDEX)
        number = str(index.int_) if index is not None and index.int_ is not None else ""
        texts = [number, _text(device, names.PRODUCT_NAME), _text(device, "type")]
        family.add_metric([*_key(device), *texts], 1)
    return family


def _memory(devices: Iterable[Device]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "quadrant_device_memory_bytes", "Memory that is published.", labels=_LABELS
    )
    for device in devices:
        memory = device.capacity.get(names.MEMORY)
        if memory is not None:
            family.add_metric(_key(device), memory.value.ceil())
    return family


def _use(devices: Iterable[Device], claims: Iterable[PreparedClaim]) -> Iterator[GaugeMetricFamily]:
    by_device: dict[str, list[HeldDevice]] = {}
    for claim in claims:
        for held in claim.devices:
            by_device.setdefault(held.device, []).append(held)
    measures: list[tuple[str, str, Callable[[list[HeldDevice]], int]]] = [
        ("claims", "Results of prepared claims on the device, admin access included.", len),
        ("memory_held_bytes", "Memory that prepared claims hold.", _held_memory),
        ("cores_held", "Hundredths of the device that prepared claims hold.", _held_cores),
    ]
    for name, text, value in measures:
        family = GaugeMetricFamily(f"quadrant_device_{name}", text, labels=_LABELS)
        for device in devices:
            family.add_metric(_key(device), value(by_device.get(device.name, [])))
        yield family


def _namespaces(devices: Iterable[Device], claims: Iterable[PreparedClaim]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "quadrant_device_namespace_memory_held_bytes",
        "Memory that prepared claims of a namespace hold.",
        # Prometheus puts the plugin's own namespace into `namespace`.
        labels=[*_LABELS, "claim_namespace"],
    )
    held: dict[str, Counter[str]] = {}
    for claim in claims:
        for one in claim.devices:
            if not one.admin_access:
                held.setdefault(one.device, Counter())[claim.namespace] += one.memory
    for device in devices:
        for namespace, memory in sorted(held.get(device.name, Counter()).items()):
            family.add_metric([*_key(device), namespace], memory)
    return family


def _held_memory(held: list[HeldDevice]) -> int:
    return sum(one.memory for one in held if not one.admin_access)


def _held_cores(held: list[HeldDevice]) -> int:
    return sum(one.cores for one in held if not one.admin_access)


def _taints(devices: Iterable[Device]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "quadrant_device_taint",
        "1 for every taint of the device.",
        labels=[*_LABELS, "key", "value", "effect"],
    )
    for device in devices:
        for taint in device.taints:
            family.add_metric([*_key(device), *_told(taint)], 1)
    return family


def _told(taint: DeviceTaint) -> list[str]:
    return [taint.key, taint.value, taint.effect]


def _key(device: Device) -> list[str]:
    return [_text(device, names.UUID), device.name]


def _text(device: Device, name: str) -> str:
    attribute = device.attributes.get(name)
    return (attribute.string if attribute is not None else None) or ""

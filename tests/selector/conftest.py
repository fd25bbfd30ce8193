"""The devices that the tests select."""

from typing import Any

import pytest

from driver.model.resourceslice import Device
from driver.selector.device import SelectorDevice
from driver.wire.decode import convert

GPU: dict[str, Any] = {
    "name": "gpu-0",
    "attributes": {
        "model": {"string": "A10G"},
        "idx": {"int": 3},
        "mig": {"bool": False},
        "version": {"version": "1.10.3"},
        "l": {"ints": [1, 2, 3]},
        "tags": {"strings": ["x", "y"]},
        "flags": {"bools": [True]},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
    },
    "capacity": {"memory": {"value": "24Gi"}, "half": {"value": "500m"}},
}


@pytest.fixture(scope="session")
def gpu() -> SelectorDevice:
    """One GPU with an attribute of every kind."""
    return SelectorDevice.of("gpu.example.com", convert(Device, GPU))

"""Small builders of raw pods and review contexts, so that a case reads as a sentence."""

from typing import Any

from driver.controller.cards import Card
from driver.controller.pods import ReviewContext
from driver.controller.policies import Defaults
from driver.model import names
from driver.model.allocation import Features
from driver.model.api import ObjectMeta
from driver.model.deviceclass import DeviceClass, DeviceClassSpec
from driver.model.resourceclaim import CelSelector, DeviceSelector

MIB = 1024 * 1024
T4 = Card(15360 * MIB, "Tesla T4")
A10G = Card(23028 * MIB, "NVIDIA A10G")
DEFAULTS = Defaults(node="compact", gpu="spread")

GPU, MEMORY = "nvidia.com/gpu", "nvidia.com/gpumem"
PERCENTAGE, CORES = "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"
PRIORITY = "nvidia.com/priority"


def container(
    name: str = "main",
    limits: dict[str, Any] | None = None,
    *,
    requests: dict[str, Any] | None = None,
    **others: Any,
) -> dict[str, Any]:
    """A container; as the API server does, requests follow the limits where they are not given."""
    resources: dict[str, Any] = {}
    if limits is not None:
        resources["limits"] = dict(limits)
    if requests is not None or limits is not None:
        resources["requests"] = dict(limits or {}) if requests is None else dict(requests)
    return {"name": name, "image": "app", "resources": resources, **others}


def pod(
    *containers: dict[str, Any],
    init: tuple[dict[str, Any], ...] = (),
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A pod in namespace `team` as it arrives at admission."""
    metadata: dict[str, Any] = {"generateName": "app-", "namespace": "team"}
    if annotations is not None:
        metadata["annotations"] = annotations
    found: dict[str, Any] = {"containers": list(containers), **spec}
    if init:
        found["initContainers"] = list(init)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": found}


def device_class(
    name: str, selector: str | None = None, resource: str | None = None, **metadata: Any
) -> DeviceClass:
    """A class with one selector or none."""
    selectors = () if selector is None else (DeviceSelector(cel=CelSelector(expression=selector)),)
    spec = DeviceClassSpec(selectors=selectors, extended_resource_name=resource)
    return DeviceClass(metadata=ObjectMeta(name=name, **metadata), spec=spec)


OUR_CLASS = device_class(names.DRIVER, f'device.driver == "{names.DRIVER}"')
OUR_MAPPED_CLASS = device_class(names.DRIVER, f'device.driver == "{names.DRIVER}"', GPU)
NETWORK_CLASS = device_class("nic.example.com", 'device.driver == "nic.example.com"')


def context(**changes: Any) -> ReviewContext:
    """A cluster of T4 and A10G with everything switched on but extended resources."""
    given: dict[str, Any] = {
        "namespace": ObjectMeta(name="team"),
        "defaults": DEFAULTS,
        "features": Features(consumable_capacity=True, prioritized_list=True),
        "classes": {OUR_CLASS.metadata.name: OUR_CLASS, "nic.example.com": NETWORK_CLASS},
        "cards": frozenset({T4, A10G}),
    }
    return ReviewContext(**(given | changes))

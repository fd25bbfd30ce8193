"""What this cluster serves of DRA: asked of the API server, not guessed from a version.

A field whose feature gate is off is dropped in silence, so objects that use the fields are created
with dryRun and looked at when they come back. Where that is not allowed, the release's defaults
count. The gates of the scheduler cannot be asked for; they are taken to be those of the API server.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec
import structlog

from driver.kube.errors import BadRequest, Forbidden, Invalid, KubeError, NotFound
from driver.kube.rest import Rest
from driver.model.allocation import Features
from driver.model.deviceclass import DeviceClassSpec
from driver.model.quantity import NANO, Quantity
from driver.model.resourceslice import (
    CapacityRequestPolicy,
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceTaint,
    ResourcePool,
    ResourceSliceSpec,
)
from driver.simulator.releases import LATEST, Release, UnknownReleaseError, release
from driver.wire.decode import decode
from driver.wire.encode import encode

GROUP = "/apis/resource.k8s.io"
SLICES = f"{GROUP}/v1/resourceslices"
CLASSES = f"{GROUP}/v1/deviceclasses"
_PROBE = "quadrant-probe"
# Newest first; the shape is the same in all.
_TAINT_RULE_VERSIONS = ("v1", "v1beta2", "v1alpha3")
_log = structlog.get_logger(__name__)


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """What a cluster serves.

    `taint_rules` is the path of the DeviceTaintRules, None where there are none.
    """

    version: str
    features: Features
    extended_resources: bool
    taint_rules: str | None


_Spec = TypeVar("_Spec", ResourceSliceSpec, DeviceClassSpec)


class _Stored(msgspec.Struct, frozen=True):
    spec: msgspec.Raw


class _Probe(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of a slice, and how each feature shows in what is left of them."""

    features: Mapping[str, Callable[[ResourceSliceSpec], bool]]
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
    skip_node_operations: tuple[str, ...] = ()


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    git_version: str


class _Resource(msgspec.Struct, frozen=True):
    name: str


class _Resources(msgspec.Struct, frozen=True):
    resources: list[_Resource] = []


async def discover(rest: Rest, *, driver: str) -> Served:
    """Ask for everything that allocation depends on; `driver` names the probing slices.

    Leaves nothing behind. Raises KubeError when the API server cannot be asked, or does not serve
    resource.k8s.io/v1 (before Kubernetes 1.34, or switched off).
    """
    assumed = await assume(rest)
    extended = await _probe_class(rest)
    return msgspec.structs.replace(
        assumed,
        features=msgspec.structs.replace(
            assumed.features, **await _probe_slices(rest, driver, assumed.features)
        ),
        extended_resources=assumed.extended_resources if extended is None else extended,
    )


async def assume(rest: Rest) -> Served:
    """What the release serves by default: the same without dry runs, so that everybody may ask.

    Raises as `discover` does.
    """
    version = msgspec.json.decode(await rest.get("/version"), type=_Version).git_version
    resources = await _resources(rest, "v1")
    if "resourceclaims" not in resources:
        raise KubeError(
            f"this API server ({version}) does not serve resource.k8s.io/v1: "
            "Kubernetes 1.34 or newer is needed"
        )
    defaults = _defaults(version)
    return Served(
        version=version,
        features=defaults.features,
        extended_resources=defaults.extended_resources,
        taint_rules=await _taint_rules(rest, resources),
    )


def _defaults(version: str) -> Release:
    try:
        return release(version)
    except UnknownReleaseError:
        # resource.k8s.io/v1 is served, so this is a release newer than this code.
        _log.warning("unknown Kubernetes release", version=version, taken_for=LATEST)
        return release(LATEST)


async def _resources(rest: Rest, version: str) -> frozenset[str]:
    try:
        data = await rest.get(f"{GROUP}/{version}")
    except NotFound:
        return frozenset()
    answer = msgspec.json.decode(data, type=_Resources)
    return frozenset(resource.name for resource in answer.resources)


async def _taint_rules(rest: Rest, in_v1: frozenset[str]) -> str | None:
    for version in _TAINT_RULE_VERSIONS:
        resources = in_v1 if version == "v1" else await _resources(rest, version)
        if "devicetaintrules" in resources:
            return f"{GROUP}/{version}/devicetaintrules"
    return None


async def _probe_class(rest: Rest) -> bool | None:
    name = "probe.quadrant.dev/gpu"
    spec = DeviceClassSpec(extended_resource_name=name)
    kept = await _dry_run(rest, CLASSES, "DeviceClass", spec)
    return None if kept is None else kept.extended_resource_name == name


async def _probe_slices(rest: Rest, driver: str, defaults: Features) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for probe in _PROBES:
        spec = ResourceSliceSpec(
            driver=driver,
            # Incomplete for ever: even if one were stored, nobody would use its devices.
            pool=ResourcePool(name=_PROBE, generation=1, resource_slice_count=2),
            node_name=_PROBE,
            devices=probe.devices,
            shared_counters=probe.shared_counters,
            skip_node_operations=probe.skip_node_operations,
        )
        try:
            kept = await _dry_run(rest, SLICES, "ResourceSlice", spec)
        except Invalid:
            # What is left without the field is not allowed to stand alone.
            found |= dict.fromkeys(probe.features, False)
            continue
        for feature, is_kept in probe.features.items():
            found[feature] = getattr(defaults, feature) if kept is None else is_kept(kept)
    fractions = defaults.fractional_capacity_range and found["consumable_capacity"]
    return found | {"fractional_capacity_range": fractions}


async def _dry_run(rest: Rest, path: str, kind: str, spec: _Spec) -> _Spec | None:
    """The spec as it would be stored; None if asking is refused. Raises Invalid."""
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"generateName": f"{_PROBE}-"},
        "spec": spec,
    }
    try:
        data = await rest.create(path, encode(body), params={"dryRun": "All"}, repeatable=True)
    except (Forbidden, BadRequest) as error:
        # No right to create it, or an admission hook in the way that knows no dryRun.
        _log.info("feature probe refused; the release's defaults count", error=str(error))
        return None
    return decode(type(spec), decode(_Stored, data).spec)


_ONE = Quantity(NANO)
_SHARED = Device(
    name="d",
    allow_multiple_allocations=True,
    capacity={
        "m": DeviceCapacity(
            value=_ONE, request_policy=CapacityRequestPolicy(default=_ONE, valid_values=(_ONE,))
        )
    },
    taints=(DeviceTaint(key="quadrant.dev/probe", effect="NoSchedule"),),
    binds_to_node=True,
    binding_conditions=("quadrant.dev/ready",),
    binding_failure_conditions=("quadrant.dev/failed",),
)
_LISTED = Device(name="d", attributes={"a": DeviceAttribute(strings=("x",))})
_COUNTED = Device(
    name="d",
    consumes_counters=(
        DeviceCounterConsumption(
            counter_set="c", counters={"m": Counter(value=_ONE)}, compatibility_groups=("g",)
        ),
    ),
)
# What an API server with the gate off may refuse stands alone, so that it hides no other answer.
_PROBES = (
    _Probe(
        devices=(_SHARED,),
        features={
            "consumable_capacity": lambda spec: bool(spec.devices[0].allow_multiple_allocations),
            "device_taints": lambda spec: bool(spec.devices[0].taints),
            "device_binding_and_status": lambda spec: bool(spec.devices[0].binding_conditions),
        },
    ),
    _Probe(
        shared_counters=(CounterSet(name="c", counters={"m": Counter(value=_ONE)}),),
        features={"partitionable_devices": lambda spec: bool(spec.shared_counters)},
    ),
    _Probe(
        devices=(_LISTED,),
        features={"list_type_attributes": lambda spec: bool(spec.devices[0].attributes)},
    ),
    _Probe(
        devices=(Device(name="d"),),
        skip_node_operations=("NodeUnprepareResources",),
        features={"optional_node_operations": lambda spec: bool(spec.skip_node_operations)},
    ),
    _Probe(
        devices=(_COUNTED,),
        features={
            "compatibility_groups": lambda spec: any(
                consumed.compatibility_groups for consumed in spec.devices[0].consumes_counters
            )
        },
    ),
)

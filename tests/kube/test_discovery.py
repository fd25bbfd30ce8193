from collections.abc import Mapping

import pytest

from driver.kube.discovery import CLASSES, GROUP, SLICES, discover
from driver.kube.errors import KubeError
from driver.kube.rest import Rest
from driver.model.allocation import Features
from driver.simulator.releases import release
from tests.kube.apiserver import ApiServer
from tests.kube.objects import Json, Refusal

DRIVER = "gpu.quadrant.dev"
CORE = ("resourceclaims", "resourceslices", "deviceclasses")


def serve(server: ApiServer, version: str, groups: Mapping[str, tuple[str, ...]]) -> None:
    """Let the server be of a version, with these resources in each version of the group."""
    server.documents["/version"] = {"gitVersion": version}
    for name, resources in groups.items():
        listed = [{"name": resource} for resource in resources]
        server.documents[f"{GROUP}/{name}"] = {"resources": listed}


def gates_off(server: ApiServer, *dropped: str) -> None:
    """Drop these fields from devices and specs; what is empty then is refused, as it really is."""

    def admit(_: Json | None, new: Json) -> Json:
        spec = new["spec"]
        for place in [spec, *spec.get("devices", [])]:
            for field in dropped:
                place.pop(field, None)
        for device in spec.get("devices", []):
            for attribute in device.get("attributes", {}).values():
                for field in dropped:
                    attribute.pop(field, None)
                if not attribute:
                    raise Refusal(422, "Invalid", "must specify one of: `int`, `bool`")
        return new

    server.objects.admission[SLICES] = admit
    server.objects.admission[CLASSES] = admit


ALL = Features(
    admin_access=True,
    prioritized_list=True,
    device_taints=True,
    partitionable_devices=True,
    device_binding_and_status=True,
    consumable_capacity=True,
    fractional_capacity_range=True,
    list_type_attributes=True,
    optional_node_operations=True,
    compatibility_groups=True,
)


async def test_what_comes_back_from_a_dry_run_is_served(server: ApiServer, rest: Rest) -> None:
    """With all gates on; nothing is left behind."""
    serve(server, "v1.37.2", {"v1": (*CORE, "devicetaintrules")})
    served = await discover(rest, driver=DRIVER)
    assert served.features == ALL
    assert served.extended_resources
    assert served.taint_rules == f"{GROUP}/v1/devicetaintrules"
    assert not server.objects.objects
    posts = [line for line in server.requests if line.startswith("POST")]
    assert posts
    assert all(line.endswith("?dryRun=All") for line in posts)


@pytest.mark.parametrize(
    ("field", "feature"),
    [
        ("taints", "device_taints"),
        ("sharedCounters", "partitionable_devices"),
        ("bindingConditions", "device_binding_and_status"),
        ("strings", "list_type_attributes"),
        ("skipNodeOperations", "optional_node_operations"),
        ("consumesCounters", "compatibility_groups"),
    ],
)
async def test_a_field_that_is_dropped_is_not_served(
    server: ApiServer, rest: Rest, field: str, feature: str
) -> None:
    """Whatever the version says, and whether or not the rest is still valid."""
    serve(server, "v1.37.2", {"v1": CORE})
    gates_off(server, field)
    features = (await discover(rest, driver=DRIVER)).features
    assert [name for name in features.__struct_fields__ if differs(features, ALL, name)] == [
        feature
    ]


def differs(one: Features, other: Features, name: str) -> bool:
    """Whether a feature is served by one only."""
    return bool(getattr(one, name) != getattr(other, name))


async def test_without_consumable_capacity_there_are_no_fractions(
    server: ApiServer, rest: Rest
) -> None:
    """The range is part of the policy that is dropped."""
    serve(server, "v1.37.2", {"v1": CORE})
    gates_off(server, "allowMultipleAllocations")
    features = (await discover(rest, driver=DRIVER)).features
    assert not features.consumable_capacity
    assert not features.fractional_capacity_range


async def test_extended_resources_are_probed_with_a_class(server: ApiServer, rest: Rest) -> None:
    """A release that could serve them, with the gate off."""
    serve(server, "v1.36.3", {"v1": CORE})
    gates_off(server, "extendedResourceName")
    assert not (await discover(rest, driver=DRIVER)).extended_resources


@pytest.mark.parametrize(
    ("code", "version", "known"),
    [
        (400, "v1.34.4", "1.34"),
        (403, "v1.34.4", "1.34"),
        (403, "v1.36.3", "1.36"),
        (403, "v1.99.0", "1.37"),
    ],
)
async def test_where_asking_is_refused_the_release_counts(
    server: ApiServer, rest: Rest, *, code: int, version: str, known: str
) -> None:
    """No right to create, or a hook that knows no dryRun. A release of the future is the latest."""
    serve(server, version, {"v1": CORE})
    server.refuse(Refusal(code, "No"), times=99, path="deviceclasses")
    server.refuse(Refusal(code, "No"), times=99, path="resourceslices")
    served = await discover(rest, driver=DRIVER)
    assert served.features == release(known).features
    assert served.extended_resources == release(known).extended_resources


@pytest.mark.parametrize(
    ("groups", "path"),
    [
        ({"v1": CORE}, None),
        ({"v1": CORE, "v1alpha3": ("devicetaintrules",)}, f"{GROUP}/v1alpha3/devicetaintrules"),
        (
            {"v1": CORE, "v1beta2": ("devicetaintrules",), "v1alpha3": ("devicetaintrules",)},
            f"{GROUP}/v1beta2/devicetaintrules",
        ),
    ],
)
async def test_taint_rules_are_read_in_the_newest_version_served(
    server: ApiServer, rest: Rest, groups: Mapping[str, tuple[str, ...]], path: str | None
) -> None:
    """1.34 has them in v1alpha3, 1.36 in v1beta2, 1.37 in v1, each only if it is switched on."""
    serve(server, "v1.36.3", groups)
    assert (await discover(rest, driver=DRIVER)).taint_rules == path


async def test_a_cluster_without_the_api_is_named_as_such(server: ApiServer, rest: Rest) -> None:
    """The sentence says what is needed."""
    serve(server, "v1.33.1", {})
    with pytest.raises(KubeError, match=r"v1.33.1.* 1.34 or newer is needed"):
        await discover(rest, driver=DRIVER)

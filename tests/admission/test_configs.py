"""Configurations are read as they are written, by the same rules as before a claim is prepared."""

import json
from typing import Any

import msgspec
import pytest

from driver.admission.configs import ConfigHandler
from driver.admission.server import Allowed, Answer, Denied
from driver.model.gpuconfig import API_VERSION, KIND
from driver.model.names import DRIVER
from driver.model.resourceclaim import DeviceAllocationConfiguration, OpaqueDeviceConfiguration
from driver.node.claims import entry
from driver.node.errors import ClaimRefusedError
from driver.wire.admission import AdmissionRequest
from tests.node.builders import claim, facts, ref, result


def parameters(**fields: Any) -> str:
    """A GpuConfig."""
    return json.dumps({"apiVersion": API_VERSION, "kind": KIND, **fields})


# The same bytes must be taken, or refused, at both places.
GOLDEN = [
    (parameters(), True),
    (parameters(sharing={"strategy": "TimeSlicing"}), True),
    (parameters(sharing={"strategy": "TimeSlicing", "timeSlicing": {"interval": "Long"}}), True),
    (parameters(sharing={"strategy": "MPS", "mps": {"activeThreadPercentage": 50}}), True),
    (parameters(sharing={"strategy": "MPS", "mps": {"pinnedDeviceMemoryLimit": "4Gi"}}), True),
    ('{"apiVersion":"quadrant.dev/v1alpha1","kind":"PlacementPolicy","gpuPolicy":"spread"}', True),
    (parameters(sharing={"strategy": "Fair"}), False),
    (parameters(sharing={"strategy": "MPS", "mps": {"activeThreadPercentage": 101}}), False),
    (parameters(sharing={"strategy": "MPS", "timeSlicing": {}}), False),
    (parameters(sharing={"strategy": "TimeSlicing", "timeSlicing": {"intervall": "Long"}}), False),
    (parameters(sharing={"strategy": "MPS", "mps": {"pinnedDeviceMemoryLimit": "lots"}}), False),
    (parameters(partitioning={}), False),
    ('{"apiVersion":"config.quadrant.dev/v2","kind":"GpuConfig"}', False),
    ('{"apiVersion":"resource.nvidia.com/v1beta1","kind":"GpuConfig"}', False),
    ('{"kind":"GpuConfig"}', False),
    ("{}", False),
    (f'{{"a":{"[" * 3000}{"]" * 3000}}}', False),
]


def configured(text: str, driver: str = DRIVER) -> str:
    """A list of configurations, one for somebody else and the one in question."""
    other = '{"opaque":{"driver":"nic.example.com","parameters":{"mtu":9000}}}'
    return f'[{other},{{"requests":["gpu"],"opaque":{{"driver":"{driver}","parameters":{text}}}}}]'


KINDS = {
    "DeviceClass": '{"spec":{"selectors":[],"config":%s}}',
    "ResourceClaim": '{"spec":{"devices":{"requests":null,"config":%s}}}',
    "ResourceClaimTemplate": '{"spec":{"spec":{"devices":{"config":%s}}}}',
}


async def ask(document: str) -> Answer:
    """What is answered about an object."""
    request = AdmissionRequest(uid="1", object=msgspec.Raw(document.encode()))
    return await ConfigHandler(DRIVER).handle(request, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("text", "good"), GOLDEN)
async def test_what_is_read_and_what_is_refused(kind: str, text: str, good: bool) -> None:
    """In each of the three kinds, whatever else they say."""
    answer = await ask(KINDS[kind] % configured(text))
    assert isinstance(answer, Allowed if good else Denied)


@pytest.mark.parametrize(("text", "good"), GOLDEN)
def test_the_node_takes_what_admission_takes(text: str, good: bool) -> None:
    """And refuses what it refuses; a webhook that was down changes nothing in the end."""
    opaque = OpaqueDeviceConfiguration(driver=DRIVER, parameters=msgspec.Raw(text.encode()))
    config = DeviceAllocationConfiguration(source="FromClaim", opaque=opaque)
    allocated = claim(0, result("gpu-0"), config=[config])
    if good:
        assert entry(ref(0), allocated, facts(mps_dir="/mps")).devices
        return
    with pytest.raises(ClaimRefusedError, match="cannot be used as configured"):
        entry(ref(0), allocated, facts(mps_dir="/mps"))


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("DeviceClass", "spec.config[1]"),
        ("ResourceClaim", "spec.devices.config[1]"),
        ("ResourceClaimTemplate", "spec.spec.devices.config[1]"),
    ],
)
async def test_a_refusal_names_the_place(kind: str, path: str) -> None:
    """Of the configuration in the object, and of the field in the configuration."""
    wrong = parameters(sharing={"strategy": "TimeSlicing", "timeSlicing": {"intervall": "Long"}})
    answer = await ask(KINDS[kind] % configured(wrong))
    assert isinstance(answer, Denied)
    assert answer.message.startswith(f"{path}.opaque.parameters: ")
    assert "unknown field `intervall` - at `$.sharing.timeSlicing`" in answer.message


@pytest.mark.parametrize("kind", KINDS)
async def test_other_drivers_are_left_alone(kind: str) -> None:
    """Whatever their parameters are."""
    assert await ask(KINDS[kind] % configured('{"kind":"Anything"}', "other.com")) == Allowed()
    assert await ask('{"spec":{}}') == Allowed()

"""Whether the API server takes what rules of attributes may say, and what devices become of it."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from driver.kube.errors import ApiError
from driver.kube.rest import Rest
from driver.kube.session import open_session
from driver.model.resourceslice import Device, DeviceAttribute
from driver.node.rules.names import name_fault, value_fault
from driver.node.rules.reading import read
from driver.node.rules.rule import MOST
from driver.node.sharing.offered import offered
from driver.node.sharing.partitions import MigMode
from driver.node.simulated import cards, models
from driver.wire.encode import builtins

ROOT = Path(__file__).parents[2]
CLUSTER = "attr"
DRIVER = "gpu.quadrant.dev"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
# Devices in a slice with taints or counters.
BATCH = 64

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(os.geteuid() != 0, reason="hack/cluster keeps its files where root may"),
]

NAMES = [
    *("a", "_a", "A1", "1a", "a-b", "a.b", "a" * 32, "a" * 33, "x.y/a", "x_y/a", "-x/a", "x-/a"),
    *("x..y/a", "/a", "a/", f"{'a' * 63}/a", f"{'a' * 64}/a", "é", "a b", f"x/{'a' * 33}"),
    *("resource.kubernetes.io/numaNode", "k8s.io/a"),
]
VALUES = [
    DeviceAttribute(string=""),
    DeviceAttribute(string="x" * 64),
    DeviceAttribute(string="x" * 65),
    DeviceAttribute(string="é" * 32),
    DeviceAttribute(string="é" * 33),
    DeviceAttribute(string="a\nb"),
    DeviceAttribute(int_=2**63 - 1),
    DeviceAttribute(int_=-(2**63)),
    DeviceAttribute(bool_=False),
    *(
        DeviceAttribute(version=text)
        for text in (
            *("", "1.2", "1.2.3", "v1.2.3", "01.2.3", "1.2.3-rc.1+b", "99999999999999999999.0.0"),
            *(f"1.2.3+{'b' * 58}", f"1.2.3+{'b' * 59}"),
        )
    ),
]


def hack(*arguments: str) -> str:
    """Run hack/cluster."""
    command = [str(ROOT / "hack" / "cluster"), *arguments, "--name", CLUSTER]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


@pytest.fixture(scope="module")
def kubeconfig() -> Iterator[str]:
    """A control plane of our own."""
    hack("down")
    hack("up", "--control-plane-only")
    yield hack("kubeconfig")
    hack("down")


async def refusal(rest: Rest, *devices: Device) -> str | None:
    """What the API server has against a slice of these devices; None when it takes it."""
    body: dict[str, Any] = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "tried"},
        "spec": {
            "driver": DRIVER,
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 2},
            "devices": [builtins(one) for one in devices],
        },
    }
    try:
        await rest.create(SLICES, json.dumps(body).encode(), params={"dryRun": "All"})
    except ApiError as error:
        return str(error)
    return None


async def test_names_and_values_are_judged_as_the_api_server_does(kubeconfig: str) -> None:
    """A rule that is let in must not spoil the slice; one that would do no harm is let in."""
    async with open_session(kubeconfig) as session:
        rest = Rest(session)
        for name in NAMES:
            said = await refusal(rest, Device(name="d", attributes={name: DeviceAttribute(int_=1)}))
            assert (said is None) == (name_fault(name) is None), f"{name!r}: {said}"
        for value in VALUES:
            said = await refusal(rest, Device(name="d", attributes={"a": value}))
            assert (said is None) == (value_fault(value) is None), f"{value}: {said}"


@pytest.mark.parametrize("model", models())
async def test_all_devices_are_taken_with_as_many_attributes_as_fit(
    kubeconfig: str, model: str
) -> None:
    """Whole cards and all parts of them, filled up by rules to the most there may be."""
    head = "apiVersion: config.quadrant.dev/v1alpha1\nkind: AttributeRules\nrules:\n"
    rule = "  - match: 'true'\n    attributes:\n"
    names = "".join(f"      own{number}: {number}\n" for number in range(MOST))
    rules = read(head + rule + names, driver=DRIVER)
    offer = offered(cards(f"1x{model}", "n1"), mig=MigMode.DYNAMIC, shareable=True)
    dressed = [rules.dress(one) for one in offer.devices(counters=True)]
    assert all(len(one.attributes) + len(one.capacity) == MOST for one in dressed)
    async with open_session(kubeconfig) as session:
        for start in range(0, len(dressed), BATCH):
            assert await refusal(Rest(session), *dressed[start : start + BATCH]) is None

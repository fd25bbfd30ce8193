"""The kubelet's wire format: names and numbers as every kubelet from 1.34 has them."""

import subprocess
import sys
from types import ModuleType

import pytest

from driver._proto import (
    dra_health_v1_pb2,
    dra_health_v1alpha1_pb2,
    dra_v1_pb2,
    dra_v1beta1_pb2,
    pluginregistration_v1_pb2,
)

_CLAIM = {"namespace": 1, "uid": 2, "name": 3}
_DEVICE = {"request_names": 1, "pool_name": 2, "device_name": 3, "cdi_device_ids": 4}


def numbers(module: ModuleType, message: str) -> dict[str, int]:
    """The fields of a message."""
    fields = module.DESCRIPTOR.message_types_by_name[message].fields
    return {field.name: field.number for field in fields}


@pytest.mark.parametrize(
    ("module", "package", "device"),
    [
        (dra_v1_pb2, "v1", {**_DEVICE, "share_id": 5}),
        (dra_v1beta1_pb2, "v1beta1", _DEVICE),
    ],
)
def test_dra(module: ModuleType, package: str, device: dict[str, int]) -> None:
    """Both versions of DRAPlugin."""
    service = module.DESCRIPTOR.services_by_name["DRAPlugin"]
    assert service.full_name == f"k8s.io.kubelet.pkg.apis.dra.{package}.DRAPlugin"
    assert {m.name for m in service.methods} == {"NodePrepareResources", "NodeUnprepareResources"}
    assert numbers(module, "Claim") == _CLAIM
    assert numbers(module, "Device") == device
    assert numbers(module, "NodePrepareResourceResponse") == {"devices": 1, "error": 2}
    assert numbers(module, "NodeUnprepareResourceResponse") == {"error": 1}
    for name in ("NodePrepareResources", "NodeUnprepareResources"):
        assert numbers(module, f"{name}Request") == {"claims": 1}
        assert numbers(module, f"{name}Response") == {"claims": 1}


def test_a_share_id_on_the_wire() -> None:
    """Bytes written out: field 5, so that a kubelet that does not know it skips it."""
    assert dra_v1_pb2.Device(share_id="s").SerializeToString() == b"\x2a\x01s"


@pytest.mark.parametrize(
    ("module", "package"), [(dra_health_v1_pb2, "v1"), (dra_health_v1alpha1_pb2, "v1alpha1")]
)
def test_health(module: ModuleType, package: str) -> None:
    """The packages are literally `v1` and `v1alpha1`."""
    service = module.DESCRIPTOR.services_by_name["DRAResourceHealth"]
    assert service.full_name == f"{package}.DRAResourceHealth"
    [method] = service.methods
    assert (method.name, method.client_streaming, method.server_streaming) == (
        "NodeWatchResources",
        False,
        True,
    )
    assert numbers(module, "NodeWatchResourcesResponse") == {"devices": 1}
    assert numbers(module, "DeviceIdentifier") == {"pool_name": 1, "device_name": 2}
    assert numbers(module, "DeviceHealth") == {
        "device": 1,
        "health": 2,
        "last_updated_time": 3,
        "health_check_timeout_seconds": 4,
        "message": 5,
    }
    words = module.DESCRIPTOR.enum_types_by_name["HealthStatus"].values
    assert [word.name for word in words] == ["UNKNOWN", "HEALTHY", "UNHEALTHY"]


def test_registration() -> None:
    """The package is literally `pluginregistration`."""
    module = pluginregistration_v1_pb2
    service = module.DESCRIPTOR.services_by_name["Registration"]
    assert service.full_name == "pluginregistration.Registration"
    assert numbers(module, "PluginInfo") == {
        "type": 1,
        "name": 2,
        "endpoint": 3,
        "supported_versions": 4,
    }
    assert numbers(module, "RegistrationStatus") == {"plugin_registered": 1, "error": 2}


def test_the_generated_code_is_what_the_proto_files_give() -> None:
    """Regenerate and compare."""
    pytest.importorskip("grpc_tools")
    check = [sys.executable, "hack/proto", "--check"]
    result = subprocess.run(check, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr

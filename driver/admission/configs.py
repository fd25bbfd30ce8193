"""The handler of `POST /configs`: what a claim, template or class says to our driver is readable.

The same reading as before a claim is prepared (`driver.model.gpuconfig`), so that a mistake is told
to whoever makes it, and not to a pod that waits for its devices. What belongs to other drivers is
not looked at.
"""

from collections.abc import Iterator

from driver.admission.server import Allowed, Answer, Call, Denied
from driver.model import gpuconfig
from driver.model.api import ApiStruct
from driver.model.errors import InvalidObjectError
from driver.model.resourceclaim import DeviceClaimConfiguration
from driver.wire.admission import AdmissionRequest
from driver.wire.decode import decode


class _Devices(ApiStruct, frozen=True, kw_only=True):
    config: tuple[DeviceClaimConfiguration, ...] = ()


class _Spec(ApiStruct, frozen=True, kw_only=True):
    """Where configurations are: of a class, of a claim, of a template."""

    config: tuple[DeviceClaimConfiguration, ...] = ()
    devices: _Devices = _Devices()
    spec: "_Spec | None" = None


class _Configured(ApiStruct, frozen=True, kw_only=True):
    """A ResourceClaim, ResourceClaimTemplate or DeviceClass."""

    spec: _Spec = _Spec()


class ConfigHandler:
    """Reviews the configurations for one driver."""

    def __init__(self, driver: str) -> None:
        self._driver = driver

    async def handle(self, request: AdmissionRequest, _call: Call) -> Answer:
        """Refuse an object with a configuration for our driver that cannot be read."""
        try:
            found = decode(_Configured, request.object)
        except InvalidObjectError as error:
            return Denied(f"configurations cannot be read: {error}")
        for path, entry in _entries(found.spec, "spec"):
            if entry.opaque is None or entry.opaque.driver != self._driver:
                continue
            try:
                gpuconfig.decode(bytes(entry.opaque.parameters))
            except InvalidObjectError as error:
                return Denied(f"{path}.opaque.parameters: {error}")
        return Allowed()


def _entries(spec: _Spec, path: str) -> Iterator[tuple[str, DeviceClaimConfiguration]]:
    for place, entries in (
        (f"{path}.config", spec.config),
        (f"{path}.devices.config", spec.devices.config),
    ):
        yield from ((f"{place}[{number}]", entry) for number, entry in enumerate(entries))
    if spec.spec is not None:
        yield from _entries(spec.spec, f"{path}.spec")

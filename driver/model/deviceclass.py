"""What an administrator offers: device classes, and taints laid on devices from outside.

Source of every field and rule: `k8s.io/api/resource/v1`.
"""

from driver.model.api import ApiStruct, ObjectMeta
from driver.model.resourceclaim import DeviceClaimConfiguration, DeviceSelector
from driver.model.resourceslice import DeviceTaint


class DeviceClassSpec(ApiStruct, frozen=True, kw_only=True):
    """Which devices are in a class, how they are set up, and their extended resource name."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(ApiStruct, frozen=True, kw_only=True):
    """One class."""

    metadata: ObjectMeta
    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceTaintSelector(ApiStruct, frozen=True, kw_only=True):
    """Which devices a rule is about; every field that is set must agree."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(ApiStruct, frozen=True, kw_only=True):
    """A taint for the selected devices."""

    taint: DeviceTaint
    device_selector: DeviceTaintSelector | None = None


class DeviceTaintRule(ApiStruct, frozen=True, kw_only=True):
    """A taint that somebody other than the driver put on devices."""

    metadata: ObjectMeta
    spec: DeviceTaintRuleSpec

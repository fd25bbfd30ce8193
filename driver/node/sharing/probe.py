"""Whether the API server of this cluster keeps what parts of a card need: counters between slices.

Asked by a dry run, because a field whose feature is off is dropped in silence, and because before
Kubernetes 1.36 counters had to be in the slice of the devices that draw from them.
"""

from typing import TYPE_CHECKING

import msgspec
import structlog

from driver.model.errors import QuadrantError
from driver.model.quantity import whole
from driver.model.resourceslice import (
    Counter,
    Device,
    DeviceCounterConsumption,
    ResourceSlice,
)
from driver.node.settings import NodeSettings
from driver.node.sharing.offered import Offered
from driver.node.slices import API_VERSION, slice_name
from driver.wire.decode import decode
from driver.wire.encode import builtins

if TYPE_CHECKING:
    from driver.kube.rest import Rest

_DEVICE = Device(
    name="probe",
    consumes_counters=(
        DeviceCounterConsumption(
            counter_set="elsewhere", counters={"one": Counter(value=whole(1))}
        ),
    ),
)

log = structlog.get_logger(__name__)


async def counters_kept(rest: "Rest", settings: NodeSettings, offered: Offered) -> bool:
    """Whether what is offered can be published with its counters; asked only if it has some."""
    return offered.cuts_cards() and await keeps_counters(
        rest, driver=settings.driver, node=settings.node_name
    )


async def keeps_counters(rest: "Rest", *, driver: str, node: str) -> bool:
    """Whether a device may draw from counters in another slice of its pool; logs why not."""
    body = {
        "apiVersion": API_VERSION,
        "kind": "ResourceSlice",
        "metadata": {"name": slice_name("probe", driver, node)},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 2},
            "devices": [builtins(_DEVICE)],
        },
    }
    path = f"/apis/{API_VERSION}/resourceslices?dryRun=All"
    try:
        kept = decode(ResourceSlice, await rest.create(path, msgspec.json.encode(body)))
    except QuadrantError as error:
        log.warning(_WITHOUT, error=str(error))
        return False
    if kept.spec.devices[0].consumes_counters:
        return True
    log.warning(_WITHOUT, error="the API server drops the counters")
    return False


_WITHOUT = (
    "cards are published whole only: parts need the feature DRAPartitionableDevices as it is from "
    "Kubernetes 1.36 on"
)

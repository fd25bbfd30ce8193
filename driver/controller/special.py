"""Which claim the scheduler would make for the extended resources of a pod (KEP-5004).

Nobody but the scheduler can make that claim, and it does so in the moment it commits; the node axis
has to know before what will be in it. Source of the rules: the scheduler's dynamicresources plugin,
1.37.
"""

from collections.abc import Callable, Iterator

import msgspec

from driver.controller.footprint import is_sidecar
from driver.model import names
from driver.model.api import ObjectMeta, OwnerReference
from driver.model.core import Container, Pod
from driver.model.quantity import NANO
from driver.model.resourceclaim import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)

ClassOf = Callable[[str], str | None]


class _Ask(msgspec.Struct, frozen=True):
    """One container's wish for one resource that devices serve."""

    container: int
    index: int
    resource: str
    device_class: str
    count: int

    def request(self, count: int) -> DeviceRequest:
        return DeviceRequest(
            name=f"container-{self.container}-request-{self.index}",
            exactly=ExactDeviceRequest(device_class_name=self.device_class, count=count),
        )


def special_claim(pod: Pod, class_of: ClassOf) -> ResourceClaim | None:
    """The claim as it would be made; None when no device class serves what the pod asks for.

    `class_of` names the DeviceClass that serves a resource. The claim has no UID: it does not
    exist.
    """
    requests = tuple(_requests(pod, class_of))
    if not requests:
        return None
    owner = OwnerReference(
        api_version="v1",
        kind="Pod",
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        controller=True,
    )
    metadata = ObjectMeta(
        generate_name=f"{pod.metadata.name}-extended-resources-",
        namespace=pod.metadata.namespace,
        annotations={names.EXTENDED_CLAIM: "true"},
        owner_references=(owner,),
    )
    return ResourceClaim(
        metadata=metadata, spec=ResourceClaimSpec(devices=DeviceClaim(requests=requests))
    )


def resources_by_devices(pod: Pod, class_of: ClassOf) -> frozenset[str]:
    """The extended resources of the pod that a device class serves."""
    return frozenset(
        ask.resource
        for number, container in enumerate(_containers(pod))
        for ask in _asks(number, container, class_of)
    )


def _requests(pod: Pod, class_of: ClassOf) -> Iterator[DeviceRequest]:
    """One request for each container and resource, in the order of the containers.

    An init container that ends before others start uses their devices, and those that the init
    containers before it got; it has a request only for what it needs beyond.
    """
    containers = _containers(pod)
    asks = [list(_asks(number, container, class_of)) for number, container in enumerate(containers)]
    first = [_ends_early(pod, number) for number in range(len(containers))]
    extra: dict[str, int] = {}
    for number, of_container in enumerate(asks):
        for ask in of_container:
            if not first[number]:
                yield ask.request(ask.count)
                continue
            later = sum(
                other.count
                for after in range(number + 1, len(asks))
                if not first[after]
                for other in asks[after]
                if other.resource == ask.resource
            )
            beyond = ask.count - later - extra.get(ask.resource, 0)
            if beyond > 0:
                extra[ask.resource] = extra.get(ask.resource, 0) + beyond
                yield ask.request(beyond)


def _containers(pod: Pod) -> tuple[Container, ...]:
    return (*pod.spec.init_containers, *pod.spec.containers)


def _ends_early(pod: Pod, number: int) -> bool:
    init = pod.spec.init_containers
    return number < len(init) and not is_sidecar(init[number])


def _asks(number: int, container: Container, class_of: ClassOf) -> Iterator[_Ask]:
    """What one container asks for; the index counts all its resources, sorted by name."""
    amounts = {**container.resources.limits, **container.resources.requests}
    for index, resource in enumerate(sorted(amounts)):
        device_class = class_of(resource)
        count = amounts[resource].nano // NANO
        if device_class is not None and count > 0:
            yield _Ask(number, index, resource, device_class, count)

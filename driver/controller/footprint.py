"""What a pod takes of a node apart from devices: plain resources and ports.

Source of the rules: `k8s.io/component-helpers/resource` (PodRequests) and the scheduler's NodePorts
plugin. Amounts are nano units. It knows nothing of what a node has.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from driver.model.core import Container, Pod
from driver.model.quantity import NANO, Quantity

# Takes part in the resources of the pod as a whole (KEP-2837), where it says any.
_POD_LEVEL = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"
PODS = "pods"
_ANY_ADDRESS = "0.0.0.0"  # noqa: S104 # the API's word for all addresses of a node


class HostPort(NamedTuple):
    """One port of a node that a container wants for itself."""

    address: str
    protocol: str
    port: int

    def clashes(self, other: "HostPort") -> bool:
        """Whether both cannot be held on one node."""
        return self[1:] == other[1:] and (
            self.address == other.address or _ANY_ADDRESS in (self.address, other.address)
        )


class Footprint(msgspec.Struct, frozen=True):
    """What one pod takes; a pod also takes one of the node's `pods`."""

    resources: Mapping[str, int]
    ports: tuple[HostPort, ...] = ()


def footprint(pod: Pod) -> Footprint:
    """What this pod takes of whatever node it runs on."""
    resources = _of_containers(pod)
    whole_pod = _requests(pod.spec.resources.requests, pod.spec.resources.limits)
    resources.update(
        (name, amount)
        for name, amount in whole_pod.items()
        if name in _POD_LEVEL or name.startswith(_HUGE_PAGES)
    )
    for name, amount in pod.spec.overhead.items():
        resources[name] = resources.get(name, 0) + amount.nano
    resources[PODS] = NANO
    return Footprint(resources, tuple(_ports(pod)))


def _of_containers(pod: Pod) -> dict[str, int]:
    """The most that the containers need at one time.

    A sidecar starts before the init containers that follow it, and runs on beside all others.
    """
    running: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in pod.spec.init_containers:
        asked = _of_container(container)
        if is_sidecar(container):
            _add(running, asked)
            asked = {}
        for name in (*running, *asked):
            now = running.get(name, 0) + asked.get(name, 0)
            peak[name] = max(peak.get(name, 0), now)
    for container in pod.spec.containers:
        _add(running, _of_container(container))
    return {
        name: max(running.get(name, 0), peak.get(name, 0))
        for name in dict.fromkeys((*running, *peak))
    }


def is_sidecar(container: Container) -> bool:
    """Whether an init container runs as long as its pod does."""
    return container.restart_policy == "Always"


def _of_container(container: Container) -> dict[str, int]:
    return _requests(container.resources.requests, container.resources.limits)


def _requests(requests: Mapping[str, Quantity], limits: Mapping[str, Quantity]) -> dict[str, int]:
    """A limit stands for a request that is left out, as the API server's defaults have it."""
    return {name: amount.nano for name, amount in {**limits, **requests}.items()}


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _ports(pod: Pod) -> Iterable[HostPort]:
    sidecars = (container for container in pod.spec.init_containers if is_sidecar(container))
    for container in (*sidecars, *pod.spec.containers):
        for port in container.ports:
            if port.host_port:
                yield HostPort(port.host_ip or _ANY_ADDRESS, port.protocol, port.host_port)

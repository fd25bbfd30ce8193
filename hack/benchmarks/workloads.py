"""What the claims of a measured cluster ask for, and how they look before and after an answer."""

from typing import Any

import msgspec

from driver.model.names import CORES, DRIVER, MEMORY, NUMA_NODE

Json = dict[str, Any]
CLASS = DRIVER
NAMESPACE = "bench"
_SHARE = {MEMORY: "10Gi", CORES: "25"}
_OURS = f'device.attributes["{DRIVER}"]'
_MODERN = (
    f'{_OURS}.productName.matches("^NVIDIA (H100|H200|L40S)") && '
    f'device.capacity["{DRIVER}"].memory.isGreaterThan(quantity("60Gi"))'
)


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """Claims that all ask for the same.

    `count` cards at a time, which agree in the attribute `match`; or, where `shares` is more than
    one, a part of one card that so many claims find room on. `selector` is what CEL asks of each
    card, and `suits` are the models that pass it (empty: all).
    """

    name: str
    count: int = 1
    shares: int = 1
    match: str = ""
    selector: str = ""
    suits: frozenset[str] = frozenset()

    def claim(self, name: str, version: int) -> Json:
        """A claim that nobody has answered yet."""
        exactly: Json = {"deviceClassName": CLASS, "allocationMode": "ExactCount"}
        exactly["count"] = self.count
        if self.shares > 1:
            exactly["capacity"] = {"requests": _SHARE}
        if self.selector:
            exactly["selectors"] = [{"cel": {"expression": self.selector}}]
        devices: Json = {"requests": [{"name": "gpu", "exactly": exactly}]}
        if self.match:
            devices["constraints"] = [{"matchAttribute": self.match}]
        metadata = {
            "name": name,
            "namespace": NAMESPACE,
            "uid": f"uid-{name}",
            "resourceVersion": str(version),
        }
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": metadata,
            "spec": {"devices": devices},
        }

    def allocated(self, claim: Json, node: str, cards: tuple[int, ...]) -> Json:
        """The claim with these cards of the node, as the scheduler writes it."""
        results = [self._result(claim, node, card) for card in cards]
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        allocation = {
            "devices": {"results": results},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        }
        return claim | {"status": {"allocation": allocation}}

    def _result(self, claim: Json, node: str, card: int) -> Json:
        result: Json = {"request": "gpu", "driver": DRIVER, "pool": node, "device": f"gpu-{card}"}
        if self.shares > 1:
            result["shareID"] = f"share-{claim['metadata']['uid']}"
            result["consumedCapacity"] = dict(_SHARE)
        return result


WHOLE = Workload(name="whole")
SHARE = Workload(name="share", shares=4)
# Eight cards hang on two NUMA nodes: a match leaves either these four or those.
FOUR = Workload(name="4 of 8, one NUMA node", count=4, match=NUMA_NODE)
SELECTED = Workload(
    name="selector on model and memory",
    selector=_MODERN,
    suits=frozenset({"H100-SXM", "H200"}),
)
WORKLOADS = (WHOLE, SHARE, FOUR, SELECTED)

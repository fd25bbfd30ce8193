"""Whether a pod plainly cannot run on a node, apart from devices.

Source of the rules: the scheduler's plugins NodeUnschedulable, TaintToleration, NodeAffinity,
NodeResourcesFit and NodePorts. "Plainly": what is not sure here is left to the scheduler, which has
the last word anyway.
"""

from collections.abc import Collection, Iterable, Mapping

import msgspec

from driver.allocator.nodes import selects
from driver.controller.footprint import PODS, Footprint, footprint
from driver.model.allocation import RejectionKind
from driver.model.api import NodeSelector, Toleration
from driver.model.core import Node, Pod, Taint
from driver.model.errors import AllocationError
from driver.model.quantity import Quantity

_REPELLING = ("NoSchedule", "NoExecute")
_CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class Demands(msgspec.Struct, frozen=True, kw_only=True):
    """All that decides on which nodes a pod can run, apart from its devices.

    `by_devices` are the resources that DeviceClasses stand for (KEP-5004): where a node has none of
    them itself, the scheduler makes a claim in their place.
    """

    footprint: Footprint
    tolerations: tuple[Toleration, ...] = ()
    node_selector: Mapping[str, str] = {}
    affinity: NodeSelector | None = None
    by_devices: tuple[str, ...] = ()


class Unfit(msgspec.Struct, frozen=True):
    """Why not: of which kind, a reason that many nodes may share, what would help on this one."""

    kind: RejectionKind
    reason: str
    remedy: str


_TAINT, _SELECTION = RejectionKind.NODE_TAINT, RejectionKind.NODE_SELECTION
_RESOURCES, _PORT = RejectionKind.NODE_RESOURCES, RejectionKind.HOST_PORT


def demands(pod: Pod, by_devices: Collection[str] = ()) -> Demands:
    """What this pod demands of a node; `by_devices` as in `Demands`."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    return Demands(
        footprint=footprint(pod),
        tolerations=pod.spec.tolerations,
        node_selector=pod.spec.node_selector,
        affinity=affinity.required if affinity else None,
        by_devices=tuple(sorted(by_devices)),
    )


def unfit(wanted: Demands, node: Node, others: Iterable[Footprint]) -> Unfit | None:
    """Why the pod plainly cannot run on the node; None when it may.

    `others` is what the pods take that are on the node, or meant for it.
    """
    return (
        _kept_away(wanted, node)
        or _not_selected(wanted, node)
        or _lacks_resources(wanted, node, others := tuple(others))
        or _ports_taken(wanted, node, others)
    )


def _kept_away(wanted: Demands, node: Node) -> Unfit | None:
    name = node.metadata.name
    if node.spec.unschedulable and not _tolerated(_CORDONED, wanted.tolerations):
        return Unfit(_TAINT, "the node is cordoned", f"uncordon node {name}")
    for taint in node.spec.taints:
        if taint.effect in _REPELLING and not _tolerated(taint, wanted.tolerations):
            text = f"{taint.key}={taint.value}" if taint.value else taint.key
            return Unfit(
                _TAINT,
                f"the node has taint {text}:{taint.effect}, which the pod does not tolerate",
                f"tolerate the taint, or take it off node {name}",
            )
    return None


def _tolerated(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    # Exists does; Gt and Lt (alpha, KEP-5471) and what else may come is for the scheduler to say.
    return True


def _not_selected(wanted: Demands, node: Node) -> Unfit | None:
    name, labels = node.metadata.name, node.metadata.labels
    for key, value in wanted.node_selector.items():
        if labels.get(key) != value:
            return Unfit(
                _SELECTION,
                f"the pod's nodeSelector wants label {key}={value}",
                f"label node {name} so, or widen the nodeSelector",
            )
    if wanted.affinity is not None and not may_select(wanted.affinity, node):
        return Unfit(
            _SELECTION,
            "the pod's required node affinity selects other nodes",
            f"widen the affinity so that it selects node {name}",
        )
    return None


def may_select(selector: NodeSelector, node: Node) -> bool:
    """Whether the selector selects the node, as far as it is understood here."""
    try:
        return selects(selector, node)
    except AllocationError:
        # An operator of a newer Kubernetes; the scheduler will know.
        return True


def _lacks_resources(wanted: Demands, node: Node, others: tuple[Footprint, ...]) -> Unfit | None:
    allocatable = node.status.allocatable
    if not allocatable:
        # The node has not said yet what it has, or is only known from its slices.
        return None
    for resource, amount in wanted.footprint.resources.items():
        has = allocatable[resource].nano if resource in allocatable else 0
        if resource in wanted.by_devices:
            if has:
                return _device_plugin(resource, node)
            continue
        left = has - sum(other.resources.get(resource, 0) for other in others)
        if 0 < amount > left:
            return _too_little(resource, amount, left, node)
    return None


def _device_plugin(resource: str, node: Node) -> Unfit:
    return Unfit(
        _RESOURCES,
        f"a device plugin gives {resource} there, so that there is no device to choose",
        f"take the device plugin for {resource} off node {node.metadata.name}",
    )


def _too_little(resource: str, amount: int, left: int, node: Node) -> Unfit:
    name = node.metadata.name
    if resource == PODS:
        return Unfit(
            _RESOURCES, "the node has as many pods as it may run", f"end a pod on node {name}"
        )
    has = node.status.allocatable.get(resource)
    if has is None:
        return Unfit(_RESOURCES, f"the node has no {resource}", f"add a node that has {resource}")
    reason = f"too little {resource} is left"
    if amount > has.nano:
        return Unfit(_RESOURCES, reason, f"add a node that has more {resource}")
    missing = Quantity(amount - left, has.format)
    return Unfit(_RESOURCES, reason, f"free {missing} of {resource} on node {name}")


def _ports_taken(wanted: Demands, node: Node, others: tuple[Footprint, ...]) -> Unfit | None:
    taken = [port for other in others for port in other.ports]
    for mine in wanted.footprint.ports:
        if any(mine.clashes(other) for other in taken):
            return Unfit(
                _PORT,
                f"host port {mine.port}/{mine.protocol} is taken",
                f"end the pod on node {node.metadata.name} that holds port {mine.port}, "
                "or use another",
            )
    return None

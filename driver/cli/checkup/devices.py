"""Are the cards published, whole and by nobody else, and are there classes to ask for them by?"""

from collections.abc import Iterable, Iterator

from driver.allocator.pools import Published, pool_on
from driver.cli.checkup.evidence import Evidence
from driver.cli.checkup.finding import Finding, fail, ok, skip, warn
from driver.controller import extended
from driver.model.core import Node, Pod
from driver.model.deviceclass import DeviceClass
from driver.model.ids import PoolId
from driver.model.resourceslice import ResourceSlice
from driver.selector.errors import SelectorError
from driver.selector.program import compile_selector

_SLICES, _PLUGINS, _CLASSES, _RIVAL = (
    "slices",
    "node plugins",
    "device classes",
    "device plugin",
)
_FEW = 3


def check(evidence: Evidence) -> Iterator[Finding]:
    """Slices, plugins, classes, other ways to the same cards."""
    yield from _slices(evidence)
    yield from _plugins(evidence)
    yield from _classes(evidence)
    yield from _rivals(evidence)


def _slices(evidence: Evidence) -> Iterator[Finding]:
    if evidence.slices.unseen or evidence.nodes.unseen:
        yield skip(_SLICES, evidence.slices.unseen or evidence.nodes.unseen)
        return
    nodes = {node.metadata.name: node for node in evidence.nodes.items}
    by_pool = _by_pool(evidence)
    if not by_pool:
        yield fail(
            _SLICES,
            f"no node publishes devices of {evidence.driver}",
            "see the logs of the node plugins (kubectl -n "
            f"{evidence.namespace} logs ds/quadrant-node); without GPUs, try "
            "inventory.simulated.profile=4xT4",
        )
    good = 0
    for pool_id, slices in by_pool.items():
        problem = _problem(evidence, pool_id, slices, nodes)
        if problem is None:
            good += 1
        else:
            yield problem
    if good:
        devices = sum(len(one.spec.devices) for part in by_pool.values() for one in part)
        yield ok(_SLICES, f"{_number(good, 'pool')} complete, {_number(devices, 'device')}")


def _by_pool(evidence: Evidence) -> dict[PoolId, list[ResourceSlice]]:
    found: dict[PoolId, list[ResourceSlice]] = {}
    for one in evidence.slices.items:
        if one.spec.driver == evidence.driver:
            found.setdefault(PoolId(one.spec.driver, one.spec.pool.name), []).append(one)
    return found


def _problem(
    evidence: Evidence, pool_id: PoolId, slices: list[ResourceSlice], nodes: dict[str, Node]
) -> Finding | None:
    name = slices[0].spec.node_name or ""
    node = nodes.get(name)
    if not name:
        # Not for one node; whether it is whole depends on who looks.
        return None
    if node is None:
        return warn(
            _SLICES,
            f"pool {pool_id.pool} is for node {name}, which does not exist",
            "delete its slices: kubectl delete resourceslices --field-selector "
            f"spec.nodeName={name},spec.driver={evidence.driver}",
        )
    features = evidence.served.features
    pool = pool_on(node, pool_id, [Published(one, features) for one in slices], features)
    if pool is None or pool.usable:
        return None
    newest = max(one.spec.pool.generation for one in slices)
    current = [one for one in slices if one.spec.pool.generation == newest]
    wanted = current[0].spec.pool.resource_slice_count
    said = pool.invalid or f"{len(current)} of {wanted} slices of generation {newest} are there"
    return fail(
        _SLICES,
        f"pool {pool_id.pool}: {said}; nothing is allocated from it",
        f"restart the node plugin on {name}: it publishes its slices anew",
    )


def _plugins(evidence: Evidence) -> Iterator[Finding]:
    if evidence.plugins.unseen:
        yield skip(_PLUGINS, evidence.plugins.unseen)
        return
    pods = [pod for pod in evidence.plugins.items if pod.spec.node_name and not pod.finished]
    if not pods:
        yield skip(
            _PLUGINS,
            f"no pods of quadrant-node in namespace {evidence.namespace}",
        )
        return
    published = (
        {one.spec.node_name for one in evidence.slices.items}
        if not (evidence.slices.unseen)
        else None
    )
    silent = _some(
        pod.spec.node_name
        for pod in pods
        if published is not None and pod.spec.node_name not in published
    )
    unready = _some(pod.spec.node_name for pod in pods if not ready(pod))
    if silent:
        yield warn(
            _PLUGINS,
            f"a plugin runs but publishes nothing on {silent}",
            "no GPU there, or NVML is not found: see its log; node.nodeSelector keeps plugins off "
            "nodes without GPUs",
        )
    if unready:
        yield fail(
            _PLUGINS,
            f"the plugin is not ready on {unready}: pods with claims do not start there",
            f"kubectl -n {evidence.namespace} describe pods -l app.kubernetes.io/component=node",
        )
    if not silent and not unready:
        yield ok(_PLUGINS, f"{_number(len(pods), 'plugin')} ready, each publishes devices")


def _classes(evidence: Evidence) -> Iterator[Finding]:
    if evidence.classes.unseen:
        yield skip(_CLASSES, evidence.classes.unseen)
        return
    ours = [one for one in evidence.classes.items if extended.is_ours(one, evidence.driver)]
    broken = {one.metadata.name: error for one in ours if (error := _broken(one))}
    for name, error in broken.items():
        yield fail(
            _CLASSES,
            f"class {name}: a selector cannot be read: {error}",
            f"kubectl edit deviceclass {name}",
        )
    if not any(one.metadata.name == evidence.driver for one in ours):
        yield fail(
            _CLASSES,
            f"there is no class {evidence.driver}, which HAMi's resources are translated to",
            "set deviceClass.create=true, or kubectl apply -f deviceclasses/gpu.yaml",
        )
    elif not broken:
        yield ok(_CLASSES, ", ".join(sorted(one.metadata.name for one in ours)))


def _broken(device_class: DeviceClass) -> str:
    for selector in device_class.spec.selectors:
        try:
            if selector.cel is not None:
                compile_selector(selector.cel.expression)
        except SelectorError as error:
            return str(error)
    return ""


def _rivals(evidence: Evidence) -> Iterator[Finding]:
    """A device plugin on a node of ours hands out the same cards a second time."""
    resources = {
        one.spec.extended_resource_name
        for one in evidence.classes.items
        if one.spec.extended_resource_name and extended.is_ours(one, evidence.driver)
    } | {"nvidia.com/gpu"}
    ours = {part[0].spec.node_name for part in _by_pool(evidence).values()}
    both: list[str] = []
    elsewhere: list[str] = []
    for node in evidence.nodes.items:
        for resource in sorted(resources):
            amount = node.status.allocatable.get(resource)
            if amount is not None and amount.nano > 0:
                where = both if node.metadata.name in ours else elsewhere
                where.append(f"{node.metadata.name} ({resource})")
    if both:
        yield fail(
            _RIVAL,
            f"a device plugin serves cards that are published here too: {_some(both)}",
            "remove one of the two from these nodes: every card there is handed out twice",
        )
    elif elsewhere:
        yield warn(
            _RIVAL,
            f"other nodes have a device plugin for the same name: {_some(elsewhere)}",
            "a pod that asks for the name may go to either; HAMi's resources of pods meant for "
            "those nodes are translated too (docs/hami.md)",
        )
    elif evidence.nodes.items:
        yield ok(_RIVAL, f"no node has {', '.join(sorted(resources))} from a device plugin")
    else:
        yield skip(_RIVAL, evidence.nodes.unseen or "there are no nodes")


def ready(pod: Pod) -> bool:
    """Whether a pod says that it serves."""
    return any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions)


def _some(found: Iterable[str]) -> str:
    items = sorted(set(found))
    more = f" and {len(items) - _FEW} more" if len(items) > _FEW else ""
    return ", ".join(items[:_FEW]) + more


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"

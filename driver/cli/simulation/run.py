"""The whole way of every pod, one after the other: created, placed, scheduled, committed.

The composition only: each step is the code that serves a real cluster, or stands for a part of
Kubernetes (`driver.simulator`).
"""

from collections.abc import Iterator

from msgspec.structs import replace

from driver.cli.simulation import creation, placing, scheduling
from driver.cli.simulation.apiserver import Raw
from driver.cli.simulation.inventory import machines
from driver.cli.simulation.manifests import Manifests
from driver.cli.simulation.report import MIB, CardUse, GivenDevice, PendingPod, Placement, Report
from driver.cli.simulation.world import Rules, World
from driver.controller.pods import Refused
from driver.model import names
from driver.model.ids import DeviceId
from driver.model.resourceclaim import DeviceRequestAllocationResult, ResourceClaim
from driver.model.resourceslice import Device
from driver.simulator import workloads
from driver.simulator.cards import Card, cards, index_of

# After a denial the controller nominates again; in a standing cluster once more is enough, and
# what is denied three times will not come.
_ATTEMPTS = 3


def simulate(manifests: Manifests, rules: Rules) -> Report:
    """Play all manifests, in order; raises `ManifestError` for an inventory that is wrong."""
    world = World(manifests, machines(manifests.inventories, rules.driver), rules)
    placed: list[Placement] = []
    pending: list[PendingPod] = []
    warnings = [
        f"{number} object{'s' if number > 1 else ''} of kind {kind} skipped: placement does not "
        "depend on them"
        for kind, number in sorted(manifests.skipped.items())
    ]
    for document in manifests.workloads:
        for pod in workloads.pods(document.raw):
            outcome, said = _play(world, pod)
            (placed if isinstance(outcome, Placement) else pending).append(outcome)  # type: ignore[arg-type]
            warnings += said
    return Report(
        kubernetes=rules.release.name,
        placements=tuple(placed),
        pending=tuple(pending),
        cards=tuple(_card_use(card) for card in _cards(world)),
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _play(world: World, raw: Raw) -> tuple[Placement | PendingPod, tuple[str, ...]]:
    """One pod from its manifest to a node, or to the reason why not; and admission's warnings."""
    created = creation.create(world, raw)
    if isinstance(created, Refused):
        metadata = raw["metadata"]
        name = metadata.get("name") or f"{metadata['generateName']}…"
        return _pending(metadata["namespace"], name, created.message, refused=True), ()
    metadata = created.pod["metadata"]
    said = tuple(f"pod {metadata['name']}: {warning}" for warning in created.warnings)
    outcome = _run(world, created.pod)
    if isinstance(outcome, scheduling.Scheduled):
        return _placement(world, created.pod, outcome), said
    return _pending(metadata["namespace"], metadata["name"], outcome.reason), said


def _run(world: World, pod: Raw) -> scheduling.Scheduled | scheduling.NotScheduled:
    outcome = scheduling.NotScheduled("")
    for _ in range(_ATTEMPTS):
        placed = placing.place(world, world.pod(pod))
        if gates := placed.pod["spec"].get("schedulingGates"):
            waits = ", ".join(gate["name"] for gate in gates)
            return scheduling.NotScheduled(f"waits for scheduling gate {waits}")
        attempt = scheduling.schedule(world, placed.pod)
        if isinstance(attempt, scheduling.Scheduled):
            return replace(attempt, why=(*placed.why, *attempt.why))
        outcome = attempt
        if not outcome.retry:
            break
    return outcome


def _pending(namespace: str, pod: str, reason: str, *, refused: bool = False) -> PendingPod:
    return PendingPod(namespace=namespace, pod=pod, refused=refused, reason=reason)


def _placement(world: World, pod: Raw, outcome: scheduling.Scheduled) -> Placement:
    policies = [world.cluster.policies(claim) for claim in outcome.claims]
    return Placement(
        namespace=pod["metadata"]["namespace"],
        pod=pod["metadata"]["name"],
        node=outcome.node,
        devices=tuple(device for claim in outcome.claims for device in _given(world, claim)),
        node_policy=min((p.node for p in policies), key=lambda s: s.source).policy
        if policies
        else "",
        gpu_policy=", ".join(dict.fromkeys(policy.gpu.policy for policy in policies)),
        why=outcome.why,
    )


def _given(world: World, claim: ResourceClaim) -> Iterator[GivenDevice]:
    allocation = claim.status.allocation
    for result in allocation.devices.results if allocation is not None else ():
        published = world.cluster.inventory.find(result.device_id())
        if published is not None:
            yield _given_device(claim, result, published.device)


def _given_device(
    claim: ResourceClaim, result: DeviceRequestAllocationResult, device: Device
) -> GivenDevice:
    whole = {name: capacity.value for name, capacity in device.capacity.items()}
    taken = {**whole, **result.consumed_capacity}
    uuid = device.attributes.get(names.UUID)
    return GivenDevice(
        claim=claim.metadata.name,
        request=result.request,
        pool=result.pool,
        device=result.device,
        index=index_of(device),
        uuid=(uuid.string if uuid else None) or "",
        shared=result.share_id is not None,
        memory_mib=taken[names.MEMORY].ceil() // MIB if names.MEMORY in taken else 0,
        cores=taken[names.CORES].ceil() if names.CORES in taken else 0,
    )


def _cards(world: World) -> tuple[Card, ...]:
    def devices(node: str) -> Iterator[tuple[DeviceId, Device]]:
        for pool in world.cluster.inventory.pools(world.cluster.node(node)):
            for found in pool.devices:
                yield found.id, found.device

    return cards(((node, devices(node)) for node in world.nodes), world.cluster.ledger.use())


def _card_use(card: Card) -> CardUse:
    return CardUse(
        node=card.node,
        device=card.device.device,
        index=card.index,
        uuid=card.uuid,
        product=card.product,
        nvlink_group=card.nvlink_group,
        memory_mib=card.memory // MIB,
        memory_used_mib=card.memory_used // MIB,
        cores_used=card.cores_used,
        shares=card.shares,
        exclusive=card.exclusive,
    )

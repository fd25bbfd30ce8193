"""What a simulated cluster shows at the end: who got which cards, and what is left of them."""

from collections.abc import Iterator

from driver.cli.simulation.apiserver import Raw
from driver.cli.simulation.report import MIB, CardUse, GivenDevice, Placement
from driver.cli.simulation.scheduling import Scheduled
from driver.cli.simulation.world import World
from driver.model import names
from driver.model.ids import DeviceId
from driver.model.resourceclaim import DeviceRequestAllocationResult, ResourceClaim
from driver.model.resourceslice import Device
from driver.simulator.cards import Card, cards, index_of, is_part


def placement(world: World, pod: Raw, outcome: Scheduled) -> Placement:
    """One pod that runs, with the policies that decided: of several claims, the strongest."""
    policies = [world.cluster.policies(claim) for claim in outcome.claims]
    nodes = sorted((one.node for one in policies), key=lambda setting: setting.source)
    gpus = dict.fromkeys(one.gpu.value for one in policies)
    return Placement(
        namespace=pod["metadata"]["namespace"],
        pod=pod["metadata"]["name"],
        node=outcome.node,
        devices=tuple(device for claim in outcome.claims for device in _given(world, claim)),
        node_policy=nodes[0].value if nodes else "",
        gpu_policy="; ".join(gpus),
        why=outcome.why,
    )


def card_uses(world: World) -> tuple[CardUse, ...]:
    """All cards, node by node."""

    def devices(node: str) -> Iterator[tuple[DeviceId, Device]]:
        for pool in world.cluster.inventory.pools(world.cluster.node(node)):
            for found in pool.devices:
                yield found.id, found.device

    found = cards(((node, devices(node)) for node in world.nodes), world.cluster.ledger.use())
    return tuple(_card_use(card) for card in found)


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
    part = is_part(device)
    return GivenDevice(
        claim=claim.metadata.name,
        request=result.request,
        pool=result.pool,
        device=result.device,
        index=index_of(device),
        # A part has no UUID before it is made.
        uuid=(uuid.string if uuid else None) or (result.device if part else ""),
        shared=result.share_id is not None or part,
        memory_mib=taken[names.MEMORY].ceil() // MIB if names.MEMORY in taken else 0,
        cores=taken[names.CORES].ceil() if names.CORES in taken else 0,
    )


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
        parts=card.parts,
        exclusive=card.exclusive,
    )

"""What two views of the same cards differ in: ours, and that of NVIDIA's tool. Pure."""

from collections.abc import Iterator, Sequence

from driver.node import sysfs
from driver.node.card import MIB, Card
from hack.devicecheck.smi import SmiCard, SmiMachine

_MODES = {True: "Enabled", False: "Disabled"}
_NO_CLUSTER = frozenset("0-")


def differences(cards: Sequence[Card], machine: SmiMachine) -> tuple[str, ...]:
    """One sentence for each difference. What the tool's version has no place for is not one."""
    return (*_of_machine(cards, machine), *_of_cards(cards, machine))


def _of_machine(cards: Sequence[Card], machine: SmiMachine) -> Iterator[str]:
    pairs = {
        "cards": (len(cards), machine.attached),
        "driver versions": (_said(card.driver_version for card in cards), machine.driver_version),
        "CUDA versions": (_said(card.cuda_driver_version for card in cards), machine.cuda_version),
    }
    for what, (ours, theirs) in pairs.items():
        if ours != theirs:
            yield f"{what}: found {ours}, nvidia-smi says {theirs}"


def _said(texts: Iterator[str | None]) -> str:
    return ", ".join(sorted({text or "nothing" for text in texts}))


def _of_cards(cards: Sequence[Card], machine: SmiMachine) -> Iterator[str]:
    by_uuid = {card.uuid: card for card in cards if card.uuid}
    theirs = {card.uuid: card for card in machine.cards}
    for uuid in theirs.keys() - by_uuid.keys():
        yield f"{uuid}: not found, but nvidia-smi has it"
    for card in by_uuid.values():
        if card.uuid in theirs:
            yield from _of_card(card, theirs[card.uuid])
        elif card.lost is None:
            yield f"{card.uuid}: found, but nvidia-smi does not have it"
    ours_in_order = [uuid for uuid in by_uuid if uuid in theirs]
    theirs_in_order = [uuid for uuid in theirs if uuid in by_uuid]
    if ours_in_order != theirs_in_order:
        yield f"order: found {ours_in_order}, nvidia-smi has {theirs_in_order}"


def _of_card(card: Card, other: SmiCard) -> Iterator[str]:
    ours, theirs = _our_facts(card), _their_facts(other)
    for name in ours:
        if name in other.known and ours[name] != theirs.get(name):
            yield f"{card.uuid} {name}: found {ours[name]}, nvidia-smi says {theirs.get(name)}"


def _our_facts(card: Card) -> dict[str, str | None]:
    """Our facts in the tool's words."""
    mig = card.mig
    group = card.nvlink_group or ""
    return {
        "productName": card.product_name or None,
        "brand": card.brand.lower() if card.brand else None,
        "architecture": card.architecture,
        "addressingMode": card.addressing_mode,
        "memory": f"{card.memory // MIB} MiB" if card.memory else None,
        "pciBusID": card.pci_bus_id,
        "gpuModuleID": None if card.module_id is None else str(card.module_id),
        "migMode": _MODES[mig.enabled] if mig else None,
        "migModePending": _MODES[mig.pending] if mig else None,
        "migPartitions": str(len(mig.instances) if mig else 0),
        # A group of this node alone is named after a card.
        "fabric": group if "." in group else None,
    }


def _their_facts(card: SmiCard) -> dict[str, str | None]:
    """The tool's facts where its words are not the only ones for the same."""
    facts: dict[str, str | None] = dict(card.facts)
    brand, address = card.facts.get("brand"), card.facts.get("pciBusID")
    facts["brand"] = brand.replace(" ", "").lower() if brand else None
    facts["pciBusID"] = sysfs.pci_address(address) if address else None
    facts["fabric"] = _clique(card)
    return facts


def _clique(card: SmiCard) -> str | None:
    cluster, state = card.facts.get("cluster", ""), card.facts.get("fabric")
    # An old tool has no place for the status.
    has_status = "fabricStatus" in card.known
    is_well = not has_status or card.facts.get("fabricStatus") == "Success"
    if state != "Completed" or not is_well or not set(cluster) - _NO_CLUSTER:
        return None
    return f"{cluster}.{card.facts.get('clique')}"

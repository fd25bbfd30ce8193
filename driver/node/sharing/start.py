"""How sharing is put together at the start of the plugin, and which control its cards have."""

from collections.abc import Collection, Sequence
from pathlib import Path

import structlog

from driver.node.card import Card
from driver.node.faults import Reach, pass_by
from driver.node.inventories import NVML, SIMULATED, chosen
from driver.node.settings import NodeSettings
from driver.node.sharing.daemons import Daemons
from driver.node.sharing.fixed import FixedCards
from driver.node.sharing.offered import ADVISORY, BY_HAMI_CORE, Offered, offered
from driver.node.sharing.partitions import MigMode, is_cut_up
from driver.node.sharing.port import CardControl
from driver.node.sharing.setup import CardSetup
from driver.node.sharing.simulated import SimulatedControl
from driver.node.sharing.witness import Witness
from driver.node.state.store import ClaimStore

log = structlog.get_logger(__name__)


def parts_made(settings: NodeSettings, *, boot: str) -> frozenset[str]:
    """The UUIDs of the parts that were made here, now; asked before the cards are read.

    A part has its witness from when it is made (before that, only its claim in the checkpoint
    tells of it) until it is gone. What another instance removes while this one starts is known
    to be ours only from before. Blocking; raises `OSError`.
    """
    return frozenset(Witness(Path(settings.data_dir()), boot=boot).parts())


def start_sharing(
    settings: NodeSettings,
    cards: Sequence[Card],
    store: ClaimStore,
    *,
    boot: str,
    made: Collection[str] = (),
    reach: Reach = pass_by,
) -> tuple[CardSetup, Offered]:
    """What sets cards up, and what the node offers of them; nothing of dead claims is left.

    `made` are the `parts_made` before the cards were read: a part on them may be gone by now.
    Blocking. Raises `OSError` when the folders cannot be used.
    """
    folder = Path(settings.data_dir())
    setup = CardSetup(
        store,
        control(settings, cards, boot=boot),
        folder=folder,
        boot=boot,
        daemons=Daemons(Path(settings.mps_dir) if settings.mps_dir else None),
        reach=reach,
    )
    held, ours = setup.recover()
    limits = BY_HAMI_CORE if settings.hami_core_dir else ADVISORY
    found = offered(
        cards,
        mig=MigMode(settings.mig),
        shareable=settings.shareable,
        limits=limits,
        held=held,
        ours=ours.union(made),
    )
    _tell_withheld(found)
    return setup, found


def _tell_withheld(found: Offered) -> None:
    for card in found.cards:
        if found.modes[card.uuid] is MigMode.OFF and is_cut_up(card, MigMode.OFF):
            log.warning(
                "card not published: it is in MIG mode, and mig is off; turn the mode off with "
                "nvidia-smi and start the plugin again, or set mig to static or dynamic",
                card=card.uuid,
                command=f"nvidia-smi -i {card.uuid} -mig 0",
            )


def control(settings: NodeSettings, cards: Sequence[Card], *, boot: str) -> CardControl:
    """What changes the settings of this node's cards."""
    kind = chosen(settings)
    if kind == SIMULATED:
        return SimulatedControl(cards, Path(settings.data_dir()) / "simulated", boot=boot)
    if kind == NVML:
        from driver.node.nvidia.control import NvmlControl  # noqa: PLC0415  (an optional dependency)

        return NvmlControl()
    return FixedCards(kind)

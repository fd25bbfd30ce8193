"""What the plugin has on its machine: cards, checkpoint, CDI files, and what it knows of them.

Nothing of it needs the kubelet or the API server.
"""

import asyncio
import secrets
from pathlib import Path

from driver.node.card import Inventory
from driver.node.claims import NodeFacts
from driver.node.containers import cdi
from driver.node.containers.cdifiles import CdiFiles
from driver.node.containers.metadatafiles import MetadataFiles
from driver.node.containers.vendor import vendor_devices
from driver.node.errors import NodeError
from driver.node.faults import Reach, pass_by
from driver.node.health.start import start_ward
from driver.node.inventories import inventory, numbered
from driver.node.settings import NodeSettings
from driver.node.sharing.offered import cards_by_name
from driver.node.sharing.start import parts_made, start_sharing
from driver.node.state.recover import recover
from driver.node.state.store import ClaimStore
from driver.node.turn import Turn

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_VENDOR_PERIOD_S = 30.0


class LocalNode:
    """Making it does all that can fail on the machine itself, and starts nothing.

    Blocks on disk and hardware: make it in a thread where there is an event loop. Raises
    `NodeError` for wrong settings, cards that cannot be read, folders that cannot be used.
    """

    def __init__(
        self, settings: NodeSettings, *, cards: Inventory | None = None, reach: Reach = pass_by
    ) -> None:
        settings.check()
        self._settings = settings
        found = cards or inventory(settings)
        folder = Path(settings.data_dir())
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o750)
            self.boot = _BOOT_ID.read_text().strip()
            self.inventory = numbered(settings, found, boot=self.boot)
            made = parts_made(settings, boot=self.boot)
            self.cards = self.inventory.cards()
            self.files = CdiFiles(
                Path(settings.cdi_dir),
                settings.driver,
                metadata=MetadataFiles(Path(settings.metadata_dir()), settings.driver),
                reach=reach,
            )
            self.store = ClaimStore(folder / "claims.journal", reach=reach)
            recover(self.store, self.files, boot=self.boot)
            self.setup, self.offered = start_sharing(
                settings, self.cards, self.store, boot=self.boot, made=made, reach=reach
            )
            self.turn = Turn(folder, settings.pod_uid or secrets.token_hex(8))
        except OSError as error:
            raise NodeError(f"folders of the plugin cannot be used: {error}") from error
        self.facts = self._read_facts()
        self.ward = start_ward(settings, found, self.facts.cards, boot=self.boot)

    def close(self) -> None:
        """Let go of the files."""
        self.store.close()
        self.turn.close()

    async def reread(self) -> bool:
        """Read the cards again; whether something of what is offered has changed.

        Raises `InventoryError` when they cannot be read at all; all stays as it is then.
        """
        cards = await asyncio.to_thread(self.inventory.cards)
        renewed = self.offered.renewed(cards)
        if renewed == self.offered:
            return False
        self.cards, self.offered = cards, renewed
        self.facts = await asyncio.to_thread(self._read_facts)
        return True

    async def follow_vendor(self) -> None:
        """Keep the vendor's CDI devices known until cancelled.

        The toolkit may describe the cards after this plugin has started, and again later. It knows
        nothing of simulated ones.
        """
        while not self._settings.simulate:
            await asyncio.sleep(_VENDOR_PERIOD_S)
            self.facts = await asyncio.to_thread(self._read_facts)

    def _read_facts(self) -> NodeFacts:
        settings = self._settings
        vendor: dict[str, str] = {}
        if not settings.simulate:
            uuids = self.offered.uuids()
            skip = cdi.file_prefix(settings.driver)
            vendor = vendor_devices(settings.vendor_cdi_dirs, uuids, skip=skip)
        return NodeFacts(
            driver=settings.driver,
            pool=settings.node_name,
            boot=self.boot,
            cards=cards_by_name(self.offered),
            parts=self.offered.parts,
            vendor_devices=vendor,
            cuts_cards=self.offered.cuts_cards(),
            mps_dir=settings.mps_dir,
            hami_core_dir=settings.hami_core_dir,
            hami_core_state=str(settings.data_dir() / "hami"),
            metadata_dir=str(settings.metadata_dir()),
        )

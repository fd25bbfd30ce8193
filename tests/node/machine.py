"""A node in one folder: checkpoint, CDI files and a preparer, which can crash and start again."""

from collections.abc import Iterable
from pathlib import Path

from msgspec import structs

from driver.model.resourceclaim import ResourceClaim
from driver.node.claims import ClaimRef, NodeFacts
from driver.node.containers.cdi import AnswerDevice
from driver.node.containers.cdifiles import CdiFiles
from driver.node.containers.metadatafiles import MetadataFiles
from driver.node.faults import FaultPoint
from driver.node.held import PreparedClaim
from driver.node.prepare import Preparer
from driver.node.sharing.daemons import Daemons
from driver.node.sharing.partitions import MigMode
from driver.node.sharing.setup import CardSetup
from driver.node.sharing.simulated import CardState, SimulatedControl
from driver.node.state.checkpoint import Book, Record
from driver.node.state.recover import recover
from driver.node.state.store import ClaimStore
from tests.node.builders import DRIVER, facts


class CrashError(Exception):
    """The process is no more."""


class Machine:
    """`start` it before use, and again after a `CrashError`."""

    def __init__(self, folder: Path, claims: Iterable[ResourceClaim] = ()) -> None:
        self.claims = {claim.metadata.name: claim for claim in claims}
        self.folder = folder
        self.cdi = folder / "cdi"
        self.metadata = folder / "metadata"
        # Whether containers are told of their devices in files.
        self.has_metadata = False
        # Where the keeper of MPS daemons looks; None: there is none.
        self.mps: Path | None = None
        self.journal = folder / "claims.journal"
        self.double_uses: list[ClaimRef] = []
        self.boot = 1
        # Where the process dies next.
        self.fault: FaultPoint | None = None
        self.passed: list[FaultPoint] = []

    def start(self) -> "Machine":
        """A new process on what the last one left."""
        self.fault = None
        self.control = SimulatedControl(
            self.facts().cards.values(), self.folder / "simulated", boot=self.facts().boot
        )
        self.store = ClaimStore(self.journal, reach=self._reach)
        self.files = CdiFiles(
            self.cdi, DRIVER, metadata=MetadataFiles(self.metadata, DRIVER), reach=self._reach
        )
        recover(self.store, self.files, boot=self.facts().boot)
        self.setup = CardSetup(
            self.store,
            self.control,
            folder=self.folder,
            boot=self.facts().boot,
            daemons=Daemons(self.mps),
            reach=self._reach,
        )
        self.setup.recover()
        self.preparer = Preparer(
            self.store,
            self.files,
            self.setup,
            get_claim=self._get_claim,
            node=self.facts,
            on_double_use=lambda claim, _: self.double_uses.append(claim),
            reach=self._reach,
        )
        return self

    def reboot(self) -> "Machine":
        """The machine goes down: the CDI folder is in memory."""
        self.stop()
        self.boot += 1
        for path in self.cdi.iterdir():
            path.unlink()
        return self.start()

    def stop(self) -> None:
        """The process ends; what it has open is closed, as the kernel does."""
        self.store.close()

    def facts(self) -> NodeFacts:
        """What the node knows of itself."""
        known = facts(boot=f"boot-{self.boot}", cut=MigMode.DYNAMIC)
        return structs.replace(
            known,
            metadata_dir=str(self.metadata) if self.has_metadata else "",
            mps_dir=str(self.mps or ""),
        )

    async def prepare(self, asked: ClaimRef) -> tuple[AnswerDevice, ...]:
        """As the kubelet asks."""
        return await self.preparer.prepare(asked)

    async def unprepare(self, asked: ClaimRef) -> None:
        """As the kubelet asks."""
        await self.preparer.unprepare(asked)

    def settings(self) -> dict[int, CardState]:
        """What the cards are set to, by index, as far as they are not as a reboot leaves them."""
        states = {c.index: self.control.state(c.uuid) for c in self.facts().cards.values()}
        plain = CardState(boot=self.facts().boot)
        return {i: s for i, s in states.items() if structs.replace(s, mig=False) != plain}

    def book(self) -> dict[str, PreparedClaim]:
        """What the checkpoint holds, read anew from the disk."""
        book = Book()
        for line in self.journal.read_bytes().splitlines():
            assert isinstance(book.apply(line), Record)
        return {claim.uid: claim for claim in book.claims()}

    def cdi_files(self) -> set[str]:
        """UIDs that have a CDI file; any other name stands for itself."""
        prefix = f"k8s.{DRIVER}-claim_"
        names = (path.name for path in self.cdi.iterdir())
        return {name.removeprefix(prefix).removesuffix(".json") for name in names}

    async def _get_claim(self, _namespace: str, name: str) -> ResourceClaim | None:
        return self.claims.get(name)

    def _reach(self, point: FaultPoint) -> None:
        self.passed.append(point)
        if point == self.fault:
            raise CrashError(point)

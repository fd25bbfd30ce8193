"""Whatever happens in whatever order: nothing is given out twice, and nothing is left at the end.

The judge looks at the cards, the folders and the checkpoint, and works out by itself what may be.
"""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from itertools import combinations
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from driver.model.errors import QuadrantError
from driver.node.faults import FaultPoint
from driver.node.held import HeldDevice, PreparedClaim
from driver.node.mps.folder import DaemonState, MpsFolder
from tests.node.builders import UIDS, claim, mps, ref, result, slicing
from tests.node.machine import CrashError, Machine

CLAIMS = (
    claim(0, result("gpu-0")),
    claim(1, result("gpu-0", memory="8Gi", cores="10"), config=[slicing("Long")]),
    claim(2, result("gpu-0", memory="7Gi", cores="90")),
    claim(
        3, result("gpu-0", "a", memory="1Gi"), result("gpu-1", "b", memory="1Gi"), config=[mps()]
    ),
    claim(4, result("gpu-1", memory="4Gi", cores="40"), config=[mps()]),
    claim(5, result("gpu-1", memory="8Gi", cores="40"), config=[mps()]),
    claim(6, result("gpu-3-mig-1g4gb-1"), result("gpu-3-mig-2g8gb-2", "b")),
    claim(7, result("gpu-3-mig-2g8gb-0")),
    claim(8, result("gpu-3", share="all")),
    claim(9, result("gpu-2", memory="1Gi", cores="0"), config=[slicing("Long")]),
    claim(10, result("gpu-2", memory="1Gi", cores="0"), config=[slicing("Short")]),
    claim(11, result("gpu-2", memory="1Gi", cores="0"), config=[slicing("Long")]),
    claim(12, result("gpu-2", memory="1Gi", cores="10"), config=[mps()]),
    claim(13, result("gpu-3-mig-4g16gb-0")),
    claim(14, result("gpu-3-mig-1g4gb-3"), result("gpu-3", "look", admin=True)),
    claim(15, result("gpu-1")),
)

NUMBERS = st.integers(0, len(CLAIMS) - 1)
CALLS = st.tuples(st.sampled_from(["prepare", "unprepare"]), NUMBERS, st.booleans())
STEPS = st.one_of(
    st.tuples(st.just("calls"), st.lists(CALLS, min_size=1, max_size=5)),
    st.tuples(st.just("calls"), st.lists(CALLS, min_size=1, max_size=5)),
    st.tuples(st.just("crash"), st.tuples(CALLS, st.sampled_from(FaultPoint))),
    st.tuples(st.just("reboot"), st.none()),
    st.tuples(st.just("second"), st.none()),
    st.tuples(st.just("anew"), st.tuples(NUMBERS, NUMBERS)),
)


class World:
    """A node with one instance of the plugin, or two of a rolling update, and its kubelet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.api = {one.metadata.name: one for one in CLAIMS}
        self.boot = 1
        self.instances = [self.instance()]
        # What a pod may be running with.
        self.ready: set[int] = set()
        # What the kubelet has asked for and not got rid of.
        self.asked: set[int] = set()

    def instance(self) -> Machine:
        """Another process of the plugin."""
        node = Machine(self.folder, ())
        node.claims = self.api
        node.boot = self.boot
        node.has_metadata = True
        node.mps = self.folder / "mps"
        return node.start()

    async def step(self, kind: str, what: object) -> None:
        """What happens next."""
        await getattr(self, f"_{kind}")(what)

    async def _calls(self, calls: list[tuple[str, int, bool]]) -> None:
        await asyncio.gather(*(self._call(*call) for call in calls))

    async def _call(self, kind: str, number: int, last: bool) -> None:
        node = self.instances[-1 if last else 0]
        if kind == "prepare" and number not in self.asked | self.ready:
            self.asked.add(number)
            with suppress(QuadrantError):
                await node.prepare(ref(number))
                self.ready.add(number)
        elif kind == "unprepare" and number in self.asked:
            self.ready.discard(number)
            with suppress(QuadrantError):
                await node.unprepare(ref(number))
                self.asked.discard(number)
                self.ready.discard(number)

    async def _crash(self, what: tuple[tuple[str, int, bool], FaultPoint]) -> None:
        (kind, number, last), point = what
        node = self.instances[-1 if last else 0]
        node.fault = point
        with suppress(CrashError):
            await self._call(kind, number, last)
        node.stop()
        self.instances.remove(node)
        if not self.instances:
            self.instances = [self.instance()]

    async def _reboot(self, _nothing: None) -> None:
        for node in self.instances:
            node.stop()
        for path in (self.folder / "cdi").iterdir():
            path.unlink()
        mps = MpsFolder(self.folder / "mps")
        for name in list(mps.names()):
            mps.unwant(name)
        self.boot += 1
        self.ready.clear()
        self.instances = [self.instance()]

    async def _second(self, _nothing: None) -> None:
        if len(self.instances) > 1:
            self.instances.pop(0).stop()
        else:
            self.instances.append(self.instance())

    async def _anew(self, what: tuple[int, int]) -> None:
        """A claim that no pod runs with gets other devices under its UID."""
        number, like = what
        if number not in self.ready:
            name = ref(number).name
            self.api[name] = structs.replace(self.api[name], status=CLAIMS[like].status)

    def end(self) -> None:
        """All instances end."""
        for node in self.instances:
            node.stop()


def judge(world: World) -> None:
    """Nothing is given out twice; what pods run with is there."""
    node = world.instances[0]
    held = [one for one in node.book().values() if one.boot == f"boot-{world.boot}"]
    for left, right in combinations([d for one in held for d in one.devices], 2):
        assert not clash(left, right), (left, right)
    for name, card in node.facts().cards.items():
        shares = [d for one in held for d in one.devices if d.device == name and not d.admin_access]
        assert sum(d.memory for d in shares) <= card.usable_memory()
        assert sum(d.cores for d in shares) <= 100
    by_uid = {one.uid: one for one in held}
    assert {UIDS[number] for number in world.ready} <= node.cdi_files()
    for number in world.ready:
        look_at(node, by_uid[UIDS[number]])


def clash(left: HeldDevice, right: HeldDevice) -> bool:
    """Whether two claims cannot both have these."""
    if left.index != right.index or left.admin_access or right.admin_access:
        return False
    if left.partition and right.partition:
        slices = [set(range(p.start, p.start + p.size)) for p in (left.partition, right.partition)]
        return bool(slices[0] & slices[1])
    return bool(left.partition or right.partition or not (left.share_id and right.share_id))


def look_at(node: Machine, held: PreparedClaim) -> None:
    """The cards are as a claim that is in use needs them."""
    assert held.phase == "done"
    for device in held.devices:
        if device.admin_access:
            continue
        state = node.control.state(device.card())
        if device.partition:
            assert device.uuid in {one.uuid for one in state.instances}
        else:
            assert not state.mig
        if device.sharing is not None and device.by_mps():
            assert node.mps is not None
            name = Path(device.sharing.daemon).name
            wanted = MpsFolder(node.mps).wanted(name)
            assert wanted is not None
            assert device.uuid in wanted.cards
            limit = wanted.memory_limits[wanted.cards.index(device.uuid)]
            assert limit is None or limit >= device.memory
        elif device.sharing is not None:
            assert state.interval == device.sharing.interval


def nothing_is_left(world: World) -> None:
    """No file, no setting, no daemon."""
    node = world.instances[-1]
    assert node.book() == {}
    assert node.cdi_files() == set()
    assert node.settings() == {}
    assert [p.name for p in (world.folder / "metadata").glob("*")] == []
    assert list((world.folder / "mig").iterdir()) == []
    assert list(MpsFolder(world.folder / "mps").names()) == []


@asynccontextmanager
async def kept(folder: MpsFolder) -> AsyncIterator[None]:
    """A keeper whose daemons begin and end at once."""
    folder.create()
    lock = folder.lock()
    assert lock is not None

    async def keep() -> None:
        while True:
            for name in {*folder.names(), *folder.known()}:
                wanted = folder.wanted(name)
                state = DaemonState(ready=wanted.version()) if wanted else None
                folder.keep_state(name, state)
            await asyncio.sleep(0.01)

    task = asyncio.ensure_future(keep())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        os.close(lock)


async def live(folder: Path, steps: Iterable[tuple[str, object]]) -> None:
    """All that happens to a node, with the judge looking on."""
    async with kept(MpsFolder(folder / "mps")):
        world = World(folder)
        for step in steps:
            await world.step(*step)
            judge(world)
        # What a crash beside a second instance leaves is swept by the next that is alone.
        world.end()
        world.instances = [world.instance()]
        for number in sorted(world.asked):
            await world.instances[-1].unprepare(ref(number))
        nothing_is_left(world)
        world.end()


@given(st.lists(STEPS, min_size=1, max_size=10))
@settings(max_examples=40, deadline=None)
def test_whatever_happens(steps: list[tuple[str, object]]) -> None:
    """Calls, crashes, reboots, a second instance, claims allocated anew."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(live(Path(folder), steps))

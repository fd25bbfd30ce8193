"""Devices in use here that the cluster believes free: tainted while it is so, and no longer."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from driver.model.resourceclaim import ResourceClaim
from driver.node.board import Taints
from driver.node.claims import ClaimRef
from driver.node.errors import NodeError
from driver.node.occupied import Occupied
from driver.node.state.adopt import Ask, find_lost
from tests.node.builders import CLAIMS, DRIVER, UIDS, claim, ref, result
from tests.node.machine import Machine
from tests.node.test_publish import until


class Cluster:
    """What the API server says of claims, live and from its cache, and what it is told."""

    def __init__(self, node: Machine) -> None:
        self._node = node
        self.stale: dict[str, ResourceClaim] = {}
        self.fails = False
        self.reads: list[bool] = []
        self.shown: list[Taints] = []

    async def look(self, namespace: str, name: str, *, cached: bool) -> ResourceClaim | None:
        """As `NodeInCluster.get_claim`."""
        assert namespace == "default"
        self.reads.append(cached)
        if self.fails:
            raise NodeError("no answer")
        return (self.stale if cached else self._node.claims).get(name)

    def show(self, _source: str, taints: Taints) -> None:
        """As `Board.taints`."""
        self.shown.append(taints)

    def tainted(self) -> set[str]:
        """The devices that are tainted now."""
        return set(self.shown[-1]) if self.shown else set()


@pytest.fixture
def node(tmp_path: Path) -> Machine:
    """A node that holds claims 0 (gpu-0) and 4 (gpu-1)."""
    return Machine(tmp_path, CLAIMS).start()


@asynccontextmanager
async def watching(node: Machine, cluster: Cluster) -> AsyncIterator[Occupied]:
    """Runs, but looks only when it is told to."""

    async def release(asked: ClaimRef) -> None:
        await node.unprepare(asked)
        occupied.unprepared(asked.uid)

    occupied = Occupied(
        node.store, driver=DRIVER, boot=node.facts().boot, release=release, period=3600
    )
    task = asyncio.ensure_future(occupied.run(cluster.look, cluster.show))
    try:
        await until(lambda: bool(cluster.shown))
        yield occupied
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def looked(occupied: Occupied, cluster: Cluster) -> None:
    """Have it look once more, and wait for what it shows."""
    count = len(cluster.shown)
    occupied.look()
    await until(lambda: len(cluster.shown) > count)


async def test_a_claim_that_is_gone_taints_its_device_until_it_is_unprepared(
    node: Machine,
) -> None:
    """Its pod was deleted by force, and its containers still run."""
    await node.prepare(ref(0))
    await node.prepare(ref(4))
    cluster = Cluster(node)
    async with watching(node, cluster) as occupied:
        assert cluster.tainted() == set()
        del node.claims["claim-0"]
        await looked(occupied, cluster)
        [taint] = cluster.shown[-1]["gpu-0"]
        assert (taint.key, taint.effect) == ("gpu.quadrant.dev/occupied", "NoSchedule")
        assert cluster.tainted() == {"gpu-0"}
        await node.unprepare(ref(0))
        occupied.unprepared(UIDS[0])
        await until(lambda: cluster.tainted() == set())
    node.stop()


@pytest.mark.parametrize(
    "now",
    [
        claim(0),
        claim(0, result("gpu-3")),
        claim(0, result("gpu-0", driver="other.example")),
    ],
    ids=["not allocated", "allocated elsewhere", "of another driver"],
)
async def test_a_claim_that_has_lost_its_device_taints_it(
    node: Machine, now: ResourceClaim
) -> None:
    """A claim that stays when its pod is deleted by force is given up all the same."""
    await node.prepare(ref(0))
    node.claims["claim-0"] = now
    cluster = Cluster(node)
    async with watching(node, cluster):
        assert cluster.tainted() == {"gpu-0"}
    node.stop()


async def test_one_of_the_same_name_is_another_claim(node: Machine) -> None:
    """The UID tells."""
    await node.prepare(ref(0))
    node.claims["claim-0"] = CLAIMS[4]
    cluster = Cluster(node)
    async with watching(node, cluster):
        assert cluster.tainted() == {"gpu-0"}
    node.stop()


async def test_what_the_cache_says_is_asked_again_before_it_counts(node: Machine) -> None:
    """It may not know a new claim yet; what it clears needs no second question."""
    await node.prepare(ref(0))
    cluster = Cluster(node)
    async with watching(node, cluster) as occupied:
        assert cluster.tainted() == set()
        assert cluster.reads == [True, False]
        cluster.stale, cluster.reads = dict(node.claims), []
        await looked(occupied, cluster)
        assert cluster.reads == [True]
    node.stop()


async def test_an_api_server_that_does_not_answer_changes_nothing(node: Machine) -> None:
    """Neither are taints made up, nor forgotten."""
    await node.prepare(ref(0))
    await node.prepare(ref(4))
    del node.claims["claim-0"]
    cluster = Cluster(node)
    async with watching(node, cluster) as occupied:
        assert cluster.tainted() == {"gpu-0"}
        cluster.fails = True
        del node.claims["claim-4"]
        await looked(occupied, cluster)
        assert cluster.tainted() == {"gpu-0"}
    node.stop()


async def test_a_checkpoint_that_cannot_be_read_changes_nothing(node: Machine) -> None:
    """It does not end the plugin either; when it can be read, all is as it should be."""
    await node.prepare(ref(0))
    del node.claims["claim-0"]
    cluster = Cluster(node)
    async with watching(node, cluster) as occupied:
        assert cluster.tainted() == {"gpu-0"}
        aside = node.journal.rename(node.folder / "aside")
        node.journal.mkdir()
        await looked(occupied, cluster)
        assert cluster.tainted() == {"gpu-0"}
        node.journal.rmdir()
        aside.rename(node.journal)
        await node.unprepare(ref(0))
        await looked(occupied, cluster)
        assert cluster.tainted() == set()
    node.stop()


async def test_claims_of_an_earlier_boot_occupy_nothing(node: Machine) -> None:
    """Their containers are gone."""
    await node.prepare(ref(0))
    node.reboot()
    node.claims.clear()
    cluster = Cluster(node)
    async with watching(node, cluster):
        assert cluster.tainted() == set()
    node.stop()


class TestLost:
    """Neither checkpoint nor CDI files: what the API server knows is held."""

    async def _lose_all(self, node: Machine) -> None:
        node.stop()
        node.journal.unlink()
        for path in node.cdi.iterdir():
            path.unlink()
        node.start()
        await find_lost(node.store, self._asked(node), node.facts())

    @staticmethod
    def _asked(node: Machine) -> Ask:
        async def ask(wanted: Callable[[ResourceClaim], bool]) -> list[ResourceClaim]:
            return [found for found in node.claims.values() if wanted(found)]

        return ask

    async def test_devices_of_allocated_claims_are_kept(self, node: Machine) -> None:
        """Until the kubelet prepares the claim again, and then as ever."""
        await node.prepare(ref(0))
        node.claims = {"claim-0": CLAIMS[0], "claim-5": claim(5, result("gpu-1"), reserved=False)}
        await self._lose_all(node)
        assert not node.store.is_lost()
        assert set(node.book()) == {UIDS[0]}
        node.claims["claim-1"] = CLAIMS[1]
        with pytest.raises(NodeError, match="held whole by claim default/claim-0"):
            await node.prepare(ref(1))
        await node.prepare(ref(0))
        assert not node.book()[UIDS[0]].found
        await node.unprepare(ref(0))
        await node.prepare(ref(1))
        node.stop()

    async def test_what_was_never_prepared_is_let_go_of(self, node: Machine) -> None:
        """The kubelet does not unprepare it, so the end of its allocation has to do."""
        node.claims = {"claim-0": CLAIMS[0]}
        await self._lose_all(node)
        cluster = Cluster(node)
        async with watching(node, cluster) as occupied:
            assert set(node.book()) == {UIDS[0]}
            node.claims.clear()
            await looked(occupied, cluster)
            assert cluster.tainted() == set()
        assert node.book() == {}
        node.stop()

    async def test_what_has_a_file_goes_before(self, node: Machine) -> None:
        """Of two claims for one card the one whose containers can run is right."""
        await node.prepare(ref(0))
        node.stop()
        node.journal.unlink()
        node.claims["claim-4"] = claim(4, result("gpu-0"))
        node.start()
        await find_lost(node.store, self._asked(node), node.facts())
        assert UIDS[0] in node.book()
        assert UIDS[4] not in node.book()
        node.stop()

    def test_a_new_node_asks_nobody(self, node: Machine) -> None:
        """There was nothing to lose."""
        assert not node.store.is_lost()
        node.stop()

    def test_a_crash_before_the_answer_does_not_make_the_file_whole(self, node: Machine) -> None:
        """The next start asks again."""
        node.stop()
        node.journal.unlink()
        node.start()
        node.stop()
        node.start()
        assert node.store.is_lost()
        node.stop()

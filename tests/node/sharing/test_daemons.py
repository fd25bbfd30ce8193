"""The plugin's side of MPS daemons: wanted for claims, with limits that are enough for all."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from driver.node.claims import entry
from driver.node.errors import HardwareError
from driver.node.held import PreparedClaim
from driver.node.mps.folder import DaemonState, MpsFolder, WantedDaemon
from driver.node.sharing.daemons import Daemons
from driver.node.sharing.rules import daemon_name
from tests.node.builders import GIB, claim, facts, mps, ref, result

NODE = facts(mps_dir="/run/mps")
CARD = NODE.cards["gpu-0"].uuid
NAME = daemon_name([CARD])


def by_mps(number: int, device: str = "gpu-0", **amounts: Any) -> PreparedClaim:
    """A claim with a share of a card, through MPS."""
    return entry(ref(number), claim(number, result(device, **amounts), config=[mps()]), NODE)


SMALL = by_mps(0, memory="1Gi", cores="10")
LARGE = by_mps(1, memory="4Gi", cores="40")
NO_CORES = by_mps(2, memory="2Gi", cores="0")
PLAIN = entry(ref(3), claim(3, result("gpu-1")), NODE)


@asynccontextmanager
async def kept(folder: MpsFolder) -> AsyncIterator[None]:
    """A keeper whose daemons begin and end at once."""
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


def opened(path: Path, patience: float = 20.0) -> tuple[Daemons, MpsFolder]:
    """The plugin's side, and the folder itself."""
    return Daemons(path, patience=patience), MpsFolder(path)


async def test_a_daemon_is_for_all_claims_on_its_card(tmp_path: Path) -> None:
    """With the largest limits; it goes on until the last has gone."""
    daemons, folder = opened(tmp_path)
    async with kept(folder):
        await daemons.start(SMALL, [PLAIN])
        assert folder.wanted(NAME) == WantedDaemon(cards=(CARD,), threads=10, memory_limits=(GIB,))
        await daemons.start(LARGE, [SMALL, PLAIN])
        assert folder.wanted(NAME) == WantedDaemon(
            cards=(CARD,), threads=40, memory_limits=(4 * GIB,)
        )
        await daemons.stop(LARGE, [SMALL, PLAIN])
        assert folder.wanted(NAME) == WantedDaemon(cards=(CARD,), threads=10, memory_limits=(GIB,))
        await daemons.stop(SMALL, [PLAIN])
        assert (folder.wanted(NAME), folder.state(NAME)) == (None, None)


async def test_one_claim_without_a_limit_frees_all(tmp_path: Path) -> None:
    """The daemon cannot hold one and not the other; their environments do."""
    daemons, folder = opened(tmp_path)
    async with kept(folder):
        await daemons.start(NO_CORES, [SMALL])
    wanted = folder.wanted(NAME)
    assert wanted is not None
    assert (wanted.threads, wanted.memory_limits) == (None, (2 * GIB,))


async def test_claims_without_mps_need_nothing(tmp_path: Path) -> None:
    """Nor does a node without MPS."""
    daemons, folder = opened(tmp_path)
    await daemons.start(PLAIN, [])
    await daemons.stop(PLAIN, [])
    assert list(folder.names()) == []
    await Daemons(None).stop(SMALL, [])


async def test_a_daemon_of_several_cards_has_a_limit_for_each(tmp_path: Path) -> None:
    """In the order of their index, as the daemon counts them."""
    both = entry(
        ref(4),
        claim(
            4,
            result("gpu-2", "a", memory="3Gi", cores="10"),
            result("gpu-1", "b", memory="2Gi", cores="20"),
            config=[mps()],
        ),
        NODE,
    )
    cards = tuple(NODE.cards[name].uuid for name in ("gpu-1", "gpu-2"))
    daemons, folder = opened(tmp_path)
    async with kept(folder):
        await daemons.start(both, [])
    assert folder.wanted(daemon_name(cards)) == WantedDaemon(
        cards=cards, threads=20, memory_limits=(2 * GIB, 3 * GIB)
    )


async def test_waiting_ends(tmp_path: Path) -> None:
    """With the keeper's reason, for the start as for the end."""
    daemons, folder = opened(tmp_path, patience=0.2)
    lock = folder.lock()
    assert lock is not None
    with pytest.raises(HardwareError, match="does not answer"):
        await daemons.start(SMALL, [])
    folder.keep_state(NAME, DaemonState(error="the card is lost"))
    with pytest.raises(HardwareError, match="the card is lost"):
        await daemons.start(SMALL, [])
    with pytest.raises(HardwareError, match="has not ended"):
        await daemons.stop(SMALL, [])


async def test_what_no_claim_uses_is_given_up_at_the_start(tmp_path: Path) -> None:
    """As after a checkpoint that was lost."""
    daemons, folder = opened(tmp_path)
    for name in (NAME, "other"):
        folder.want(name, WantedDaemon(cards=(CARD,)))
    daemons.sweep([SMALL, PLAIN])
    assert list(folder.names()) == [NAME]
    daemons.sweep([PLAIN])
    assert list(folder.names()) == []

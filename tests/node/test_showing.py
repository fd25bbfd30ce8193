"""What a node shows while its cards and the operator's rules change."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from driver.model.resourceslice import Device
from driver.node.board import Board
from driver.node.card import MIB, Card
from driver.node.local import LocalNode
from driver.node.publish import SLICES
from driver.node.settings import NodeSettings
from driver.node.showing import Showing
from driver.wire.encode import builtins
from tests.kube.apiserver import ApiServer
from tests.node.builders import DRIVER, NODE
from tests.node.conftest import Boot
from tests.node.nvml import fake
from tests.node.test_plugin import EVENTS, serving
from tests.node.test_publish import until

LOST = [{"key": f"{DRIVER}/unhealthy", "value": "lost", "effect": "NoSchedule"}]


@pytest.fixture
def settings() -> Iterator[NodeSettings]:
    """A plugin of this machine's cards, in a folder with a short path."""
    with tempfile.TemporaryDirectory(prefix="q") as made:
        yield NodeSettings(
            node_name=NODE,
            plugins_dir=f"{made}/p",
            registry_dir=f"{made}/r",
            cdi_dir=f"{made}/c",
            vendor_cdi_dirs=(f"{made}/c",),
            attribute_rules=f"{made}/rules.yaml",
        )


def write_rules(settings: NodeSettings, match: str, attributes: str) -> None:
    """A file with one rule."""
    Path(settings.attribute_rules).write_text(
        "apiVersion: config.quadrant.dev/v1alpha1\nkind: AttributeRules\n"
        f"rules:\n  - match: {match}\n    attributes: {{{attributes}}}\n"
    )


def is_kept(settings: NodeSettings) -> bool:
    """Whether the plugin has good rules for its next start."""
    return (Path(settings.data_dir()) / "attribute-rules.yaml").exists()


@asynccontextmanager
async def shown(settings: NodeSettings) -> AsyncIterator[Board]:
    """The board of a node that looks at its cards all the time."""
    local = await asyncio.to_thread(LocalNode, settings)
    board = Board(lambda _devices: None)
    showing = Showing(
        local, settings, board, counters=False, on_refusal=lambda _fault: None, period=0.01
    )
    await showing.start()
    task = asyncio.create_task(showing.run())
    try:
        yield board
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        local.close()


def taints(devices: tuple[Device, ...]) -> list[object]:
    """The taints of every device, without their times."""
    return [
        [{k: v for k, v in taint.items() if k != "timeAdded"} for taint in builtins(one.taints)]
        for one in devices
    ]


def told(board: Board, wanted: Callable[[tuple[Device, ...]], bool]) -> Callable[[], bool]:
    """Whether the board shows it."""
    return lambda: wanted(board.shown)


async def test_a_lost_card_is_shown_with_a_taint_until_it_is_back(
    boot: Boot, settings: NodeSettings
) -> None:
    """Its name and what was known of it stay, and so do those of the other cards."""
    machine = boot("t4x4")
    write_rules(settings, "'true'", "")
    async with shown(settings) as board:
        whole = board.shown
        assert taints(whole) == [[], [], [], []]
        machine.errors(2, {"*": fake.LOST})
        await until(told(board, lambda devices: bool(devices[2].taints)))
        assert taints(board.shown) == [[], [], LOST, []]
        assert [one.attributes for one in board.shown] == [one.attributes for one in whole]
        machine.errors(2, {})
        await until(told(board, lambda devices: devices == whole))


async def test_a_restart_remembers_a_card_that_is_no_longer_listed(
    boot: Boot, settings: NodeSettings
) -> None:
    """A driver that was loaded anew counts from 0; the claims' cards keep their names."""
    machine = boot("t4x4")
    write_rules(settings, "'true'", "")
    async with shown(settings) as board:
        before = board.shown
    cards = machine.description.read_text().split("\ncard ")
    machine.description.write_text("\ncard ".join([cards[0], *cards[2:]]))
    async with shown(settings) as board:
        assert [one.name for one in board.shown] == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
        assert taints(board.shown) == [LOST, [], [], []]
        assert [one.attributes for one in board.shown] == [one.attributes for one in before]


async def test_a_library_that_fails_later_leaves_all_as_it_is(
    boot: Boot, settings: NodeSettings
) -> None:
    """Whether cards are well then is for their health to say."""
    machine = boot("t4x4")
    write_rules(settings, "'true'", "")
    async with shown(settings) as board:
        before = board.shown
        (machine.state / "errors").write_text("nvmlInitWithFlags 9\n")
        await asyncio.sleep(0.1)
        machine.errors(0, {"*": fake.LOST})
        (machine.state / "errors").unlink()
        await until(told(board, lambda devices: bool(devices[0].taints)))
        assert [one.name for one in board.shown] == [one.name for one in before]


async def test_a_card_that_gets_lost_is_refused_to_claims(
    boot: Boot, settings: NodeSettings
) -> None:
    """What is prepared by is read again, and only then."""
    machine = boot("t4x4")
    local = await asyncio.to_thread(LocalNode, settings)
    facts = local.facts
    assert not await local.reread()
    assert local.facts is facts
    machine.errors(2, {"*": fake.LOST})
    assert await local.reread()
    reasons = [card.lost for card in local.facts.cards.values()]
    assert reasons == [None, None, "nvmlDeviceGetHandleByIndex: GPU is lost", None]
    local.close()


async def test_how_cards_are_cut_up_stays_until_the_next_start(
    boot: Boot, settings: NodeSettings
) -> None:
    """A card must not be offered whole while claims have parts of it."""
    machine = boot("h100x2-mig")
    write_rules(settings, "'true'", "")
    static = msgspec.structs.replace(settings, mig="static")
    async with shown(static) as board:
        assert [one.name for one in board.shown] == ["gpu-1"]
        machine.write(0, "mig-mode", "0 0")
        machine.errors(1, {"*": fake.LOST})
        await until(told(board, lambda devices: bool(devices[-1].taints)))
        assert [one.name for one in board.shown] == ["gpu-1"]
    machine.errors(1, {})
    async with shown(static) as board:
        assert [one.name for one in board.shown] == ["gpu-0", "gpu-1"]


async def test_rules_are_for_cards_that_came_back_too(boot: Boot, settings: NodeSettings) -> None:
    """A card that was lost at the start tells its name later."""
    machine = boot("t4x4")
    machine.errors(1, {"*": fake.LOST})
    write_rules(settings, f"""'device.attributes["{DRIVER}"].brand == "Tesla"'""", "tier: old")
    async with shown(settings) as board:
        assert [("tier" in one.attributes) for one in board.shown] == [True, False, True, True]
        machine.errors(1, {})
        await until(told(board, lambda devices: "tier" in devices[1].attributes))
        assert not any(one.taints for one in board.shown)


async def test_rules_that_are_no_longer_wanted_are_forgotten(
    boot: Boot, settings: NodeSettings
) -> None:
    """Else bad rules, years later, would bring back what nobody remembers."""
    boot("t4x4")
    write_rules(settings, "'true'", "tier: old")
    async with shown(settings) as board:
        assert "tier" in board.shown[0].attributes
    assert is_kept(settings)
    async with shown(msgspec.structs.replace(settings, attribute_rules="")) as board:
        assert "tier" not in board.shown[0].attributes
    assert not is_kept(settings)


class OneCard:
    """An inventory of another vendor."""

    def cards(self) -> tuple[Card, ...]:
        """Always the same."""
        return (Card(index=0, uuid="x", product_name="X1", memory=MIB),)


async def test_bad_rules_are_told_on_the_node_and_good_ones_published(
    settings: NodeSettings,
) -> None:
    """By the plugin as a whole: slices and Events."""
    write_rules(settings, "'1'", "tier: gold")
    async with ApiServer() as server:
        server.put("/api/v1/nodes", {"metadata": {"name": NODE, "uid": "node-uid"}})
        async with serving(server, settings, OneCard()):
            await until(lambda: len(server.objects.in_collection(EVENTS)) == 1)
            [event] = server.objects.in_collection(EVENTS)
            assert (event["regarding"]["kind"], event["regarding"]["name"]) == ("Node", NODE)
            assert (event["reason"], event["type"]) == ("AttributeRulesRefused", "Warning")
            assert event["note"].startswith("rules.yaml, line 4: match is no CEL expression")
            write_rules(settings, "'true'", "tier: gold")

            def tiers() -> list[object]:
                slices = server.objects.in_collection(SLICES)
                devices = [one for found in slices for one in found["spec"].get("devices", ())]
                return [one["attributes"].get("tier") for one in devices]

            await until(lambda: tiers() == [{"string": "gold"}])

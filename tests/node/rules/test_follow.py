"""A file of rules that changes while the plugin runs."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from driver.model.resourceslice import Device
from driver.node.board import Board
from driver.node.device import device
from driver.node.rules.follow import RulesFile
from driver.node.simulated import cards
from tests.node.test_publish import until

DRIVER = "gpu.quadrant.dev"
DEVICES = tuple(device(card, shareable=False) for card in cards("2xT4", "n1"))
PERIOD_S = 0.01


def rules(attributes: str) -> str:
    """A file with one rule for all devices."""
    return (
        "apiVersion: config.quadrant.dev/v1alpha1\nkind: AttributeRules\n"
        f"rules:\n  - match: 'true'\n    attributes: {{{attributes}}}\n"
    )


class Plugin:
    """What a plugin has of rules: a board, the file, and those who are told."""

    def __init__(self, folder: Path, devices: Sequence[Device] = DEVICES) -> None:
        self.path = folder / "rules.yaml"
        self.shown: list[Sequence[Device]] = []
        self.refusals: list[str] = []
        self.board = Board(self.shown.append)
        self.kept = folder / "kept.yaml"
        self._devices = devices
        self._file = RulesFile(
            self.path,
            kept=self.kept,
            driver=DRIVER,
            on_refusal=self.refusals.append,
            period=PERIOD_S,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Plugin"]:
        """As `NodePlugin` does it."""
        await self._file.start(self.board, self._devices)
        self.board.devices(self._devices)
        task = asyncio.create_task(self._file.run(self.board))
        try:
            yield self
        finally:
            task.cancel()

    def own(self) -> set[str]:
        """What rules have added to all devices, as it is shown now."""
        added = [set(one.attributes) - set(DEVICES[0].attributes) for one in self.board.shown]
        assert all(names == added[0] for names in added)
        return added[0]

    async def until(self, own: set[str], refusals: int = 0) -> None:
        """Wait until this is shown and so much was refused."""
        async with asyncio.timeout(10):
            while self.own() != own or len(self.refusals) != refusals:  # noqa: ASYNC110
                await asyncio.sleep(PERIOD_S)


async def test_the_first_devices_are_shown_with_their_attributes(tmp_path: Path) -> None:
    """A selector must not miss them for a moment."""
    (tmp_path / "rules.yaml").write_text(rules("tier: gold"))
    async with Plugin(tmp_path).running() as plugin:
        assert plugin.own() == {"tier"}
        assert len(plugin.shown) == 1


async def test_a_change_is_taken_over(tmp_path: Path) -> None:
    """By a new file under the old name, as a kubelet does it."""
    (tmp_path / "rules.yaml").write_text(rules("tier: gold"))
    async with Plugin(tmp_path).running() as plugin:
        new = tmp_path / "new"
        new.write_text(rules("rack: r1, tier: gold"))
        new.rename(plugin.path)
        await plugin.until({"tier", "rack"})
        plugin.path.write_text("")
        await plugin.until(set())
        assert plugin.refusals == []


async def test_bad_rules_are_refused_and_the_last_good_ones_stay(tmp_path: Path) -> None:
    """Told once, with the line, and once more when it comes back after good ones."""
    (tmp_path / "rules.yaml").write_text(rules("tier: gold"))
    async with Plugin(tmp_path).running() as plugin:
        plugin.path.write_text(rules("tier: gold, uuid: x"))
        await plugin.until({"tier"}, refusals=1)
        await asyncio.sleep(5 * PERIOD_S)
        assert len(plugin.shown) == 1
        (told,) = plugin.refusals
        assert told.startswith("rules.yaml, line 5: attribute 'uuid' cannot be set")
        assert told.endswith("the last good rules stay in use")
        plugin.path.unlink()
        await plugin.until({"tier"}, refusals=2)
        await asyncio.sleep(5 * PERIOD_S)
        assert len(plugin.refusals) == 2
        for refusals in (2, 3, 4):
            # The second time the same rules are back, and good anew.
            plugin.kept.unlink()
            plugin.path.write_text(rules("rack: r1"))
            await plugin.until({"rack"}, refusals)
            await until(plugin.kept.exists)
            plugin.path.unlink()
            await plugin.until({"rack"}, refusals + 1)


async def test_a_restart_on_bad_rules_has_the_last_good_ones(tmp_path: Path) -> None:
    """They are kept by the plugin; without any there are none, and the devices are published."""
    (tmp_path / "rules.yaml").write_text("rules: [")
    async with Plugin(tmp_path).running() as plugin:
        assert (plugin.own(), len(plugin.refusals)) == (set(), 1)
        plugin.path.write_text(rules("tier: gold"))
        await plugin.until({"tier"}, refusals=1)
    (tmp_path / "rules.yaml").write_text("rules: [")
    async with Plugin(tmp_path).running() as plugin:
        assert (plugin.own(), len(plugin.refusals)) == ({"tier"}, 1)
        assert len(plugin.shown) == 1
    plugin.kept.write_bytes(b"\xff")
    async with Plugin(tmp_path).running() as plugin:
        assert (plugin.own(), len(plugin.refusals)) == (set(), 1)


async def test_rules_that_do_not_fit_the_devices_are_tried_again_with_others(
    tmp_path: Path,
) -> None:
    """A card that comes back may be what was in the way, or what was missing."""
    (tmp_path / "rules.yaml").write_text(rules("architecture: fast"))
    async with Plugin(tmp_path).running() as plugin:
        assert "gpu-0 has architecture already" in plugin.refusals[0]
        plugin.board.devices([Device(name="gpu-0")])
        async with asyncio.timeout(10):
            while "architecture" not in plugin.board.shown[0].attributes:  # noqa: ASYNC110
                await asyncio.sleep(PERIOD_S)


async def test_taints_and_attributes_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Both are put on the same devices, by whoever speaks."""
    (tmp_path / "rules.yaml").write_text(rules("tier: gold"))
    async with Plugin(tmp_path).running() as plugin:
        plugin.board.taints("test", {"gpu-1": ()})
        assert plugin.own() == {"tier"}
        assert plugin.board.plain == DEVICES


async def test_a_disk_that_takes_nothing_is_complained_about_only(tmp_path: Path) -> None:
    """The rules are used; a restart on bad ones would miss them."""
    (tmp_path / "rules.yaml").write_text(rules("tier: gold"))
    (tmp_path / "kept.yaml").mkdir()
    async with Plugin(tmp_path).running() as plugin:
        assert plugin.own() == {"tier"}

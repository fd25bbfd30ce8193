"""Keeps the devices dressed as the file of rules says, while it changes and when it is wrong.

Rules that cannot be used are refused, and the last good ones stay; those are kept in a file of
ours, so that a restart does not lose them either.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Never

import structlog

from driver.model.resourceslice import Device
from driver.node.board import Board
from driver.node.errors import NodeError
from driver.node.files import replace_file
from driver.node.rules.reading import read
from driver.node.rules.rule import Rules, RulesError

# A kubelet brings a changed ConfigMap within a minute or so.
_PERIOD_S = 5.0

log = structlog.get_logger(__name__)


class RulesFile:
    """One file of rules. `start` before there are devices on the board, then `run` as a task."""

    def __init__(
        self,
        path: Path,
        *,
        kept: Path,
        driver: str,
        on_refusal: Callable[[str], None],
        period: float = _PERIOD_S,
    ) -> None:
        """`kept` holds the last good rules; `on_refusal` is told once what is wrong with others."""
        self._path = path
        self._kept = kept
        self._driver = driver
        self._on_refusal = on_refusal
        self._period = period
        # What was looked at last, and what is wrong with it.
        self._seen: tuple[str, Sequence[Device]] | None = None
        self._refusal = ""

    async def start(self, board: Board, devices: Sequence[Device]) -> None:
        """Have the board dress these devices, by the last good rules if the file has none."""
        await self._look(board, devices)
        if self._refusal:
            kept = await asyncio.to_thread(self._read_kept)
            board.dress(kept.dress)

    async def run(self, board: Board) -> Never:
        """Follow the file until cancelled."""
        while True:
            await asyncio.sleep(self._period)
            await self._look(board, board.plain)

    async def _look(self, board: Board, devices: Sequence[Device]) -> None:
        """Take the rules in the file over if they are new and good."""
        try:
            text = await asyncio.to_thread(self._read)
            if self._is_seen(text, devices):
                return
            self._seen = (text, devices)
            rules = await asyncio.to_thread(self._checked, text, devices)
        except NodeError as error:
            self._refuse(str(error))
            return
        self._refusal = ""
        board.dress(rules.dress)
        log.info("attribute rules in use", file=str(self._path), rules=len(rules.rules))
        await asyncio.to_thread(self._keep, text)

    def _is_seen(self, text: str, devices: Sequence[Device]) -> bool:
        if self._seen is None or self._seen[0] != text:
            return False
        # Rules that do not fit the devices are tried again with others; good ones stay good.
        return not self._refusal or self._seen[1] is devices

    def _checked(self, text: str, devices: Sequence[Device]) -> Rules:
        try:
            rules = read(text, driver=self._driver)
            rules.check(devices)
        except RulesError as error:
            raise NodeError(f"{self._path.name}, {error}") from error
        return rules

    def _read(self) -> str:
        try:
            return self._path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            self._seen = None
            raise NodeError(f"{self._path} cannot be read: {error}") from error

    def _refuse(self, fault: str) -> None:
        if fault != self._refusal:
            log.error("attribute rules refused; the last good ones stay", fault=fault)
            self._on_refusal(f"{fault}; the last good rules stay in use")
        self._refusal = fault

    def _keep(self, text: str) -> None:
        try:
            replace_file(self._kept, text.encode())
        except OSError as error:
            log.warning("good rules are not kept for a restart", error=str(error))

    def _read_kept(self) -> Rules:
        try:
            return read(self._kept.read_text("utf-8"), driver=self._driver)
        except FileNotFoundError:
            return Rules(driver=self._driver)
        except (OSError, UnicodeDecodeError, RulesError) as error:
            log.warning("no good rules from before the restart", error=str(error))
            return Rules(driver=self._driver)

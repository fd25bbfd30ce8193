"""How a command reaches the cluster that the user means, and how long it waits for it."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from driver.cli.usage import UsageError
from driver.kube.errors import KubeError
from driver.kube.rest import Rest
from driver.kube.session import open_session
from driver.obs import logging

T = TypeVar("T")
_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>ms|s|m|h|)", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}
# How often a command that watches looks again.
EVERY_S = 2.0


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Which cluster and namespace; None: as kubectl does. `timeout` is as the user wrote it."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    everywhere: bool = False
    timeout: str = "0"

    def place(self, rest: Rest) -> str:
        """The namespace that is meant; empty for all of them."""
        return "" if self.everywhere else self.namespace or rest.session.endpoint.namespace


def ask(access: Access, question: Callable[[Rest], Awaitable[T]]) -> T:
    """Put one question to the cluster; raises `QuadrantError`."""
    logging.quietly()
    return asyncio.run(_ask(access, question))


async def _ask(access: Access, question: Callable[[Rest], Awaitable[T]]) -> T:
    limit = seconds(access.timeout)
    async with open_session(access.kubeconfig, context=access.context) as session:
        return await _within(limit, question(Rest(session)))


def follow(
    access: Access, question: Callable[[Rest], Awaitable[T]], show: Callable[[T], None]
) -> None:
    """Put the question again and again, and show each answer that is another; until Ctrl-C."""
    logging.quietly()
    try:
        asyncio.run(_follow(access, question, show))
    except KeyboardInterrupt:
        return


async def _follow(
    access: Access, question: Callable[[Rest], Awaitable[T]], show: Callable[[T], None]
) -> None:
    limit = seconds(access.timeout)
    shown: T | None = None
    async with open_session(access.kubeconfig, context=access.context) as session:
        rest = Rest(session)
        while True:
            found = await _within(limit, question(rest))
            if found != shown:
                show(found)
                shown = found
            await asyncio.sleep(EVERY_S)


async def _within(limit: float | None, answer: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(limit):
            return await answer
    except TimeoutError as error:
        raise KubeError(
            f"the cluster did not answer within {limit:g} s; --request-timeout allows more"
        ) from error


def seconds(text: str) -> float | None:
    """A duration as kubectl takes it: 10s, 1m, 250ms, or a number; None for 0: without end."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"--request-timeout {text!r} cannot be read: expected a duration such as 10s or 1m, "
            "or 0 to wait without end"
        )
    return float(match["number"]) * _SECONDS[match["unit"]] or None

"""A fake API server, and a client of it that never really waits."""

from collections.abc import AsyncIterator

import pytest

from driver.kube.rest import Rest
from tests.kube.apiserver import ApiServer
from tests.kube.clock import FakeClock


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    """An empty cluster."""
    async with ApiServer() as running:
        yield running


@pytest.fixture
def clock() -> FakeClock:
    """Time that passes only by sleeping."""
    return FakeClock()


@pytest.fixture
async def rest(server: ApiServer, clock: FakeClock) -> AsyncIterator[Rest]:
    """A client of the empty cluster."""
    async with server.session() as session:
        yield Rest(session, clock=clock, jitter=lambda: 1.0)

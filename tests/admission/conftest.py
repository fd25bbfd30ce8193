"""Certificates for loopback with clients that trust them, and a cluster to write to."""

import ssl
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from driver.admission.authority import KeyPair, issue, new_authority
from driver.admission.certificates import CERTIFICATE_FILE, KEY_FILE, ServingCertificate, store
from driver.kube.rest import Rest
from tests.kube.apiserver import ApiServer
from tests.kube.clock import FakeClock

HOSTS = ("127.0.0.1", "localhost")


@pytest.fixture(scope="session")
def authority() -> KeyPair:
    """An authority of our own."""
    return new_authority("test authority", now=datetime.now(UTC))


@pytest.fixture
def serving(authority: KeyPair, tmp_path: Path) -> ServingCertificate:
    """A loaded certificate whose files lie in the test's folder."""
    store(issue(authority, HOSTS, now=datetime.now(UTC)), tmp_path)
    certificate = ServingCertificate(tmp_path / CERTIFICATE_FILE, tmp_path / KEY_FILE)
    assert certificate.load()
    return certificate


@pytest.fixture
def trusting(authority: KeyPair) -> Callable[[], ssl.SSLContext]:
    """Makes client contexts that trust nothing but the authority, and check names."""
    return lambda: ssl.create_default_context(cadata=authority.certificate.decode())


@pytest.fixture
async def cluster() -> AsyncIterator[ApiServer]:
    """An empty cluster."""
    async with ApiServer() as running:
        yield running


@pytest.fixture
async def rest(cluster: ApiServer) -> AsyncIterator[Rest]:
    """A client of the empty cluster that never really waits."""
    async with cluster.session() as session:
        yield Rest(session, clock=FakeClock())

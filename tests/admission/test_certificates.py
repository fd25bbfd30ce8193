"""Certificates of our own making, their files, and a server that follows them while it runs."""

import asyncio
import ssl
import stat
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from driver.admission import authority as making
from driver.admission.authority import CertificateError, KeyPair, bundle, bundle_patch, due, issue
from driver.admission.certificates import CERTIFICATE_FILE, KEY_FILE, ServingCertificate, store
from tests.admission.conftest import HOSTS
from tests.kube.patches import json_patch

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
Trusting = Callable[[], ssl.SSLContext]


class Running:
    """A server that greets and hangs up, with a certificate that can be changed meanwhile."""

    def __init__(
        self, serving: ServingCertificate, folder: Path, *, authority: KeyPair, trusting: Trusting
    ) -> None:
        self.serving, self.folder = serving, folder
        self.authority, self.trusting = authority, trusting
        self.port = 0

    def renew(self) -> None:
        """Put another good pair into the folder."""
        store(issue(self.authority, HOSTS, now=datetime.now(UTC)), self.folder)

    async def shown(self, context: ssl.SSLContext | None = None) -> bytes:
        """The certificate that a new connection is shown, after it was checked."""
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=context or self.trusting()
        )
        certificate: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        assert await reader.read() == b"hello"
        writer.close()
        return certificate


@pytest.fixture
async def running(
    serving: ServingCertificate, tmp_path: Path, authority: KeyPair, trusting: Trusting
) -> AsyncIterator[Running]:
    """It runs, with a certificate in the test's folder."""

    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        await writer.drain()
        writer.close()

    found = Running(serving, tmp_path, authority=authority, trusting=trusting)
    server = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=serving.context)
    async with server:
        found.port = server.sockets[0].getsockname()[1]
        yield found


async def test_own_certificate_is_accepted(running: Running) -> None:
    """A client that trusts the authority and checks the address takes what it signed."""
    await running.shown()


async def test_stranger_is_refused(running: Running) -> None:
    """A client that trusts another authority does not."""
    other = making.new_authority("other", now=datetime.now(UTC))
    with pytest.raises(ssl.SSLCertVerificationError):
        await running.shown(ssl.create_default_context(cadata=other.certificate.decode()))


async def test_rotation_without_a_restart(running: Running) -> None:
    """New files are served to new connections of the running server, once they are loaded."""
    before = await running.shown()
    assert not running.serving.load()
    running.renew()
    assert await running.shown() == before
    assert running.serving.load()
    assert await running.shown() != before
    assert not running.serving.load()


@pytest.mark.parametrize("broken", ["certificate of another key", "nonsense", "gone", "empty"])
async def test_bad_files_change_nothing(running: Running, broken: str) -> None:
    """The old pair is served until both files are right; the error names them, not their text."""
    before = await running.shown()
    other = issue(running.authority, HOSTS, now=datetime.now(UTC))
    texts = {"certificate of another key": other.certificate, "nonsense": b"nonsense", "empty": b""}
    if broken in texts:
        (running.folder / CERTIFICATE_FILE).write_bytes(texts[broken])
    else:
        (running.folder / KEY_FILE).unlink()
    for _ in range(2):
        with pytest.raises(CertificateError, match="kept") as raised:
            running.serving.load()
        assert "PRIVATE" not in str(raised.value)
    assert await running.shown() == before
    running.renew()
    assert running.serving.load()
    assert await running.shown() != before


async def test_follows_files(running: Running) -> None:
    """The loop survives files that are wrong for a while, and takes them when they are right."""
    before = await running.shown()
    following = asyncio.create_task(running.serving.follow(interval=0.005))
    (running.folder / KEY_FILE).write_bytes(b"nonsense")
    await asyncio.sleep(0.05)
    assert await running.shown() == before
    running.renew()
    async with asyncio.timeout(10):
        while await running.shown() == before:  # noqa: ASYNC110 # no event tells a client
            await asyncio.sleep(0)
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following


def test_only_the_owner_reads_the_key(authority: KeyPair, tmp_path: Path) -> None:
    """Also where a file of other rights was there before; no temporary file stays."""
    folder = tmp_path / "tls"
    folder.mkdir()
    (folder / KEY_FILE).write_bytes(b"")
    (folder / KEY_FILE).chmod(0o644)
    store(authority, folder)
    assert stat.S_IMODE((folder / KEY_FILE).stat().st_mode) == 0o600
    assert sorted(item.name for item in folder.iterdir()) == [CERTIFICATE_FILE, KEY_FILE]


def test_key_is_not_shown(authority: KeyPair) -> None:
    """A pair that ends up in a log line says nothing."""
    assert "PRIVATE" not in repr(authority)
    assert "PRIVATE" not in f"{[authority]}"


def test_due_in_the_last_third() -> None:
    """A certificate is renewed while a third of its life is left, so that failures have time."""
    authority = making.new_authority("x", now=NOW)
    pair = issue(authority, HOSTS, now=NOW)
    assert not due(pair.certificate, now=NOW + timedelta(days=240))
    assert due(pair.certificate, now=NOW + timedelta(days=250))
    assert not due(authority.certificate, now=NOW + timedelta(days=250))


def test_serves() -> None:
    """A certificate is for the names and addresses that it was made for."""
    authority = making.new_authority("x", now=NOW)
    long_name = f"{'a' * 60}.{'b' * 60}.svc"
    pair = issue(authority, (long_name, "10.0.0.1"), now=NOW)
    assert making.serves(pair.certificate, [long_name])
    assert making.serves(pair.certificate, ["10.0.0.1"])
    assert not making.serves(pair.certificate, [long_name, "10.0.0.2"])
    assert making.signed_by(pair.certificate, authority.certificate)
    other = making.new_authority("x", now=NOW)
    assert not making.signed_by(pair.certificate, other.certificate)


def test_bad_authority_is_an_error_without_its_text() -> None:
    """What cannot be read is named, not quoted."""
    good = making.new_authority("x", now=NOW)
    with pytest.raises(CertificateError):
        issue(KeyPair(b"nonsense", good.key), HOSTS, now=NOW)
    with pytest.raises(CertificateError) as raised:
        issue(KeyPair(good.certificate, b"secret nonsense"), HOSTS, now=NOW)
    assert "secret" not in str(raised.value)


def test_bundle() -> None:
    """Old and new authority are trusted together, each once; an expired one is not."""
    old = making.new_authority("old", now=NOW - timedelta(days=3640)).certificate
    new = making.new_authority("new", now=NOW).certificate
    assert bundle([old, new, old + new], now=NOW) == old + new
    assert bundle([old, new], now=NOW + timedelta(days=11)) == new


def test_bundle_patch() -> None:
    """Only webhooks that trust something else are changed, and none twice."""
    configuration = {
        "webhooks": [
            {"name": "a", "clientConfig": {"url": "https://x"}},
            {"name": "b", "clientConfig": {"service": {}, "caBundle": "YnVuZGxl"}},
            {"name": "c", "clientConfig": {"service": {}, "caBundle": "b3RoZXI="}},
        ]
    }
    operations = bundle_patch(configuration, b"bundle")
    patched = json_patch(configuration, [dict(item) for item in operations])
    assert {item["clientConfig"]["caBundle"] for item in patched["webhooks"]} == {"YnVuZGxl"}
    assert len(operations) == 4
    assert bundle_patch(patched, b"bundle") == []
    assert bundle_patch({}, b"bundle") == []

"""The pair of files that the webhooks serve with, wherever it comes from, always fresh.

The TLS context follows the files while it is in use. Keys go to files that only their owner can
read, and never into a log or an error.
"""

import asyncio
import os
import ssl
import tempfile
from contextlib import suppress
from pathlib import Path

import structlog

from driver.admission.authority import CertificateError, KeyPair

POLL_SECONDS = 10.0

CERTIFICATE_FILE = "tls.crt"
KEY_FILE = "tls.key"

_log = structlog.get_logger(__name__)


def store(pair: KeyPair, folder: Path) -> None:
    """Write the pair into a folder, each file whole or not at all, the key for its owner only."""
    folder.mkdir(parents=True, exist_ok=True)
    # The key goes first: a reader that meets the new key with the old certificate tries again.
    for name, content in ((KEY_FILE, pair.key), (CERTIFICATE_FILE, pair.certificate)):
        descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            Path(temporary).replace(folder / name)
        except BaseException:
            with suppress(FileNotFoundError):
                Path(temporary).unlink()
            raise


class ServingCertificate:
    """A TLS context that follows a pair of files while it is in use.

    Connections that exist keep what they were opened with.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate, self._key = certificate, key
        self.context = _server_context()
        """For the server; it stays the same object for ever."""
        self._loaded: tuple[int, ...] | None = None
        self._complained: tuple[int, ...] | None = None

    def load(self) -> bool:
        """Take the files if they have changed; True when something new is served from now on.

        Raises `CertificateError` and keeps what was served before when they cannot be used.
        """
        try:
            seen = (*_identity(self._certificate), *_identity(self._key))
            if seen == self._loaded:
                return False
            self._use(self._certificate.read_bytes(), self._key.read_bytes())
        except OSError as error:
            # An SSLError is an OSError; neither quotes what is in the files.
            raise CertificateError(
                f"the serving certificate {self._certificate} with the key {self._key} cannot be "
                f"used: {error}; what was served before is kept until both files are right"
            ) from error
        self._loaded = seen
        return True

    async def follow(self, *, interval: float = POLL_SECONDS) -> None:
        """Look at the files for ever, every `interval` seconds; a failure is logged once."""
        while True:
            await asyncio.sleep(interval)
            try:
                if self.load():
                    _log.info("certificate.loaded", certificate=str(self._certificate))
                self._complained = None
            except CertificateError as error:
                self._complain(error)

    def _complain(self, error: CertificateError) -> None:
        state = self._state()
        if state != self._complained:
            _log.error("certificate.kept", problem=str(error))
            self._complained = state

    def _state(self) -> tuple[int, ...]:
        try:
            return (*_identity(self._certificate), *_identity(self._key))
        except OSError:
            return (-1,)

    def _use(self, certificate: bytes, key: bytes) -> None:
        """Let the context serve with this pair, or leave it as it was.

        A context that is given a certificate whose key does not match has lost the old one. So the
        pair is tried on another context first, and from copies, as the files may change between.
        """
        with tempfile.TemporaryDirectory(prefix="quadrant-tls-") as name:
            folder = Path(name)
            store(KeyPair(certificate, key), folder)
            for context in (_server_context(), self.context):
                context.load_cert_chain(folder / CERTIFICATE_FILE, folder / KEY_FILE)


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # The API server is the only client, and has spoken this version since Kubernetes 1.13.
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["http/1.1"])
    return context


def _identity(path: Path) -> tuple[int, int, int]:
    """What changes when a file is replaced or written, also through a symbolic link."""
    status = path.stat()
    return status.st_mtime_ns, status.st_ino, status.st_size

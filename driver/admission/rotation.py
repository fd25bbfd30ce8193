"""The self-made certificates in a cluster: one authority for all replicas, trusted, renewed.

The authority lies in a Secret, and each replica signs its own serving certificate with it. The
order keeps callers content at every moment: an authority is trusted before anything signed by it
is served. Files given by others need none of this (`certificates.ServingCertificate` follows them).
"""

import base64
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import msgspec
import structlog

from driver.admission import authority as making
from driver.admission.authority import KeyPair
from driver.admission.certificates import CERTIFICATE_FILE, KEY_FILE, store
from driver.kube.errors import AlreadyExists, Conflict, Forbidden, NotFound
from driver.kube.rest import Rest
from driver.model.ids import ObjectKey
from driver.wire import decode
from driver.wire.patch import JSON_PATCH, MERGE_PATCH, document

# What the Secret is called inside. `trusted.crt` also holds the authorities before this one.
_CERTIFICATE, _KEY, _TRUSTED = "ca.crt", "ca.key", "trusted.crt"
_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1"
_AUTHORITY_NAME = "quadrant-webhooks"

_log = structlog.get_logger(__name__)


class Authority(msgspec.Struct, frozen=True):
    """Who signs now, and all who should be trusted, as PEM."""

    current: KeyPair
    trusted: bytes


class _SecretMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class _Secret(msgspec.Struct, frozen=True):
    metadata: _SecretMeta
    data: dict[str, str] = {}


class OwnCertificates:
    """Keeps a replica's serving certificate good. Call `ensure` at the start and every minute.

    `hosts` are the DNS names and addresses that the API server calls, `configurations` the webhook
    configurations that must trust the authority, such as "mutatingwebhookconfigurations/NAME".
    """

    def __init__(
        self,
        rest: Rest,
        secret: ObjectKey,
        *,
        hosts: Iterable[str],
        configurations: Iterable[str],
        folder: Path,
    ) -> None:
        self._rest, self._secret, self._folder = rest, secret, folder
        self._hosts, self._configurations = tuple(hosts), tuple(configurations)

    async def ensure(self, now: datetime) -> bytes:
        """Let all be in order at this time; returns what callers should trust, as PEM.

        Idempotent, and safe with several replicas at once. Raises the errors of `driver.kube`, and
        `CertificateError` or `InvalidObjectError` where the Secret holds what cannot be read.
        """
        authority = await self._authority(now)
        for name in self._configurations:
            await self._trust(name, authority.trusted)
        if not self._is_good(authority, now):
            store(making.issue(authority.current, self._hosts, now=now), self._folder)
            _log.info("certificate.issued", hosts=self._hosts, folder=str(self._folder))
        return authority.trusted

    def _is_good(self, authority: Authority, now: datetime) -> bool:
        """Whether what lies in the folder can be served for some time yet."""
        try:
            certificate = (self._folder / CERTIFICATE_FILE).read_bytes()
        except FileNotFoundError:
            return False
        return (
            (self._folder / KEY_FILE).exists()
            and not making.due(certificate, now=now)
            and making.serves(certificate, self._hosts)
            and making.signed_by(certificate, authority.current.certificate)
        )

    async def _authority(self, now: datetime) -> Authority:
        """The authority that all replicas share; made, or renewed, by whoever is first."""
        place = f"/api/v1/namespaces/{self._secret.namespace}/secrets"
        path = f"{place}/{self._secret.name}"
        while True:
            try:
                found = decode.decode(_Secret, await self._rest.get(path))
            except NotFound:
                try:
                    return await self._create(place, now)
                except AlreadyExists:
                    continue
            authority = _read(found)
            if authority is not None and not making.due(authority.current.certificate, now=now):
                return authority
            try:
                return await self._renew(path, found, authority, now=now)
            except Conflict:
                continue

    async def _create(self, place: str, now: datetime) -> Authority:
        authority = _renewed(None, now)
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "Opaque",
            "metadata": {"name": self._secret.name},
            "data": _data(authority),
        }
        try:
            await self._rest.create(place, msgspec.json.encode(body))
        except Forbidden as error:
            raise making.CertificateError(
                f"Secret {self._secret} is not there, and this account may not create it: create "
                "an empty one of that name, as `helm upgrade` does; it is filled then"
            ) from error
        return authority

    async def _renew(
        self, path: str, found: _Secret, old: Authority | None, *, now: datetime
    ) -> Authority:
        authority = _renewed(old, now)
        version = {"resourceVersion": found.metadata.resource_version}
        body = msgspec.json.encode({"metadata": version, "data": _data(authority)})
        await self._rest.patch(path, body, MERGE_PATCH)
        _log.info("authority.renewed", secret=str(self._secret))
        return authority

    async def _trust(self, name: str, trusted: bytes) -> None:
        path = f"{_WEBHOOKS}/{name}"
        try:
            found = msgspec.json.decode(await self._rest.get(path))
        except NotFound:
            # Whoever creates it later puts the bundle in; the next `ensure` sees to it.
            return
        operations = making.bundle_patch(found, trusted)
        if operations:
            await self._rest.patch(path, document(operations), JSON_PATCH)


def _renewed(old: Authority | None, now: datetime) -> Authority:
    """A new authority; the one before is trusted as long as it lives."""
    new = making.new_authority(_AUTHORITY_NAME, now=now)
    known = [new.certificate, *([old.trusted] if old else [])]
    return Authority(new, making.bundle(known, now=now))


def _read(secret: _Secret) -> Authority | None:
    """The authority in a Secret; None when it holds none yet (helm makes it empty)."""
    if not all(name in secret.data for name in (_CERTIFICATE, _KEY, _TRUSTED)):
        return None
    certificate, key, trusted = (
        base64.b64decode(secret.data[name]) for name in (_CERTIFICATE, _KEY, _TRUSTED)
    )
    return Authority(KeyPair(certificate, key), trusted)


def _data(authority: Authority) -> dict[str, str]:
    texts = {
        _CERTIFICATE: authority.current.certificate,
        _KEY: authority.current.key,
        _TRUSTED: authority.trusted,
    }
    return {name: base64.b64encode(text).decode() for name, text in texts.items()}

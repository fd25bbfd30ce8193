"""The certificates that a controller makes for itself: an authority, and what it signs.

Pure but for the randomness of keys: times are arguments, and nothing here reads or writes files.
Keys never appear in a log or an error.
"""

import base64
import ipaddress
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from driver.model.errors import QuadrantError
from driver.wire.patch import Operation, add, pointer, test

AUTHORITY_LIFE = timedelta(days=3650)
SERVING_LIFE = timedelta(days=365)
# Clocks of other machines may be behind.
_BACKDATED = timedelta(hours=1)


class CertificateError(QuadrantError):
    """A certificate or key cannot be read, or the two do not belong together."""


class KeyPair(msgspec.Struct, frozen=True):
    """A certificate and its private key, both as PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "KeyPair(…)"


def new_authority(name: str, *, now: datetime) -> KeyPair:
    """A certificate authority of our own, which signs nothing but serving certificates."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        _builder(subject, key, now, AUTHORITY_LIFE)
        .issuer_name(subject)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
    )
    return _pair(builder.sign(key, hashes.SHA256()), key)


def issue(authority: KeyPair, hosts: Iterable[str], *, now: datetime) -> KeyPair:
    """A serving certificate for these DNS names and IP addresses, signed by `authority`."""
    issuer, issuer_key = _certificate(authority.certificate), _private_key(authority.key)
    key = ec.generate_private_key(ec.SECP256R1())
    hosts = tuple(hosts)
    # Common names end at 64 characters; the names that count are in the extension.
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0][:64])])
    builder = (
        _builder(subject, key, now, SERVING_LIFE)
        .issuer_name(issuer.subject)
        .add_extension(x509.SubjectAlternativeName(map(_general_name, hosts)), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
            critical=False,
        )
    )
    return _pair(builder.sign(issuer_key, hashes.SHA256()), key)


def due(certificate: bytes, *, now: datetime) -> bool:
    """Whether it is time for a new one: less than a third of its life is left."""
    found = _certificate(certificate)
    life = found.not_valid_after_utc - found.not_valid_before_utc
    return found.not_valid_after_utc - now < life / 3


def serves(certificate: bytes, hosts: Iterable[str]) -> bool:
    """Whether a certificate is for all of these DNS names and IP addresses."""
    names = _certificate(certificate).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    return set(map(_general_name, hosts)) <= set(names.value)


def signed_by(certificate: bytes, authority: bytes) -> bool:
    """Whether a certificate was signed by this authority."""
    try:
        _certificate(certificate).verify_directly_issued_by(_certificate(authority))
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def bundle(authorities: Iterable[bytes], *, now: datetime) -> bytes:
    """The certificates that callers should trust: each once, expired ones left out.

    While an authority is replaced, the bundle holds both, the old one until the last replica
    serves with a certificate of the new one.
    """
    unique = dict.fromkeys(
        item
        for pem in authorities
        for item in x509.load_pem_x509_certificates(pem)
        if item.not_valid_after_utc > now
    )
    return b"".join(item.public_bytes(serialization.Encoding.PEM) for item in unique)


def bundle_patch(configuration: Mapping[str, Any], authorities: bytes) -> list[Operation]:
    """What makes every webhook of a raw webhook configuration trust a bundle; empty if all do."""
    wanted = base64.b64encode(authorities).decode()
    operations: list[Operation] = []
    for index, webhook in enumerate(configuration.get("webhooks") or ()):
        if webhook["clientConfig"].get("caBundle") != wanted:
            operations.append(test(pointer("webhooks", index, "name"), webhook["name"]))
            operations.append(add(pointer("webhooks", index, "clientConfig", "caBundle"), wanted))
    return operations


def _builder(
    subject: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    public = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before((now - _BACKDATED).astimezone(UTC))
        .not_valid_after((now + life).astimezone(UTC))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    return KeyPair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def _certificate(pem: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise CertificateError(f"a certificate cannot be read: {error}") from error


def _private_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise CertificateError("the authority's key cannot be read") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificateError("the authority's key is of a kind that is not made here")
    return key


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)

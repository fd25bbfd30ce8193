"""One authority for all replicas, trusted before it is used, renewed in time."""

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from driver.admission import authority as making
from driver.admission.authority import CertificateError
from driver.admission.certificates import CERTIFICATE_FILE, ServingCertificate
from driver.admission.rotation import OwnCertificates
from driver.kube.errors import Forbidden
from driver.kube.rest import Rest
from driver.model.ids import ObjectKey
from tests.kube.apiserver import ApiServer
from tests.kube.objects import Refusal

SECRETS = "/api/v1/secrets"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
START = datetime(2026, 11, 30, tzinfo=UTC)
YEAR = timedelta(days=365)


def replica(rest: Rest, folder: Path, *hosts: str) -> OwnCertificates:
    """One controller."""
    return OwnCertificates(
        rest,
        ObjectKey("quadrant-system", "quadrant-authority"),
        hosts=hosts or ("127.0.0.1",),
        configurations=(
            "mutatingwebhookconfigurations/quadrant-commit",
            "validatingwebhookconfigurations/quadrant-configs",
        ),
        folder=folder,
    )


def certificate(folder: Path) -> bytes:
    """What a replica serves."""
    return (folder / CERTIFICATE_FILE).read_bytes()


def webhooks(cluster: ApiServer) -> None:
    """The configuration as it is installed, without trust."""
    client = {"service": {"name": "quadrant", "namespace": "quadrant-system"}}
    hook = {"name": "commit.quadrant.dev", "clientConfig": client}
    cluster.put(WEBHOOKS, {"metadata": {"name": "quadrant-commit"}, "webhooks": [hook]})


def trusted(cluster: ApiServer) -> bytes:
    """What the webhook's caller trusts."""
    (hook,) = cluster.get(WEBHOOKS, "quadrant-commit")["webhooks"]
    return base64.b64decode(hook["clientConfig"]["caBundle"])


def current(cluster: ApiServer) -> bytes:
    """The authority that signs now."""
    secret = cluster.get(SECRETS, "quadrant-authority", "quadrant-system")
    return base64.b64decode(secret["data"]["ca.crt"])


async def test_first_start(cluster: ApiServer, rest: Rest, tmp_path: Path) -> None:
    """From nothing to a certificate that the webhook's caller trusts."""
    webhooks(cluster)
    bundle = await replica(rest, tmp_path, "127.0.0.1", "quadrant.svc").ensure(START)
    assert trusted(cluster) == bundle == current(cluster)
    assert making.signed_by(certificate(tmp_path), bundle)
    assert making.serves(certificate(tmp_path), ["127.0.0.1", "quadrant.svc"])
    assert ServingCertificate(tmp_path / CERTIFICATE_FILE, tmp_path / "tls.key").load()


async def test_nothing_to_do(cluster: ApiServer, rest: Rest, tmp_path: Path) -> None:
    """Asked again, only reads go out, and the certificate stays."""
    webhooks(cluster)
    own = replica(rest, tmp_path)
    await own.ensure(START)
    before, asked = certificate(tmp_path), len(cluster.requests)
    await own.ensure(START + timedelta(days=100))
    assert certificate(tmp_path) == before
    assert {line.split()[0] for line in cluster.requests[asked:]} == {"GET"}


async def test_replicas_share_the_authority(cluster: ApiServer, rest: Rest, tmp_path: Path) -> None:
    """The second uses what the first made, with a key of its own."""
    webhooks(cluster)
    await replica(rest, tmp_path / "a").ensure(START)
    await replica(rest, tmp_path / "b").ensure(START)
    assert certificate(tmp_path / "a") != certificate(tmp_path / "b")
    assert making.signed_by(certificate(tmp_path / "b"), current(cluster))


async def test_other_replica_is_faster(cluster: ApiServer, rest: Rest, tmp_path: Path) -> None:
    """A Secret that appears between looking and creating is the one that counts."""
    other = replica(rest, tmp_path / "other")
    await other.ensure(START)
    cluster.refuse(Refusal(404, "NotFound"), path="/secrets/")
    await replica(rest, tmp_path / "mine").ensure(START)
    assert making.signed_by(certificate(tmp_path / "mine"), current(cluster))


async def test_empty_secret(cluster: ApiServer, rest: Rest, tmp_path: Path) -> None:
    """A Secret that was installed empty is filled."""
    metadata = {"name": "quadrant-authority", "namespace": "quadrant-system"}
    cluster.put(SECRETS, {"metadata": metadata})
    assert await replica(rest, tmp_path).ensure(START) == current(cluster)


async def test_a_secret_that_is_gone_and_may_not_be_made(
    cluster: ApiServer, rest: Rest, tmp_path: Path
) -> None:
    """With the chart's rights; the error says how to get on."""
    cluster.refuse(Refusal(403, "Forbidden", "no"), times=99, method="POST", path="/secrets")
    with pytest.raises(CertificateError, match=r"quadrant-authority is not there.*helm upgrade"):
        await replica(rest, tmp_path).ensure(START)


async def test_spoilt_secret(cluster: ApiServer, rest: Rest, tmp_path: Path) -> None:
    """It is told apart from our own faults, so that what is served can be kept meanwhile."""
    await replica(rest, tmp_path).ensure(START)
    secret = cluster.get(SECRETS, "quadrant-authority", "quadrant-system")
    data = secret["data"] | {"ca.crt": base64.b64encode(b"spoilt").decode()}
    cluster.put(SECRETS, secret | {"data": data})
    with pytest.raises(CertificateError, match="cannot be read"):
        await replica(rest, tmp_path).ensure(START)


@pytest.mark.parametrize("reason", ["age", "other hosts", "key is gone"])
async def test_new_serving_certificate(
    cluster: ApiServer, rest: Rest, tmp_path: Path, reason: str
) -> None:
    """It is made anew when it gets old or is no longer right; the authority stays."""
    await replica(rest, tmp_path).ensure(START)
    before, signer = certificate(tmp_path), current(cluster)
    if reason == "key is gone":
        (tmp_path / "tls.key").unlink()
    hosts = ("127.0.0.2",) if reason == "other hosts" else ("127.0.0.1",)
    await replica(rest, tmp_path, *hosts).ensure(
        START + (0.8 * YEAR if reason == "age" else 0 * YEAR)
    )
    assert certificate(tmp_path) != before
    assert current(cluster) == signer


async def test_new_authority(cluster: ApiServer, rest: Rest, tmp_path: Path) -> None:
    """Old and new are trusted together, and each replica changes over at its own time."""
    webhooks(cluster)
    first, second = replica(rest, tmp_path / "a"), replica(rest, tmp_path / "b")
    late = START + 8 * YEAR
    for own in (first, second):
        await own.ensure(START)
        await own.ensure(late - 2 * YEAR)
    old = current(cluster)
    await first.ensure(late)
    new = current(cluster)
    assert new != old
    assert trusted(cluster) == new + old
    assert making.signed_by(certificate(tmp_path / "a"), new)
    assert making.signed_by(certificate(tmp_path / "b"), old)
    await second.ensure(late)
    assert current(cluster) == new
    assert making.signed_by(certificate(tmp_path / "b"), new)


async def test_not_served_before_it_is_trusted(
    cluster: ApiServer, rest: Rest, tmp_path: Path
) -> None:
    """Where the configuration cannot be changed, the old certificate stays in use."""
    webhooks(cluster)
    own = replica(rest, tmp_path)
    await own.ensure(START)
    before = certificate(tmp_path)
    cluster.refuse(Refusal(403, "Forbidden"), path="mutatingwebhookconfigurations/")
    with pytest.raises(Forbidden):
        await own.ensure(START + 8 * YEAR)
    assert certificate(tmp_path) == before


async def test_configuration_that_is_not_there(
    cluster: ApiServer, rest: Rest, tmp_path: Path
) -> None:
    """It is made to trust us once it exists."""
    own = replica(rest, tmp_path)
    bundle = await own.ensure(START)
    webhooks(cluster)
    await own.ensure(START)
    assert trusted(cluster) == bundle

"""What must work for years: templates do not pile up, certificates are renewed under way."""

import asyncio
import json
import ssl
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from driver.admission.authority import bundle, new_authority, signed_by
from driver.admission.rotation import OwnCertificates
from driver.kube.rest import Rest
from driver.kube.session import open_session
from driver.model.ids import ObjectKey
from tests.cluster.site import Site
from tests.cluster.workloads import container, made_from, pod, request, share, template

pytestmark = pytest.mark.cluster

LAST_USED = "quadrant.dev/last-used"
SECRET = ObjectKey("quadrant-system", "quadrant-webhooks")


def test_unused_templates_are_collected(site: Site) -> None:
    """Translated pods leave a template behind, which goes an hour after its last use."""
    for name, memory in (("one", "7000"), ("two", "7000"), ("three", "6000")):
        limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory}
        site.api.create("pods", pod(name, container(limits=limits)))
    site.running("one", "two", "three")
    made = sorted(one["metadata"]["name"] for one in site.api.list("templates"))
    assert len(made) == 2, "pods that ask for the same share one"
    (used,) = {ref["resourceClaimTemplateName"] for ref in _claims(site, "three")}
    site.delete("one", "two")
    long_ago = (datetime.now(UTC) - timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    for name in made:
        site.api.patch("templates", name, {"metadata": {"annotations": {LAST_USED: long_ago}}})
    # The leader looks as it begins, and every two minutes.
    site.deployment.controller.stop()
    site.deployment.start_controller()
    site.wait(
        "the unused template to be gone",
        lambda: [one["metadata"]["name"] for one in site.api.list("templates")] == [used],
    )


def _claims(site: Site, name: str) -> list[dict[str, str]]:
    return list(site.pod(name)["spec"]["resourceClaims"])


def test_authority_is_renewed_without_a_restart(site: Site) -> None:
    """A new authority is trusted before it signs what is served, and commits go on throughout."""
    site.api.create("templates", template("share", request(**share())))
    process = site.deployment.controller.pid
    before = _served(site)
    site.run(pod("before", claims={"gpu": made_from("share")}))

    authority = new_authority("renewed", now=datetime.now(UTC))
    stored = site.api.get("secrets", SECRET.name)
    assert stored is not None
    trusted = bundle([authority.certificate, site.deployment.authority()], now=datetime.now(UTC))
    texts = {"ca.crt": authority.certificate, "ca.key": authority.key, "trusted.crt": trusted}
    data = {name: b64encode(text).decode() for name, text in texts.items()}
    site.api.patch("secrets", SECRET.name, {"data": data})
    # What the controller does every hour, in its own folder.
    asyncio.run(_renew(site))

    count = 0
    while signed_by(_served(site), authority.certificate) is False:
        site.run(pod(f"during-{count}", claims={"gpu": made_from("share")}))
        count += 1
    assert _served(site) != before
    site.run(pod("after", claims={"gpu": made_from("share")}))
    assert site.deployment.controller.pid == process
    assert len(site.allocated()) == count + 2


def _served(site: Site) -> bytes:
    place = urlsplit(site.deployment.address)
    assert place.hostname is not None
    assert place.port is not None
    return ssl.get_server_certificate((place.hostname, place.port), timeout=10).encode()


async def _renew(site: Site) -> None:
    async with open_session(site.state["kubeconfig"]) as session:
        own = OwnCertificates(
            Rest(session),
            SECRET,
            hosts=["127.0.0.1"],
            configurations=["quadrant-commit", "quadrant-pods"],
            folder=_folder(site),
        )
        await own.ensure(datetime.now(UTC))


def _folder(site: Site) -> Path:
    """Where the running controller keeps its certificate, as it has said."""
    lines = site.deployment.controller.log.read_text().splitlines()
    issued = [json.loads(line) for line in lines if "certificate.issued" in line]
    return Path(issued[-1]["folder"])

"""Values that are changed on a release that runs: certificates, the resource's name, policies.

The cards are simulated, with all ways that can be tried without any.
"""

import base64
import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.cluster import history
from tests.cluster.test_modes import EXPECTED
from tests.helm import audit
from tests.helm.burst import Burst
from tests.helm.chart import NAMESPACE, ROOT, Object
from tests.helm.release import MARKS, Release, cluster

pytestmark = MARKS

SECRET = "serving"  # noqa: S105 - its name
HOSTS = [f"quadrant-{name}.{NAMESPACE}.svc" for name in ("commit", "pods")]
SIMULATED: Object = {
    "inventory": {"simulated": {"profile": "4xA100-SXM4-40GB"}},
    "node": {"settings": {"mig": "dynamic"}, "timeSlicing": True},
}


class Site(NamedTuple):
    """The release, and whom the API server trusts by its owner's word, in base64.

    `unanswered` is how many calls of the hooks had come to nothing when it was installed.
    """

    release: Release
    authority: str
    unanswered: int = 0

    @property
    def own(self) -> Object:
        """The values for certificates of one's own."""
        return {"certificates": {"secretName": SECRET, "caBundle": self.authority}}

    def trusted(self) -> set[str]:
        """Whom the API server trusts, of all hooks, in base64."""
        kinds = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
        return {
            hook["clientConfig"].get("caBundle", "")
            for configuration in self.release.get(kinds)
            for hook in configuration["webhooks"]
        }


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Installed with certificates of one's own, and without a resource's name."""
    folder = tmp_path_factory.mktemp("certificates")
    with cluster("settings", nodes="one=4xA100,two=4xA100") as made:
        found = Site(made, base64.b64encode(_sign(folder).read_bytes()).decode())
        made.kubectl("create", "namespace", NAMESPACE)
        files = (f"--cert={folder}/tls.crt", f"--key={folder}/tls.key")
        made.kubectl("-n", NAMESPACE, "create", "secret", "tls", SECRET, *files)
        made.install(**SIMULATED, **found.own, deviceClass={})
        made.settle()
        yield found._replace(unanswered=len(made.unanswered()))


def _sign(folder: Path) -> Path:
    """Make an authority, and what it signs for the hooks' names; the authority."""
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30")
    names = ",".join(f"DNS:{host}" for host in HOSTS)
    for arguments in (
        ("-subj", "/CN=our-authority", "-keyout", "ca.key", "-out", "ca.crt"),
        ("-subj", "/CN=quadrant", "-keyout", "tls.key", "-out", "tls.crt", "-CA", "ca.crt",
         "-CAkey", "ca.key", "-addext", f"subjectAltName={names}",
         "-addext", "basicConstraints=critical,CA:FALSE"),
    ):  # fmt: skip
        command = ("openssl", "req", "-x509", *key, *arguments)
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "ca.crt"


@pytest.fixture(autouse=True)
def nothing_left(site: Site) -> Iterator[None]:
    """After each test no pod is there."""
    yield
    clear(site.release)


def clear(release: Release) -> None:
    """Delete what tests make, and wait for the claims to go."""
    release.kubectl("delete", "deployments,pods", "--all", "--now")
    release.wait("claims to go", lambda: not release.get("resourceclaims"))


def results(release: Release) -> list[Object]:
    """All that is allocated."""
    return [one for claim in release.get("resourceclaims") for one in history.results(claim)]


def test_certificates_of_ones_own(site: Site) -> None:
    """They are served and trusted from the start; pods get cards and shares."""
    assert site.trusted() == {site.authority}
    secrets = [one["metadata"]["name"] for one in site.release.get("-n", NAMESPACE, "secrets")]
    assert "quadrant-webhooks" not in secrets
    assert "QUADRANT_DEVICE_" in site.release.run_pod("whole", gpu=1)
    assert "CUDA_DEVICE_MEMORY_LIMIT_0=7500m" in site.release.run_pod("share", gpumem=7500)


@pytest.mark.parametrize("mode", EXPECTED)
def test_two_by_two(site: Site, mode: str) -> None:
    """Nodes and cards are used as the two annotations say."""
    release = site.release
    (manifest,) = (ROOT / "examples" / "two-by-two").glob(f"{mode}-*.yaml")
    deployment = yaml.safe_load(manifest.read_text())
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    container.update(release.container())
    release.kubectl("create", "-f", "-", given=json.dumps(deployment))
    name = deployment["metadata"]["name"]
    release.kubectl("rollout", "status", f"deployment/{name}", "--timeout=120s")
    used = Counter((one["pool"], one["device"]) for one in results(release))
    pods, cards = EXPECTED[mode]
    nodes = Counter(pool for pool, _ in used.elements())
    assert sorted(nodes.values()) == pods
    per_node = [len({card for pool, card in used if pool == node}) for node in nodes]
    assert all(count in possible for count, possible in zip(per_node, cards, strict=True))


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("whole", "NVIDIA_VISIBLE_DEVICES=GPU-"),
        ("mig", "NVIDIA_VISIBLE_DEVICES=MIG-"),
        ("time-slicing", "NVIDIA_VISIBLE_DEVICES=GPU-"),
        ("shares", "CUDA_DEVICE_SM_LIMIT_0=30"),
    ],
)
def test_ways_without_a_card(site: Site, name: str, variable: str) -> None:
    """What docs/sharing.md says can be tried: the examples run, each sees what it would have."""
    release = site.release
    text = (ROOT / "examples" / "sharing" / f"{name}.yaml").read_text()
    documents = list(yaml.safe_load_all(text))
    for pod in documents[1:]:
        for container in pod["spec"]["containers"]:
            container.update(release.container(name=container["name"]))
    body = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
    release.kubectl("apply", "-f", "-", given=body)
    for pod in documents[1:]:
        path = f"pod/{pod['metadata']['name']}"
        release.kubectl("wait", "--for=condition=Ready", path, "--timeout=120s")
        assert variable in release.kubectl("logs", path, "--all-containers")


def test_the_name_of_the_resource_comes_and_goes(site: Site) -> None:
    """With it the scheduler makes the claims itself, without it the webhook does; pods stay."""
    release = site.release
    release.run_pod("translated", gpu=1)
    before = release.get("pods", "translated")[0]["metadata"]["uid"]
    assert results(release)
    for name in ("nvidia.com/gpu", ""):
        release.upgrade(**SIMULATED, **site.own, deviceClass={"extendedResourceName": name})
        release.settle()
        (wanted,) = release.get("deviceclass", "gpu.quadrant.dev")
        assert wanted["spec"].get("extendedResourceName", "") == name
        pod = f"with-{bool(name)}".lower()
        release.run_pod(pod, gpu=1)
        (status,) = (one.get("status", {}) for one in release.get("pods", pod))
        assert ("extendedResourceClaimStatus" in status) is bool(name)
    assert release.get("pods", "translated")[0]["metadata"]["uid"] == before
    assert len({(one["pool"], one["device"]) for one in results(release)}) == 3


def test_all_reviews_were_answered(site: Site) -> None:
    """So far no replica was called that did not serve, and all were trusted."""
    assert site.release.unanswered()[site.unanswered :] == []


def test_certificates_become_self_made(site: Site) -> None:
    """By an upgrade that leaves the values out."""
    release = site.release
    release.upgrade(**SIMULATED, certificates={}, deviceClass={})
    release.settle()
    release.wait("its authority", lambda: site.trusted() == {self_made(release)})
    release.run_pod("self-made", gpumem=7500)


def self_made(release: Release) -> str:
    """The controller's own authorities, as the command in docs/install.md reads them; in base64."""
    path = "jsonpath={.data.trusted\\.crt}"
    return release.kubectl("-n", NAMESPACE, "get", "secret", "quadrant-webhooks", "-o", path)


def test_certificates_become_ones_own_again(site: Site) -> None:
    """With both authorities trusted meanwhile no review is lost, as docs/install.md says."""
    release = site.release
    before = len(release.unanswered())
    both = base64.b64decode(self_made(release)) + base64.b64decode(site.authority)
    bundle = base64.b64encode(both).decode()
    values = {"certificates": {"secretName": SECRET, "caBundle": bundle}, "deviceClass": {}}
    with Burst(release.state, [release.spec(gpu=1, gpumem=7500)], name="pod") as pods:
        release.upgrade("--force-conflicts", **SIMULATED, **values)
        release.settle()
    assert pods.wrongs == []
    release.upgrade(**SIMULATED, **site.own, deviceClass={})
    assert site.trusted() == {site.authority}
    release.run_pod("own-again", gpumem=7500)
    assert release.unanswered()[before:] == []


def test_nothing_was_forbidden(site: Site) -> None:
    """Rights are taken from replicas that still run only with the certificates they are for."""
    kinds = ("webhookconfigurations", f"/namespaces/{NAMESPACE}/secrets")
    lines = audit.forbidden(site.release.state)
    assert [line for line in lines if not any(kind in line for kind in kinds)] == []

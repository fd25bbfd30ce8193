"""Every manifest that people are shown is accepted by a real API server, webhooks included."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from hack.deployment import DeploymentError
from tests.cluster.api import Object
from tests.cluster.site import ROOT, Site

pytestmark = pytest.mark.cluster

_BLOCK = re.compile(r"```yaml\n(apiVersion:.*?)```", re.DOTALL)
# Read by programs of ours or others, not by the API server.
_FILES = {"quadrant.dev/v1alpha1", "config.kueue.x-k8s.io/v1beta2"}
_KUEUE = "sigs.k8s.io/kueue@v0.17.0"
_CRDS = ("clusterqueues", "localqueues", "resourceflavors")


def shown() -> Iterator[tuple[str, str]]:
    """Where each manifest stands, and its text."""
    for page in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]):
        for number, found in enumerate(_BLOCK.finditer(page.read_text()), start=1):
            yield f"{page.relative_to(ROOT)}:{number}", found[1]
    for folder in ("examples", "deviceclasses"):
        for file in sorted((ROOT / folder).rglob("*.yaml")):
            yield str(file.relative_to(ROOT)), file.read_text()


def objects(text: str) -> list[Object]:
    """The API objects of a manifest; an ellipsis in a name stands for what a program fills in."""
    documents = yaml.safe_load_all(text.replace("…", "x"))
    return [one for one in documents if one and one["apiVersion"] not in _FILES]


@pytest.fixture(scope="module")
def crds() -> list[Object]:
    """Kueue's own definitions, from its Go module."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("no Go toolchain to fetch Kueue's definitions with")
    done = subprocess.run(
        [go, "mod", "download", "-json", _KUEUE], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    folder = Path(json.loads(done.stdout)["Dir"]) / "config" / "components" / "crd" / "bases"
    found = [
        yaml.safe_load((folder / f"kueue.x-k8s.io_{plural}.yaml").read_text()) for plural in _CRDS
    ]
    for one in found:
        # Converts between versions by a webhook that is not there.
        one["spec"].pop("conversion", None)
    return found


def test_every_manifest_is_accepted(site: Site, crds: list[Object]) -> None:
    """In a dry run; nothing is created but Kueue's definitions, and those go again."""
    kubectl = site.deployment.kubectl
    definitions = yaml.safe_dump_all(crds)
    kubectl("apply", "--server-side", "-f", "-", stdin=definitions)
    try:
        names = [f"crd/{one['metadata']['name']}" for one in crds]
        kubectl("wait", "--for=condition=Established", "--timeout=60s", *names)
        refused = {place: refusal(site, objects(text)) for place, text in shown()}
        assert {place: why for place, why in refused.items() if why} == {}
    finally:
        kubectl("delete", "--ignore-not-found", "-f", "-", stdin=definitions)


def refusal(site: Site, given: list[Object]) -> str:
    """Why the API server would not take these objects; empty when it would."""
    if not given:
        return ""
    text = yaml.safe_dump_all(given)
    try:
        site.deployment.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", stdin=text)
    except DeploymentError as error:
        return str(error)
    return ""


def test_manifests_are_found() -> None:
    """Pages and examples are looked at; a pattern that finds nothing would pass everything."""
    places = [place for place, _ in shown()]
    assert {place.partition(":")[0] for place in places} >= {
        "docs/integrations/kueue.md",
        "docs/integrations/schedulers.md",
        "docs/integrations/topology-spread.md",
        "examples/resourceclaim.yaml",
        "deviceclasses/gpu.yaml",
    }

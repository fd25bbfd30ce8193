"""Commands of the documentation that need a cluster, or longer, typed as they stand on their pages.

Which ones, and what they have to show, says `tests/docs/book.py`. Names in capitals, and those of
the pages' examples, are replaced by such that are there.
"""

import json
import os
import re
import sysconfig
import venv
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.conftest import NAME
from tests.cluster.site import Site, hack_cluster
from tests.cluster.workloads import Object, made_from, pod, request, share, template
from tests.docs import book
from tests.docs.shell import BIN, fault, lay
from tests.helm.release import Release

pytestmark = pytest.mark.cluster

_CHART = "docs" + NAME.removeprefix("e2e")
_POD = "train-0"
_CLUSTER_SCRIPT = re.compile(r"hack/cluster [a-z]+")
_NODE: Object = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}}


def filled(text: str, names: Mapping[str, str]) -> str:
    """The command with names that are there; where two begin alike the longer one counts."""
    words = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.sub(rf"\b(?:{words})\b", lambda found: names[found[0]], text)


def environment(folder: Path, state: Object) -> dict[str, str]:
    """The cluster's kubectl and Helm, which lead to it; `quadrant` is this checkout's."""
    programs = folder / "programs"
    programs.mkdir()
    for name in ("kubectl", "helm"):
        (programs / name).symlink_to(state["bin"][name])
    path = f"{programs}:{BIN}:{os.environ['PATH']}"
    return {"PATH": path, "KUBECONFIG": state["kubeconfig"]}


@pytest.fixture
def training(site: Site) -> Iterator[str]:
    """Pod train-0 of a StatefulSet runs on node t4, with a share of a card; its claim's name."""
    site.api.create("templates", template("train", request(**share())))
    train = pod("train", claims={"gpu": made_from("train")}, node="t4")
    made = {part: train[part] for part in ("metadata", "spec")}
    labels = {"matchLabels": {"test": "train"}}
    body = {"replicas": 1, "selector": labels, "template": made, "serviceName": ""}
    workload = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "train"}}
    kubectl = site.deployment.kubectl
    kubectl("create", "-f", "-", stdin=json.dumps(workload | {"spec": body}))
    site.wait("the pod to be made", lambda: site.api.get("pods", _POD) is not None)
    site.running(_POD)
    (claim,) = site.allocated()
    yield str(claim["metadata"]["name"])
    kubectl("delete", "statefulset", "train")


def test_on_a_cluster_with_quadrant(site: Site, training: str, tmp_path: Path) -> None:
    """In the order of the book; what a moment has to pass for is tried again."""
    desk = lay(tmp_path)
    names = {
        "NAMESPACE": "default", "team": "default", "NAME": _POD, "POD": _POD,
        "CLAIM": training, "train-0-gpu-x7k2p": training, "FILE": "hami.yaml",
        "NODE": "t4", "node-1": "t4", "NODE/GPU": "t4/gpu-3", "NODE/DEVICE": "t4/gpu-3",
    }  # fmt: skip
    known = environment(tmp_path, site.state)
    for written, way in book.SITE.items():
        text = _CLUSTER_SCRIPT.sub(rf"\g<0> --name {site.state['name']}", filled(written, names))
        try_again(site, partial(fault, text, way, desk, known, written=written))


def try_again(site: Site, attempt: Callable[[], str]) -> None:
    """Until nothing is wrong: events, taints and statuses take a moment."""
    site.wait(attempt, lambda: not attempt(), within=20)


@pytest.fixture
def release() -> Iterator[Release]:
    """A control plane with a node that nobody runs, and a pod there that waits behind our gate."""
    hack_cluster(_CHART, "down")
    hack_cluster(_CHART, "up", "--control-plane-only")
    try:
        made = Release(json.loads(hack_cluster(_CHART, "status", "-o", "json")))
        for given in (_NODE, *map(_definition, ("PodMonitor", "PrometheusRule"))):
            made.kubectl("create", "-f", "-", given=json.dumps(given))
        made.wait("the account of pods", lambda: bool(made.get("serviceaccounts")))
        gated = pod(_POD, schedulingGates=[{"name": "quadrant.dev/placement"}])
        made.kubectl("create", "-f", "-", given=json.dumps(gated))
        yield made
    finally:
        hack_cluster(_CHART, "down")


def _definition(kind: str) -> Object:
    """A kind of the Prometheus operator, as far as that somebody can create one."""
    names = {"kind": kind, "plural": f"{kind.lower()}s"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    group = "monitoring.coreos.com"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def test_the_chart_comes_and_goes(release: Release, tmp_path: Path) -> None:
    """Installed, changed, used and removed as the pages say, in the order of the book."""
    desk = lay(tmp_path)
    names = {
        "NAMESPACE": "default",
        "NAME": _POD,
        "NODE": "node-1",
        "REPOSITORY": "registry.example/quadrant",
    }
    known = environment(tmp_path, release.state)
    for written, way in book.CHART.items():
        wrong = fault(filled(written, names), way, desk, known, written=written)
        assert not wrong, wrong


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The programs of an environment of its own, which has what this one has."""
    venv.create(tmp_path / "python", with_pip=True)
    (packages,) = (tmp_path / "python").glob("lib/*/site-packages")
    (packages / "tests.pth").write_text(sysconfig.get_path("purelib"))
    return tmp_path / "python" / "bin"


def test_commands_that_take_longer(python: Path, tmp_path: Path) -> None:
    """Without a cluster, one after the other: what is installed serves those that follow."""
    desk, known = lay(tmp_path), {"PATH": f"{python}:{os.environ['PATH']}"}
    for text, way in book.SLOW.items():
        wrong = fault(text, way, desk, known)
        assert not wrong, wrong

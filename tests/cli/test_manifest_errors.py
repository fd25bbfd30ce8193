"""Bad input is refused with file, document, field and what is expected."""

from collections.abc import Callable
from pathlib import Path

import pytest

from driver.cli.simulation.documents import ManifestError
from driver.cli.usage import UsageError
from tests.cli.conftest import TWO_BY_TWO, Quadrant

INVENTORY = "apiVersion: quadrant.dev/v1alpha1, kind: Inventory"
POD = "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{name: c}]}}"
CASES = [
    ("a: [", r"manifest.yaml: is no YAML: line 2, column 1"),
    ("- 1", r"document 1: expected an object with apiVersion and kind, found \[1\]"),
    ("{apiVersion: v1}", r"document 1: kind: is missing"),
    (
        "{apiVersion: v1, kind: Pod}",
        r"document 1 \(Pod\): metadata.name: is missing; expected the object's name",
    ),
    (
        "{apiVersion: v1, kind: Pod, metadata: {name: A_b}, spec: {}}",
        r"\(Pod A_b\): metadata.name: is 'A_b'; expected lower case",
    ),
    (
        "{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: x}}",
        r"\(Deployment x\): apiVersion: is 'apps/v1beta1'; expected 'apps/v1'",
    ),
    (
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {replicas: two}}",
        r"\(Deployment x\): spec.replicas: Expected int, got str",
    ),
    (
        "{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {parallelism: -1}}",
        r"\(Job x\): spec.parallelism: Expected int >= 0",
    ),
    (
        "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: []}}",
        r"\(Pod x\): spec.containers: is empty; expected at least one container",
    ),
    (
        (
            "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{name: c}],"
            " resourceClaims: [{name: gpu, resourceClaim: y}]}}"
        ),
        r"\(Pod x\): spec.resourceClaims\[0\]: leads to no claim, or to two; expected either",
    ),
    (
        (
            "{apiVersion: v1, kind: Pod, metadata: {name: x},"
            " spec: {containers: [{name: c, resources: {limits: {cpu: lots}}}]}}"
        ),
        r"\(Pod x\): .*quantity 'lots' cannot be read: expected a number",
    ),
    (
        (
            "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: x},"
            " spec: {devices: {requests: [{name: a, exactly: {deviceClas: y}}]}}}"
        ),
        r"spec.devices.requests\[0\].exactly.deviceClas: is no field of resource.k8s.io/v1",
    ),
    (
        f"{POD}\n---\n{POD}",
        r"document 2 \(Pod x\): metadata.name: is the name of .*, document 1 too",
    ),
    (
        f"{{{INVENTORY}, nodes: [{{name: a, gpus: 9xT4}}]}}",
        r"\(Inventory\): nodes\[0\].gpus: cannot simulate '9xT4': a machine with T4 holds at most",
    ),
    (
        f"{{{INVENTORY}, nodes: [{{name: a, gpus: 2xT5}}]}}",
        r"nodes\[0\].gpus: no profile for GPU model 'T5'; known are A100",
    ),
    (
        f"{{{INVENTORY}, nodes: [{{name: a, gpu: 1xT4}}]}}",
        r"nodes\[0\].gpu: is not known; expected one of name, gpus, shareable, mig, labels",
    ),
    (
        f"{{{INVENTORY}, nodes: [{{name: a, memory: 12Q}}]}}",
        r"nodes\[0\].memory: quantity '12Q' cannot be read",
    ),
    (
        f"{{{INVENTORY}, nodes: [{{name: a, taints: [{{key: k, effect: Noschedule}}]}}]}}",
        r"nodes\[0\].taints\[0\].effect: is 'Noschedule'; expected one of NoSchedule, Prefer",
    ),
    (f"{{{INVENTORY}, nodes: [{{name: a}}, {{name: a}}]}}", r"nodes\[1\].name: 'a' is used twice"),
    (f"{{{INVENTORY}}}", r"\(Inventory\): .*missing required field nodes"),
    ("{apiVersion: v1, kind: Inventory, nodes: []}", r"apiVersion: is 'v1'; expected"),
    ("", r"no inventory is given: expected a file with apiVersion quadrant.dev/v1alpha1"),
]


@pytest.mark.parametrize(("text", "message"), CASES)
def test_refused(quadrant: Quadrant, file: Callable[[str], Path], text: str, message: str) -> None:
    """The sentence leads to the place."""
    with pytest.raises(ManifestError, match=message):
        quadrant("simulate", "-f", file(text))


def test_missing_file(quadrant: Quadrant, tmp_path: Path) -> None:
    """The sentence says which, and what was expected."""
    with pytest.raises(ManifestError, match=r"gone.yaml: cannot be read: No such file"):
        quadrant("simulate", "-f", tmp_path / "gone.yaml")


def test_empty_folder(quadrant: Quadrant, tmp_path: Path) -> None:
    """A folder without manifests is a mistake."""
    with pytest.raises(ManifestError, match=r"the folder holds no file that ends in"):
        quadrant("simulate", "-f", tmp_path)


def test_unknown_output(quadrant: Quadrant) -> None:
    """Called wrongly, and what is expected."""
    with pytest.raises(UsageError, match="-o 'xml': expected one of table, json, html"):
        quadrant("simulate", "-f", TWO_BY_TWO, "-o", "xml")

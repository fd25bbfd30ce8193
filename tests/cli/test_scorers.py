"""Policies of other packages: the worked example installed, and what is refused."""

import os
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import msgspec
import pytest

from driver.cli.scorers import GROUP, registry
from driver.cli.simulation.report import Report
from driver.policy.registry import Options, PolicyError
from tests.cli.conftest import ROOT, TWO_BY_TWO

EXAMPLE = ROOT / "examples" / "scorer"
POD = """
apiVersion: v1
kind: Pod
metadata: {name: one, annotations: {quadrant.dev/node-policy: "frugal,spread"}}
spec:
  containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 7500}}}]
"""


def install(package: Path, into: Path) -> None:
    """What pip leaves behind of a pure package: its module, and its metadata."""
    project = tomllib.loads((package / "pyproject.toml").read_text("utf-8"))
    name, version = project["project"]["name"], project["project"]["version"]
    for module in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]:
        shutil.copytree(package / module, into / module)
    metadata = into / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "utf-8"
    )
    lines = (
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
        for group, entries in project["project"]["entry-points"].items()
    )
    (metadata / "entry_points.txt").write_text("\n".join(lines), "utf-8")


def simulate(packages: Path, manifest: Path) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own, which sees the installed packages."""
    files = (TWO_BY_TWO / "inventory.yaml", ROOT / "deviceclasses" / "gpu.yaml", manifest)
    options = [part for file in files for part in ("-f", str(file))]
    return subprocess.run(
        [sys.executable, "-m", "driver.cli", "simulate", "-o", "json", *options],
        env=os.environ | {"PYTHONPATH": f"{packages}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_worked_example_chooses_once_it_is_installed(tmp_path: Path) -> None:
    """Spread alone would take the A10G; before the installation nobody knows the policy."""
    manifest = tmp_path / "pod.yaml"
    manifest.write_text(POD, "utf-8")
    packages = tmp_path / "packages"
    packages.mkdir()
    before = simulate(packages, manifest)
    (refused,) = msgspec.json.decode(before.stdout, type=Report).pending
    assert "'frugal' is not known" in refused.reason
    install(EXAMPLE, packages)
    after = simulate(packages, manifest)
    (placement,) = msgspec.json.decode(after.stdout, type=Report).placements
    assert (placement.node, placement.node_policy) == ("t4", "frugal,spread")
    assert "memory of the cards in GiB -15" in placement.why[0]


def entry(name: str, value: str) -> EntryPoint:
    """As a package declares it."""
    return EntryPoint(name=name, value=value, group=GROUP)


def test_two_packages_of_one_name_are_refused() -> None:
    """It would depend on their order which one decides; the same twice is found twice."""
    with pytest.raises(PolicyError, match=r"'a' comes from two packages, one:A and other:A"):
        registry([entry("a", "one:A"), entry("a", "other:A")])
    registry([entry("a", "one:A"), entry("a", "one:A")])


def test_nothing_is_imported_before_it_is_used() -> None:
    """A package that cannot be imported harms only those who ask for it."""
    known = registry([entry("broken", "no_such_module:Scorer"), entry("odd", "builtins:str")])
    assert known.objective("compact") is not None
    with pytest.raises(PolicyError, match=r"'broken' of no_such_module:Scorer cannot be made"):
        known.objective("broken")
    with pytest.raises(PolicyError, match=r"'odd' of builtins:str is no scorer: .* a str"):
        known.node_scorer("odd")


def test_a_name_of_ours_stays_ours() -> None:
    """An installation does not change what compact means."""
    with pytest.raises(PolicyError, match="'compact' cannot be added"):
        registry([entry("compact", "one:A")])
    assert Options() == Options(weights=None, mix=None)

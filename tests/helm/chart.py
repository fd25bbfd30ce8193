"""The chart as Helm renders it; the program is the one that hack/cluster builds."""

import json
import shutil
import subprocess
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "helm" / "quadrant"
NAMESPACE = "quadrant-system"
NEWEST = "1.37.0"

Object = dict[str, Any]


class Chart:
    """The chart in this checkout."""

    def __init__(self, helm: Path) -> None:
        self._helm = helm

    def lint(self) -> str:
        """What `helm lint --strict` says; it must be content."""
        return self._run("lint", "--strict", str(CHART)).stdout

    def render(
        self, values: Object | None = None, *, namespace: str = NAMESPACE, kubernetes: str = NEWEST
    ) -> list[Object]:
        """All objects for these values and this Kubernetes, in Helm's order."""
        done = self._template(values, namespace, kubernetes)
        assert done.returncode == 0, done.stderr
        return [item for item in yaml.safe_load_all(done.stdout) if item]

    def refused(self, values: Object, *, kubernetes: str = NEWEST) -> str:
        """Why Helm does not render these values."""
        done = self._template(values, NAMESPACE, kubernetes)
        assert done.returncode != 0, f"rendered {values}"
        return done.stderr

    def notes(self, values: Object | None = None, *, kubernetes: str = NEWEST) -> str:
        """What people read after `helm install`; `helm template` itself leaves it out."""
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(shutil.copytree(CHART, Path(folder) / "quadrant"))
            templates = copy / "templates"
            text = (templates / "NOTES.txt").read_text()
            (templates / "NOTES.txt").unlink()
            (templates / "notes.yaml").write_text("notes: |\n" + textwrap.indent(text, "  "))
            shown = ("--show-only", "templates/notes.yaml", "--kube-version", kubernetes)
            given = json.dumps(values or {})
            done = self._run("template", "quadrant", str(copy), *shown, "-f", "-", given=given)
        return str(yaml.safe_load(done.stdout)["notes"])

    def _template(
        self, values: Object | None, namespace: str, kubernetes: str
    ) -> subprocess.CompletedProcess[str]:
        there = ("--namespace", namespace, "--kube-version", kubernetes)
        given = json.dumps(values or {})
        arguments = ("template", "quadrant", str(CHART), *there, "-f", "-")
        return self._run(*arguments, given=given, check=False)

    def _run(
        self, *arguments: str, given: str = "", check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [self._helm, *arguments], input=given, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0 or not check, f"{arguments}: {done.stdout}{done.stderr}"
        return done


def find(objects: list[Object], kind: str, name: str) -> Object:
    """The one object of this kind and name."""
    (found,) = [
        item for item in objects if (item["kind"], item["metadata"]["name"]) == (kind, name)
    ]
    return found


def container(workload: Object) -> Object:
    """The one container of a Deployment's or DaemonSet's pods."""
    (found,) = workload["spec"]["template"]["spec"]["containers"]
    return dict(found)


def options(workload: Object) -> dict[str, list[str]]:
    """The options of the process: `--name=value` by name, with all values."""
    found: dict[str, list[str]] = {}
    for argument in container(workload)["args"][1:]:
        name, _, value = argument.removeprefix("--").partition("=")
        found.setdefault(name, []).append(value)
    return found

"""What the image says of itself: a list of the Python packages that are in it (CycloneDX)."""

import json
import os
import re
import tarfile
import tomllib
from pathlib import Path
from typing import IO

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hack.kubernetes import layout
from tests.helm import image
from tests.helm.chart import ROOT, Object

LABEL = "dev.quadrant.sbom"
# Of the base image: Debian 12.
PYTHON = {"python_version": "3.11", "python_full_version": "3.11.2"}
_PINNED = re.compile(r"^([a-z0-9][^\\\n]*)", re.MULTILINE)


@pytest.fixture(scope="module")
def archive() -> Path:
    """The image of this checkout, in Docker's archive format."""
    if os.geteuid() != 0 or image.missing():
        pytest.skip(f"no image without root and: apt-get install {' '.join(image.PROGRAMS)}")
    return image.archive(layout.cache())


@pytest.mark.image
def test_the_list_has_every_package_of_the_lock_file(archive: Path) -> None:
    """With its version; and no package that the lock file does not have."""
    labels, bom = read(archive)
    assert bom["bomFormat"] == "CycloneDX"
    assert bom["metadata"]["component"]["name"] == "quadrant-dra"
    found = {canonicalize_name(one["name"]): one["version"] for one in bom["components"]}
    assert found == locked("requirements-runtime.lock")
    assert all(one["purl"].startswith("pkg:pypi/") for one in bom["components"])
    assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"


@pytest.mark.image
def test_the_list_is_the_same_at_each_build(archive: Path) -> None:
    """Neither times nor random numbers, by which two images of the same sources would differ."""
    _, bom = read(archive)
    assert "serialNumber" not in bom
    assert "timestamp" not in bom["metadata"]


def test_the_image_is_built_by_what_builds_the_package() -> None:
    """The lock file of the build has the build backend that pyproject.toml names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (backend,) = map(Requirement, project["build-system"]["requires"])
    assert locked("requirements-build.lock")[backend.name] in backend.specifier


def locked(file: str) -> dict[str, str]:
    """What a lock file has for the base image's Python, by name."""
    found = [Requirement(one) for one in _PINNED.findall((ROOT / file).read_text())]
    return {
        canonicalize_name(one.name): str(one.specifier).removeprefix("==")
        for one in found
        if one.marker is None or one.marker.evaluate(PYTHON)
    }


def read(archive: Path) -> tuple[dict[str, str], Object]:
    """The image's labels, and the file that its label leads to."""
    with tarfile.open(archive) as image:
        (manifest,) = json.load(member(image, "manifest.json"))
        labels = json.load(member(image, manifest["Config"]))["config"]["Labels"]
        # The layer on top is what the Dockerfile adds to the base.
        with tarfile.open(fileobj=member(image, manifest["Layers"][-1])) as layer:
            return labels, json.load(member(layer, labels[LABEL].removeprefix("/")))


def member(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    """A file of an archive, opened; links to files are followed."""
    found = archive.extractfile(name)
    assert found is not None, name
    return found

"""What is in the image: the packages that it says are in it (CycloneDX), and nothing by date."""

import json
import os
import re
import tarfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
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
# In the second word of a .pyc file (PEP 552): neither a date nor a look at the source.
UNCHECKED_HASH = (1).to_bytes(4, "little")
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
    labels, bom = bill(archive)
    assert bom["bomFormat"] == "CycloneDX"
    assert bom["metadata"]["component"]["name"] == "quadrant-dra"
    found = {canonicalize_name(one["name"]): one["version"] for one in bom["components"]}
    assert found == locked("requirements-runtime.lock")
    assert all(one["purl"].startswith("pkg:pypi/") for one in bom["components"])
    assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"


@pytest.mark.image
def test_nothing_differs_from_build_to_build(archive: Path) -> None:
    """No time and no random number, in the list or in any file; code is compiled by its content."""
    _, bom = bill(archive)
    assert "serialNumber" not in bom
    assert "timestamp" not in bom["metadata"]
    flags = set()
    with contents(archive) as (_, layer):
        for file in layer:
            assert file.mtime == 0
            if file.name.endswith(".pyc"):
                flags.add(member(layer, file.name).read(8)[4:])
    assert flags == {UNCHECKED_HASH}


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


def bill(archive: Path) -> tuple[dict[str, str], Object]:
    """The image's labels, and the file that its label leads to."""
    with contents(archive) as (labels, layer):
        return labels, json.load(member(layer, labels[LABEL].removeprefix("/")))


@contextmanager
def contents(archive: Path) -> Iterator[tuple[dict[str, str], tarfile.TarFile]]:
    """The image's labels, and what the Dockerfile adds to the base: the layer on top."""
    with tarfile.open(archive) as image:
        (manifest,) = json.load(member(image, "manifest.json"))
        labels = json.load(member(image, manifest["Config"]))["config"]["Labels"]
        with tarfile.open(fileobj=member(image, manifest["Layers"][-1])) as layer:
            yield labels, layer


def member(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    """A file of an archive, opened; links to files are followed."""
    found = archive.extractfile(name)
    assert found is not None, name
    return found

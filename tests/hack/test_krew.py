"""The Krew plugin: archive, manifest, and what its launcher starts."""

import hashlib
import os
import stat
import subprocess
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """A folder with both files."""
    subprocess.run(
        [
            ROOT / "hack" / "krew",
            tmp_path,
            "https://quadrant.example",
            "https://quadrant.example/a",
        ],
        check=True,
    )
    return tmp_path


def test_manifest_and_archive_belong_together(packed: Path) -> None:
    """Checksum, version, and files that are in the archive; Krew refuses anything else."""
    archive = packed / f"kubectl-quadrant-{VERSION}.tar.gz"
    manifest = yaml.safe_load((packed / "quadrant.yaml").read_text("utf-8"))
    spec = manifest["spec"]
    assert spec["version"] == f"v{VERSION}"
    assert "@" not in (packed / "quadrant.yaml").read_text("utf-8")
    assert len(spec["shortDescription"]) <= 50
    (platform,) = spec["platforms"]
    assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    with tarfile.open(archive) as tar:
        assert {one["from"] for one in platform["files"]} == set(tar.getnames())
        launcher = tar.getmember(platform["bin"])
    assert launcher.mode & stat.S_IXUSR


def test_the_archive_is_the_same_every_time(packed: Path) -> None:
    """So that the checksum of a release can be checked by building it."""
    archive = packed / f"kubectl-quadrant-{VERSION}.tar.gz"
    before = archive.read_bytes()
    subprocess.run([ROOT / "hack" / "krew", packed, "https://a.example", "https://b"], check=True)
    assert archive.read_bytes() == before


@pytest.mark.parametrize("tool", ["uvx", "pipx", ""])
def test_the_launcher_starts_this_version(packed: Path, tool: str) -> None:
    """With what is there; without either it says what is missing."""
    with tarfile.open(packed / f"kubectl-quadrant-{VERSION}.tar.gz") as tar:
        tar.extractall(packed / "out", filter="data")
    tools = packed / "tools"
    tools.mkdir()
    for name in ("sh", "cat"):
        (tools / name).symlink_to(f"/bin/{name}")
    if tool:
        script = tools / tool
        script.write_text('#!/bin/sh\necho "$0 $@"\n', "utf-8")
        script.chmod(0o755)
    done = subprocess.run(
        [packed / "out" / "kubectl-quadrant", "matrix", "-A"],
        env={"PATH": str(tools), "HOME": os.environ.get("HOME", "/")},
        capture_output=True,
        text=True,
        check=False,
    )
    if tool:
        assert done.returncode == 0
        assert done.stdout.split()[0].endswith(tool)
        assert f"quadrant-dra=={VERSION} kubectl-quadrant matrix -A" in done.stdout
    else:
        assert done.returncode == 1
        assert "needs uv or pipx" in done.stderr

"""The image of this checkout, built without Docker and without a registry.

Buildah runs the Dockerfile on a base of Debian packages; the wheels come from PyPI by the lock
files. The archive is kept in the cache until a source changes.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hack.kubernetes import layout, lock
from tests.helm.chart import ROOT

REPOSITORY, TAG = "quadrant.dev/quadrant", "test"
PROGRAMS = ("buildah", "mmdebstrap")

_LOCKS = ("requirements-build.lock", "requirements-runtime.lock")
_SOURCES = ("Dockerfile", ".dockerignore", "pyproject.toml", "README.md", "LICENSE", *_LOCKS)
_SUITE = "bookworm"
_BASE_PACKAGES = "python3,python3-venv,ca-certificates"
_UNREAD = ("doc", "info", "locale", "man")


def missing() -> list[str]:
    """The programs that are needed and not there; their Debian packages have the same names."""
    return [program for program in PROGRAMS if shutil.which(program) is None]


def archive(cache: Path) -> Path:
    """The image in Docker's archive format, which `ctr images import` reads.

    Made when it is not there; of several that ask at the same time one makes it.
    """
    folder = cache / "images"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = folder / f"quadrant-{_digest()}.tar"
    with lock.held("image"):
        if not wanted.exists():
            _make(wanted, cache=cache)
    return wanted


def _make(wanted: Path, *, cache: Path) -> None:
    with tempfile.TemporaryDirectory(dir=cache, prefix="buildah-") as work:
        _build(Path(work), base=_base(wanted.parent), wheels=_wheels(cache))
        for old in wanted.parent.glob("quadrant-*.tar"):
            old.unlink()
        (Path(work) / "image.tar").replace(wanted)


def _build(work: Path, *, base: Path, wheels: Path) -> None:
    context = work / "base"
    context.mkdir()
    os.link(base, context / "base.tar")
    (context / "Dockerfile").write_text("FROM scratch\nADD base.tar /\n")
    buildah = ("buildah", "--root", f"{work}/store", "--runroot", f"{work}/run")
    bud = (*buildah, "bud", "--quiet", "--isolation", "chroot")
    _run(*bud, "--timestamp", "0", "--tag", "base", str(context))
    _run(
        *bud,
        *("--timestamp", "0"),
        *("--volume", f"{wheels}:/wheels:ro"),
        *("--build-arg", "BASE=localhost/base"),
        *("--build-arg", "PIP_NO_INDEX=1"),
        *("--build-arg", "PIP_FIND_LINKS=/wheels"),
        *("--tag", "quadrant"),
        str(ROOT),
    )
    _run(*buildah, "push", "quadrant", f"docker-archive:{work}/image.tar:{REPOSITORY}:{TAG}")


def _base(folder: Path) -> Path:
    """A small Debian with Python, from packages."""
    wanted = folder / f"debian-{_SUITE}-python3.tar"
    if not wanted.exists():
        part = wanted.with_suffix(".part")
        unread = (f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in _UNREAD)
        options = ("--variant=minbase", "--mode=root", f"--include={_BASE_PACKAGES}", *unread)
        _run("mmdebstrap", "--quiet", *options, "--format=tar", _SUITE, str(part))
        part.replace(wanted)
    return wanted


def _wheels(cache: Path) -> Path:
    """A folder with every wheel of the lock files."""
    locks = b"".join((ROOT / name).read_bytes() for name in _LOCKS)
    wanted = cache / f"wheels-{hashlib.sha256(locks).hexdigest()[:12]}"
    if not wanted.exists():
        part = wanted.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        pip = (sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(part))
        for name in _LOCKS:
            _run(*pip, "--require-hashes", "--only-binary", ":all:", "-r", str(ROOT / name))
        part.replace(wanted)
    return wanted


def _digest() -> str:
    found = hashlib.sha256()
    for path in (*(ROOT / name for name in _SOURCES), *_code()):
        found.update(f"{path.relative_to(ROOT)}\n".encode())
        found.update(path.read_bytes())
    return found.hexdigest()[:12]


def _code() -> Iterator[Path]:
    for path in sorted((ROOT / "driver").rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            yield path


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


if __name__ == "__main__":
    print(archive(layout.cache()))  # noqa: T201 - the command's answer

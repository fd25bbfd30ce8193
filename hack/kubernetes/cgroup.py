"""Which control groups hold a cluster's processes? Must not know what runs in them.

Every process of a cluster, its containers included, lives below one group of its own. That is what
makes a complete ``down`` possible after any crash: membership proves ownership, whatever was or
was not written down. Cgroup version 1 (one tree per controller) and version 2 both work.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from . import process
from .errors import ClusterError

_TRACKERS = ("freezer", "pids", "memory")
"""Version 1: the trees to find processes in, first one present; runc joins all of them."""


@dataclass(frozen=True)
class Trees:
    """The mounted cgroup trees; a hybrid host has both kinds, and runc uses both there."""

    old: tuple[Path, ...]
    """Version 1, one per controller."""
    unified: tuple[Path, ...]
    """Version 2: at most one."""

    @property
    def used(self) -> tuple[Path, ...]:
        """The trees to make groups in, as runc and kubelet choose them."""
        return self.old or self.unified

    @property
    def tracker(self) -> Path:
        """The tree in which processes are put and found."""
        named = {tree.name: tree for tree in self.old}
        return next((named[name] for name in _TRACKERS if name in named), self.used[0])


def parse_mounts(mountinfo: str) -> Trees:
    """The cgroup trees in ``/proc/self/mountinfo``."""
    found: dict[str, list[Path]] = {"cgroup": [], "cgroup2": []}
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        kind = right.split()[0] if right else ""
        if kind in found:
            found[kind].append(Path(left.split()[4]))
    return Trees(tuple(dict.fromkeys(found["cgroup"])), tuple(found["cgroup2"][:1]))


def _mounted() -> Trees:
    return parse_mounts(Path("/proc/self/mountinfo").read_text(encoding="utf-8"))


def _trees() -> Trees:
    trees = _mounted()
    if not trees.used:
        raise ClusterError("no cgroup tree is mounted: nodes need one, mount it or run elsewhere")
    return trees


def _top(cluster: str) -> str:
    return f"quadrant-{cluster}"


def node_root(cluster: str, node: str) -> str:
    """The kubelet's ``cgroupRoot`` for a node."""
    return f"/{_top(cluster)}/{node}"


def procs_file(cluster: str, leaf: str) -> Path:
    """The file to write a pid into: ``leaf`` is ``control`` or ``NODE/runtime``."""
    return _trees().tracker / _top(cluster) / leaf / "cgroup.procs"


def usable() -> bool:
    """Whether this user may make groups here; containers often see the trees read-only."""
    trees = _mounted()
    return os.geteuid() == 0 and bool(trees.used) and os.access(trees.tracker, os.W_OK)


def create(cluster: str, leaf: str) -> None:
    """Make the group ``leaf`` below the cluster's in every tree, usable by any process."""
    trees = _trees()
    for tree in trees.used:
        group = tree
        for part in (_top(cluster), *leaf.split("/")):
            if not trees.old:
                _delegate(group)
            group /= part
            group.mkdir(exist_ok=True)
            if trees.old:
                _inherit_cpuset(group)


def _delegate(group: Path) -> None:
    wanted = (group / "cgroup.controllers").read_text(encoding="ascii").split()
    for controller in wanted:
        with suppress(OSError):  # one that cannot be delegated here is missed by kubelet, by name
            (group / "cgroup.subtree_control").write_text(f"+{controller}", encoding="ascii")


def _inherit_cpuset(group: Path) -> None:
    """Version 1: a new cpuset group is empty, and an empty one takes no process."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        own, parent = group / name, group.parent / name
        if own.exists() and not own.read_text(encoding="ascii").strip():
            own.write_text(parent.read_text(encoding="ascii"), encoding="ascii")


def _groups(cluster: str) -> Iterator[Path]:
    """All groups of the cluster in all trees, the deepest first."""
    trees = _trees()
    for tree in (*trees.old, *trees.unified):
        for folder, _, _ in os.walk(tree / _top(cluster), topdown=False):
            yield Path(folder)


def members(cluster: str) -> set[int]:
    """Pids of all processes in the cluster's groups, in any tree."""
    pids: set[int] = set()
    for group in _groups(cluster):
        with suppress(OSError):  # a group may go while it is read
            pids.update(map(int, (group / "cgroup.procs").read_text(encoding="ascii").split()))
    return pids


def exists(cluster: str) -> bool:
    """Whether any group of the cluster is left."""
    return any(True for _ in _groups(cluster))


def remove(cluster: str, *, seconds: float = 20) -> None:
    """Kill what is in the cluster's groups and remove them; nothing there is fine."""
    deadline = time.monotonic() + seconds
    while True:
        for pid in members(cluster):
            process.send(process.identify(pid), signal.SIGKILL)
        for group in _groups(cluster):
            with suppress(OSError):  # busy until the kernel has let go of its last process
                group.rmdir()
        if not exists(cluster):
            return
        if time.monotonic() > deadline:
            raise ClusterError(
                f"control groups of cluster {cluster} still hold {sorted(members(cluster))} after "
                f"{seconds:.0f} s of SIGKILL: look at /proc/PID/stack of these processes"
            )
        time.sleep(0.05)

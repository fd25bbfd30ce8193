"""Where does everything lie on the disk? Must not create, read or remove anything."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from .errors import ClusterError

NAME = re.compile(r"[a-z](?:[a-z0-9-]{0,13}[a-z0-9])?")
"""Names of clusters and nodes: short, because they are part of unix socket paths."""

RESERVED = frozenset({"control", "etcd", "logs", "pki"})
"""Not for nodes: the cluster's own folders and control group lie beside theirs."""

HIDDEN = ("/run/", "/var/run/", "/var/lib/", "/var/log/")
"""Folders that each node has its own of, so that the host's are not visible to it."""


def check_name(kind: str, name: str) -> str:
    """Return the name, or refuse it with what is allowed."""
    if NAME.fullmatch(name):
        return name
    raise ClusterError(
        f"{kind} name {name!r} is not usable: 1 to 15 of a-z, 0-9 and '-', beginning with a letter"
    )


def cache() -> Path:
    """The folder of everything that is made once and kept: binaries, images, the Go toolchain."""
    chosen = os.environ.get("QUADRANT_CACHE")
    folder = Path(chosen).absolute() if chosen else Path.home() / ".cache" / "quadrant"
    if f"{folder}/".startswith(HIDDEN):
        raise ClusterError(
            f"the cache {folder} lies where nodes have a folder of their own "
            f"({', '.join(HIDDEN)}): set QUADRANT_CACHE to a folder elsewhere"
        )
    return folder


def clusters() -> Path:
    """The folder that holds one folder per cluster.

    Nodes, which only root can have, need a short path: a plugin's registration socket with a UUID
    in its name takes 80 of the 107 bytes that a unix socket's path may have.
    """
    return Path("/srv/qdr") if os.geteuid() == 0 else cache() / "clusters"


@dataclass(frozen=True)
class Layout:
    """The files of one cluster."""

    name: str
    root: Path

    @property
    def state(self) -> Path:
        """What runs, and with which arguments."""
        return self.root / "state.json"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.root / "kubeconfig"

    @property
    def pki(self) -> Path:
        """Certificates, keys and the token file."""
        return self.root / "pki"

    @property
    def logs(self) -> Path:
        """One file per component."""
        return self.root / "logs"

    @property
    def audit_log(self) -> Path:
        """The requests of the service accounts that people install, one JSON object a line."""
        return self.logs / "audit.log"

    @property
    def etcd(self) -> Path:
        """The data of etcd."""
        return self.root / "etcd"

    def node(self, name: str) -> Path:
        """Everything of one node."""
        return self.root / name


def layout(name: str) -> Layout:
    """The layout of the cluster with this name."""
    return Layout(name=name, root=clusters() / check_name("cluster", name))

"""Which programs of the distribution are needed, and how are they got? Debian's names only."""

import os
import shutil
import subprocess
from collections.abc import Iterable

from .errors import ClusterError
from .progress import step

CONTROL_PLANE = {"openssl": "openssl"}
NODES = CONTROL_PLANE | {
    "busybox": "busybox-static",
    "ip": "iproute2",
    "iptables": "iptables",
    "mount": "mount",
    "nsenter": "util-linux",
    "runc": "runc",
}
"""Program: package."""


def missing(programs: dict[str, str]) -> list[str]:
    """The packages whose program is not on the path, sorted."""
    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
    absent = (program for program in programs if not shutil.which(program, path=path))
    return sorted({programs[program] for program in absent})


def ensure(programs: dict[str, str]) -> None:
    """Install what is missing when root, else say the one line that does it."""
    wanted = missing(programs)
    if not wanted:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise ClusterError(
            "programs are missing; install them with:\n"
            f"  sudo apt-get install -y {' '.join(wanted)}"
        )
    with step(f"Debian packages {' '.join(wanted)}"):
        _apt(["update"])
        _apt(["install", "--yes", "--no-install-recommends", *wanted])
    if still := missing(programs):
        raise ClusterError(f"apt-get installed {' '.join(still)}, yet its programs are not found")


def _apt(arguments: Iterable[str]) -> None:
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "-qq", *arguments]
    done = subprocess.run(command, env=env, check=False, capture_output=True, text=True)
    if done.returncode:
        raise ClusterError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")

"""What a container is given so that it uses its cards as its claim says: variables, mounts, nodes.

Pure. Whatever of these appears in several CDI devices of a claim is the same in all of them, since
a container may get any of them, and several.
"""

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Any

from driver.node.card import MIB
from driver.node.held import CardSharing, HeldDevice, Limiter

# Where clients of MPS look for their daemon by themselves, and where both keep what they share.
_PIPES = "/tmp/nvidia-mps"  # noqa: S108  (a path in a container)
_SHM = "/dev/shm"  # noqa: S108
# Where HAMi-core is expected: the library, the list of preloaded libraries that names it, its lock
# and the state that the processes of a claim share.
_LIBRARY = "/usr/local/vgpu/libvgpu.so"
_PRELOAD = "/etc/ld.so.preload"
_LOCK = "/tmp/vgpulock"  # noqa: S108
_STATE = "/usr/local/vgpu/state"
_STATE_FILE = f"{_STATE}/region.cache"

Edits = dict[str, Any]


def pipes(daemon: str) -> str:
    """Where a daemon's sockets are on the host."""
    return f"{daemon}/pipe"


def shared_memory(daemon: str) -> str:
    """What the daemons of this host, and their clients, have as /dev/shm."""
    return str(PurePosixPath(daemon).parent / "shm")


def lock_folder(state: str) -> str:
    """The lock folder that all users of HAMi-core on this host have in common."""
    return str(PurePosixPath(state).parent / "lock")


def device_edits(device: HeldDevice, limiter: Limiter | None) -> Edits:
    """What the use of one device brings, whatever else a container has."""
    nodes: Edits = {}
    if device.device_nodes:
        nodes["deviceNodes"] = [{"path": path} for path in device.device_nodes]
    return {**nodes, **_sharing_edits(device, limiter)}


def _sharing_edits(device: HeldDevice, limiter: Limiter | None) -> Edits:
    if device.by_mps() and device.sharing is not None:
        daemon = device.sharing.daemon
        return {
            "env": [f"CUDA_MPS_PIPE_DIRECTORY={_PIPES}"],
            "mounts": [
                _mount(pipes(daemon), _PIPES),
                _mount(shared_memory(daemon), _SHM, "nosuid", "nodev"),
            ],
        }
    if limiter is None or device.is_whole():
        return {}
    return {
        "env": [f"CUDA_DEVICE_MEMORY_SHARED_CACHE={_STATE_FILE}"],
        "mounts": [
            _mount(f"{limiter.library}/libvgpu.so", _LIBRARY, "ro"),
            _mount(f"{limiter.library}/ld.so.preload", _PRELOAD, "ro"),
            _mount(lock_folder(limiter.state), _LOCK),
            _mount(limiter.state, _STATE),
        ],
    }


def mps_limits(cards: Iterable[Sequence[HeldDevice]]) -> list[str]:
    """The limits of a client of MPS, for a container's cards in their order.

    A process has one percentage for all its cards: the smallest.
    """
    memory, threads = [], []
    for position, results in enumerate(cards):
        ways = [d.sharing for d in results if d.sharing is not None and d.by_mps()]
        limit = _sum([way.memory_limit for way in ways])
        if limit is not None:
            memory.append(f"{position}={limit // MIB}M")
        threads += _threads(ways)
    env = [f"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT={','.join(memory)}"] if memory else []
    return env + ([f"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE={min(threads)}"] if threads else [])


def _threads(ways: Sequence[CardSharing]) -> list[int]:
    total = _sum([way.threads for way in ways])
    return [] if total is None else [min(total, 100)]


def _sum(limits: Sequence[int | None]) -> int | None:
    """Several shares of one card are one with all their amounts; one without limit frees all."""
    known = [limit for limit in limits if limit is not None]
    return sum(known) if known and len(known) == len(limits) else None


def _mount(host: str, container: str, *options: str) -> Edits:
    access = () if "ro" in options else ("rw",)
    return {
        "hostPath": host,
        "containerPath": container,
        "options": ["rbind", *access, *options],
    }

"""How does containerd make a container's root file system here? Must not know what is in it."""

import subprocess
import tempfile
from pathlib import Path

_LAYERS = ("lower", "upper", "work", "merged")


def snapshotter(folder: Path) -> str:
    """`overlayfs` where this folder's file system can be overlaid, else `native`.

    The latter copies all of an image for each container: it works on any file system, and is slow
    with any image but the smallest.
    """
    with tempfile.TemporaryDirectory(dir=folder, prefix="overlay-") as place:
        for layer in _LAYERS:
            (Path(place) / layer).mkdir()
        lower, upper, work, merged = (f"{place}/{layer}" for layer in _LAYERS)
        options = f"lowerdir={lower},upperdir={upper},workdir={work}"
        mount = ["mount", "-t", "overlay", "overlay", "-o", options, merged]
        # In a mount namespace of its own, which goes with the command, and the mount with it.
        command = ["unshare", "--mount", *mount]
        done = subprocess.run(command, check=False, capture_output=True)
    return "native" if done.returncode else "overlayfs"

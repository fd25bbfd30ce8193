"""What NVIDIA's container runtime does to a container, done with the fake library.

containerd runs this in place of runc, as `nvidia_runtime.py LIBRARIES DESCRIPTION RUNC-ARGUMENTS`.
A container whose environment asks for devices by NVIDIA_VISIBLE_DEVICES gets NVML, `nvidia-smi`
and, with the capability `compute`, the control program of MPS; the cards are files of the machine's
description in place of device nodes. Everything else is passed on to runc as it is.
"""

import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

_LIBRARIES = f"/usr/lib/{platform.machine()}-linux-gnu"
_UTILITY = {"libnvidia-ml.so.1": _LIBRARIES, "nvidia-smi": "/usr/bin"}
_COMPUTE = {"nvidia-cuda-mps-control": "/usr/bin"}
_NOBODY = {"", "void", "none"}


def main() -> None:
    """Change the bundle that is about to be created, then become runc."""
    built, description, *arguments = sys.argv[1:]
    if "create" in arguments:
        bundle = Path(arguments[arguments.index("--bundle") + 1])
        config = bundle / "config.json"
        spec = json.loads(config.read_text())
        if change(spec, Path(built), Path(description)):
            config.write_text(json.dumps(spec))
    os.execvp("runc", ["runc", *arguments])  # noqa: S606 - as any runtime in its place does


def change(spec: dict[str, Any], built: Path, description: Path) -> bool:
    """Give a container what it asks for; whether it asks for anything."""
    variables = dict(line.partition("=")[::2] for line in spec["process"]["env"])
    if variables.get("NVIDIA_VISIBLE_DEVICES", "") in _NOBODY:
        return False
    capabilities = variables.get("NVIDIA_DRIVER_CAPABILITIES", "utility").split(",")
    programs = _UTILITY | (_COMPUTE if "compute" in capabilities else {})
    spec["mounts"] += [
        _mount(built / name, f"{folder}/{name}", "ro") for name, folder in programs.items()
    ]
    spec["mounts"].append(_mount(description.parent, str(description.parent), "rw"))
    spec["process"]["env"].append(f"QUADRANT_FAKE_NVML={description}")
    return True


def _mount(source: Path, destination: str, way: str) -> dict[str, Any]:
    return {
        "type": "bind",
        "source": str(source),
        "destination": destination,
        "options": ["rbind", way, "rprivate"],
    }


if __name__ == "__main__":
    main()

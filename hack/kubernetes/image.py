"""What is in the test image? Must not know how it gets into a node.

One OCI layout in a tar, made from Debian's static busybox alone, holds two names for one image:
the test image and the sandbox ("pause") image of every pod. The same busybox gives the same bytes.
"""

import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

TEST = "quadrant.dev/busybox:test"
SANDBOX = "quadrant.dev/pause:test"

_LAYOUT = b'{"imageLayoutVersion":"1.0.0"}'
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"
_PASSWD = b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
_FOLDERS = {"bin": 0o755, "etc": 0o755, "root": 0o700, "tmp": 0o1777}


def archive(cache: Path) -> Path:
    """The path of the image archive in the cache; it is made when it is not there."""
    busybox = Path(_which_busybox())
    program = busybox.read_bytes()
    digest = hashlib.sha256(program).hexdigest()[:12]
    path = cache / "images" / f"busybox-{digest}.tar"
    if not path.exists():
        applets = subprocess.run(
            [busybox, "--list"], check=True, capture_output=True, text=True
        ).stdout.split()
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_bytes(build(program, applets))
        part.replace(path)
    return path


def _which_busybox() -> str:
    return "/bin/busybox" if Path("/bin/busybox").exists() else "/usr/bin/busybox"


def build(program: bytes, applets: Iterable[str]) -> bytes:
    """The OCI layout as a tar: a file system of busybox with a link for each applet."""
    layer = _layer(program, sorted(set(applets) - {"busybox"}))
    config = _json(
        {
            "architecture": _architecture(program),
            "os": "linux",
            "config": {"Env": ["PATH=/bin"], "Cmd": ["/bin/sleep", "2147483647"]},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIG, config),
            "layers": [_descriptor(_LAYER, layer)],
        }
    )
    entries = [
        _descriptor(_MANIFEST, manifest) | {"annotations": {"io.containerd.image.name": name}}
        for name in (TEST, SANDBOX)
    ]
    files = {"oci-layout": _LAYOUT, "index.json": _json({"schemaVersion": 2, "manifests": entries})}
    files |= {f"blobs/sha256/{_hex(blob)}": blob for blob in (layer, config, manifest)}
    return _tar([(_entry(name, size=len(data)), data) for name, data in files.items()])


def _layer(program: bytes, applets: Iterable[str]) -> bytes:
    members = [(_entry(n, kind=tarfile.DIRTYPE, mode=m), b"") for n, m in _FOLDERS.items()]
    members += [
        (_entry("bin/busybox", size=len(program), mode=0o755), program),
        (_entry("etc/passwd", size=len(_PASSWD)), _PASSWD),
    ]
    for applet in applets:
        link = _entry(f"bin/{applet}", kind=tarfile.SYMTYPE, mode=0o777)
        link.linkname = "busybox"
        members.append((link, b""))
    return _tar(members)


def _architecture(program: bytes) -> str:
    """The image's architecture from the machine field of the program's ELF header."""
    machine = int.from_bytes(program[18:20], "little")
    return {62: "amd64", 183: "arm64"}[machine]


def _entry(
    name: str, *, kind: bytes = tarfile.REGTYPE, mode: int = 0o644, size: int = 0
) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.size = kind, mode, size
    return entry


def _tar(members: Iterable[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for entry, data in members:
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _hex(blob: bytes) -> str:
    return hashlib.sha256(blob).hexdigest()


def _digest(blob: bytes) -> str:
    return f"sha256:{_hex(blob)}"


def _descriptor(kind: str, blob: bytes) -> dict[str, object]:
    return {"mediaType": kind, "digest": _digest(blob), "size": len(blob)}

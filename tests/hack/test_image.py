"""What is in the test image?"""

import hashlib
import io
import json
import tarfile

from hack.kubernetes import image

_PROGRAM = b"\x7fELF" + bytes(14) + (62).to_bytes(2, "little") + b"rest"


def _files(tar: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(tar)) as opened:
        return {m.name: f.read() for m in opened if (f := opened.extractfile(m))}


def test_the_same_program_gives_the_same_bytes() -> None:
    """An image that changes by itself would be loaded again each time."""
    assert image.build(_PROGRAM, ["sh", "ls"]) == image.build(_PROGRAM, ["ls", "sh", "sh"])


def test_every_blob_is_called_by_its_digest() -> None:
    """A runtime refuses content whose name is not its hash."""
    files = _files(image.build(_PROGRAM, ["sh"]))
    blobs = {name: data for name, data in files.items() if name.startswith("blobs/")}
    assert len(blobs) == 3
    for name, data in blobs.items():
        assert name == f"blobs/sha256/{hashlib.sha256(data).hexdigest()}"


def test_both_names_lead_to_a_file_system_with_busybox() -> None:
    """The test image and the sandbox image are one and the same."""
    files = _files(image.build(_PROGRAM, ["sh", "busybox"]))
    entries = json.loads(files["index.json"])["manifests"]
    names = [entry["annotations"]["io.containerd.image.name"] for entry in entries]
    assert names == [image.TEST, image.SANDBOX]
    manifest = json.loads(files[f"blobs/{entries[0]['digest'].replace(':', '/')}"])
    layer = files[f"blobs/{manifest['layers'][0]['digest'].replace(':', '/')}"]
    with tarfile.open(fileobj=io.BytesIO(layer)) as opened:
        assert opened.getmember("bin/sh").linkname == "busybox"
        assert opened.getmember("bin/busybox").mode == 0o755
        assert opened.getmember("tmp").mode == 0o1777
    config = json.loads(files[f"blobs/{manifest['config']['digest'].replace(':', '/')}"])
    assert config["architecture"] == "amd64"
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]

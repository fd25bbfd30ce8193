"""CDI files of the NVIDIA Container Toolkit, as it writes them."""

import json
from pathlib import Path

from driver.node.containers.vendor import vendor_devices

TOOLKIT = """\
cdiVersion: 0.5.0
kind: nvidia.com/gpu
containerEdits:
  env: [NVIDIA_VISIBLE_DEVICES=void]
devices:
- name: 0
  containerEdits: {deviceNodes: [{path: /dev/nvidia0}]}
- name: GPU-a
  containerEdits: {deviceNodes: [{path: /dev/nvidia0}]}
- name: all
  containerEdits: {deviceNodes: [{path: /dev/nvidia0}]}
"""


def _found(*folders: Path) -> dict[str, str]:
    return vendor_devices(map(str, folders), ["GPU-a", "GPU-b"], skip="k8s.gpu.quadrant.dev-")


def test_cards_are_found_by_uuid(tmp_path: Path) -> None:
    """In YAML and JSON, in any of the folders, beside files of any other kind."""
    assert _found(tmp_path, tmp_path / "missing") == {}
    (tmp_path / "nvidia.yaml").write_text(TOOLKIT)
    assert _found(tmp_path) == {"GPU-a": "nvidia.com/gpu=GPU-a"}
    other = tmp_path / "other"
    other.mkdir()
    spec = {"kind": "nvidia.com/gpu", "devices": [{"name": "GPU-b"}]}
    (other / "nvidia.json").write_text(json.dumps(spec))
    assert set(_found(tmp_path, other)) == {"GPU-a", "GPU-b"}


def test_files_that_are_no_help_are_passed_over(tmp_path: Path) -> None:
    """Broken ones, other vendors', our own, half-written ones."""
    spec = {"kind": "nvidia.com/gpu", "devices": [{"name": "GPU-a"}]}
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "broken.yaml").write_text("kind: [")
    (tmp_path / "latin.yaml").write_bytes(b"kind: \xff")
    (tmp_path / "list.yaml").write_text("[]")
    (tmp_path / "mig.json").write_text(json.dumps({**spec, "kind": "nvidia.com/mig"}))
    (tmp_path / ".nvidia.json").write_text(json.dumps(spec))
    (tmp_path / "k8s.gpu.quadrant.dev-claim_x.json").write_text(json.dumps(spec))
    (tmp_path / "nvidia.json.tmp").write_text(json.dumps(spec))
    assert _found(tmp_path) == {}

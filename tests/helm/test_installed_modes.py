"""Every way of using a card, on the installed chart: its image, its tokens, its rights.

The nodes have a container runtime that does what NVIDIA's does, with the fake library, so that the
chart is installed with the values that docs/sharing.md names and nothing else. Each way runs the
manifest that users find in `examples/sharing`.
"""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.cluster import history
from tests.cluster.site import attribute, hack_cluster
from tests.helm import audit, nvidia_runtime
from tests.helm.chart import NAMESPACE, ROOT, Object
from tests.helm.release import MARKS, Release, cluster
from tests.node.nvml import fake

pytestmark = [
    *MARKS,
    pytest.mark.skipif(shutil.which("cc") is None, reason="the fake library needs a C compiler"),
]

EXAMPLES = ROOT / "examples" / "sharing"
# What a container sees: its environment, and what is mounted for it.
SCRIPT = (
    'env; echo "PIPES=$(ls /tmp/nvidia-mps 2>/dev/null | tr "\\n" " ")"; '
    'echo "PRELOAD=$(cat /etc/ld.so.preload 2>/dev/null)"'
)
RUNTIME = """
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia]
  runtime_type = "io.containerd.runc.v2"
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia.options]
    BinaryName = "{program}"
    SystemdCgroup = false
"""


class Lab(NamedTuple):
    """The release, and the machine whose cards its node has."""

    release: Release
    machine: fake.FakeMachine


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Two H100; the chart with all ways on."""
    machine = fake.FakeMachine(
        fake.build(tmp_path_factory.mktemp("nvml")),
        tmp_path_factory.mktemp("machine"),
        "h100x2-mig",
    )
    with cluster("modes", nodes="h100=2xH100") as made:
        library = _libraries_of_hami_core(made)
        _set_up_runtime(made, machine)
        made.install(
            inventory={},
            node={
                "runtimeClassName": "nvidia",
                "timeSlicing": True,
                "mps": {"enabled": True},
                "settings": {"mig": "dynamic", "hamiCoreDir": str(library)},
            },
        )
        made.settle()
        made.wait("the parts of its cards", lambda: _counted(made))
        yield Lab(made, machine)


def _libraries_of_hami_core(release: Release) -> Path:
    folder = Path(release.state["root"]) / "vgpu"
    folder.mkdir()
    (folder / "libvgpu.so").write_text("not a library\n")
    (folder / "ld.so.preload").write_text("# nothing is preloaded in this test\n")
    return folder


def _set_up_runtime(release: Release, machine: fake.FakeMachine) -> None:
    """As `nvidia-ctk runtime configure` does, and the operator's RuntimeClass."""
    root = Path(release.state["root"])
    program = root / "nvidia-container-runtime"
    told = (sys.executable, nvidia_runtime.__file__, machine.built, machine.description)
    program.write_text(f'#!/bin/sh\nexec {" ".join(map(str, told))} "$@"\n')
    program.chmod(0o755)
    for node in release.state["nodes"]:
        with (root / node["name"] / "containerd.toml").open("a") as file:
            file.write(RUNTIME.format(program=program))
        hack_cluster(release.state["name"], "restart", f"containerd/{node['name']}")
    kind = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "nvidia"}
    body = json.dumps(kind | {"metadata": {"name": "nvidia"}})
    release.kubectl("create", "-f", "-", given=body)


def _counted(release: Release) -> bool:
    """Whether the pool is complete: its counters are written last."""
    return any(one["spec"].get("sharedCounters") for one in release.get("resourceslices"))


@pytest.fixture(autouse=True)
def nothing_left(lab: Lab) -> Iterator[None]:
    """After each test the cards are as they were."""
    yield
    lab.release.kubectl("delete", "pods", "--all", "--now")
    lab.release.wait("claims to go", lambda: not lab.release.get("resourceclaims"))
    for card in (0, 1):
        assert lab.machine.parts(card) == 0
        assert lab.machine.setting(card, "compute-mode") == "0"
        assert lab.machine.setting(card, "timeslice") == "0"


def example(lab: Lab, name: str) -> list[str]:
    """Create what an example holds; its pods, which run."""
    documents = list(yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text()))
    pods = [one for one in documents if one["kind"] == "Pod"]
    for pod in pods:
        for container in pod["spec"]["containers"]:
            container.update(lab.release.container(SCRIPT, name=container["name"]))
    body = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
    lab.release.kubectl("apply", "-f", "-", given=body)
    names = [str(pod["metadata"]["name"]) for pod in pods]
    paths = [f"pod/{pod}" for pod in names]
    lab.release.kubectl("wait", "--for=condition=Ready", *paths, "--timeout=120s")
    return names


def seen(lab: Lab, pod: str, container: str = "main") -> dict[str, str]:
    """The environment that a container tells."""
    lines = lab.release.kubectl("logs", pod, "-c", container).splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def published(lab: Lab) -> dict[str, Object]:
    """The devices of the node."""
    found = history.devices(lab.release.get("resourceslices"))
    return {name: device for (_, name), device in found.items()}


def card_of(lab: Lab) -> int:
    """The one card that all claims have."""
    claims = lab.release.get("resourceclaims")
    (name,) = {result["device"] for claim in claims for result in history.results(claim)}
    return int(name.removeprefix("gpu-"))


def test_whole(lab: Lab) -> None:
    """A card of its own, not in MIG mode even where it was before."""
    (name,) = example(lab, "whole")
    card = card_of(lab)
    uuid = attribute(published(lab)[f"gpu-{card}"], "uuid")
    assert seen(lab, name)["NVIDIA_VISIBLE_DEVICES"] == uuid
    assert lab.machine.setting(card, "mig-mode").split()[:1] in (["0"], [])


def test_mig(lab: Lab) -> None:
    """Parts are there while the pod is; each container sees its own."""
    (name,) = example(lab, "mig")
    small, large = (seen(lab, name, one)["NVIDIA_VISIBLE_DEVICES"] for one in ("small", "large"))
    assert small.startswith("MIG-")
    assert large.startswith("MIG-")
    assert small != large
    assert sorted(lab.machine.parts(card) for card in (0, 1)) == [0, 2]


def test_time_slicing(lab: Lab) -> None:
    """Both pods are on one card, whose rhythm is set until the last has left."""
    names = example(lab, "time-slicing")
    card = card_of(lab)
    assert lab.machine.setting(card, "timeslice") == "3"
    lab.release.kubectl("delete", "pod", names[0], "--now")
    assert lab.machine.setting(card, "timeslice") == "3"


def test_mps(lab: Lab) -> None:
    """One daemon for both pods; each has its limits and finds the daemon's socket."""
    names = example(lab, "mps")
    card = card_of(lab)
    for name in names:
        environment = seen(lab, name)
        assert environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == "0=4096M"
        assert environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "30"
        assert "control" in environment["PIPES"].split()
        assert environment["PRELOAD"] == ""
    assert lab.machine.setting(card, "compute-mode") == "3"
    (keeper,) = lab.release.pods("app.kubernetes.io/component=mps")
    script = "cat /run/gpu.quadrant.dev/mps/*/log/control.log"
    told = lab.release.kubectl("-n", NAMESPACE, "exec", keeper, "--", "sh", "-c", script)
    assert "set_default_active_thread_percentage 30" in told
    assert "set_default_device_pinned_mem_limit 0 4096M" in told


def test_shares(lab: Lab) -> None:
    """HAMi-core's library is in the container, with the limits of the share."""
    (name,) = example(lab, "shares")
    environment = seen(lab, name)
    assert environment["CUDA_DEVICE_MEMORY_LIMIT_0"] == "4096m"
    assert environment["CUDA_DEVICE_SM_LIMIT_0"] == "30"
    assert environment["PRELOAD"] == "# nothing is preloaded in this test"


def test_nothing_was_forbidden(lab: Lab) -> None:
    """The accounts' rights were enough for all ways, and no process met a fault."""
    assert audit.forbidden(lab.release.state) == []
    assert "Traceback" not in lab.release.logs()

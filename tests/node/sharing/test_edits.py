"""What containers are given for the way in which they use their cards."""

import json
from typing import Any

import pytest
from msgspec import structs

from driver.model.resourceclaim import ResourceClaim
from driver.node.claims import NodeFacts, entry
from driver.node.containers.cdi import answer, document
from driver.node.mig import MigInstance
from driver.node.sharing.offered import offered
from driver.node.sharing.partitions import MigMode
from driver.node.sharing.rules import daemon_name
from tests.node.builders import DRIVER, MIG, claim, facts, mps, ref, result, slicing

HALF: Any = {"memory": "8Gi", "cores": "50"}
Edits = dict[str, Any]


def seen(allocated: ResourceClaim, node: NodeFacts, request: str = "") -> Edits:
    """Environment and mounts (by their place in the container) of who uses the claim."""
    used = entry(ref(), allocated, node)
    file = json.loads(document(DRIVER, used))
    edits = {f"{file['kind']}={d['name']}": d["containerEdits"] for d in file["devices"]}
    ids = [
        name
        for device in answer(DRIVER, used)
        if not request or request in device.requests
        for name in device.cdi_devices
    ]
    env: dict[str, str] = {}
    mounts: dict[str, Edits] = {}
    for name in dict.fromkeys(ids):
        env |= dict(line.split("=", 1) for line in edits[name].get("env", []))
        mounts |= {one["containerPath"]: one for one in edits[name].get("mounts", [])}
    return {"env": env, "mounts": mounts}


def test_time_slicing_changes_nothing_in_the_container() -> None:
    """It is the card's business."""
    node = facts(mps_dir="/run/mps")
    assert seen(claim(0, result("gpu-0"), config=[slicing()]), node) == seen(
        claim(0, result("gpu-0")), node
    )


def test_a_client_of_mps_finds_its_daemon_and_its_limits() -> None:
    """Sockets and shared memory are the daemon's; limits count the container's cards from 0."""
    node = facts(mps_dir="/run/mps")
    found = seen(claim(0, result("gpu-2", **HALF), config=[mps()]), node)
    env, mounts = found["env"], found["mounts"]
    assert env["CUDA_MPS_PIPE_DIRECTORY"] == "/tmp/nvidia-mps"  # noqa: S108
    assert env["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == "0=8192M"
    assert env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "50"
    name = daemon_name([node.cards["gpu-2"].uuid])
    assert {path: mount["hostPath"] for path, mount in mounts.items()} == {
        "/tmp/nvidia-mps": f"/run/mps/{name}/pipe",  # noqa: S108
        "/dev/shm": "/run/mps/shm",  # noqa: S108
    }
    assert all(mount["options"][:2] == ["rbind", "rw"] for mount in mounts.values())


@pytest.mark.parametrize(
    ("request_name", "limits", "threads"),
    [("a", "0=8192M", "50"), ("b", "0=1024M", "20"), ("", "0=1024M,1=8192M", "20")],
)
def test_limits_of_several_cards(request_name: str, limits: str, threads: str) -> None:
    """Each its memory; a process has one percentage, which is the smallest."""
    asked = claim(
        0,
        result("gpu-3", "a", **HALF),
        result("gpu-1", "b", memory="1Gi", cores="20"),
        config=[mps()],
    )
    env = seen(asked, facts(mps_dir="/run/mps"), request_name)["env"]
    assert env["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == limits
    assert env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == threads


def test_a_whole_card_by_mps_has_no_limits() -> None:
    """Its claim's containers and pods share all of it."""
    env = seen(claim(0, result("gpu-0"), config=[mps()]), facts(mps_dir="/run/mps"))["env"]
    assert "CUDA_MPS_PIPE_DIRECTORY" in env
    assert not {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"} & set(env)


def test_hami_core_is_mounted_for_shares() -> None:
    """The library, the list that preloads it, one lock for the host, a state for the claim."""
    node = facts(hami_core_dir="/opt/vgpu")
    found = seen(claim(0, result("gpu-0", **HALF)), node)
    assert found["env"]["CUDA_DEVICE_MEMORY_SHARED_CACHE"] == "/usr/local/vgpu/state/region.cache"
    assert {path: mount["hostPath"] for path, mount in found["mounts"].items()} == {
        "/usr/local/vgpu/libvgpu.so": "/opt/vgpu/libvgpu.so",
        "/etc/ld.so.preload": "/opt/vgpu/ld.so.preload",
        "/tmp/vgpulock": "/state/hami/lock",  # noqa: S108
        "/usr/local/vgpu/state": f"/state/hami/{ref().uid}",
    }
    options = {path: mount["options"] for path, mount in found["mounts"].items()}
    assert options["/etc/ld.so.preload"] == ["rbind", "ro"]
    assert options["/usr/local/vgpu/state"] == ["rbind", "rw"]


@pytest.mark.parametrize("asked", [claim(0, result("gpu-0")), claim(0, result("gpu-0", share="s"))])
def test_whole_cards_need_no_library(asked: ResourceClaim) -> None:
    """There is nothing to keep them within."""
    assert seen(asked, facts(hami_core_dir="/opt/vgpu"))["mounts"] == {}


def test_where_mps_keeps_the_limits_hami_core_does_not() -> None:
    """One of them is enough."""
    node = facts(hami_core_dir="/opt/vgpu", mps_dir="/run/mps")
    asked = claim(0, result("gpu-0", **HALF), config=[mps()])
    assert set(seen(asked, node)["mounts"]) == {"/tmp/nvidia-mps", "/dev/shm"}  # noqa: S108
    assert entry(ref(), asked, node).limiter is None


def test_a_container_gets_what_its_request_needs() -> None:
    """Of a claim with a share and a whole card, only the share's users get the library."""
    node = facts(hami_core_dir="/opt/vgpu")
    asked = claim(0, result("gpu-0", "part", **HALF), result("gpu-1", "whole"))
    assert len(seen(asked, node, "part")["mounts"]) == 4
    assert seen(asked, node, "whole")["mounts"] == {}
    assert len(seen(asked, node)["mounts"]) == 4


def test_parts_of_one_card_have_lines_of_their_own() -> None:
    """In the order of their place; before they are made nothing can be said of their UUID."""
    node = facts(cut=MigMode.STATIC)
    assert node.parts == {}
    cut = facts(cut=MigMode.DYNAMIC)
    env = seen(claim(0, result("gpu-3-mig-2g8gb-2", "a"), result("gpu-3-mig-1g4gb-1", "b")), cut)[
        "env"
    ]
    model = cut.cards["gpu-3"].product_name
    assert {name: line for name, line in env.items() if name.startswith("QUADRANT")} == {
        "QUADRANT_DEVICE_3_MIG_1": f"index=3,uuid=,model={model},profile=1g.4gb",
        "QUADRANT_DEVICE_3_MIG_2": f"index=3,uuid=,model={model},profile=2g.8gb",
    }


def test_a_part_that_the_toolkit_describes_brings_its_own_device() -> None:
    """As for cards: its CDI device has the device nodes, and keeps the variable."""
    found = facts().cards["gpu-0"]
    there = MigInstance(uuid="MIG-1", profile="1g.4gb", start=2, size=1)
    cut = structs.replace(found, mig=structs.replace(MIG, enabled=True, instances=(there,)))
    offer = offered([cut], mig=MigMode.STATIC, shareable=True)
    node = structs.replace(
        facts(), cards={}, parts=offer.parts, vendor_devices={"MIG-1": "nvidia.com/gpu=MIG-1"}
    )
    used = entry(ref(), claim(0, result("gpu-0-mig-1g4gb-2")), node)
    (device,) = answer(DRIVER, used)
    assert device.cdi_devices[1] == "nvidia.com/gpu=MIG-1"
    assert b"NVIDIA_VISIBLE_DEVICES" not in document(DRIVER, used)
    plain = entry(
        ref(), claim(0, result("gpu-0-mig-1g4gb-2")), structs.replace(node, vendor_devices={})
    )
    assert b"NVIDIA_VISIBLE_DEVICES=MIG-1" in document(DRIVER, plain)

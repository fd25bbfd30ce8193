"""What containers see, as the kubelet and containerd would put it together."""

import json
import re
from itertools import permutations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.node.claims import entry
from driver.node.containers.cdi import answer, claim_of, document, file_name, kind
from driver.node.held import HeldDevice, PreparedClaim
from tests.node.builders import DRIVER, claim, facts, held, prepared, ref, result

# The CDI specification's rules for device names, vendor and class.
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?")
_VENDOR_CLASS = re.compile(
    r"[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?/[A-Za-z]([A-Za-z0-9_-]*[A-Za-z0-9])?"
)

Use = tuple[PreparedClaim, str]


def environment(*uses: Use) -> dict[str, str]:
    """A container's environment; a use is a claim and a request of it, "" for the whole claim.

    As kubelet 1.34 to 1.37 picks CDI devices (`cdiDevicesAsList`) and as containerd applies them:
    each once, in order, the last of two variables with one name.
    """
    ids = [
        cdi_id
        for used, request in uses
        for device in answer(DRIVER, used)
        if not request or request in device.requests
        for cdi_id in device.cdi_devices
    ]
    env: dict[str, str] = {}
    for cdi_id in dict.fromkeys(ids):
        for line in _edits(cdi_id, uses):
            name, _, value = line.partition("=")
            env[name] = value
    return env


def _edits(cdi_id: str, uses: tuple[Use, ...]) -> list[str]:
    if cdi_id.startswith("nvidia.com/gpu="):
        return ["NVIDIA_VISIBLE_DEVICES=void"]
    files = [json.loads(document(DRIVER, used)) for used, _ in uses]
    devices = {f"{f['kind']}={d['name']}": d for f in files for d in f["devices"]}
    edits: list[str] = devices[cdi_id]["containerEdits"]["env"]
    return edits


def _uuids(*devices: str) -> str:
    return ",".join(facts().cards[device].uuid for device in devices)


WHOLE = prepared(0, [held("gpu-2"), held("gpu-0")])
TWO_REQUESTS = prepared(
    1,
    [
        held("gpu-3", "a", memory=4000, cores=30, share="s1"),
        held("gpu-1", "b", memory=15360, cores=100, share="s2"),
    ],
)
TWICE_ONE_CARD = prepared(2, [held("gpu-1", r, memory=4000, cores=60, share=r) for r in ("a", "b")])


def test_whole_cards_are_named_and_not_limited() -> None:
    """Without a share in the claim there are no limits; order is that of the index."""
    card = facts().cards["gpu-0"]
    env = environment((WHOLE, ""))
    assert env["QUADRANT_DEVICE_0"] == f"index=0,uuid={card.uuid},model=Tesla T4"
    assert set(env) == {"QUADRANT_DEVICE_0", "QUADRANT_DEVICE_2", "NVIDIA_VISIBLE_DEVICES"}
    assert env["NVIDIA_VISIBLE_DEVICES"] == _uuids("gpu-0", "gpu-2")
    assert environment((WHOLE, "gpu")) == env


def test_a_share_that_is_the_whole_card_is_not_limited() -> None:
    """Who asks for no amount of a shareable card gets all of it, as a share."""
    env = environment((prepared(0, [held("gpu-1", share="s")]), ""))
    assert set(env) == {"QUADRANT_DEVICE_1", "NVIDIA_VISIBLE_DEVICES"}


def test_a_container_with_one_request_sees_only_its_cards() -> None:
    """Its first card is number 0, whatever else the claim has."""
    env = environment((TWO_REQUESTS, "a"))
    assert env["NVIDIA_VISIBLE_DEVICES"] == _uuids("gpu-3")
    assert env["CUDA_DEVICE_MEMORY_LIMIT_0"] == "4000m"
    assert env["CUDA_DEVICE_SM_LIMIT_0"] == "30"
    assert not {"CUDA_DEVICE_MEMORY_LIMIT_1", "QUADRANT_DEVICE_1"} & set(env)


def test_a_container_with_the_whole_claim_has_limits_in_the_order_of_its_cards() -> None:
    """gpu-1 comes first in the container though its request comes last in the claim."""
    env = environment((TWO_REQUESTS, ""))
    assert env["NVIDIA_VISIBLE_DEVICES"] == _uuids("gpu-1", "gpu-3")
    assert [env[f"CUDA_DEVICE_MEMORY_LIMIT_{i}"] for i in (0, 1)] == ["15360m", "4000m"]
    assert [env[f"CUDA_DEVICE_SM_LIMIT_{i}"] for i in (0, 1)] == ["100", "30"]


def test_two_shares_of_one_card_are_one_card_with_both_amounts() -> None:
    """The container has one device node for it, so there is one limit, and cores end at 100."""
    env = environment((TWICE_ONE_CARD, ""))
    assert env["NVIDIA_VISIBLE_DEVICES"] == _uuids("gpu-1")
    assert (env["CUDA_DEVICE_MEMORY_LIMIT_0"], env["CUDA_DEVICE_SM_LIMIT_0"]) == ("8000m", "100")
    assert "CUDA_DEVICE_MEMORY_LIMIT_1" not in env


@pytest.mark.parametrize("order", list(permutations([WHOLE, TWO_REQUESTS, TWICE_ONE_CARD])))
def test_several_claims_in_one_container_lose_no_device(order: tuple[PreparedClaim, ...]) -> None:
    """The kubelet goes through claims in random order; the lines per card are always all there."""
    env = environment(*((used, "") for used in order))
    lines = {name for name in env if name.startswith("QUADRANT_DEVICE_")}
    assert lines == {f"QUADRANT_DEVICE_{index}" for index in range(4)}


def test_where_the_toolkit_describes_the_card_its_device_is_used_as_well() -> None:
    """It brings device nodes and libraries, and keeps NVIDIA_VISIBLE_DEVICES for itself."""
    node = facts(vendor=True)
    used = entry(ref(), claim(0, result("gpu-1", memory="4Gi", cores="10")), node)
    [device] = answer(DRIVER, used)
    uuid = node.cards["gpu-1"].uuid
    assert device.cdi_devices[1] == f"nvidia.com/gpu={uuid}"
    assert environment((used, "")) == {
        "QUADRANT_DEVICE_1": f"index=1,uuid={uuid},model=Tesla T4",
        "NVIDIA_VISIBLE_DEVICES": "void",
        "CUDA_DEVICE_MEMORY_LIMIT_0": "4096m",
        "CUDA_DEVICE_SM_LIMIT_0": "10",
    }


def test_a_card_with_device_nodes_brings_them_and_is_not_shown_to_nvidia() -> None:
    """Its inventory knows what a container needs; NVIDIA's runtime would look for the UUID."""
    nodes = ("/dev/kfd", "/dev/dri/renderD128")
    other = msgspec.structs.replace(held("gpu-0"), device_nodes=nodes)
    used = prepared(0, [other, held("gpu-1")])
    written = json.loads(document(DRIVER, used))["devices"]
    assert [one["containerEdits"].get("deviceNodes") for one in written] == [
        [{"path": "/dev/kfd"}, {"path": "/dev/dri/renderD128"}],
        None,
        None,
    ]
    assert environment((used, ""))["NVIDIA_VISIBLE_DEVICES"] == _uuids("gpu-1")
    assert "NVIDIA_VISIBLE_DEVICES" not in environment((prepared(0, [other]), ""))
    assert claim_of(document(DRIVER, used)) == used


def test_every_result_is_answered_with_a_device_of_its_own() -> None:
    """The kubelet names a device's health after its first CDI device, so these must differ."""
    answers = answer(DRIVER, TWO_REQUESTS)
    assert [(a.requests, a.device, a.share_id) for a in answers[:2]] == [
        (("a",), "gpu-3", "s1"),
        (("b",), "gpu-1", "s2"),
    ]
    assert answers[0].cdi_devices[0] != answers[1].cdi_devices[0]


_REQUESTS = st.sampled_from(["a", "b", "c"])
_DEVICES = st.builds(
    held,
    st.sampled_from([f"gpu-{index}" for index in range(4)]),
    _REQUESTS,
    memory=st.one_of(st.integers(1, 5000), st.just(15360)),
    cores=st.one_of(st.integers(0, 100), st.just(100)),
    share=st.one_of(st.none(), st.uuids().map(str)),
)
CLAIMS = st.lists(_DEVICES, min_size=1, max_size=6).map(lambda devices: prepared(0, devices))


def _expected(devices: list[HeldDevice], *, limited: bool) -> dict[str, str]:
    cards = sorted({device.index for device in devices})
    env = {"NVIDIA_VISIBLE_DEVICES": _uuids(*(f"gpu-{index}" for index in cards))}
    for index in cards:
        env[f"QUADRANT_DEVICE_{index}"] = (
            f"index={index},uuid={_uuids(f'gpu-{index}')},model=Tesla T4"
        )
    for position, index in enumerate(cards if limited else []):
        mine = [device for device in devices if device.index == index]
        memory = sum(device.memory for device in mine) // 2**20
        env[f"CUDA_DEVICE_MEMORY_LIMIT_{position}"] = f"{memory}m"
        env[f"CUDA_DEVICE_SM_LIMIT_{position}"] = str(min(100, sum(d.cores for d in mine)))
    return env


@given(CLAIMS)
def test_whole_claims_and_single_requests_are_always_exact(used: PreparedClaim) -> None:
    """The two ways in which containers use claims; nothing of another level remains in force."""
    limited = any(d.memory < d.card_memory or d.cores < 100 for d in used.devices)
    assert environment((used, "")) == _expected(list(used.devices), limited=limited)
    for request in {device.request for device in used.devices}:
        mine = [device for device in used.devices if device.request == request]
        assert environment((used, request)) == _expected(mine, limited=limited)


@given(CLAIMS)
def test_files_follow_the_specification(used: PreparedClaim) -> None:
    """Names, version, no device twice, none without edits; and the claim can be read back."""
    spec = json.loads(document(DRIVER, used))
    assert spec["cdiVersion"] == "0.6.0"
    assert _VENDOR_CLASS.fullmatch(spec["kind"])
    assert spec["kind"] == kind(DRIVER)
    names = [device["name"] for device in spec["devices"]]
    assert len(names) == len(set(names))
    assert all(_NAME.fullmatch(name) for name in names)
    assert all(device["containerEdits"]["env"] for device in spec["devices"])
    known = {f"{spec['kind']}={name}" for name in names}
    assert {cdi_id for device in answer(DRIVER, used) for cdi_id in device.cdi_devices} == known
    assert claim_of(document(DRIVER, used)) == used
    assert file_name(DRIVER, used.uid).endswith(f"claim_{used.uid}.json")

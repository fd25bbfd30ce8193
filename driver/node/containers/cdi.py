"""What containers see of a claim: its CDI file, and the CDI devices that the kubelet is told of.

Pure. A container runtime merges the edits of all CDI devices that a container uses; of two
environment variables with one name the last wins. So a file has devices of three levels:

- *device*: `QUADRANT_DEVICE_<n>`, where n is the card's index on its node, or for a part of a card
  `QUADRANT_DEVICE_<n>_MIG_<start>`. No two devices of a node share it: these lines are complete and
  right in whatever mixture of claims and requests. So is what `driver.node.sharing.edits` adds.
- *request*: what depends on all cards of a container and their order, for a container that uses
  exactly this request; and the file that tells of the request's devices.
- *claim*: the same for a container that uses the whole claim. The kubelet passes it on only then
  and last, so that it overrides the requests' lines, every one of them.

Order in a container is the order of the index, as NVML shows it there; parts go by their place.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import msgspec

from driver.model.names import CLAIM_ENTRY
from driver.node.card import ALL_CORES, MIB
from driver.node.containers.metadata import mounts
from driver.node.held import HeldDevice, PreparedClaim
from driver.node.sharing.edits import Edits, device_edits, mps_limits

# The oldest version that has annotations; containerd 1.7 and CRI-O 1.28 read it.
_CDI_VERSION = "0.6.0"
# No request can have this name, so only a container that names no request gets these devices.
_WHOLE_CLAIM = "*"


class AnswerDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One device of the answer to NodePrepareResources."""

    requests: tuple[str, ...]
    pool: str
    device: str
    share_id: str | None
    cdi_devices: tuple[str, ...]


def kind(driver: str) -> str:
    """Vendor and class of our CDI devices."""
    return f"k8s.{driver}/claim"


def file_name(driver: str, uid: str) -> str:
    """Name of the CDI file of a claim."""
    return f"{file_prefix(driver)}{uid}.json"


def file_prefix(driver: str) -> str:
    """What the names of all our CDI files begin with."""
    return f"k8s.{driver}-claim_"


def document(driver: str, claim: PreparedClaim) -> bytes:
    """The CDI file of a claim; the same claim always gives the same bytes."""
    edits: dict[str, Edits] = {_device_level(claim, d): _device(d, claim) for d in claim.devices}
    requests = _request_edits(driver, claim)
    edits |= {_request_level(claim, name): edit for name, edit in requests.items()}
    if whole_claim := _claim_edits(claim):
        edits[_claim_level(claim)] = {"env": whole_claim}
    devices = [{"name": name, "containerEdits": edit} for name, edit in edits.items()]
    spec: dict[str, Any] = {
        "cdiVersion": _CDI_VERSION,
        "kind": kind(driver),
        "annotations": {CLAIM_ENTRY: msgspec.json.encode(claim).decode()},
        "devices": devices,
    }
    return msgspec.json.format(msgspec.json.encode(spec), indent=1) + b"\n"


class _Spec(msgspec.Struct):
    annotations: dict[str, str] = {}


def claim_of(document: bytes) -> PreparedClaim:
    """The claim that a CDI file of ours was made for; raises `msgspec.MsgspecError`."""
    annotations = msgspec.json.decode(document, type=_Spec).annotations
    return msgspec.json.decode(annotations.get(CLAIM_ENTRY, ""), type=PreparedClaim)


def answer(driver: str, claim: PreparedClaim) -> tuple[AnswerDevice, ...]:
    """What the kubelet is told: every result with its CDI devices, in the claim's order."""
    requests = set(_request_edits(driver, claim))
    answers: list[AnswerDevice] = []
    for device, last in _with_last(claim.devices):
        names = [_device_level(claim, device)]
        if last and device.request in requests:
            names.append(_request_level(claim, device.request))
        cdi_devices = [f"{kind(driver)}={name}" for name in names]
        if device.vendor_device is not None:
            cdi_devices.insert(1, device.vendor_device)
        answers.append(_answer(device, (device.request,), cdi_devices))
    if _claim_edits(claim):
        name = f"{kind(driver)}={_claim_level(claim)}"
        answers.append(_answer(claim.devices[-1], (_WHOLE_CLAIM,), [name]))
    return tuple(answers)


def _answer(device: HeldDevice, requests: tuple[str, ...], cdi_devices: list[str]) -> AnswerDevice:
    return AnswerDevice(
        requests=requests,
        pool=device.pool,
        device=device.device,
        share_id=device.share_id,
        cdi_devices=tuple(cdi_devices),
    )


def _with_last(devices: Sequence[HeldDevice]) -> Iterable[tuple[HeldDevice, bool]]:
    final = {device.request: position for position, device in enumerate(devices)}
    return ((d, final[d.request] == position) for position, d in enumerate(devices))


def _device_level(claim: PreparedClaim, device: HeldDevice) -> str:
    return f"{claim.uid}.device.{device.device}"


def _request_level(claim: PreparedClaim, request: str) -> str:
    return f"{claim.uid}.request.{request}"


def _claim_level(claim: PreparedClaim) -> str:
    return f"{claim.uid}.claim"


def _request_edits(driver: str, claim: PreparedClaim) -> dict[str, Edits]:
    limited = _has_parts(claim)
    edits: dict[str, Edits] = {}
    for name in dict.fromkeys(device.request for device in claim.devices):
        devices = [device for device in claim.devices if device.request == name]
        lists = {
            "env": _environment(devices, limited=limited),
            "mounts": mounts(driver, claim, name),
        }
        edits[name] = {kind: found for kind, found in lists.items() if found}
    # A CDI device without edits is invalid.
    return {name: edit for name, edit in edits.items() if edit}


def _claim_edits(claim: PreparedClaim) -> list[str]:
    if len({device.request for device in claim.devices}) == 1:
        return []  # The request's level says it all.
    return _environment(claim.devices, limited=_has_parts(claim))


def _has_parts(claim: PreparedClaim) -> bool:
    # A share that takes all of its card is a whole card; nothing has to be limited.
    return any(not device.is_whole() for device in claim.devices)


def _device(device: HeldDevice, claim: PreparedClaim) -> Edits:
    edits = device_edits(device, claim.limiter)
    return {**edits, "env": [_line(device), *edits.get("env", [])]}


def _line(device: HeldDevice) -> str:
    name = f"QUADRANT_DEVICE_{device.index}"
    facts = f"index={device.index},uuid={device.uuid},model={device.model}"
    if device.partition is None:
        return f"{name}={facts}"
    return f"{name}_MIG_{device.partition.start}={facts},profile={device.partition.profile}"


def _place(device: HeldDevice) -> tuple[int, int]:
    return device.index, device.partition.start if device.partition else -1


def _environment(devices: Iterable[HeldDevice], *, limited: bool) -> list[str]:
    """Lines about a container's cards in their order.

    With part of a card among a claim's devices every card gets both limits, whole ones too: lines
    of a lower level then never stay in force for a card that they were not meant for.
    """
    ordered = sorted(devices, key=_place)
    cards = [list(results) for _, results in groupby(ordered, key=_place)]
    # The vendor's CDI device sets this variable itself, to keep the NVIDIA runtime out of it. A
    # card with device nodes is none of NVIDIA's.
    visible = dict.fromkeys(
        d[0].uuid for d in cards if d[0].vendor_device is None and not d[0].device_nodes
    )
    env = [f"NVIDIA_VISIBLE_DEVICES={','.join(visible)}"] if visible else []
    if limited:
        for position, results in enumerate(cards):
            memory = sum(device.memory for device in results) // MIB
            cores = min(sum(device.cores for device in results), ALL_CORES)
            env.append(f"CUDA_DEVICE_MEMORY_LIMIT_{position}={memory}m")
            env.append(f"CUDA_DEVICE_SM_LIMIT_{position}={cores}")
    return env + mps_limits(cards)

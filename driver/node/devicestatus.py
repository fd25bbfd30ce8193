"""What `status.devices` of a claim says of our devices: are they ready, and which hardware is it?

Pure. The list is shared by all drivers of a claim: entries of others stay byte for byte.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from driver.model.api import ApiStruct, ObjectMeta
from driver.node.board import card_name, time_of
from driver.node.health.card import CardHealth
from driver.node.health.verdict import message, moment, status
from driver.node.held import HeldDevice, PreparedClaim

_READY = "Ready"
_ANSWERS = {"Healthy": "True", "Unhealthy": "False", "Unknown": "Unknown"}


class Condition(ApiStruct, frozen=True, kw_only=True):
    """A condition as the API has them everywhere (`metav1.Condition`)."""

    type: str
    status: str
    reason: str
    message: str = ""
    last_transition_time: str = ""


class DeviceData(ApiStruct, frozen=True, kw_only=True):
    """Which hardware a device is; for a part, `uuid` is the part's and `card` its card's."""

    uuid: str
    index: int
    model: str
    card: str = ""


class DeviceKey(ApiStruct, frozen=True, kw_only=True):
    """What tells the entries apart."""

    driver: str
    pool: str
    device: str
    share_id: str | None = msgspec.field(default=None, name="shareID")


class DeviceStatus(DeviceKey, frozen=True, kw_only=True):
    """One entry (`AllocatedDeviceStatus`)."""

    conditions: tuple[Condition, ...] = ()
    data: DeviceData | None = None


class _Status(ApiStruct, frozen=True, kw_only=True):
    devices: tuple[msgspec.Raw, ...] = ()


class StatusOfClaim(ApiStruct, frozen=True, kw_only=True):
    """The part of a claim that is read here."""

    metadata: ObjectMeta
    status: _Status = _Status()


def patch(
    claim: PreparedClaim,
    found: StatusOfClaim,
    cards: Mapping[str, CardHealth],
    *,
    driver: str,
    now: float,
) -> bytes | None:
    """The merge patch that makes the claim's status true; None when it is.

    `cards` is the health of cards by the name of their device. Holds only for the state that was
    seen.
    """
    before = {key: raw for raw in found.status.devices if (key := _key(raw)) is not None}
    wanted = [
        _entry(device, _known(before.get(_key_of(device, driver))), cards, driver=driver, now=now)
        for device in _distinct(claim.devices)
    ]
    ours = {_key_of(device, driver) for device in claim.devices}
    if all(_known(before.get(_bare(entry))) == entry for entry in wanted):
        return None
    others = [raw for raw in found.status.devices if _key(raw) not in ours]
    body: dict[str, Any] = {
        "metadata": {
            "uid": claim.uid,
            "resourceVersion": found.metadata.resource_version,
        },
        "status": {"devices": [*others, *wanted]},
    }
    return msgspec.json.encode(body)


def _distinct(devices: Iterable[HeldDevice]) -> Iterable[HeldDevice]:
    """One of those that stand for one entry: a device may serve several requests."""
    return {(device.pool, device.device, device.share_id): device for device in devices}.values()


def _entry(
    device: HeldDevice,
    before: DeviceStatus | None,
    cards: Mapping[str, CardHealth],
    *,
    driver: str,
    now: float,
) -> DeviceStatus:
    health = cards.get(card_name(device.device), CardHealth())
    old = before.conditions if before is not None else ()
    found = next((condition for condition in old if condition.type == _READY), None)
    return DeviceStatus(
        driver=driver,
        pool=device.pool,
        device=device.device,
        share_id=device.share_id,
        conditions=(_ready(health, found, now),),
        data=DeviceData(
            uuid=device.uuid,
            index=device.index,
            model=device.model,
            card=device.card() if device.partition else "",
        ),
    )


def _ready(health: CardHealth, before: Condition | None, now: float) -> Condition:
    if before is not None and health.known_at is None and not health.problems:
        # This process has not looked yet; what the one before has seen is better than nothing.
        return before
    word = status(health)
    is_same = before is not None and before.status == _ANSWERS[word]
    return Condition(
        type=_READY,
        status=_ANSWERS[word],
        reason=word,
        message=message(health),
        last_transition_time=(
            before.last_transition_time if before and is_same else time_of(moment(now))
        ),
    )


def _key_of(device: HeldDevice, driver: str) -> DeviceKey:
    return DeviceKey(
        driver=driver, pool=device.pool, device=device.device, share_id=device.share_id
    )


def _bare(entry: DeviceStatus) -> DeviceKey:
    return DeviceKey(
        driver=entry.driver, pool=entry.pool, device=entry.device, share_id=entry.share_id
    )


def _key(raw: msgspec.Raw) -> DeviceKey | None:
    try:
        return msgspec.json.decode(raw, type=DeviceKey)
    except msgspec.MsgspecError:
        return None


def _known(raw: msgspec.Raw | None) -> DeviceStatus | None:
    """An entry as we write it; None for one that is not there, or that somebody spoilt."""
    try:
        return None if raw is None else msgspec.json.decode(raw, type=DeviceStatus)
    except msgspec.MsgspecError:
        return None

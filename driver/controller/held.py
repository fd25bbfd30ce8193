"""Devices that the scheduler believes free though a claim has long held them (design, rule 10).

The scheduler's book of used devices is a set without counts. Such a device would make pods fail on
its node for ever without becoming unschedulable, so it gets a taint until it is released: pods then
say Unschedulable, and an autoscaler sees them. The holder is not disturbed (NoSchedule).

A rule without effect on a free device tells the scheduler that there is something to look at (see
`driver.controller.sleepers`): for it, any change of a device's taints is an event.
"""

import hashlib
from collections.abc import Iterable
from contextlib import suppress

import structlog

from driver.controller.ledger import Ledger
from driver.kube.errors import AlreadyExists, KubeError, NotFound
from driver.kube.rest import Rest
from driver.model import names
from driver.model.deviceclass import DeviceTaintRule, DeviceTaintSelector
from driver.model.ids import DeviceId
from driver.wire.encode import encode

_log = structlog.get_logger(__name__)

_WAKE = "quadrant-wake"
_NONE = "None"


class HeldDevices:
    """The taint rules of ours in the cluster, as the watch shows them, and what to do about them.

    `collection` is the path of the taint rules that the API server serves; None when it serves
    none: then nothing is done, and such pods wait with SchedulerError.
    """

    def __init__(self, rest: Rest, collection: str | None, ledger: Ledger) -> None:
        self._rest = rest
        self._collection = collection
        self._ledger = ledger
        self._rules: dict[str, DeviceTaintRule] = {}
        self._wanted: set[DeviceId] = set()

    def put(self, rule: DeviceTaintRule) -> None:
        """A taint rule as it is now; those of others are not looked at."""
        if names.HELD in rule.metadata.labels:
            self._rules[rule.metadata.name] = rule

    def remove(self, name: str) -> None:
        """A taint rule is gone."""
        self._rules.pop(name, None)

    def want(self, devices: Iterable[DeviceId]) -> None:
        """These devices are believed free though they are held; returns at once."""
        self._wanted.update(devices)

    async def wake(self, device: DeviceId) -> None:
        """Have the scheduler try the pods again that wait for devices; the rule goes by itself.

        Where no taint rules are served, nothing is done. Raises `driver.kube.errors.KubeError`.
        """
        if self._collection is None:
            return
        await self._create(device, self._collection, name=_WAKE, effect=_NONE)
        _log.info("scheduler woken: pods wait beside a free device", device=str(device))

    async def tend(self) -> None:
        """Write the rules that are wanted, delete those whose device was released.

        Idempotent. What fails is logged and done next time; it holds up none of the others.
        """
        if self._collection is None:
            self._wanted.clear()
            return
        for device in list(self._wanted):
            try:
                await self._taint(device, self._collection)
            except KubeError as error:
                _log.warning("device not tainted yet", device=str(device), error=str(error))
            else:
                self._wanted.discard(device)
        for name, rule in list(self._rules.items()):
            woken = rule.spec.taint.effect == _NONE
            if woken or self._ledger.holder(_device_of(rule)) is None:
                try:
                    await self._delete(name)
                except KubeError as error:
                    _log.warning("taint not taken away yet", rule=name, error=str(error))

    async def _taint(self, device: DeviceId, collection: str) -> None:
        if self._ledger.holder(device) is None:
            return
        if await self._create(device, collection, name=_name(device), effect="NoSchedule"):
            _log.info("device tainted until its holder goes", device=str(device))

    async def _create(self, device: DeviceId, collection: str, *, name: str, effect: str) -> bool:
        """Whether it was not there yet."""
        rule = _rule(device, collection, name=name, effect=effect)
        try:
            await self._rest.create(collection, encode(rule))
        except AlreadyExists:
            return False
        return True

    async def _delete(self, name: str) -> None:
        with suppress(NotFound):
            await self._rest.delete(f"{self._collection}/{name}")
        self._rules.pop(name, None)


def _name(device: DeviceId) -> str:
    return f"quadrant-held-{hashlib.sha256(str(device).encode()).hexdigest()[:16]}"


def _rule(device: DeviceId, collection: str, *, name: str, effect: str) -> dict[str, object]:
    group, version = collection.split("/")[2:4]
    return {
        "apiVersion": f"{group}/{version}",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name, "labels": {names.HELD: "true"}},
        "spec": {
            "deviceSelector": {
                "driver": device.driver,
                "pool": device.pool,
                "device": device.device,
            },
            "taint": {"key": names.HELD, "effect": effect},
        },
    }


def _device_of(rule: DeviceTaintRule) -> DeviceId:
    # A rule under our label that somebody has changed names no device, so nobody holds it.
    selector = rule.spec.device_selector or DeviceTaintSelector()
    return DeviceId(selector.driver or "", selector.pool or "", selector.device or "")

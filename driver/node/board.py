"""What the node's devices look like now: what they are, and what several sources hold against them.

Every source (health, cordon, inventory, …) says what it knows by itself and as often as it likes;
the board shows the devices with all taints whenever the whole has changed. Knows nothing of how
devices are published, nor of why a source taints.
"""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence

from msgspec import structs

from driver.model.resourceslice import Device, DeviceTaint

Show = Callable[[Sequence[Device]], None]
Taints = Mapping[str, tuple[DeviceTaint, ...]]

# Names of the parts of a card begin with the card's own name and this.
_PART = "-mig-"


def now() -> dt.datetime:
    """The time of day; taints carry it."""
    return dt.datetime.now(dt.UTC)


def time_of(moment: dt.datetime) -> str:
    """A moment as the API writes it: whole seconds, UTC."""
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def card_name(device: str) -> str:
    """Name of the card that a device is, or is a part of."""
    return device.partition(_PART)[0]


class Board:
    """The devices with their taints; only for the event loop's thread.

    Nothing is shown before there are devices: taints may be known first.
    """

    def __init__(self, show: Show, *, clock: Callable[[], dt.datetime] = now) -> None:
        self._show = show
        self._clock = clock
        self._devices: tuple[Device, ...] | None = None
        self._dress: Callable[[Device], Device] = lambda device: device
        self._dressed: tuple[Device, ...] = ()
        self._taints: dict[str, Taints] = {}
        self._shown: tuple[Device, ...] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The devices that there are, in their order."""
        return tuple(device.name for device in self._devices or ())

    @property
    def plain(self) -> tuple[Device, ...]:
        """The devices as they were said last, without what is put on them here."""
        return self._devices or ()

    def devices(self, devices: Sequence[Device]) -> None:
        """Say what devices there are; taints that they bring stand before all others."""
        self._devices = tuple(devices)
        self._put_on()

    def dress(self, dress: Callable[[Device], Device]) -> None:
        """Have every device go through `dress`, from now on; it must not raise."""
        self._dress = dress
        self._put_on()

    def taints(self, source: str, taints: Taints) -> None:
        """Replace what `source` holds against devices, by name; a card's counts for its parts.

        A taint without a time gets the time at which it came up here, and keeps it while the
        source goes on saying the same.
        """
        before = self._taints.get(source, {})
        stamped = {
            name: tuple(self._stamp(taint, before.get(name, ())) for taint in found)
            for name, found in taints.items()
        }
        self._taints[source] = stamped
        self._refresh()

    @property
    def shown(self) -> tuple[Device, ...]:
        """The devices as they were shown last."""
        return self._shown or ()

    def _stamp(self, taint: DeviceTaint, before: tuple[DeviceTaint, ...]) -> DeviceTaint:
        if taint.time_added is not None:
            return taint
        same = (old for old in before if structs.replace(old, time_added=None) == taint)
        kept = next(same, None)
        return kept or structs.replace(taint, time_added=time_of(self._clock()))

    def _put_on(self) -> None:
        self._dressed = tuple(map(self._dress, self.plain))
        self._refresh()

    def _refresh(self) -> None:
        if self._devices is None:
            return
        tainted = tuple(self._tainted(device) for device in self._dressed)
        if tainted != self._shown:
            self._shown = tainted
            self._show(tainted)

    def _tainted(self, device: Device) -> Device:
        names = dict.fromkeys((card_name(device.name), device.name))
        found = [
            taint
            for source in sorted(self._taints)
            for name in names
            for taint in sorted(self._taints[source].get(name, ()), key=_order)
        ]
        # Two sources may say the same; the first one has said it.
        distinct = {(taint.key, taint.value, taint.effect): taint for taint in reversed(found)}
        taints = (*device.taints, *reversed(distinct.values()))
        return structs.replace(device, taints=taints) if found else device


def _order(taint: DeviceTaint) -> tuple[str, str, str]:
    return (taint.key, taint.effect, taint.value)

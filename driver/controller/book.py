"""Which devices are held, by whom, and what that adds up to.

One question, answered for one device in constant time. It knows nothing of claims' lives; that is
the ledger's part.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from driver.model.allocation import DeviceUse
from driver.model.ids import DeviceId
from driver.model.quantity import Quantity
from driver.model.resourceclaim import DeviceRequestAllocationResult

K = TypeVar("K", bound=Hashable)
Results = tuple[DeviceRequestAllocationResult, ...]
Touched = Callable[[DeviceId], None]


def total(results: Iterable[DeviceRequestAllocationResult]) -> DeviceUse | None:
    """What these results of one device take from it together; None when they take nothing.

    A result without a share takes the whole device; one with admin access takes nothing.
    """
    exclusive, shares, consumed = False, set[str](), dict[str, Quantity]()
    for result in results:
        if result.admin_access:
            continue
        if result.share_id is None:
            exclusive = True
            continue
        shares.add(result.share_id)
        for name, amount in result.consumed_capacity.items():
            consumed[name] = consumed[name] + amount if name in consumed else amount
    if not exclusive and not shares:
        return None
    return DeviceUse(exclusive=exclusive, shares=frozenset(shares), consumed=consumed)


class Book(Generic[K]):
    """Holds by key. `use` is what they add up to, of each device that is held at all.

    `use` is live, and to be read only. `touched` is told of every device whose use has changed.
    """

    def __init__(self, touched: Touched | None = None) -> None:
        self._touched = touched
        self._results: dict[K, Results] = {}
        self._holders: dict[DeviceId, dict[K, None]] = {}
        self._use: dict[DeviceId, DeviceUse] = {}
        # The very dictionary: most devices that are asked for are not held, and nothing says so as
        # fast as its `get`.
        self.use: Mapping[DeviceId, DeviceUse] = self._use

    def put(self, key: K, results: Results) -> tuple[DeviceId, ...]:
        """Hold these results under this key, in place of what it held before.

        Returns the whole devices that are free now and were not.
        """
        before = self._results.get(key, ())
        self._results[key] = results
        for result in results:
            self._holders.setdefault(result.device_id(), {})[key] = None
        return self._changed(key, before)

    def drop(self, key: K) -> tuple[DeviceId, ...]:
        """Let go of what this key holds; returns the whole devices that are free now."""
        return self._changed(key, self._results.pop(key, ()))

    def _changed(self, key: K, before: Results) -> tuple[DeviceId, ...]:
        now_held = {result.device_id() for result in self._results.get(key, ())}
        freed = []
        for device in now_held | {result.device_id() for result in before}:
            was = self._use.get(device)
            if device not in now_held:
                self._let_go(device, key)
            self._add_up(device)
            if self._touched is not None and self._use.get(device) != was:
                self._touched(device)
            if was is not None and was.exclusive and device not in self._use:
                freed.append(device)
        return tuple(freed)

    def _let_go(self, device: DeviceId, key: K) -> None:
        del self._holders[device][key]
        if not self._holders[device]:
            del self._holders[device]

    def holders(self, device: DeviceId) -> tuple[K, ...]:
        """Who holds something of this device, in the order they came."""
        return tuple(self._holders.get(device, ()))

    def results(self, key: K) -> Results:
        """What this key holds."""
        return self._results.get(key, ())

    def without(self, keys: Iterable[K]) -> Mapping[DeviceId, DeviceUse]:
        """What is in use as if these keys held nothing; valid until the next change."""
        left_out = set(keys)
        changed = {result.device_id() for key in left_out for result in self._results.get(key, ())}
        if not changed:
            return self.use
        return _Overlay(self.use, {device: self._sum(device, left_out) for device in changed})

    def _add_up(self, device: DeviceId) -> None:
        use = self._sum(device, frozenset())
        if use is None:
            self._use.pop(device, None)
        else:
            self._use[device] = use

    def _sum(self, device: DeviceId, left_out: set[K] | frozenset[K]) -> DeviceUse | None:
        return total(
            result
            for key in self._holders.get(device, ())
            if key not in left_out
            for result in self._results[key]
            if result.device_id() == device
        )


class _Overlay(Mapping[DeviceId, DeviceUse]):
    """What is in use, with other totals for a few devices."""

    def __init__(
        self, base: Mapping[DeviceId, DeviceUse], changed: Mapping[DeviceId, DeviceUse | None]
    ) -> None:
        self._base = base
        self._changed = changed

    def __getitem__(self, device: DeviceId) -> DeviceUse:
        use = self._changed[device] if device in self._changed else self._base[device]
        if use is None:
            raise KeyError(device)
        return use

    def __iter__(self) -> Iterator[DeviceId]:
        yield from (device for device in self._base if device not in self._changed)
        yield from (device for device, use in self._changed.items() if use is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

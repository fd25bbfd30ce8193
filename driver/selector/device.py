"""What an expression sees of a device, built once and evaluated many times.

Names without a domain are in the driver's. A device with an attribute that cannot be read is
broken: every expression fails on it, so the error is kept and raised when it is asked for.
"""

from driver.model.resourceslice import Device, DeviceAttribute
from driver.selector.errors import CelError
from driver.selector.functions import quantity, semver
from driver.selector.worst import SMALL

Names = dict[str, object]


class Domains(dict[str, Names]):
    """Attributes or capacities by domain; a domain that is not there reads as an empty one."""

    __slots__ = ()

    def __missing__(self, domain: object) -> Names:
        return {}


class SelectorDevice:
    """One device as selectors see it; it never changes."""

    __slots__ = ("attributes", "broken", "capacity", "driver", "largest", "view")

    def __init__(self, driver: str, device: Device) -> None:
        self.driver = driver
        self.broken: str | None = None
        self.attributes = Domains()
        self.capacity = Domains()
        self.largest = len(driver)
        for name, attribute in device.attributes.items():
            self._put(name, attribute)
        for name, capacity in device.capacity.items():
            domain, short = self._split(name)
            self.capacity.setdefault(domain, {})[short] = quantity.of_model(capacity.value)
        shareable = bool(device.allow_multiple_allocations)
        # The device as a value of the language: a map, as in the scheduler.
        self.view: Names = {
            "driver": driver,
            "allowMultipleAllocations": shareable,
            "attributes": self.attributes,
            "capacity": self.capacity,
        }

    @classmethod
    def of(cls, driver: str, device: Device) -> "SelectorDevice":
        """The device of this driver. Never raises: what cannot be read is raised on use."""
        return cls(driver, device)

    def _split(self, name: str) -> tuple[str, str]:
        domain, slash, short = name.partition("/")
        return (domain, short) if slash else (self.driver, name)

    def _put(self, name: str, attribute: DeviceAttribute) -> None:
        domain, short = self._split(name)
        try:
            value = _value(attribute)
        except CelError as error:
            self.broken = self.broken or f"attribute {name}: {error}"
            return
        self.attributes.setdefault(domain, {})[short] = value
        self.largest = max(self.largest, _size(value))


def is_regular(driver: str, device: Device) -> bool:
    """Whether each of its values can be read and is of a usual size.

    Then no more can be seen of it than the values that an expression names.
    """
    return len(driver) <= SMALL and all(_is_usual(one) for one in device.attributes.values())


def _is_usual(attribute: DeviceAttribute) -> bool:
    if attribute.int_ is not None or attribute.bool_ is not None:
        return True
    if attribute.string is not None:
        return len(attribute.string) <= SMALL
    try:
        value = _value(attribute)
    except CelError:
        return False
    return not isinstance(value, list) or _size(value) <= SMALL


def _size(value: object) -> int:
    parts = value if isinstance(value, list) else [value]
    return max(len(parts), *(len(part) for part in parts if isinstance(part, str)), 0)


def _value(attribute: DeviceAttribute) -> object:
    plain: object
    for plain in (attribute.int_, attribute.bool_, attribute.string):
        if plain is not None:
            return plain
    if attribute.version is not None:
        return _version(attribute.version)
    for several in (attribute.ints, attribute.bools, attribute.strings):
        if several is not None:
            return [*several]
    if attribute.versions is not None:
        return [_version(version) for version in attribute.versions]
    raise CelError("unsupported attribute value")


def _version(text: str) -> object:
    try:
        return semver.parse(text)
    except CelError as error:
        raise CelError(f"parse semantic version: {error}") from None

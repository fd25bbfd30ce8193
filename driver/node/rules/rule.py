"""What rules make of a device, and whether they can be applied to the devices of a node. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from driver.model.errors import TooDearError
from driver.model.resourceslice import Device, DeviceAttribute
from driver.node.errors import NodeError
from driver.selector.device import SelectorDevice
from driver.selector.errors import EvaluationError
from driver.selector.program import Program

# Of one device, attributes and capacities together (`k8s.io/api/resource/v1`).
MOST = 32
# In CEL's units, about a microsecond each: rules are asked of every device in the event loop.
_DEAREST = 20_000


class RulesError(NodeError):
    """These rules cannot be used; the text begins with the line that is wrong."""

    def __init__(self, line: int, fault: str) -> None:
        super().__init__(f"line {line}: {fault}")


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """Attributes for the devices that an expression selects."""

    line: int
    program: Program
    attributes: Mapping[str, DeviceAttribute]
    # Where each attribute is written.
    lines: Mapping[str, int]
    # Whether it may replace what the hardware tells.
    override: bool = False


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """All rules, in their order."""

    driver: str
    rules: tuple[Rule, ...] = ()

    def dress(self, device: Device) -> Device:
        """The device with the attributes of all rules that select it.

        A later rule wins over an earlier one, the hardware over both unless the rule overrides.
        Beyond the most that a device may have nothing is added.
        """
        attributes = dict(device.attributes)
        for rule in self._selecting(device):
            for name, value in rule.attributes.items():
                is_new = name not in attributes
                if is_new and len(attributes) + len(device.capacity) >= MOST:
                    continue
                if is_new or rule.override or name not in device.attributes:
                    attributes[name] = value
        if attributes == device.attributes:
            return device
        return msgspec.structs.replace(device, attributes=attributes)

    def check(self, devices: Iterable[Device]) -> None:
        """Raise `RulesError` for the first rule that cannot be applied to one of the devices."""
        for device in devices:
            for rule in self._selecting(device, strict=True):
                _check(rule, device)
            _check_number(self._selecting(device), device)

    def _selecting(self, device: Device, *, strict: bool = False) -> Iterator[Rule]:
        seen = SelectorDevice.of(self.driver, device)
        return (rule for rule in self.rules if _selects(rule, seen, device.name, strict=strict))


def _selects(rule: Rule, seen: SelectorDevice, name: str, *, strict: bool) -> bool:
    try:
        answer, _ = rule.program.judge(seen, _DEAREST)
    except TooDearError as error:
        if strict:
            raise RulesError(rule.line, f"match costs too much on {name}: {error}") from error
        return False
    # An attribute that a device does not have is the usual reason: it is not meant.
    return not isinstance(answer, EvaluationError) and answer


def _check(rule: Rule, device: Device) -> None:
    for name, value in rule.attributes.items():
        told = device.attributes.get(name)
        if told is None:
            continue
        if not rule.override:
            raise RulesError(
                rule.lines[name],
                f"{device.name} has {name} already; set override: true in the rule to replace it",
            )
        if _kind(told) != _kind(value):
            raise RulesError(
                rule.lines[name],
                f"{name} of {device.name} is of type {_kind(told)}, not {_kind(value)}",
            )


def _check_number(rules: Iterable[Rule], device: Device) -> None:
    names = set(device.attributes)
    for rule in rules:
        for name in rule.attributes:
            names.add(name)
            if len(names) + len(device.capacity) > MOST:
                raise RulesError(
                    rule.lines[name],
                    f"{device.name} would have more than {MOST} attributes and capacities with "
                    f"{name}; it has {len(device.attributes) + len(device.capacity)} of its own",
                )


def _kind(value: DeviceAttribute) -> str:
    fields: Sequence[tuple[str, object]] = (
        ("int", value.int_),
        ("bool", value.bool_),
        ("string", value.string),
        ("version", value.version),
    )
    return next((name for name, content in fields if content is not None), "list")

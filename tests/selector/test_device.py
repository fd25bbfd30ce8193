"""What a program sees of a device, and what it fails on."""

from typing import Any

import pytest

from driver.model.resourceslice import Device
from driver.selector.device import SelectorDevice
from driver.selector.errors import CompileError, EvaluationError
from driver.selector.program import compile_expression, compile_selector
from driver.wire.decode import convert

A = 'device.attributes["d"]'


def device(driver: str = "d", **fields: Any) -> SelectorDevice:
    """A device of this driver."""
    return SelectorDevice.of(driver, convert(Device, {"name": "x", **fields}))


def test_names_without_a_domain_are_the_drivers() -> None:
    """Only the first slash parts domain from name."""
    found = device("d", attributes={"a": {"int": 1}, "e/b": {"int": 2}, "f/c/d": {"int": 3}})
    for expression in (
        f"{A}.a == 1",
        'device.attributes["e"].b == 2',
        'device.attributes.f["c/d"] == 3',
    ):
        assert compile_selector(expression).matches(found)


@pytest.mark.parametrize(
    ("attribute", "reason"),
    [
        ({"version": "1.0"}, "attribute bad: parse semantic version: No Major.Minor.Patch"),
        ({"versions": ["1.0.0", "x"]}, "attribute bad: parse semantic version"),
        ({}, "attribute bad: unsupported attribute value"),
    ],
)
def test_a_broken_attribute_fails_every_expression(attribute: dict[str, Any], reason: str) -> None:
    """The error is kept with the device, and raised only when the device is asked about."""
    broken = device(attributes={"ok": {"int": 1}, "bad": attribute})
    with pytest.raises(EvaluationError, match=reason):
        compile_selector("true").matches(broken)
    assert compile_selector("true").matches(device(attributes={"ok": {"int": 1}}))


def test_allow_multiple_allocations_defaults_to_false() -> None:
    """A device that says nothing may not be shared."""
    program = compile_selector("device.allowMultipleAllocations")
    assert not program.matches(device())
    assert program.matches(device(allowMultipleAllocations=True))


def test_expressions_of_any_type_have_a_value() -> None:
    """What is no selector can be evaluated all the same, for derived attributes."""
    found = device(attributes={"m": {"string": "A10G"}, "l": {"ints": [1, 2]}})
    assert compile_expression(f"{A}.m.lowerAscii()").value(found) == "a10g"
    assert compile_expression(f"{A}.l.map(x, x * 2)").value(found) == [2, 4]
    with pytest.raises(CompileError, match="must evaluate to bool or the unknown type, not string"):
        compile_selector("device.driver")
    with pytest.raises(EvaluationError, match="no such key: n"):
        compile_expression(f"{A}.n").value(found)


def test_the_same_text_is_compiled_once() -> None:
    """Claims by the thousand share their class's selector."""
    assert compile_selector("device.driver == 'x'") is compile_selector("device.driver == 'x'")

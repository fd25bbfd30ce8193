"""No function fails with anything but an error of the language, whatever it is given."""

from hypothesis import event, given, settings
from hypothesis import strategies as st

from driver.model.resourceslice import Device
from driver.selector.declarations import FUNCTIONS
from driver.selector.device import SelectorDevice
from driver.selector.errors import CompileError, EvaluationError
from driver.selector.program import Program
from driver.wire.decode import convert
from tests.selector.conftest import GPU

DEVICE = SelectorDevice.of("gpu.example.com", convert(Device, GPU))

VALUES = [
    "null", "true", "0", "1", "-5", "9223372036854775807", "-9223372036854775808", "7u", "1.5",
    "-1e300", "0.0 / 0.0", "1.0 / 0.0", '""', '"a"', '"ä,b"', '"%s %.3f"', '"1.2.3"',
    '"10.0.0.0/8"', '"::1"', '"https://a:1/b?c=d"', '"("', '"2020-01-01T00:00:00Z"', '"1h"',
    '"Europe/Berlin"', 'b"\\xff"',
    "[]", "[1]", "[1, 2]", '["b", "a"]', "[[1], [2]]", "[dyn(1), dyn('a')]", "[dyn([]), dyn(null)]",
    "[optional.of(1)]", "{}", '{"a": 1}', "{1: true}", 'duration("1h")', "timestamp(0)",
    'quantity("1.5Gi")', 'quantity("1e500")', 'semver("1.2.3-a")', 'url("/a")', 'ip("1.2.3.4")',
    'cidr("1.2.3.4/8")', "format.uuid()", "optional.none()", "optional.of([1])", "int", "device",
]  # fmt: skip


@st.composite
def calls(draw: st.DrawFn) -> str:
    """A call of any function with any values, their types hidden from the checker."""
    overload = draw(st.sampled_from([one for all_ in FUNCTIONS.values() for one in all_]))
    args = [f"dyn({draw(st.sampled_from(VALUES))})" for _ in overload.params]
    name = overload.function
    if name.startswith("_") and len(args) == 2 and "[" not in name:
        return f"{args[0]} {name.strip('_')} {args[1]}"
    if overload.method:
        return f"{args[0]}.{name}({', '.join(args[1:])})"
    return f"{name}({', '.join(args)})"


@settings(max_examples=300, deadline=None)
@given(calls())
def test_functions_fail_only_in_the_language(call: str) -> None:
    """A call gives a value or an error of the language; the interpreter's own never come out."""
    for expression in (f"dyn({call})", f"{call} == {call}", f'"%s".format([{call}]) == ""'):
        try:
            program = Program(expression)
        except CompileError:
            event("does not compile")
            continue
        try:
            program.matches(DEVICE)
            event("gives a value")
        except EvaluationError:
            event("fails")

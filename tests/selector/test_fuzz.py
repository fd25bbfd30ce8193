"""The compiled closures and a plain walk over the same tree agree on random expressions."""

from hypothesis import event, given, settings

from driver.model.resourceslice import Device
from driver.selector.checker import check
from driver.selector.device import SelectorDevice
from driver.selector.errors import AbortError, CelError, CompileError, EvaluationError
from driver.selector.parser import parse
from driver.selector.program import Program
from driver.wire.decode import convert
from tests.selector.conftest import GPU
from tests.selector.expressions import expressions
from tests.selector.tree_walker import Walker

DEVICE = SelectorDevice.of("gpu.example.com", convert(Device, GPU))
# Its longest value is beyond what quick programs may see: the counting closures run.
LONG = SelectorDevice.of(
    "gpu.example.com",
    convert(Device, GPU | {"attributes": GPU["attributes"] | {"long": {"string": "x" * 1000}}}),
)


def _compiled(program: Program, device: SelectorDevice) -> bool | str:
    try:
        return program.matches(device)
    except EvaluationError:
        return "error"


def _walked(expression: str) -> bool | str:
    node = parse(expression)
    try:
        found = Walker(check(node), DEVICE).value(node, {})
    except (CelError, AbortError):
        return "error"
    return found if isinstance(found, bool) else "error"


@settings(max_examples=300, deadline=None)
@given(expressions)
def test_compiled_and_walked_agree(expression: str) -> None:
    """Both ways of evaluating give the same, with and without counting the cost."""
    try:
        program = Program(expression)
    except CompileError:
        event("does not compile")
        return
    wanted = _walked(expression)
    event(f"gives {wanted}")
    assert _compiled(program, DEVICE) == wanted
    assert _compiled(program, LONG) == wanted

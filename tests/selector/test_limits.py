"""What no expression may do: cost too much, nest too deep, take the process down."""

from collections.abc import Callable

import pytest

from driver.selector.device import SelectorDevice
from driver.selector.errors import CompileError, EvaluationError, SelectorError
from driver.selector.program import compile_selector

A = 'device.attributes["gpu.example.com"]'
C = 'device.capacity["gpu.example.com"]'
# What these two cost was measured with cel-go's own tracker.
MEASURED_16 = (
    f'device.driver == "gpu.example.com" && {A}.model == "A10G" && '
    f'{C}.memory.compareTo(quantity("16Gi")) >= 0'
)
MEASURED_13 = (
    f'{A}.version.isGreaterThan(semver("1.2.3")) && "model" in {A} && {A}.?nope.orValue("") == ""'
)
LIMIT = "actual cost limit exceeded"


def chain(length: int, first: str, step: str, last: str) -> str:
    """`first` bound to v0, `step` of each variable bound to the next, `last` of the last one."""
    expression = last.format(x=f"v{length}")
    for number in range(length, 0, -1):
        expression = f"cel.bind(v{number}, {step.format(x=f'v{number - 1}')}, {expression})"
    return f"cel.bind(v0, {first}, {expression})"


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        (MEASURED_16, 16),
        (MEASURED_13, 13),
        ("true", 0),
        ("[1, 2, 3].size() == 3", 2),
        ("[1, 2].all(x, x > 0)", 11),
        (f"{A}.model.matches('^A10G$')", 4 + 1 * 2),
        ("'abc'.contains('b')", 1),
    ],
)
def test_costs_are_those_of_cel_go(gpu: SelectorDevice, expression: str, cost: int) -> None:
    """The accounting is cel-go's: reads, calls by the size of their arguments, turns of loops."""
    assert compile_selector(expression).cost(gpu) == cost


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(300).all(a, lists.range(300).all(b, lists.range(300).all(c, true)))",
        "lists.range(100000).all(a, true) && lists.range(400000).all(a, true)",
        "lists.range(1000000000).size() > 0",
        "lists.range(1000).distinct().size() > 0",
        "sets.contains(lists.range(1500), lists.range(1500))",
        chain(60, "'aa'", "{x} + {x}", "{x}.size() > 0"),
        chain(100, "[1, 1]", "{x} + {x}", "{x}.size() > 0"),
        f"'{'a' * 3000}'.replace('a', '{'b' * 3000}').replace('b', 'cccc').size() > 0",
        f"'{'a' * 9000}'.matches('{'(a|b)' * 1000}')",
    ],
)
def test_the_cost_limit_ends_an_evaluation(gpu: SelectorDevice, expression: str) -> None:
    """Beyond a million units the evaluation ends, and nothing absorbs that."""
    with pytest.raises(EvaluationError, match=LIMIT):
        compile_selector(expression).matches(gpu)
    with pytest.raises(EvaluationError, match=LIMIT):
        compile_selector(f"{expression} || true").matches(gpu)


def test_just_below_the_limit_is_fine(gpu: SelectorDevice) -> None:
    """An expression that costs 800 thousand units is evaluated."""
    program = compile_selector("lists.range(160000).all(a, true)")
    assert 600_000 < program.cost(gpu) < 1_000_000
    assert program.matches(gpu)


DEEP: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: "(" * n + "true" + ")" * n,
    "lists": lambda n: "[" * n + "]" * n + ".size() == 0",
    "additions": lambda n: "+".join(["1"] * n) + " > 0",
    "members": lambda n: "device" + ".a" * n,
    "conditions": lambda n: "true ? true : " * n + "true",
    "bindings": lambda n: chain(n, "true", "{x}", "{x}"),
}


@pytest.mark.parametrize("shape", DEEP)
@pytest.mark.parametrize("depth", [500, 5000])
def test_deep_expressions_are_refused(shape: str, depth: int) -> None:
    """Nesting beyond the limit is an error of the expression, never of the interpreter."""
    with pytest.raises(CompileError, match="expression recursion limit exceeded: 250"):
        compile_selector(DEEP[shape](depth))


@pytest.mark.parametrize("shape", ["parentheses", "additions", "conditions", "bindings"])
def test_sensible_depth_is_fine(gpu: SelectorDevice, shape: str) -> None:
    """What people write nests far less than the limit."""
    assert compile_selector(DEEP[shape](50)).matches(gpu)


def test_long_chains_of_logic_are_flat(gpu: SelectorDevice) -> None:
    """A thousand alternatives are one node, not a thousand levels."""
    assert compile_selector("||".join(["false"] * 1000) + "|| true").matches(gpu)
    assert compile_selector("!" * 1000 + "true").matches(gpu)


@pytest.mark.parametrize(
    "expression",
    [
        # values and types that share their parts are exponentially big when written out
        chain(60, "[1, 1]", "[{x}, {x}]", "{x} == {x}"),
        chain(60, "[]", "[[{x}], [{x}]]", "{x} == {x}"),
        chain(25, "[1, 1]", "[{x}, {x}]", "'%s'.format([{x}]).size() > 0"),
        chain(60, "{1: 1}", "{{{x}: {x}}}", "{x} == {x}"),
        chain(25, "[[1, 1]]", "[{x}.flatten(), {x}.flatten()]", "{x}.size() > 0"),
        # numbers that Python would gladly work out for hours
        "quantity('1e999999999').isGreaterThan(quantity('1'))",
        f"quantity('{'9' * 9000}').isInteger()",
        f"duration('{'9' * 9000}s') > duration('1s')",
        f"int('{'9' * 9000}') > 0",
        f"{'9' * 9000} > 0",
        "'%.9999999f'.format([1.0]).size() > 0",
        # patterns that need too much
        "'a'.matches('((a{1000}){1000})')",
        f"'a'.matches('{'(' * 5000}')",
        "timestamp(0).getHours('../../../etc/passwd') == 0",
        "'\ud800' == 'a'",
    ],
)
def test_hostile_expressions_are_refused(gpu: SelectorDevice, expression: str) -> None:
    """Whatever a user writes ends as an error of the selector, soon."""
    with pytest.raises(SelectorError):
        compile_selector(expression).matches(gpu)


def test_a_bound_error_is_worked_out_once(gpu: SelectorDevice) -> None:
    """Doubling a failing value sixty times costs sixty steps, not two to the power of sixty."""
    with pytest.raises(EvaluationError, match="division by zero"):
        compile_selector(chain(60, "1 / 0 > 0", "{x} || {x}", "{x}")).matches(gpu)

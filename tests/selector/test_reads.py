"""What an expression reads of a device, found from its text; and that this is all it depends on."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver.model.resourceslice import Device, DeviceAttribute, DeviceCapacity
from driver.selector.errors import CompileError
from driver.selector.judge import Judge, Subject
from driver.selector.parser import parse
from driver.selector.program import Program
from driver.selector.reads import reads
from driver.wire.decode import convert
from tests.selector.conftest import GPU
from tests.selector.expressions import DOMAIN, expressions

A = f'device.attributes["{DOMAIN}"]'
C = f'device.capacity["{DOMAIN}"]'
MODEL = ("attributes", DOMAIN, "model")
IDX = ("attributes", DOMAIN, "idx")
MEMORY = ("capacity", DOMAIN, "memory")


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("true", set()),
        ("device.driver == 'd'", {("driver",)}),
        ("device.allowMultipleAllocations", {("allowMultipleAllocations",)}),
        (f"{A}.model == 'A10G' && {C}.memory.isLessThan(quantity('1Gi'))", {MODEL, MEMORY}),
        (f'{A}["model"] == "A10G"', {MODEL}),
        (f"has({A}.model)", {MODEL}),
        (f"{A}.?model.orValue('') == ''", {MODEL}),
        (f'{A}[?"model"].hasValue()', {MODEL}),
        (f'"model" in {A}', {MODEL}),
        (f"{A}.model.startsWith('A') ? {A}.idx > 1 : false", {MODEL, IDX}),
        (f"{A}.tags.exists(t, t == {A}.model)", {MODEL, ("attributes", DOMAIN, "tags")}),
        (f"cel.bind(gpu, {A}, gpu.model == 'A10G' && has(gpu.idx))", {MODEL, IDX}),
        (f"cel.bind(d, device, d.attributes['{DOMAIN}'].idx == 1)", {IDX}),
        (f"cel.bind(m, {A}.model, m == 'A10G')", {MODEL}),
        # A variable may hide the device, and the dot still means it.
        (f"cel.bind(device, {{'driver': {A}.model}}, device.driver == 'x')", {MODEL}),
        ("['x'].all(device, .device.driver == device)", {("driver",)}),
        (f"{A}.?nope.optMap(m, m == {A}.idx).orValue(true)",
         {IDX, ("attributes", DOMAIN, "nope")}),
        (f"{{'a': {A}.idx}}.a == 1", {IDX}),
    ],
)  # fmt: skip
def test_what_is_read(expression: str, found: set[tuple[str, ...]]) -> None:
    """Names in domains, however they are asked for."""
    assert reads(parse(expression)) == frozenset(found)


@pytest.mark.parametrize(
    "expression",
    [
        f"{A}.exists(name, name == 'model')",
        f"size({A}) > 3",
        f"'{DOMAIN}' in device.attributes",
        "device.attributes.all(domain, true)",
        f"{A}[{A}.model] == 1",
        f"{A}[device.driver] == 1",
        "device.attributes[device.driver].model == 'A10G'",
        f"{A} == {{}}",
        f"cel.bind(gpu, {A}, gpu == {{}})",
        f"device.attributes[?'{DOMAIN}'].hasValue()",
        f"device.?attributes['{DOMAIN}'].?model.hasValue()",
        "device == device",
        f"[device].all(d, d.attributes['{DOMAIN}'].idx == 1)",
    ],
)
def test_what_is_not_plain_to_see_reads_everything(expression: str) -> None:
    """Whole maps as values, and names that are worked out."""
    assert reads(parse(expression)) is None


VALUES = st.one_of(
    st.sampled_from(["A10G", "T4", "x" * 300]).map(lambda text: DeviceAttribute(string=text)),
    st.sampled_from([0, 1, 3]).map(lambda number: DeviceAttribute(int_=number)),
    st.booleans().map(lambda flag: DeviceAttribute(bool_=flag)),
    st.sampled_from(["1.10.3", "2.0.0", "bad"]).map(lambda text: DeviceAttribute(version=text)),
    st.sampled_from([(1, 2, 3), (1,), ()]).map(lambda several: DeviceAttribute(ints=several)),
    st.sampled_from([("x", "y"), ("1",)]).map(lambda several: DeviceAttribute(strings=several)),
)
NAMES = ["model", "idx", "mig", "version", "l", "tags", "nope", "uuid", "z"]
FULL = st.sampled_from([*NAMES, *(f"{DOMAIN}/{name}" for name in NAMES)])
SIZES = st.sampled_from(["24Gi", "25769803776", "500m"])


@st.composite
def devices(draw: st.DrawFn) -> Device:
    """A device that differs from the usual one in some values, or has others."""
    usual = convert(Device, GPU)
    attributes = usual.attributes | draw(st.dictionaries(FULL, VALUES, max_size=3))
    sizes = draw(st.dictionaries(st.sampled_from(["memory", "half", "nope"]), SIZES, max_size=2))
    capacity = {name: convert(DeviceCapacity, {"value": size}) for name, size in sizes.items()}
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=2)):
        attributes.pop(name, None)
    return msgspec.structs.replace(
        usual,
        attributes=attributes,
        capacity=usual.capacity | capacity,
        allow_multiple_allocations=draw(st.sampled_from([None, True])),
    )


DRIVERS = st.sampled_from([DOMAIN, DOMAIN, "other"])


@settings(max_examples=300, deadline=None)
@given(expressions, st.lists(st.tuples(DRIVERS, devices()), min_size=2, max_size=6))
def test_keeping_answers_changes_none(expression: str, published: list[tuple[str, Device]]) -> None:
    """A judge that has seen other devices says what one says that has seen none, and the cost."""
    try:
        Program(expression)
    except CompileError:
        return
    judge = Judge(expression)
    for driver, device in published:
        fresh = Judge(expression).judge(Subject(driver, device))
        kept = judge.judge(Subject(driver, device))
        assert (str(kept[0]), type(kept[0]), kept[1]) == (str(fresh[0]), type(fresh[0]), fresh[1])


def card(number: int, **attributes: DeviceAttribute) -> Subject:
    """One of many equal cards, which have UUIDs of their own."""
    uuid = DeviceAttribute(string=f"GPU-{number}")
    usual = convert(Device, GPU)
    own = usual.attributes | {"uuid": uuid} | attributes
    return Subject(DOMAIN, msgspec.structs.replace(usual, attributes=own))


@pytest.mark.parametrize(
    ("expression", "answer", "evaluations"),
    [
        (f"{A}.model == 'A10G' && {C}.memory.isGreaterThan(quantity('8Gi'))", "True", 1),
        (f"{A}.nope == 'x'", "no such key: nope", 1),
        (f"cel.bind(gpu, {A}, gpu.model != 'A10G')", "False", 1),
        (f"{A}.uuid != ''", "True", 1000),
        (f"size({A}) > 3", "True", 1000),
        ("device.", "compilation failed", 0),
    ],
)
def test_equal_devices_cost_one_evaluation(expression: str, answer: str, evaluations: int) -> None:
    """A thousand cards are as dear as one, errors included; not where UUIDs are read."""
    judge = Judge(expression)
    for number in range(1000):
        said, _ = judge.judge(card(number))
        assert answer in str(said)
    assert judge.evaluations == evaluations


@pytest.mark.parametrize(
    "odd",
    [
        {"bad": DeviceAttribute(version="1.0")},
        {"bad": DeviceAttribute()},
        {"long": DeviceAttribute(string="x" * 300)},
        {"long": DeviceAttribute(strings=("x",) * 300)},
        {"gpu.example.com/model": DeviceAttribute(string="T4")},
    ],
)
def test_what_is_odd_about_a_device_is_not_passed_over(odd: dict[str, DeviceAttribute]) -> None:
    """A value that cannot be read, a long one, a name that is published twice: each on its own."""
    judge = Judge(f"{A}.model == 'A10G'")
    assert judge.judge(card(0))[0] is True
    fresh = Judge(f"{A}.model == 'A10G'").judge(card(1, **odd))
    kept = judge.judge(card(1, **odd))
    assert (str(kept[0]), kept[1]) == (str(fresh[0]), fresh[1])
    assert judge.evaluations == 2
    assert judge.judge(card(2))[0] is True
    assert judge.evaluations == 2


def test_values_of_different_types_are_different() -> None:
    """True and 1 are equal in Python, not in CEL."""
    judge = Judge(f"{A}.idx == 1")
    assert judge.judge(card(0, idx=DeviceAttribute(int_=1)))[0] is True
    assert judge.judge(card(1, idx=DeviceAttribute(bool_=True)))[0] is False
    assert judge.judge(card(2, idx=DeviceAttribute(string="1")))[0] is False


def test_an_answer_on_one_device_is_kept_with_it() -> None:
    """Where devices are not compared, the same one is still judged once."""
    judge, same = Judge(f"size({A}) > 3"), card(0)
    assert judge.judge(same) == judge.judge(same)
    assert judge.evaluations == 1

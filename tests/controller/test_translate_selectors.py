"""HAMi's annotations about cards, as CEL that any text in them stays inside its quotes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.controller import translate_selectors
from driver.controller.translate import ImpossibleRequestError
from driver.controller.translate_selectors import Wanted
from driver.model.names import (
    HAMI_MODE,
    HAMI_NO_TYPE,
    HAMI_NO_UUID,
    HAMI_NUMA_BIND,
    HAMI_USE_TYPE,
    HAMI_USE_UUID,
)
from driver.model.resourceslice import Device
from driver.selector.device import SelectorDevice
from driver.selector.program import compile_selector
from driver.wire import decode

DRIVER = "gpu.example.com"


def card(product: str | None = "NVIDIA A10G", uuid: str | None = "GPU-1") -> SelectorDevice:
    """A published card."""
    attributes = {"productName": product, "uuid": uuid}
    device = {
        "name": "gpu-0",
        "attributes": {name: {"string": text} for name, text in attributes.items() if text},
        "capacity": {"memory": {"value": "23028Mi"}},
    }
    return SelectorDevice.of(DRIVER, decode.convert(Device, device))


def fits(annotations: dict[str, str], device: SelectorDevice) -> bool:
    """Whether all selectors that come from the annotations take the card."""
    wanted = translate_selectors.read(annotations)
    return all(
        compile_selector(item.cel.expression).matches(device)
        for item in translate_selectors.selectors(wanted, DRIVER)
        if item.cel
    )


@pytest.mark.parametrize(
    ("annotations", "fit"),
    [
        pytest.param({}, True, id="nothing said"),
        pytest.param({HAMI_USE_TYPE: "A10G"}, True, id="part of the name"),
        pytest.param({HAMI_USE_TYPE: "a10g"}, True, id="in either case"),
        pytest.param({HAMI_USE_TYPE: "T4,  nvidia a10"}, True, id="one of several"),
        pytest.param({HAMI_USE_TYPE: "T4"}, False, id="another type"),
        pytest.param({HAMI_USE_TYPE: "T4,"}, False, id="a blank item is no wish"),
        pytest.param({HAMI_USE_TYPE: " , "}, True, id="only blanks"),
        pytest.param({HAMI_NO_TYPE: "a10"}, False, id="unwanted"),
        pytest.param({HAMI_NO_TYPE: "T4"}, True, id="another unwanted"),
        pytest.param({HAMI_USE_TYPE: "NVIDIA", HAMI_NO_TYPE: "A10G"}, False, id="both lists count"),
        pytest.param({HAMI_USE_UUID: "GPU-0, GPU-1"}, True, id="this very card"),
        pytest.param({HAMI_USE_UUID: "gpu-1"}, False, id="a UUID is exact"),
        pytest.param({HAMI_NO_UUID: "GPU-1"}, False, id="not this very card"),
        pytest.param({HAMI_NO_UUID: "GPU-"}, True, id="a part of a UUID is none"),
    ],
)
def test_fits(annotations: dict[str, str], fit: bool) -> None:  # a table's column
    """Types are parts of names, UUIDs are exact, every annotation must agree."""
    assert fits(annotations, card()) is fit


def test_missing_attributes() -> None:
    """A card that does not say what it is fits no wish, and no dislike."""
    nameless = card(None, None)
    assert not fits({HAMI_USE_TYPE: "A10G"}, nameless)
    assert not fits({HAMI_USE_UUID: "GPU-1"}, nameless)
    assert fits({HAMI_NO_TYPE: "A10G", HAMI_NO_UUID: "GPU-1"}, nameless)


def test_memory_is() -> None:
    """The size is compared as an amount, whatever the way it is written."""
    for size, same in ((23028 * 1024 * 1024, True), (23028 * 1024 * 1024 + 1, False)):
        selector = translate_selectors.memory_is(size, DRIVER)
        assert selector.cel is not None
        assert compile_selector(selector.cel.expression).matches(card()) is same


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1))
def test_quotes(text: str) -> None:
    """Whatever an annotation says, it is one string in CEL, and that very string."""
    quoted = translate_selectors.quoted(text)
    assert json.loads(quoted) == text
    program = compile_selector(f"{quoted} == device.driver || {quoted} != device.driver")
    assert program.matches(card())
    assert not fits({HAMI_USE_UUID: f"x{text}"}, card())


def test_no_way_out_of_the_quotes() -> None:
    """An attempt to add an alternative ends up inside the string."""
    attack = '"] || true || device.driver in ["'
    assert not fits({HAMI_USE_TYPE: attack}, card())
    assert not fits({HAMI_USE_UUID: attack + "\\"}, card())


def test_order_and_repetition_do_not_matter() -> None:
    """Pods that write one list differently share a template."""
    one = translate_selectors.read({HAMI_USE_TYPE: "T4,A10G,t4", HAMI_USE_UUID: "b,a"})
    same = translate_selectors.read({HAMI_USE_TYPE: "A10G , T4", HAMI_USE_UUID: "a,b,a"})
    assert translate_selectors.selectors(one, DRIVER) == translate_selectors.selectors(same, DRIVER)


def test_too_long() -> None:
    """A list that makes no legal selector is refused by name."""
    wanted = translate_selectors.read({HAMI_USE_UUID: ",".join(f"GPU-{i:030}" for i in range(300))})
    with pytest.raises(ImpossibleRequestError, match=HAMI_USE_UUID):
        translate_selectors.selectors(wanted, DRIVER)


@pytest.mark.parametrize("mode", ["mig", "mps"])
def test_other_modes_are_refused(mode: str) -> None:
    """A mode of sharing that is not ours is no share of ours."""
    with pytest.raises(ImpossibleRequestError, match="hami-core"):
        translate_selectors.read({HAMI_MODE: mode})
    assert translate_selectors.read({HAMI_MODE: "hami-core"}) == Wanted()


@pytest.mark.parametrize(("value", "bound"), [("true", True), ("T", True), ("yes", False)])
def test_numa_bind(value: str, bound: bool) -> None:  # a table's column
    """The annotation is read as Go reads a truth value."""
    assert translate_selectors.read({HAMI_NUMA_BIND: value}).one_numa_node is bound

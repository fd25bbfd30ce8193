"""The opaque kind GpuConfig: what is read, what is refused and with which words."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver.model.errors import InvalidObjectError
from driver.model.gpuconfig import (
    API_VERSION,
    KIND,
    Interval,
    Sharing,
    Strategy,
    decode,
    sharing_of,
)
from driver.model.resourceclaim import DeviceAllocationConfiguration, OpaqueDeviceConfiguration

DRIVER = "gpu.quadrant.dev"


def config(**fields: Any) -> bytes:
    """The parameters of a GpuConfig."""
    return json.dumps({"apiVersion": API_VERSION, "kind": KIND, **fields}).encode()


def slicing(interval: str = "Long") -> dict[str, Any]:
    """Time-slicing in this rhythm."""
    return {"strategy": "TimeSlicing", "timeSlicing": {"interval": interval}}


def entry(
    sharing: dict[str, Any], *requests: str, source: str = "FromClaim", driver: str = DRIVER
) -> DeviceAllocationConfiguration:
    """One configuration of an allocation."""
    opaque = OpaqueDeviceConfiguration(driver=driver, parameters=config(sharing=sharing))  # type: ignore[arg-type]
    return DeviceAllocationConfiguration(source=source, requests=requests, opaque=opaque)


def read(parameters: bytes) -> Sharing:
    """The sharing that is said."""
    found = decode(parameters)
    assert found is not None
    assert found.sharing is not None
    return found.sharing


def test_what_is_not_said_is_as_the_device_is() -> None:
    """An empty configuration and null parts say nothing."""
    for parameters in (config(), config(sharing=None)):
        found = decode(parameters)
        assert found is not None
        assert found.sharing is None


def test_time_slicing_has_a_rhythm() -> None:
    """Default where none is said."""
    assert read(config(sharing=slicing("Short"))).interval() is Interval.SHORT
    assert read(config(sharing={"strategy": "TimeSlicing"})).interval() is Interval.DEFAULT


def test_mps_has_limits() -> None:
    """Quantities as Kubernetes writes them, numbers too."""
    mps = {"activeThreadPercentage": 30, "pinnedDeviceMemoryLimit": "4Gi"}
    found = read(config(sharing={"strategy": "MPS", "mps": mps}))
    assert found.strategy is Strategy.MPS
    assert found.mps is not None
    assert (found.mps.active_thread_percentage, found.mps.memory_limit()) == (30, 4 << 30)
    plain = read(config(sharing={"strategy": "MPS", "mps": {"pinnedDeviceMemoryLimit": 1 << 30}}))
    assert plain.mps is not None
    assert plain.mps.memory_limit() == 1 << 30
    assert read(config(sharing={"strategy": "MPS"})).mps is None


def test_policies_of_placement_are_left_to_the_controller() -> None:
    """Whatever stands in them."""
    policy = {"apiVersion": "quadrant.dev/v1alpha1", "kind": "PlacementPolicy", "gpuPolicy": "x"}
    assert decode(json.dumps(policy).encode()) is None


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (config(shering={}), "unknown field `shering`"),
        (config(sharing={"strategy": "MPS", "mps": {"threads": 1}}), r"`\$.sharing.mps`"),
        (config(sharing={}), "missing required field `strategy`"),
        (config(sharing={"strategy": "mps"}), r"'mps' - at `\$.sharing.strategy`"),
        (config(sharing=slicing("long")), r"`\$.sharing.timeSlicing.interval`"),
        (config(sharing=slicing() | {"strategy": "MPS"}), "sharing.timeSlicing is set, but"),
        (config(sharing={"strategy": "TimeSlicing", "mps": {}}), "sharing.mps is set, but"),
        (
            config(sharing={"strategy": "MPS", "mps": {"activeThreadPercentage": 0}}),
            "is 0: expected 1 to 100",
        ),
        (
            config(sharing={"strategy": "MPS", "mps": {"activeThreadPercentage": "30"}}),
            "Expected `int | null`, got `str`",
        ),
        (
            config(sharing={"strategy": "MPS", "mps": {"pinnedDeviceMemoryLimit": "4 GB"}}),
            "pinnedDeviceMemoryLimit: quantity '4 GB' cannot be read",
        ),
        (
            config(sharing={"strategy": "MPS", "mps": {"pinnedDeviceMemoryLimit": "-4Gi"}}),
            "expected at least 1Mi",
        ),
        (b'{"apiVersion":"config.quadrant.dev/v1","kind":"GpuConfig"}', "in 'config.quadrant.dev/"),
        (b"{}", "expected GpuConfig in config.quadrant.dev/v1alpha1"),
        (b"[]", "Expected `object`, got `array`"),
        (b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}", "cannot be read"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(parameters: bytes, words: str) -> None:
    """The sentence names the field and what was expected there."""
    with pytest.raises(InvalidObjectError, match=words):
        decode(parameters)


@given(st.one_of(st.binary(max_size=80), st.text(max_size=80).map(str.encode)))
def test_whatever_is_sent_is_read_or_refused(parameters: bytes) -> None:
    """No other error comes out."""
    try:
        decode(parameters)
    except InvalidObjectError:
        return


_WORDS = st.sampled_from(
    [
        "sharing",
        "strategy",
        "timeSlicing",
        "interval",
        "mps",
        "activeThreadPercentage",
        "pinnedDeviceMemoryLimit",
        "TimeSlicing",
        "MPS",
        "Default",
        "Long",
        "4Gi",
        "0",
        "x",
    ]
)
_VALUES = st.recursive(
    st.one_of(_WORDS, st.integers(-1, 200), st.none(), st.booleans(), st.floats()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(_WORDS, inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=300)
@given(_VALUES)
def test_what_is_read_says_one_thing(sharing: Any) -> None:
    """Whatever is built from the words of the kind is refused, or means exactly one strategy."""
    try:
        found = decode(config(sharing=sharing))
    except InvalidObjectError:
        return
    assert found is not None
    if found.sharing is not None:
        assert found.sharing.time_slicing is None or found.sharing.strategy == "TimeSlicing"
        assert found.sharing.mps is None or found.sharing.strategy == "MPS"


CLASS = entry(slicing("Long"), source="FromClass")


@pytest.mark.parametrize(
    ("configs", "request_name", "interval"),
    [
        ([CLASS], "gpu", "Long"),
        ([CLASS, entry(slicing("Short"))], "gpu", "Short"),
        # The order of the sources in the list makes no difference, that within one does.
        ([entry(slicing("Short")), CLASS], "gpu", "Short"),
        ([entry(slicing("Short")), entry(slicing("Medium"))], "gpu", "Medium"),
        ([entry(slicing("Short"), "gpu"), entry(slicing("Medium"), "other")], "gpu", "Short"),
        # A request stands for all of its alternatives; an alternative only for itself.
        ([entry(slicing("Short"), "gpu")], "gpu/small", "Short"),
        ([entry(slicing("Short"), "gpu/small")], "gpu/small", "Short"),
        ([entry(slicing("Short"), "gpu/small")], "gpu/large", None),
        ([CLASS, entry(slicing("Short"), driver="other.example.com")], "gpu", "Long"),
        ([], "gpu", None),
    ],
)
def test_the_claim_goes_before_its_class(
    configs: list[DeviceAllocationConfiguration], request_name: str, interval: str | None
) -> None:
    """And the later before the earlier, for the requests that are named."""
    found = sharing_of(request_name, configs, driver=DRIVER)
    assert (found.interval() if found else None) == interval


def test_an_overruled_configuration_must_be_right_too() -> None:
    """It may decide tomorrow, for another request."""
    wrong = entry({"strategy": "Mps"}, source="FromClass")
    with pytest.raises(InvalidObjectError, match=r"\$\.sharing\.strategy"):
        sharing_of("gpu", [wrong, entry(slicing())], driver=DRIVER)

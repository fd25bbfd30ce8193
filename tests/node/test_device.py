"""What is published of a card."""

import msgspec
import pytest

from driver.model.quantity import parse
from driver.node.card import MIB, Card
from driver.node.device import device, semantic
from driver.node.lost import taints
from driver.node.simulated import cards
from driver.wire.encode import builtins

T4, *_ = cards("1xT4", "n1")
H100 = cards("8xH100-SXM", "n1")[5]


def test_names_and_types_of_all_attributes() -> None:
    """The names that other drivers use, the standard ones qualified, ours bare."""
    assert builtins(device(H100, shareable=False).attributes) == {
        "type": {"string": "gpu"},
        "uuid": {"string": H100.uuid},
        "index": {"int": 5},
        "productName": {"string": "NVIDIA H100 80GB HBM3"},
        "brand": {"string": "Nvidia"},
        "architecture": {"string": "Hopper"},
        "cudaComputeCapability": {"version": "9.0.0"},
        "driverVersion": {"version": "580.95.5"},
        "cudaDriverVersion": {"version": "13.0.0"},
        "nvlinkGroup": {"string": "0"},
        "pcieSwitch": {"string": "0000:b8:00.0"},
        "migCapable": {"bool": True},
        "addressingMode": {"string": "HMM"},
        "gpuModuleID": {"int": 5},
        "resource.kubernetes.io/pciBusID": {"string": "0000:c3:00.0"},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:b7"},
        "resource.kubernetes.io/numaNode": {"int": 1},
    }


def test_what_the_hardware_does_not_tell_is_left_out() -> None:
    """An empty or made-up value would match selectors that it must not match."""
    bare = Card(index=0, uuid="GPU-x", product_name="X", memory=MIB)
    assert set(device(bare, shareable=False).attributes) == {"type", "uuid", "index", "productName"}
    assert not {"nvlinkGroup", "pcieSwitch", "migCapable"} & set(
        device(T4, shareable=False).attributes
    )


def test_a_card_of_which_only_the_number_is_known_is_published() -> None:
    """With a taint: it is seen that it is there, and nobody is sent there."""
    lost = Card(index=3, lost="GPU is lost")
    published = device(lost, shareable=True)
    assert (published.name, set(published.attributes)) == ("gpu-3", {"type", "index"})
    assert set(published.capacity) == {"cores"}
    assert builtins(taints([T4, lost], driver="gpu.quadrant.dev")) == {
        "gpu-3": [{"key": "gpu.quadrant.dev/unhealthy", "value": "lost", "effect": "NoSchedule"}]
    }


def test_zero_is_a_value() -> None:
    """Index 0 and NUMA node 0 are published, not taken for absent."""
    assert builtins(device(T4, shareable=False).attributes)["index"] == {"int": 0}
    assert "resource.kubernetes.io/numaNode" in device(T4, shareable=False).attributes


def test_a_shareable_card_can_be_had_in_part_and_is_given_whole_by_default() -> None:
    """Consumable capacity with a range from the least to all, in steps."""
    shared = device(T4, shareable=True)
    assert shared.allow_multiple_allocations is True
    assert builtins(shared.capacity) == {
        "memory": {
            "value": "15Gi",
            "requestPolicy": {
                "default": "15Gi",
                "validRange": {"min": "1Mi", "step": "1Mi", "max": "15Gi"},
            },
        },
        "cores": {
            "value": "100",
            "requestPolicy": {
                "default": "100",
                "validRange": {"min": "0", "step": "1", "max": "100"},
            },
        },
    }


def test_a_card_that_is_not_shareable_has_no_request_policies() -> None:
    """The API server refuses a policy without allowMultipleAllocations."""
    whole = device(T4, shareable=False)
    assert whole.allow_multiple_allocations is None
    assert all(capacity.request_policy is None for capacity in whole.capacity.values())


@pytest.mark.parametrize("extra", [0, 1, MIB - 1])
def test_memory_is_whole_mebibytes(extra: int) -> None:
    """Else no default would lie on a step of the range."""
    odd = msgspec.structs.replace(T4, memory=10 * MIB + extra)
    assert device(odd, shareable=True).capacity["memory"].value == parse("10Mi")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("580.95.05", "580.95.5"),
        ("7.5", "7.5.0"),
        ("13", "13.0.0"),
        ("12.8.1.2", "12.8.1"),
        ("0.0", "0.0.0"),
    ],
)
def test_versions_become_semantic(text: str, expected: str) -> None:
    """Leading zeros and missing parts are what vendors write and the API refuses."""
    assert semantic(text) == expected

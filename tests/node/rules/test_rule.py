"""What rules make of devices."""

from pathlib import Path

import pytest

from driver.model.resourceslice import Device, DeviceAttribute
from driver.node.device import device
from driver.node.rules.reading import read
from driver.node.rules.rule import MOST, Rules, RulesError
from driver.node.simulated import cards
from driver.wire.encode import builtins

DRIVER = "gpu.quadrant.dev"
(T4,) = (device(card, shareable=False) for card in cards("1xT4", "n1"))
H100S = [device(card, shareable=False) for card in cards("2xH100-SXM", "n1")]


def rules(*texts: str) -> Rules:
    """Rules in flow style; the first is in line 4."""
    head = "apiVersion: config.quadrant.dev/v1alpha1\nkind: AttributeRules\nrules:\n"
    return read(head + "".join(f"  - {{{text}}}\n" for text in texts), driver=DRIVER)


def product(name: str) -> str:
    """A match by the product's name."""
    return f"""match: 'device.attributes["{DRIVER}"].productName.contains("{name}")'"""


def added(one: Device, by: Rules) -> dict[str, object]:
    """What rules add or change."""
    before = builtins(one.attributes)
    after = builtins(by.dress(one).attributes)
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    return {name: value for name, value in after.items() if before.get(name) != value}


def test_only_the_devices_that_match_are_dressed() -> None:
    """The rest of a device stays as it is, and a device that no rule is for the same object."""
    gold = rules(product("H100") + ", attributes: {tier: gold, priority: 3}")
    assert added(H100S[0], gold) == {"tier": {"string": "gold"}, "priority": {"int": 3}}
    dressed = gold.dress(H100S[0])
    assert (dressed.name, dressed.capacity) == (H100S[0].name, H100S[0].capacity)
    assert gold.dress(T4) is T4


def test_a_later_rule_wins_over_an_earlier_one() -> None:
    """So that the general rule comes first, and its exceptions follow."""
    both = rules(
        product("NVIDIA") + ", attributes: {tier: silver, rack: r1}",
        product("H100") + ", attributes: {tier: gold}",
    )
    assert added(H100S[0], both) == {"tier": {"string": "gold"}, "rack": {"string": "r1"}}


def test_rules_see_the_device_as_the_hardware_tells_it() -> None:
    """One rule's attributes are nothing to another one's match: the order does not matter there."""
    chained = rules(
        product("H100") + ", attributes: {tier: gold}",
        f"""match: '"tier" in device.attributes["{DRIVER}"]', attributes: {{second: true}}""",
    )
    assert set(added(H100S[0], chained)) == {"tier"}


def test_hardware_is_overridden_only_on_demand() -> None:
    """For example where a cloud hides the NUMA nodes; it is refused before it is ignored."""
    named = "resource.kubernetes.io/numaNode: 7"
    silent = rules(product("T4") + f", attributes: {{{named}}}")
    assert added(T4, silent) == {}
    with pytest.raises(RulesError, match=r"line 4: gpu-0 has resource.*numaNode already; set over"):
        silent.check([T4])
    loud = rules(product("T4") + f", override: true, attributes: {{{named}}}")
    loud.check([T4])
    assert added(T4, loud) == {"resource.kubernetes.io/numaNode": {"int": 7}}


def test_an_override_keeps_the_type() -> None:
    """A selector that compares numbers would fail on a text."""
    wrong = rules(product("T4") + ", override: true, attributes: {architecture: 75}")
    with pytest.raises(RulesError, match="architecture of gpu-0 is of type string, not int"):
        wrong.check([T4])


def test_a_device_has_a_most_of_attributes() -> None:
    """More would have the API server refuse the whole slice."""
    room = MOST - len(T4.attributes) - len(T4.capacity)
    names = [f"a{number}" for number in range(room + 1)]
    fits = rules(*(product("T4") + f", attributes: {{{name}: x}}" for name in names[:room]))
    fits.check([T4])
    assert len(added(T4, fits)) == room
    many = rules(*(product("T4") + f", attributes: {{{name}: x}}" for name in names))
    with pytest.raises(
        RulesError, match=f"line {4 + room}: gpu-0 would have more than 32 attribut"
    ):
        many.check([*H100S, T4])
    assert list(added(T4, many)) == names[:room]


def test_an_expression_that_fails_on_a_device_is_not_for_it() -> None:
    """A device lacks what another one has; the other rules are for it all the same."""
    linked = rules(
        f"""match: 'device.attributes["{DRIVER}"].nvlinkGroup == "0"', attributes: {{nv: true}}""",
        product("T4") + ", attributes: {tier: bronze}",
    )
    linked.check([T4, *H100S])
    assert added(T4, linked) == {"tier": {"string": "bronze"}}
    assert added(H100S[1], linked) == {"nv": {"bool": True}}


def test_an_expression_that_costs_too_much_is_refused() -> None:
    """It would be evaluated where the kubelet is served."""
    names = ", ".join(f'"{number}"' for number in range(150))
    loop = f"[{names}].all(a, [{names}].all(b, a != b || a == b))"
    dear = rules(f"match: '{loop}', attributes: {{a: b}}")
    with pytest.raises(RulesError, match="line 4: match costs too much on gpu-0"):
        dear.check([T4])
    assert dear.dress(T4) is T4


def test_the_example_of_the_documentation_works() -> None:
    """As it stands there, on the cards that it is about."""
    page = (Path(__file__).parents[3] / "docs" / "node-plugin.md").read_text("utf-8")
    block = page.partition("```yaml\nnode:\n  attributeRules:\n")[2].partition("```")[0]
    head = "apiVersion: config.quadrant.dev/v1alpha1\nkind: AttributeRules\nrules:\n"
    documented = read(head + block, driver=DRIVER)
    documented.check([T4, *H100S])
    assert added(H100S[1], documented) == {
        "tier": {"string": "gold"},
        "example.com/priority": {"int": 3},
        "leased": {"bool": True},
        "firmware": {"version": "1.2.0"},
    }
    far = device(cards("8xH100-SXM", "n1")[7], shareable=False)
    near = Device(
        name="x",
        attributes={**far.attributes, "index": DeviceAttribute(int_=3)},
    )
    assert "resource.kubernetes.io/numaNode" not in added(far, documented)
    assert added(near, documented)["resource.kubernetes.io/numaNode"] == {"int": 0}


def test_a_device_may_come_with_lists() -> None:
    """Those of other drivers' making; an override by a scalar is of another type."""
    listed = Device(name="x", attributes={"racks": DeviceAttribute(strings=("a", "b"))})
    by = rules("match: 'true', override: true, attributes: {racks: a}")
    with pytest.raises(RulesError, match="racks of x is of type list, not string"):
        by.check([listed])

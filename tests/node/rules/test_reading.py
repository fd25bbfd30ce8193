"""Rules as operators write them, and what is refused with which line."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.model.resourceslice import DeviceAttribute
from driver.node.rules.reading import read
from driver.node.rules.rule import Rules, RulesError

DRIVER = "gpu.quadrant.dev"
HEAD = "apiVersion: config.quadrant.dev/v1alpha1\nkind: AttributeRules\n"
# The attributes of a rule begin in line 6.
RULE = f"{HEAD}rules:\n  - match: 'true'\n    attributes:\n"


def rules(text: str) -> Rules:
    """The rules of a text."""
    return read(text, driver=DRIVER)


def test_all_types_of_values() -> None:
    """Written as one would say them; a version says that it is one."""
    (rule,) = rules(
        RULE
        + "      tier: gold\n"
        + "      example.com/rack_row: '7'\n"
        + "      gpu.quadrant.dev/priority: -3\n"
        + "      leased: true\n"
        + "      firmware: {version: 1.2.0-rc.1}\n"
    ).rules
    assert rule.attributes == {
        "tier": DeviceAttribute(string="gold"),
        "example.com/rack_row": DeviceAttribute(string="7"),
        "priority": DeviceAttribute(int_=-3),
        "leased": DeviceAttribute(bool_=True),
        "firmware": DeviceAttribute(version="1.2.0-rc.1"),
    }
    assert (rule.line, rule.lines["tier"], rule.lines["firmware"]) == (4, 6, 10)
    assert rule.override is False


@pytest.mark.parametrize("text", ["", "# nothing yet\n", HEAD, f"{HEAD}rules: []\n"])
def test_no_rules(text: str) -> None:
    """A file may wait for its first rule."""
    assert rules(text).rules == ()


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("rules: [", 2, "not YAML"),
        ("a: \x00", 1, "not YAML"),
        ("- match: 'true'\n", 1, "the file must have keys and values"),
        ("kind: AttributeRules\n", 1, "the file lacks apiVersion"),
        (HEAD.replace("v1alpha1", "v2"), 1, "apiVersion must be config.quadrant.dev/v1alpha1"),
        (HEAD.replace("AttributeRules", "Rules"), 2, "kind must be AttributeRules"),
        (f"{HEAD}rule: []\n", 3, "the file has no 'rule'; it has apiVersion, kind, rules"),
        (f"{HEAD}kind: AttributeRules\n", 3, "the file has kind twice"),
        (f"{HEAD}rules: all\n", 3, "rules must be a list"),
        (f"{HEAD}rules:\n  - all\n", 4, "a rule must have keys and values"),
        (f"{HEAD}rules:\n  - match: 'true'\n", 4, "a rule lacks attributes"),
        (f"{HEAD}rules:\n  - attributes: {{a: b}}\n", 4, "a rule lacks match"),
        (f"{HEAD}rules:\n  - match: true\n    attributes: {{a: b}}\n", 4, "match must be a text"),
        (f"{HEAD}rules:\n  - match: dev.x\n    attributes: {{a: b}}\n", 4, "undeclared reference"),
        (f"{HEAD}rules:\n  - match: '1'\n    attributes: {{a: b}}\n", 4, "must evaluate to bool"),
        (f"{RULE}      a: b\n    when: now\n", 7, "a rule has no 'when'"),
        (f"{RULE}      a: b\n    override: 'yes'\n", 7, "override must be true or false"),
        (f"{RULE}      a: b\n    override: 'true'\n", 7, "override must be true or false"),
        (f"{RULE}      - a\n", 6, "attributes must have keys and values"),
        (f"{RULE}      a: 1.5\n", 6, "'a' is no text, integer"),
        (
            f"{RULE}      b: x\n      a: 2026-11-30\n",
            7,
            "a date that is meant as a text goes in qu",
        ),
        (f"{RULE}      a:\n", 6, "'a' is no text"),
        (f"{RULE}      a: [x]\n", 6, "'a' is no text"),
        (f"{RULE}      a: {{semver: 1.2.3}}\n", 6, "the value of 'a' has no 'semver'"),
        (f"{RULE}      a: {{version: 1.2}}\n", 6, "version must be a text"),
        (f"{RULE}      a: {{version: '1.2'}}\n", 6, "'1.2' is no semantic version"),
        (f"{RULE}      a: {{version: 1.02.3}}\n", 6, "'1.02.3' is no semantic version"),
        (f"{RULE}      a: 9223372036854775808\n", 6, "does not fit into 64 bits"),
        (f"{RULE}      a: 0x1F\n", 6, "a must be a decimal integer"),
        (f"{RULE}      a: {'x' * 65}\n", 6, "it has 65 bytes in UTF-8, at most 64"),
        (f"{RULE}      a: {'é' * 33}\n", 6, "it has 66 bytes in UTF-8, at most 64"),
        (f"{RULE}      a-b: x\n", 6, "'a-b' is no identifier"),
        (f"{RULE}      1a: x\n", 6, "'1a' is no identifier"),
        (f"{RULE}      {'a' * 33}: x\n", 6, "is no identifier"),
        (f"{RULE}      Example.com/a: x\n", 6, "the domain 'Example.com' is no DNS name"),
        (f"{RULE}      /a: x\n", 6, "the domain '' is no DNS name"),
        (f"{RULE}      {'a' * 64}/a: x\n", 6, "is no DNS name of at most 63"),
        (f"{RULE}      uuid: x\n", 6, "it says which device this is"),
        (f"{RULE}      gpu.quadrant.dev/index: 4\n", 6, "it says which device this is"),
        (f"{RULE}      a: x\n      gpu.quadrant.dev/a: y\n", 7, "it is there twice"),
        (f"{RULE}      [a]: x\n", 6, "a key of attributes is no text"),
        (
            f"{HEAD}rules:\n" + "  - {match: 'true', attributes: {a: b}}\n" * 101,
            104,
            "more than 100",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, line: int, said: str) -> None:
    """The first line that is wrong, and what would be right."""
    with pytest.raises(RulesError) as refused:
        rules(text)
    assert str(refused.value).startswith(f"line {line}: ")
    assert said in str(refused.value)


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_no_text_breaks_anything_else(text: str) -> None:
    """Whatever stands there, it is rules or the error that says what is wrong."""
    for prefix in ("", HEAD, RULE):
        with suppress(RulesError):
            rules(prefix + text)

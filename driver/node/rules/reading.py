"""Rules from a text, read strictly: what is wrong is said with the line that it is in. Pure.

The form is in `docs/node-plugin.md`.
"""

from collections.abc import Iterator, Mapping

import yaml

from driver.model.resourceslice import DeviceAttribute
from driver.node.rules.names import canonical, name_fault, value_fault
from driver.node.rules.rule import Rule, Rules, RulesError
from driver.selector.errors import CompileError
from driver.selector.program import Program, compile_selector

API_VERSION = "config.quadrant.dev/v1alpha1"
KIND = "AttributeRules"
_MOST_RULES = 100
_TAG = "tag:yaml.org,2002:"


def read(text: str, *, driver: str) -> Rules:
    """The rules of a text; raises `RulesError`. An empty text has none."""
    try:
        root = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = mark.line + 1 if mark is not None else 1
        raise RulesError(line, f"not YAML: {error.problem or error}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise RulesError(1, f"not YAML: {error}") from error
    if root is None:
        return Rules(driver=driver)
    parts = _mapping(root, "the file", required=("apiVersion", "kind"), optional=("rules",))
    for key, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        if _text(parts[key], key) != expected:
            raise RulesError(_line(parts[key]), f"{key} must be {expected}")
    rules = parts.get("rules")
    nodes = [] if rules is None else _sequence(rules, "rules")
    if len(nodes) > _MOST_RULES:
        raise RulesError(_line(nodes[_MOST_RULES]), f"more than {_MOST_RULES} rules")
    return Rules(driver=driver, rules=tuple(_rule(node, driver) for node in nodes))


def _rule(node: yaml.Node, driver: str) -> Rule:
    required, optional = ("match", "attributes"), ("override",)
    parts = _mapping(node, "a rule", required=required, optional=optional)
    attributes, lines = {}, {}
    for key, value in _items(parts["attributes"], "attributes"):
        name = canonical(key.value, driver=driver)
        fault = name_fault(name)
        if fault is None and name in attributes:
            fault = "it is there twice"
        if fault is not None:
            raise RulesError(_line(key), f"attribute {key.value!r} cannot be set: {fault}")
        attributes[name], lines[name] = _value(value, key.value), _line(key)
    return Rule(
        line=_line(node),
        program=_program(parts["match"]),
        attributes=attributes,
        lines=lines,
        override="override" in parts and _flag(parts["override"], "override"),
    )


def _program(node: yaml.Node) -> Program:
    try:
        return compile_selector(_text(node, "match"))
    except CompileError as error:
        raise RulesError(_line(node), f"match is no CEL expression for devices: {error}") from error


def _value(node: yaml.Node, name: str) -> DeviceAttribute:
    value = _typed(node, name)
    fault = value_fault(value)
    if fault is not None:
        raise RulesError(_line(node), f"the value of {name!r} cannot be published: {fault}")
    return value


def _typed(node: yaml.Node, name: str) -> DeviceAttribute:
    if isinstance(node, yaml.MappingNode):
        version = _mapping(node, f"the value of {name!r}", required=("version",))["version"]
        return DeviceAttribute(version=_text(version, "version"))
    if isinstance(node, yaml.ScalarNode):
        match node.tag.removeprefix(_TAG):
            case "str":
                return DeviceAttribute(string=node.value)
            case "bool":
                return DeviceAttribute(bool_=_flag(node, name))
            case "int":
                return DeviceAttribute(int_=_number(node, name))
    raise RulesError(
        _line(node),
        f"the value of {name!r} is no text, integer, true or false, nor {{version: 1.2.3}}; "
        "a number or a date that is meant as a text goes in quotes",
    )


def _mapping(
    node: yaml.Node, what: str, *, required: tuple[str, ...], optional: tuple[str, ...] = ()
) -> dict[str, yaml.Node]:
    parts: dict[str, yaml.Node] = {}
    known = (*required, *optional)
    for key, value in _items(node, what):
        if key.value not in known:
            raise RulesError(_line(key), f"{what} has no {key.value!r}; it has {', '.join(known)}")
        if key.value in parts:
            raise RulesError(_line(key), f"{what} has {key.value} twice")
        parts[key.value] = value
    missing = [key for key in required if key not in parts]
    if missing:
        raise RulesError(_line(node), f"{what} lacks {', '.join(missing)}")
    return parts


def _items(node: yaml.Node, what: str) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
    if not isinstance(node, yaml.MappingNode):
        raise RulesError(_line(node), f"{what} must have keys and values")
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise RulesError(_line(key), f"a key of {what} is no text")
        yield key, value


def _sequence(node: yaml.Node, what: str) -> list[yaml.Node]:
    if not isinstance(node, yaml.SequenceNode):
        raise RulesError(_line(node), f"{what} must be a list")
    return list(node.value)


def _text(node: yaml.Node, what: str) -> str:
    if not isinstance(node, yaml.ScalarNode) or node.tag != f"{_TAG}str":
        raise RulesError(_line(node), f"{what} must be a text")
    return str(node.value)


_FLAGS: Mapping[str, bool] = {"true": True, "false": False}


def _flag(node: yaml.Node, what: str) -> bool:
    value = _FLAGS.get(str(node.value))
    if value is None or node.tag != f"{_TAG}bool":
        raise RulesError(_line(node), f"{what} must be true or false")
    return value


def _number(node: yaml.ScalarNode, what: str) -> int:
    try:
        return int(node.value)
    except ValueError:
        raise RulesError(_line(node), f"{what} must be a decimal integer") from None


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1

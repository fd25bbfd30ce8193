"""docs/reference says what the code says, and the code says nothing that is not there."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest

from driver.controller.commit import Cause
from driver.controller.settings import ControllerSettings
from driver.controller.translate import ResourceNames
from driver.model import events as model_events
from driver.model import keys as model_keys
from driver.model import names
from driver.node.settings import NodeSettings
from driver.node.sharing.offered import offered
from driver.node.sharing.partitions import MigMode
from driver.node.simulated import cards
from hack.reference import (
    attributes,
    errors,
    messages,
    metrics,
    pages,
    resources,
    settings,
    taints,
)

DRIVER = Path(__file__).parents[2] / "driver"
DOCS = DRIVER.parent / "docs"
NAMES = DRIVER / "model" / "names.py"
EVENTS = DRIVER / "model" / "events.py"
# A key of our domain or of HAMi's, spelt out in a string.
KEY = re.compile(r"(?:quadrant\.dev|hami\.io)/[a-z][\w-]*|nvidia\.com/[a-z][\w-]*")
# What looks like a key and is none: versions of our kinds, and what is only ever sent in dry runs.
NO_KEYS = re.compile(
    r"quadrant\.dev/v1alpha1|probe\.quadrant\.dev/gpu|quadrant\.dev/(?:probe|ready|failed)"
    # HAMi's notes on pods that run, by their beginning.
    r"|hami\.io/(?:vgpu|bind)-"
)


@cache
def sources() -> list[tuple[Path, ast.Module]]:
    """All of our own source."""
    return [
        (path, ast.parse(path.read_text("utf-8")))
        for path in sorted(DRIVER.rglob("*.py"))
        if "_proto" not in path.parts
    ]


def strings(tree: ast.Module) -> Iterator[str]:
    """All strings but docstrings; of those that are put together, the fixed parts."""
    documented = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in documented:
                yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(_fixed(part) for part in node.values)


def _fixed(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    named = ast.unparse(part.value) if isinstance(part, ast.FormattedValue) else ""
    return names.DOMAIN if named.rpartition(".")[2] == "DOMAIN" else "…"


def test_the_pages_are_as_the_code_makes_them() -> None:
    """Written anew they are the same: `.venv/bin/python -m hack.reference`."""
    made = pages.pages()
    assert {path.name for path in pages.FOLDER.iterdir()} == set(made)
    for name, text in made.items():
        assert (pages.FOLDER / name).read_text("utf-8") == text, name


def test_keys_are_spelt_out_in_one_place() -> None:
    """A key in a string elsewhere could be missing in the table: it belongs into names.py."""
    resource_names = {field.default for field in msgspec.structs.fields(ResourceNames)}
    found = {
        (str(path.relative_to(DRIVER)), key)
        for path, tree in sources()
        if path not in (NAMES, EVENTS)
        for text in strings(tree)
        for key in KEY.findall(NO_KEYS.sub("", text))
        if key not in resource_names
    }
    assert found <= {("node/cluster.py", "quadrant.dev/node")}  # who reports Events


def test_every_key_is_explained() -> None:
    """What names.py spells out is in the table of keys, or a taint."""
    spelt = {
        text for _, tree in sources() if _ == NAMES for text in strings(tree) if KEY.fullmatch(text)
    }
    explained = {key.name for key in model_keys.ALL} | {taint.key for taint in taints.ALL}
    assert spelt
    assert spelt <= explained


def test_every_event_is_in_the_table() -> None:
    """Kinds of Events are made in one module, and all of them are listed there."""
    made = {
        value.reason: value
        for value in vars(model_events).values()
        if isinstance(value, model_events.EventKind)
    }
    assert tuple(made.values()) == model_events.ALL
    for path, tree in sources():
        calls = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
        assert path == EVENTS or not any(call.endswith("EventKind") for call in calls), path


def test_every_event_that_warns_says_what_to_do() -> None:
    """And is used: a reason that nobody records is no help."""
    source = "\n".join(ast.unparse(tree) for path, tree in sources() if path != EVENTS)
    for name, kind in vars(model_events).items():
        if isinstance(kind, model_events.EventKind):
            assert bool(kind.remedy) is kind.warning, kind.reason
            assert f"events.{name}" in source, name


def test_every_taint_is_explained() -> None:
    """A key of a taint is a name that the table has; the probe of the API server's is none."""
    explained = {taint.key for taint in taints.ALL}
    for path, tree in sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "DeviceTaint":
                (key,) = (part.value for part in node.keywords if part.arg == "key")
                word = re.search(r"[A-Z_]{3,}", ast.unparse(key))
                if path.name != "discovery.py":
                    assert word is not None, path
                    assert getattr(names, word[0]) in explained, path


@pytest.mark.parametrize("mig", MigMode)
@pytest.mark.parametrize("model", ["T4", "A100-SXM4-40GB", "H100-SXM", "B200"])
def test_every_attribute_is_explained(model: str, mig: MigMode) -> None:
    """Nothing is published that the page does not have; the page has nothing that never is."""
    made = offered(cards(f"1x{model}", "n1"), mig=mig, shareable=True).devices(counters=True)
    assert made
    assert set(attributes.published(made)) <= set(attributes.ATTRIBUTES)
    assert set(attributes.capacities(made)) <= set(attributes.CAPACITIES)
    whole = attributes.devices()
    assert set(attributes.published(whole)) == set(attributes.ATTRIBUTES)
    assert set(attributes.capacities(whole)) == set(attributes.CAPACITIES)


def test_every_error_has_a_section() -> None:
    """One each, for all classes of errors but their root."""
    listed = [name for section in errors.SECTIONS for name in section.classes]
    assert sorted(listed) == sorted(
        found.name for found in messages.classes() if found.name != "QuadrantError"
    )


def test_every_refusal_of_a_commit_is_explained() -> None:
    """By its kind."""
    assert set(errors.CAUSES) == set(Cause)


def test_messages_are_read_off_the_source() -> None:
    """Those of f-strings over several lines too, with what differs left out."""
    (found,) = (one for one in messages.classes() if one.name == "SettingsError")
    assert any(
        "socket path … has … bytes, a unix socket takes …: with the name …" in message
        for message in found.messages
    )


def test_every_resource_is_explained() -> None:
    """All of HAMi's names."""
    assert set(resources.MEANINGS) == {
        field.name for field in msgspec.structs.fields(ResourceNames)
    }


@pytest.mark.parametrize("kind", [ControllerSettings, NodeSettings])
def test_every_setting_is_explained(kind: type[msgspec.Struct]) -> None:
    """By a comment in the source."""
    said = settings.comments(kind)
    assert set(said) == {field.name for field in msgspec.structs.fields(kind)}
    assert all(said.values())


def test_every_option_of_the_chart_is_a_setting() -> None:
    """And every setting can be told on the command line."""
    assert list(settings.unmapped()) == []
    assert "| none |" not in settings.text()


def test_metrics_and_alerts_that_pages_name_exist() -> None:
    """In whatever a page tells people to look at."""
    told = [*metrics.controller(), *metrics.node()]
    known = {f"{one.name}{end}" for one in told for end in ("", "_bucket", "_count", "_sum")}
    alerts = set(re.findall(r"alert: (\w+)", metrics.RULES.read_text("utf-8")))
    for page in [DOCS.parent / "README.md", *DOCS.rglob("*.md")]:
        text = page.read_text("utf-8")
        assert set(re.findall(r"\bquadrant_[a-z_]+\b", text)) <= known, page
        assert set(re.findall(r"\bQuadrant[A-Z]\w+", text)) <= alerts, page

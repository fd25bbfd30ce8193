"""docs/cli.md says of every option what the program says."""

import msgspec
import pytest
import yaml

from driver.cli.checkup import rights
from driver.cli.checkup.finding import Checkup, Finding
from driver.cli.fleet import report
from driver.cli.fleet.topology import Topology
from hack.reference import commands as reference


def test_the_reference_is_that_of_the_program() -> None:
    """Written anew it is the same: `.venv/bin/python -m hack.reference`."""
    text = reference.FILE.read_text("utf-8")
    assert reference.BEGIN in text
    assert reference.written(text) == text


@pytest.mark.parametrize(
    "kind", [report.Matrix, report.NodeCards, report.Total, report.Capacity, report.Card,
             report.Claims, report.Claim, report.Given, Topology, Checkup, Finding],
)  # fmt: skip
def test_the_json_is_described(kind: type[msgspec.Struct]) -> None:
    """Every member by its name on the wire, which is camelCase."""
    text = reference.FILE.read_text("utf-8")
    for field in msgspec.structs.fields(kind):
        name = field.encode_name
        assert "_" not in name
        if name not in ("apiVersion", "kind"):
            assert f"`{name}" in text, name


def test_the_role_for_readers_is_what_doctor_asks_for() -> None:
    """Who is given the role in the page is told by doctor that nothing is missing."""
    text = reference.FILE.read_text("utf-8")
    role = yaml.safe_load(text.partition("```yaml\n")[2].partition("```")[0])
    given = {
        (verb, group, resource)
        for rule in role["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert given == {(one.verb, one.group, one.resource) for one in rights.USER}

"""docs/cli.md says of every option what the program says."""

import msgspec
import pytest

from driver.cli.checkup.finding import Checkup, Finding
from driver.cli.fleet import report
from driver.cli.fleet.topology import Topology
from hack import reference


def test_the_reference_is_that_of_the_program() -> None:
    """Written anew it is the same: `.venv/bin/python -m hack.reference`."""
    text = reference.FILE.read_text("utf-8")
    assert reference.BEGIN in text
    assert reference.written(text) == text


@pytest.mark.parametrize(
    "kind", [report.Matrix, report.NodeCards, report.Total, report.Card, report.Claims,
             report.Claim, report.Given, Topology, Checkup, Finding],
)  # fmt: skip
def test_the_json_is_described(kind: type[msgspec.Struct]) -> None:
    """Every member by its name on the wire, which is camelCase."""
    text = reference.FILE.read_text("utf-8")
    for field in msgspec.structs.fields(kind):
        name = field.encode_name
        assert "_" not in name
        if name not in ("apiVersion", "kind"):
            assert f"`{name}" in text, name

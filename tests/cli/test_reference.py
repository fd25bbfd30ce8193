"""docs/cli.md says of every option what the program says."""

from hack import reference


def test_the_reference_is_that_of_the_program() -> None:
    """Written anew it is the same: `.venv/bin/python -m hack.reference`."""
    text = reference.FILE.read_text("utf-8")
    assert reference.BEGIN in text
    assert reference.written(text) == text

"""Tables without a frame."""

from driver.cli.render.table import table


def test_columns_are_as_wide_as_needed_and_no_wider() -> None:
    """Signs of double width count twice; nothing stands behind the last word."""
    lines = table(("NAME", "N", ""), [("東京", "5", "a city"), ("a-long-one", "17", "")], right={1})
    assert [line.plain for line in lines] == [
        "NAME         N",
        "東京         5  a city",
        "a-long-one  17",
    ]


def test_a_table_without_rows_is_its_head() -> None:
    """So that one sees what there is none of."""
    assert [line.plain for line in table(("POD", "NODE"), [])] == ["POD  NODE"]

"""Quantities: exact, canonical, and never a way to take the process down."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.model.errors import InvalidObjectError
from driver.model.quantity import NANO, Quantity, parse, whole


@pytest.mark.parametrize(
    ("text", "canonical", "nano"),
    [
        ("0", "0", 0),
        ("1", "1", NANO),
        ("-1", "-1", -NANO),
        ("+5", "5", 5 * NANO),
        ("100m", "100m", NANO // 10),
        ("0.1", "100m", NANO // 10),
        (".5", "500m", NANO // 2),
        ("5.", "5", 5 * NANO),
        ("1n", "1n", 1),
        ("0.1n", "1n", 1),
        ("1.0000000001", "1000000001n", NANO + 1),
        ("1k", "1k", 1000 * NANO),
        ("1000", "1k", 1000 * NANO),
        ("1500", "1500", 1500 * NANO),
        ("1024", "1024", 1024 * NANO),
        ("1Ki", "1Ki", 1024 * NANO),
        ("1.5Gi", "1536Mi", 1536 * 1024**2 * NANO),
        ("7500Mi", "7500Mi", 7500 * 1024**2 * NANO),
        ("80Gi", "80Gi", 80 * 1024**3 * NANO),
        ("0.5Ki", "512", 512 * NANO),
        ("1e3", "1e3", 1000 * NANO),
        ("1E3", "1e3", 1000 * NANO),
        ("12e6", "12e6", 12 * 10**6 * NANO),
        ("1E", "1E", 10**18 * NANO),
        ("1e21", "1e21", 10**21 * NANO),
    ],
)
def test_reads_and_writes_as_kubernetes_does(text: str, canonical: str, nano: int) -> None:
    """Each text has one exact value and one canonical form."""
    assert parse(text).nano == nano
    assert str(parse(text)) == canonical


@pytest.mark.parametrize(
    "text", ["", " ", "1 Gi", "1K", "1_000", "0x10", "Gi", "1.2.3", "1e", "--1", ".", "٣", "1ki"]
)
def test_refuses_what_the_grammar_does_not_know(text: str) -> None:
    """The error repeats the text and shows what is expected."""
    with pytest.raises(InvalidObjectError, match="cannot be read: expected a number"):
        parse(text)


@pytest.mark.parametrize(
    "text", ["1e999999999", "9" * 5000, "1e" + "9" * 5000, "0." + "9" * 5000 + "Gi"]
)
def test_endless_numbers_are_large_not_fatal(text: str) -> None:
    """A legal text that no machine could hold is read as something large."""
    assert parse(text) > parse("0.9Gi")


@pytest.mark.parametrize("text", ["1e-999999999", "0." + "0" * 5000 + "1"])
def test_the_smallest_amount_is_one_nano(text: str) -> None:
    """Something is never rounded to nothing."""
    assert parse(text).nano == 1


@given(
    st.integers(-(10**30), 10**30), st.sampled_from(["BinarySI", "DecimalSI", "DecimalExponent"])
)
def test_what_is_written_reads_back(nano: int, form: str) -> None:
    """The canonical form keeps the exact value."""
    assert parse(str(Quantity(nano, form))).nano == nano  # type: ignore[arg-type]


@given(st.integers(0, 2**60), st.integers(0, 2**60))
def test_sums_are_exact(left: int, right: int) -> None:
    """Addition and subtraction undo each other; equality ignores the format."""
    total = whole(left, "BinarySI") + whole(right)
    assert total - whole(right) == whole(left)
    assert hash(total) == hash(whole(left + right, "DecimalExponent"))

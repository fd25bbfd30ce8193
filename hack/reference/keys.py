"""docs/reference/annotations.md: every annotation, label and gate that is read or written."""

from collections.abc import Iterator

from driver.model import names
from driver.model.keys import ALL, Key
from hack.reference.markdown import code, page, prose, table

_HEAD = ("key", "on", "values", "meaning")


def text() -> str:
    """The page."""
    return page("Annotations, labels and gates", _lines())


def _lines() -> Iterator[str]:
    yield from prose(
        """
        What Quadrant reads and writes on objects.
        [Policies](../policies.md#where-policies-are-set) says which of several places decides.
        """
    )
    yield ""
    yield "## What you can set"
    users = [key for key in ALL if key.for_users()]
    yield from table(_HEAD, map(_row, (key for key in users if _is_ours(key))))
    yield from prose(
        """
        A ResourceClaim that is made from a template has the annotations of the template's
        `spec.metadata`, not of its `metadata`. In a DeviceClass policies are configuration:
        [policies](../policies.md#where-policies-are-set).
        """
    )
    yield ""
    yield from prose(
        f"""
        An annotation in the domain `{names.DOMAIN}` (or one below it) that means nothing where it
        stands is refused with the pod, or warned of: [policies](../policies.md#what-is-refused).
        """
    )
    yield ""
    yield "## HAMi's that are understood"
    yield from table(_HEAD, map(_row, (key for key in users if not _is_ours(key))))
    yield "[hami.md](../hami.md) has the rest of what HAMi users know."
    yield ""
    yield "## What is written for you"
    yield ""
    yield "Leave these as they are."
    yield from table(
        ("key", "sort", "on", "written by", "values", "meaning"),
        ((code(key.name), key.sort, ", ".join(key.on), key.writer, key.values, key.meaning)
         for key in ALL if not key.for_users()),
    )  # fmt: skip


def _row(key: Key) -> tuple[str, ...]:
    return code(key.name), ", ".join(key.on), key.values, key.meaning


def _is_ours(key: Key) -> bool:
    return key.name.startswith(f"{names.DOMAIN}/")

"""HTML elements as text. What goes into one is escaped, unless it is markup already."""

from html import escape


class Markup(str):
    """Text that is HTML."""

    __slots__ = ()


def element(name: str, *content: str, **attributes: object) -> Markup:
    """One element; `class_` is class, and `data_x` is data-x. None leaves an attribute out."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{said}>{joined(*content)}</{name}>")


def joined(*content: str) -> Markup:
    """Pieces one after the other."""
    return Markup("".join(one if isinstance(one, Markup) else escape(one) for one in content))

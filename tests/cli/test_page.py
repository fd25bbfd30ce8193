"""The page of a simulation: complete in one file, and readable by everybody."""

from collections.abc import Callable
from pathlib import Path

from driver.cli.render.page.markup import element, joined
from driver.cli.render.page.pictures import look
from tests.cli.conftest import Quadrant
from tests.cli.test_compare import card


def test_one_file_that_loads_nothing(html: Path) -> None:
    """No address in it but links to itself, and a policy that would stop any other."""
    text = html.read_text("utf-8")
    assert "default-src 'none'" in text
    assert "http:" not in text
    assert "https:" not in text
    assert "src=" not in text
    assert text.count("<html") == text.count("</html>") == 1


def test_what_people_write_stays_text() -> None:
    """Names and reasons cannot become elements or attributes."""
    made = element("td", "<script>&", title='"><b>')
    assert made == '<td title="&quot;&gt;&lt;b&gt;">&lt;script&gt;&amp;</td>'
    assert joined(made, "<") == f"{made}&lt;"


def test_each_state_of_a_card_has_its_own_sign_and_words() -> None:
    """Whoever sees no colours reads the sign; whoever sees nothing hears the words."""
    looks = [
        look(card(), []),
        look(card(shares=2, used=500), ["p", "q"]),
        look(card(exclusive=True), ["p"]),
    ]
    assert len({one.sign for one in looks}) == 3
    assert [one.words.split(": ", 1)[1] for one in looks] == [
        "free, 1.0 GiB",
        "2 claims have 0.5 of 1.0 GiB\npods: p, q",
        "one claim has all of its 1.0 GiB\npods: p",
    ]
    assert look(card(shares=1, used=1000), []).kind == "whole"


def test_a_cluster_without_cards(quadrant: Quadrant, file: Callable[[str], Path]) -> None:
    """There is a page all the same."""
    inventory = "{apiVersion: quadrant.dev/v1alpha1, kind: Inventory, nodes: [{name: cpu}]}"
    shown = quadrant("simulate", "-f", file(inventory), "-o", "html")
    assert "0 pods, 0 cards on 0 nodes" in shown.stdout

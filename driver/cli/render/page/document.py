"""The whole page: numbers, pictures before and after, pods and why, pods that wait."""

from collections.abc import Iterator, Sequence
from importlib.resources import files

from driver.cli.render.comparison import ROWS
from driver.cli.render.page.markup import Markup, element, joined
from driver.cli.render.page.pictures import card_id, legend, picture, pods_by_card
from driver.cli.simulation.report import GivenDevice, PendingPod, Placement, Report

# Nothing may be loaded, whatever gets into the page.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
_HINT = "Point at a card, or go to one with Tab and the arrow keys, to read who has it."


def page(reports: Sequence[Report]) -> str:
    """One HTML document on these simulations of the same input; at least one."""
    title = "Quadrant: " + " and ".join(report.policy for report in reports)
    head = element(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        element("title", title),
        element("style", _part("style.css")),
    )
    body = element(
        "body",
        element("a", "To the pods", href="#pods", class_="skip screen"),
        _header(reports[0]),
        element("main", _numbers(reports), _pictures(reports), _pods(reports)),
        element("output", _HINT, id="details", aria_live="polite", class_="screen"),
        element("script", _part("behaviour.js")),
    )
    return f'<!doctype html>\n<html lang="en">{head}{body}</html>\n'


def _part(name: str) -> Markup:
    return Markup(files(__package__).joinpath(name).read_text("utf-8"))


def _header(report: Report) -> Markup:
    nodes = len({card.node for card in report.cards})
    pods = report.metrics.placed + report.metrics.pending
    cards = f"{len(report.cards)} cards on {nodes} nodes"
    facts = f"Kubernetes {report.kubernetes}; {pods} pods, {cards}."
    return element("header", element("h1", "Where the pods go"), element("p", facts, class_="soft"))


def _numbers(reports: Sequence[Report]) -> Markup:
    head = element(
        "tr",
        element("th", "metric", scope="col"),
        *(element("th", report.policy, scope="col", class_="number") for report in reports),
        element("th", "what it counts", scope="col"),
    )
    rows = [
        element(
            "tr",
            element("th", name, scope="row"),
            *(element("td", f"{value(report.metrics):g}", class_="number") for report in reports),
            element("td", meaning, class_="soft"),
        )
        for name, meaning, value in ROWS
    ]
    table = element("table", element("thead", head), element("tbody", *rows))
    return element(
        "section",
        element("h2", "Numbers", id="numbers"),
        element("p", "Columns are policies, node/GPU, for pods that say nothing.", class_="soft"),
        element("div", table, class_="scroll"),
        aria_labelledby="numbers",
    )


def _pictures(reports: Sequence[Report]) -> Markup:
    before = reports[0].before
    grouped = len({(card.node, card.nvlink_group) for card in before}) > len(
        {card.node for card in before}
    )
    figures = [picture("before", "before", before, {})]
    figures += [
        picture(report.policy, str(place), report.cards, pods_by_card(report.placements))
        for place, report in enumerate(reports)
    ]
    return element(
        "section",
        element("h2", "Cards", id="cards"),
        legend(grouped=grouped),
        element("div", *figures, class_="pictures"),
        aria_labelledby="cards",
    )


def _pods(reports: Sequence[Report]) -> Markup:
    filtering = element(
        "p",
        element("label", "Show only rows with ", for_="filter"),
        Markup('<input id="filter" type="search"> '),
        element("span", id="found", aria_live="polite"),
        class_="screen",
    )
    return element(
        "section",
        element("h2", "Pods", id="pods"),
        filtering,
        *(part for place, report in enumerate(reports) for part in _of_policy(place, report)),
        aria_labelledby="pods",
    )


def _of_policy(place: int, report: Report) -> Iterator[Markup]:
    yield element("h3", report.policy)
    for warning in report.warnings:
        yield element("p", f"Note: {warning}.")
    names = ("pod", "node", "cards", "why")
    head = element("tr", *(element("th", name, scope="col") for name in names))
    rows = [_placed(place, one) for one in report.placements]
    rows += [
        element(
            "tr",
            element("th", one.pod, scope="row"),
            element("td", "refused" if one.refused else "waits"),
            element("td", "-"),
            element("td", joined(*_why_not(one)), class_="why"),
            data_cards="",
        )
        for one in report.pending
    ]
    table = element("table", element("thead", head), element("tbody", *rows), class_="pods")
    yield element("div", table, class_="scroll")


def _why_not(one: PendingPod) -> Iterator[Markup]:
    yield element("div", one.reason)
    for remedy in one.would_fit:
        yield element("div", f"What would make it fit: {remedy}.")


def _placed(place: int, one: Placement) -> Markup:
    cards = [
        element("div", _link(place, one, device), *_share(device), class_="device")
        for device in one.devices
    ]
    links = " ".join(card_id(str(place), one.node, device.device) for device in one.devices)
    return element(
        "tr",
        element("th", one.pod, scope="row"),
        element("td", one.node),
        element("td", *cards) if cards else element("td", "-"),
        element("td", joined(*(element("div", why) for why in one.why)), class_="why"),
        data_cards=links,
    )


def _link(place: int, one: Placement, device: GivenDevice) -> Markup:
    target = card_id(str(place), one.node, device.device)
    return element("a", f"GPU {device.index}", href=f"#{target}")


def _share(device: GivenDevice) -> tuple[str, ...]:
    return (f", {device.memory_mib} MiB",) if device.shared else ()

"""docs/reference/metrics.md: every metric of both processes, from the collectors themselves."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import cast

import msgspec
import yaml
from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.registry import Collector

from driver.controller.census import Census
from driver.controller.cluster import Cluster
from driver.controller.exposition import StateCollector
from driver.controller.policies import Defaults
from driver.controller.term import Term
from driver.model.allocation import Features
from driver.node.exposition import DeviceCollector
from driver.node.state.store import ClaimStore
from driver.obs.metrics import ControllerMetrics, NodeMetrics
from hack.reference.markdown import code, page, prose, table

RULES = Path(__file__).resolve().parents[2] / "helm" / "quadrant" / "files" / "rules.yaml"


class Told(msgspec.Struct, frozen=True):
    """One metric as queries name it."""

    name: str
    type: str
    labels: tuple[str, ...]
    meaning: str


def text() -> str:
    """The page."""
    return page("Metrics", _lines())


def _lines() -> Iterator[str]:
    yield from prose(
        """
        How they are switched on and scraped, what their labels' values mean, alerts and the
        dashboard: [metrics](../metrics.md). A histogram has the series `NAME_bucket`,
        `NAME_sum` and `NAME_count`.
        """
    )
    for title, found in (("The controller", controller()), ("The node plugin", node())):
        yield ""
        yield f"## {title}"
        yield from table(
            ("metric", "type", "labels", ""),
            ((code(one.name), one.type, ", ".join(map(code, one.labels)), one.meaning)
             for one in found),
        )  # fmt: skip
    yield from _alerts()


def _alerts() -> Iterator[str]:
    """The rules that come with the chart, by their own annotations."""
    groups = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    yield "## Alerts"
    yield ""
    yield from prose(
        """
        `metrics.rules.create` of the chart makes a PrometheusRule of them;
        [the file](../../helm/quadrant/files/rules.yaml) is in Prometheus' own form and has the
        expressions.
        """
    )
    yield from table(
        ("alert", "severity", "after", "means", "look at"),
        (
            (
                code(rule["alert"]),
                rule["labels"]["severity"],
                rule.get("for", "at once"),
                _plain(rule["annotations"]["summary"]),
                _plain(rule["annotations"]["description"]),
            )
            for rule in rules
            if "alert" in rule
        ),
    )
    yield "And these are recorded:"
    yield from table(
        ("series", "is"),
        ((code(rule["record"]), code(rule["expr"].strip())) for rule in rules if "record" in rule),
    )


def _plain(text: str) -> str:
    """A label that stands for what differs is shown by its name."""
    return re.sub(r"{{ *\$(?:labels\.)?(\w+).*?}}", lambda match: match[1].upper(), text)


def controller() -> list[Told]:
    """Of the controller, by name."""
    cluster = Cluster(
        driver="", features=Features(), defaults=Defaults(node="", gpu=""), extended_resources=False
    )
    state = StateCollector(
        cluster, Census(cluster), Term(), (), clock=lambda: 0.0, wall_clock=lambda: 0.0
    )
    return _sorted([*_counted(ControllerMetrics(CollectorRegistry())), *_collected(state)])


def node() -> list[Told]:
    """Of the node plugin, by name."""
    # Collecting reads no store: what it has read last is nothing.
    devices = DeviceCollector(tuple, cast("ClaimStore", None))
    return _sorted([*_counted(NodeMetrics(CollectorRegistry())), *_collected(devices)])


def _counted(metrics: object) -> Iterator[Told]:
    """What a process counts while it works."""
    for one in vars(metrics).values():
        if isinstance(one, MetricWrapperBase):
            (described,) = one.describe()
            yield _told(described, one._labelnames)  # noqa: SLF001 # shown in no other way


def _collected(collector: Collector) -> Iterator[Told]:
    """What is worked out when somebody asks; families are there without samples, too."""
    for family in collector.collect():
        yield _told(family, family._labelnames)  # type: ignore[attr-defined] # noqa: SLF001


def _told(metric: object, labels: Iterable[str]) -> Told:
    kind, name = str(getattr(metric, "type", "")), str(getattr(metric, "name", ""))
    return Told(
        name + ("_total" if kind == "counter" else ""),
        kind,
        tuple(sorted(labels)),
        str(getattr(metric, "documentation", "")),
    )


def _sorted(found: list[Told]) -> list[Told]:
    return sorted(found, key=lambda one: one.name)

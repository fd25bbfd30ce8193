"""Metrics, dashboard and alerts, tried with Prometheus' own programs."""

import json
import re
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from driver.model.allocation import RejectionKind
from hack.dashboard import FILE, dashboard
from tests.monitoring import scraped
from tests.monitoring.prometheus import program, running

ROOT = Path(__file__).parents[2]
FILES = ROOT / "helm" / "quadrant" / "files"
RULES = FILES / "rules.yaml"
DASHBOARD = json.loads(FILE.read_text())
VARIABLES = [one["definition"] for one in DASHBOARD["templating"]["list"] if "definition" in one]
TRIALS = Path(__file__).parent / "alerts.yaml"
# What other exporters tell, on clusters that have them.
FOREIGN = re.compile(r"\bDCGM_")
NAME = re.compile(r"\bquadrant_[a-z_]+")


def queries() -> list[str]:
    """Every query of the dashboard, with its variables set."""
    found = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
    values = dict.fromkeys(("$cluster", "$model", "$node", "$namespace"), ".*")
    values["$__rate_interval"] = "1m"
    return [re.sub(r"\$\w+", lambda match: values[match[0]], text) for text in found]


def rules() -> list[dict[str, Any]]:
    """All alerts and recorded series."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def families(*registries: CollectorRegistry) -> dict[str, Any]:
    """What is told, by name as it is written in queries, histograms without their suffixes."""
    return {
        family.name + ("_total" if family.type == "counter" else ""): family
        for registry in registries
        for family in registry.collect()
    }


@pytest.fixture
async def told(tmp_path: Path) -> dict[str, Any]:
    """All metrics of both processes."""
    node, devices = scraped.node(tmp_path)
    await devices.refresh()
    return families(scraped.controller(), node)


async def test_every_query_finds_what_it_asks_for(tmp_path: Path) -> None:
    """Against a real Prometheus that scrapes both processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    program("prometheus")
    async with (
        scraped.served(scraped.controller_route()) as controller,
        scraped.served(scraped.node_route(tmp_path)) as node,
        running(tmp_path, {controller: "", node: scraped.NODE}, address) as prometheus,
    ):
        # A rate needs two samples.
        for process in ("leader", "node_registered"):
            await prometheus.until(f"count_over_time(quadrant_{process}[1m]) > 1")
        for query in queries():
            series = await prometheus.query(query)
            assert series or FOREIGN.search(query), query


def test_promtool_reads_the_rules() -> None:
    """Also as a strict reader."""
    done = subprocess.run(
        [program("promtool"), "check", "rules", "--lint=all", "--lint-fatal", RULES],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_fires_when_it_should(tmp_path: Path) -> None:
    """And is silent before; each is tried."""
    trials = yaml.safe_load(TRIALS.read_text())
    trials["rule_files"] = [str(RULES)]
    (tmp_path / "trials.yaml").write_text(yaml.safe_dump(trials))
    done = subprocess.run(
        [program("promtool"), "test", "rules", tmp_path / "trials.yaml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    fired = {
        trial["alertname"]
        for test in trials["tests"]
        for trial in test.get("alert_rule_test", ())
        if trial.get("exp_alerts")
    }
    assert fired == {rule["alert"] for rule in rules() if "alert" in rule}


def test_only_metrics_that_exist_are_asked_for(told: dict[str, Any]) -> None:
    """Dashboard and rules name nothing that no process tells."""
    asked = {
        name
        for text in [*queries(), *(rule["expr"] for rule in rules()), *VARIABLES]
        for name in NAME.findall(text)
    }
    known = {
        name + suffix
        for name, family in told.items()
        for suffix in (("_bucket", "_count", "_sum") if family.type == "histogram" else ("",))
    }
    assert asked <= known, asked - known


def test_the_reference_lists_every_metric(told: dict[str, Any]) -> None:
    """docs/reference/metrics.md: name, kind, labels and meaning, as they are scraped."""
    text = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    rows = re.findall(r"^\| `(quadrant_\w+)` \| (\w+) \| (.*?) \| (.*?) \|$", text, re.MULTILINE)
    assert sorted(rows) == sorted(
        (name, family.type, _labels(family), family.documentation) for name, family in told.items()
    )


def _labels(family: Any) -> str:
    names = {name for sample in family.samples for name in sample.labels if name != "le"}
    return ", ".join(f"`{name}`" for name in sorted(names))


def test_the_dashboard_is_as_its_code_makes_it() -> None:
    """Nobody has edited the file by hand: .venv/bin/python -m hack.dashboard."""
    assert FILE.read_text() == dashboard()


def test_every_kind_of_rejection_is_explained() -> None:
    """docs/metrics.md has a row for each that `quadrant_rejections_total` can have."""
    text = (ROOT / "docs" / "metrics.md").read_text()
    table = text.partition("| reason | a device, or a node")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE)
    assert sorted(rows) == sorted(RejectionKind)


def test_the_dashboard_is_whole() -> None:
    """Every panel says what it shows, has its place, and reads from the chosen data source."""
    variables = {one["name"] for one in DASHBOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD)))
    assert used - {"__rate_interval", "__all"} == variables
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    places: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert at["x"] + at["w"] <= 24
        assert not cells & places, panel["title"]
        places |= cells
        if panel["type"] != "row":
            assert panel["description"]
            references = [target["refId"] for target in panel["targets"]]
            assert len(references) == len(set(references))
            assert {target["datasource"]["uid"] for target in panel["targets"]} == {"${datasource}"}

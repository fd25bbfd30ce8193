"""The Grafana dashboard of the chart, written down once as code.

`.venv/bin/python -m hack.dashboard` writes helm/quadrant/files/dashboard.json anew; the tests of
tests/monitoring compare it, and put each of its queries to a real Prometheus.
"""

import json
from pathlib import Path

from hack.dashboard.capacity import capacity
from hack.dashboard.decisions import decisions, waiting
from hack.dashboard.processes import controller, nodes
from hack.dashboard.queries import CLUSTER
from hack.dashboard.sheet import SOURCE, Json, Sheet

FILE = Path(__file__).resolve().parents[2] / "helm" / "quadrant" / "files" / "dashboard.json"
_SECTIONS = (capacity, waiting, decisions, controller, nodes)


def _variable(name: str, label: str, query: str) -> Json:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
        "refresh": 2,
        "sort": 1,
    }


def _variables() -> list[Json]:
    held = "quadrant_device_namespace_memory_held_bytes"
    source = {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "current": {},
    }
    return [
        source,
        _variable("cluster", "Cluster", "label_values(quadrant_leader, cluster)"),
        _variable("model", "Model", f"label_values(quadrant_gpus{{{CLUSTER}}}, model)"),
        _variable("node", "Node", f"label_values(quadrant_device_info{{{CLUSTER}}}, node)"),
        _variable("namespace", "Namespace", f"label_values({held}{{{CLUSTER}}}, claim_namespace)"),
    ]


def dashboard() -> str:
    """The dashboard as Grafana imports it."""
    sheet = Sheet()
    for section in _SECTIONS:
        section(sheet)
    made = {
        "uid": "quadrant",
        "title": "Quadrant: GPUs",
        "tags": ["gpu", "dra", "quadrant"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": _variables()},
        "annotations": {"list": []},
        "panels": sheet.panels,
    }
    return json.dumps(made, indent=1) + "\n"

"""Panels of Grafana, placed on a sheet."""

from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]
# A query, and how its series are called.
Query = tuple[str, str]

SOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24
# What is bad when it is there at all.
ALARMING: Json = {
    "color": {"mode": "thresholds"},
    "thresholds": {
        "mode": "absolute",
        "steps": [{"color": "green", "value": None}, {"color": "red", "value": 1}],
    },
}
_LINES: Json = {
    "legend": {"displayMode": "list", "placement": "bottom"},
    "tooltip": {"mode": "multi"},
}
_OPTIONS: dict[str, Json] = {
    "timeseries": _LINES,
    "stat": {"reduceOptions": {"calcs": ["lastNotNull"]}},
    "state-timeline": {"mergeValues": True, "showValue": "auto", "rowHeight": 0.85},
    "heatmap": {"calculate": False, "yAxis": {"decimals": 0}, "cellGap": 1},
    "table": {"cellHeight": "sm"},
}


class Sheet:
    """Panels placed from left to right, and in rows of equal height."""

    def __init__(self) -> None:
        self.panels: list[Json] = []
        self._x = self._y = self._height = 0

    def row(self, title: str) -> None:
        """A headline over what follows."""
        self._break()
        self._add(title, "row", width=WIDTH, height=1, collapsed=False, panels=[])

    def panel(
        self,
        kind: str,
        title: str,
        description: str,
        queries: Sequence[Query],
        *,
        width: int = 8,
        height: int = 8,
        unit: str = "short",
        defaults: Json | None = None,
        **more: Any,
    ) -> None:
        """One picture of these queries."""
        if self._x + width > WIDTH:
            self._break()
        targets = [_target(kind, index, query) for index, query in enumerate(queries)]
        self._add(
            title,
            kind,
            width=width,
            height=height,
            description=description,
            datasource=SOURCE,
            targets=targets,
            fieldConfig={"defaults": {"unit": unit, **(defaults or {})}, "overrides": []},
            options=_OPTIONS[kind],
            **more,
        )

    def _break(self) -> None:
        self._y += self._height
        self._x = self._height = 0

    def _add(self, title: str, kind: str, *, width: int, height: int, **more: Any) -> None:
        place = {"x": self._x, "y": self._y, "w": width, "h": height}
        number = len(self.panels) + 1
        self.panels.append({"id": number, "type": kind, "title": title, "gridPos": place, **more})
        self._x += width
        self._height = max(self._height, height)


def _target(kind: str, index: int, query: Query) -> Json:
    form: Json = {}
    if kind == "stat":
        form = {"instant": True}
    elif kind == "table":
        form = {"instant": True, "format": "table"}
    elif kind == "heatmap" and "le" in query[1]:
        form = {"format": "heatmap"}
    reference = {"refId": chr(ord("A") + index), "datasource": SOURCE}
    return {**reference, "expr": query[0], "legendFormat": query[1], **form}

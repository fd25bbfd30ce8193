"""What there is, what can be given, what is given; and whether large jobs still fit."""

from hack.dashboard.queries import CLUSTER, MODEL, NAMESPACE, gpus, memory
from hack.dashboard.sheet import ALARMING, WIDTH, Sheet


def capacity(sheet: Sheet) -> None:
    """Numbers, a table by model, and all of it over time."""
    sheet.row("Capacity: physical, allocatable, committed")
    closed = f"sum({gpus('physical')}) - sum({gpus('allocatable')})"
    free = f"1 - {memory('free_whole')} / {memory('free')}"
    largest = f"max by (cluster, model) (quadrant_largest_free_group{{{MODEL}}})"
    for title, description, query, more in (
        ("GPUs", "Physical: published by the node plugins.", f"sum({gpus('physical')})", {}),
        (
            "Allocatable",
            "Without those that a taint keeps claims away from.",
            f"sum({gpus('allocatable')})",
            {},
        ),
        ("Committed", "Held by claims, all of it or a part.", f"sum({gpus('committed')})", {}),
        (
            "Closed",
            "Unhealthy, cordoned or tainted otherwise, and nobody has them.",
            closed,
            {"defaults": ALARMING},
        ),
        (
            "Pods waiting",
            "Pods with our devices that have no node yet.",
            f"sum(max by (cluster, stage) (quadrant_pods_waiting{{{CLUSTER}}}))",
            {},
        ),
        (
            "Largest free group",
            "Most free GPUs of one node that are linked: the largest job that fits now.",
            f"max({largest})",
            {},
        ),
        (
            "Fragmentation",
            "Part of the free memory that is on GPUs of which a part is taken.",
            free,
            {"unit": "percentunit"},
        ),
        (
            "Leaders",
            "Exactly one replica of a controller answers.",
            f"sum(quadrant_leader{{{CLUSTER}}})",
            {},
        ),
    ):
        sheet.panel("stat", title, description, [(query, title)], width=3, height=4, **more)
    _capacity_by_model(sheet, largest)
    _capacity_over_time(sheet)


def _capacity_by_model(sheet: Sheet, largest: str) -> None:
    committed, allocatable = gpus("committed"), gpus("allocatable")
    columns = ("physical", "allocatable", "committed", "held", "largest free group")
    rename = {f"Value #{chr(ord('A') + place)}": name for place, name in enumerate(columns)}
    sheet.panel(
        "table",
        "By model",
        "What there is, what can be given, what is given, and the largest group that is free.",
        [
            (gpus("physical"), ""),
            (allocatable, ""),
            (committed, ""),
            (f"{committed} / {allocatable}", ""),
            (largest, ""),
        ],
        width=WIDTH,
        height=6,
        transformations=[
            {"id": "merge", "options": {}},
            {
                "id": "organize",
                "options": {"excludeByName": {"Time": True}, "renameByName": rename},
            },
        ],
    )
    sheet.panels[-1]["fieldConfig"]["overrides"] = [
        {
            "matcher": {"id": "byName", "options": "held"},
            "properties": [
                {"id": "unit", "value": "percentunit"},
                {"id": "max", "value": 1},
                {"id": "custom.cellOptions", "value": {"type": "gauge", "mode": "basic"}},
            ],
        }
    ]


def _capacity_over_time(sheet: Sheet) -> None:
    lines = sheet.panel
    by_state = f"sum by (state) (max by (cluster, model, state) (quadrant_gpus{{{MODEL}}}))"
    lines("timeseries", "GPUs by state", "Allocated against total.", [(by_state, "{{state}}")])
    lines(
        "timeseries",
        "Committed by model",
        "Part of the allocatable GPUs that are held.",
        [(f"{gpus('committed')} / {gpus('allocatable')}", "{{model}}")],
        unit="percentunit",
    )
    memory = f"max by (cluster, model, state) (quadrant_gpu_memory_bytes{{{MODEL}}})"
    lines(
        "timeseries",
        "GPU memory",
        "Published, allocatable, committed, free, and free on GPUs that nobody uses.",
        [(f"sum by (state) ({memory})", "{{state}}")],
        unit="bytes",
    )
    lines(
        "timeseries",
        "Fragmentation by model",
        "Rises when shares are strewn over many GPUs.",
        [(f"max by (cluster, model) (quadrant_fragmentation_ratio{{{MODEL}}})", "{{model}}")],
        unit="percentunit",
    )
    lines(
        "heatmap",
        "Free groups by size",
        "How many groups of so many free, linked GPUs there are. Dark below and light above: much "
        "is free, but nothing for a large job.",
        [
            (
                f"sum by (size) (max by (cluster, model, size) (quadrant_free_groups{{{MODEL}}}))",
                "{{size}}",
            )
        ],
    )
    held = f"quadrant_device_namespace_memory_held_bytes{{{NAMESPACE}}}"
    lines(
        "timeseries",
        "GPU memory by namespace",
        "What prepared claims hold; from the node plugins.",
        [(f"sum by (claim_namespace) ({held})", "{{claim_namespace}}")],
        unit="bytes",
    )

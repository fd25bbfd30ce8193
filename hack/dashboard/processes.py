"""How the controller and the node plugins do, and each GPU."""

from hack.dashboard.queries import CLUSTER, NODE, rate, worst
from hack.dashboard.sheet import WIDTH, Sheet


def controller(sheet: Sheet) -> None:
    """Who leads, and whether the API server is heard and answers."""
    sheet.row("Controller")
    sheet.panel(
        "state-timeline",
        "Who leads",
        "1 is the replica that answers commits.",
        [
            (
                f"max by (cluster, pod, instance) (quadrant_leader{{{CLUSTER}}})",
                "{{pod}} {{instance}}",
            )
        ],
    )
    _heard(sheet)
    reclaimed = f"quadrant_allocations_reclaimed_total{{{CLUSTER}}}"
    sheet.panel(
        "timeseries",
        "Answers outstanding, allocations reclaimed",
        "Answers not yet seen stored; allocations taken back because nobody used them.",
        [
            (f"max(quadrant_answers_outstanding{{{CLUSTER}}})", "outstanding"),
            (f"sum(increase({reclaimed}[$__rate_interval]))", "reclaimed"),
        ],
    )


def _heard(sheet: Sheet) -> None:
    restarts = rate("quadrant_watch_restarts_total", "resource, reason")
    relists = f"sum by (resource) (increase(quadrant_relists_total{{{CLUSTER}}}[$__rate_interval]))"
    silence = f"max by (resource) (quadrant_watch_silence_seconds{{{CLUSTER}}})"
    failed = f'{CLUSTER}, result!="done"'
    for title, description, queries, unit in (
        (
            "Age of what it knows",
            "Since when the API server has said nothing; a bookmark comes about every minute.",
            [(silence, "{{resource}}")],
            "s",
        ),
        (
            "Relists",
            "Lists read anew: a watch had lost its place, or a leader took over.",
            [(relists, "{{resource}}")],
            "short",
        ),
        (
            "Watches that ended",
            "closed is how the API server ends them, every few minutes.",
            [(restarts, "{{resource}} {{reason}}")],
            "ops",
        ),
        (
            "Calls that failed",
            "By verb and error; NotFound and Conflict are part of the work.",
            [
                (
                    rate("quadrant_api_call_seconds_count", "verb, result", failed),
                    "{{verb}} {{result}}",
                )
            ],
            "ops",
        ),
    ):
        sheet.panel("timeseries", title, description, queries, unit=unit)


def nodes(sheet: Sheet) -> None:
    """Claims prepared on the nodes, and what each GPU does."""
    sheet.row("Nodes")
    failed = f'{NODE}, result="failed"'
    doubles = f"quadrant_node_double_uses_refused_total{{{NODE}}}"
    lines = sheet.panel
    lines(
        "timeseries",
        "Prepare and unprepare",
        "99 of 100 over all nodes.",
        worst("quadrant_node_claim_seconds", "operation", NODE),
        unit="s",
    )
    lines(
        "timeseries",
        "Claims not prepared",
        "Failures by node.",
        [(rate("quadrant_node_claim_seconds_count", "node", failed), "{{node}}")],
        unit="ops",
    )
    lines(
        "timeseries",
        "Double uses refused",
        "A claim wanted a device that another one holds on the node: must stay at 0.",
        [(f"sum by (node) (increase({doubles}[$__rate_interval]))", "{{node}}")],
    )
    _devices(sheet)


def _devices(sheet: Sheet) -> None:
    claims = f"max by (UUID, node) (quadrant_device_claims{{{NODE}}})"
    info = f'quadrant_device_info{{{NODE}, model=~"$model", type="gpu"}}'
    idle = "max by (UUID) (max_over_time(DCGM_FI_DEV_GPU_UTIL[15m])) == 0"
    steps = [{"color": "text", "value": None}, {"color": "blue", "value": 1}]
    sheet.panel(
        "state-timeline",
        "GPUs in use",
        "Claims on each GPU, one row a GPU.",
        [
            (
                f"{claims} * on (UUID, node) group_left (index, model) {info}",
                "{{node}} {{index}}",
            )
        ],
        width=16,
        height=12,
        defaults={
            "color": {"mode": "thresholds"},
            "thresholds": {"mode": "absolute", "steps": steps},
        },
    )
    sheet.panel(
        "timeseries",
        "Held, but idle",
        "GPUs with claims and no work for 15 minutes, by DCGM's utilisation. Empty without the "
        "DCGM exporter.",
        [(f"count by (node) (({claims} > 0) and on (UUID) ({idle}))", "{{node}}")],
        height=12,
    )
    sheet.panel(
        "table",
        "Tainted devices",
        "Unhealthy, cordoned or occupied.",
        [(f"quadrant_device_taint{{{NODE}}}", "")],
        width=WIDTH,
    )

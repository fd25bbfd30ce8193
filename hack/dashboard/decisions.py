"""Who waits and why, what is decided, and how long that takes."""

from hack.dashboard.queries import CLUSTER, quantiles, rate, worst
from hack.dashboard.sheet import Sheet


def waiting(sheet: Sheet) -> None:
    """Pods without a node, and what is in their way."""
    sheet.row("Waiting")
    lines = sheet.panel
    lines(
        "timeseries",
        "Pods waiting",
        "Behind our gate, or until the scheduler finds a node.",
        [
            (
                f"sum by (stage) (max by (cluster, stage) (quadrant_pods_waiting{{{CLUSTER}}}))",
                "{{stage}}",
            )
        ],
    )
    age = f"max by (quantile) (quadrant_pods_waiting_seconds{{{CLUSTER}}})"
    lines(
        "timeseries",
        "Age of pods that wait",
        "Half of them are younger, 99 of 100 are younger, the oldest.",
        [(age, "{{quantile}}")],
        unit="s",
    )
    lines(
        "timeseries",
        "Wait for a node",
        "From a pod's creation until its gate is lifted.",
        quantiles("quadrant_placement_wait_seconds"),
        unit="s",
    )
    reasons = (("node", "Pods that fit nowhere"), ("gpu", "Claims without devices"))
    for axis, title in reasons:
        where = f'{CLUSTER}, axis="{axis}"'
        lines(
            "timeseries",
            f"{title}: why",
            "For each decision, the kinds of reasons that were in the way; most have several.",
            [(rate("quadrant_rejections_total", "reason", where), "{{reason}}")],
            unit="ops",
        )
    lines(
        "timeseries",
        "Placements",
        "By what came of the search for a node.",
        [(rate("quadrant_placements_total", "result"), "{{result}}")],
        unit="ops",
    )


def decisions(sheet: Sheet) -> None:
    """What came of reviews, how long each part of them takes, and how good the choices are."""
    sheet.row("Decisions")
    for title, description, metric, label in (
        ("Reviews of allocations", "By what came of them.", "commit_reviews", "result"),
        (
            "Refusals by reason",
            (
                "The scheduler tries these again; a steady rate of nothing-fits or in-use means "
                "that it sees another cluster than we do."
            ),
            "commit_denials",
            "reason",
        ),
        (
            "Conflicts",
            "Reviews of claims, and writes of ours, that a newer version had overtaken.",
            "conflicts",
            "what",
        ),
    ):
        query = rate(f"quadrant_{metric}_total", label)
        sheet.panel("timeseries", title, description, [(query, f"{{{{{label}}}}}")], unit="ops")
    _times(sheet)
    scores = "sum by (le) (increase(quadrant_commit_score_bucket{%s}[$__rate_interval]))"
    sheet.panel(
        "heatmap",
        "Scores of the chosen devices",
        "What a score means is the policy's business; with compact it is how full they are.",
        [(scores % CLUSTER, "{{le}}")],
    )


def _times(sheet: Sheet) -> None:
    for title, description, queries in (
        (
            "Commit decision",
            "Time to choose the devices of a claim.",
            quantiles("quadrant_commit_decision_seconds"),
        ),
        (
            "Node decision",
            "Time to find the best node for a pod.",
            quantiles("quadrant_placement_decision_seconds"),
        ),
        (
            "Webhook round trip",
            "From the first byte of a review to its answer, 99 of 100.",
            worst("quadrant_admission_seconds", "path"),
        ),
        (
            "Until an allocation is seen",
            "From our answer until the watch shows it: the API server, etcd and the watch.",
            quantiles("quadrant_commit_landed_seconds"),
        ),
        (
            "Calls to the API server",
            "By verb, 99 of 100; nominations and gates are PATCH.",
            worst("quadrant_api_call_seconds", "verb"),
        ),
    ):
        sheet.panel("timeseries", title, description, queries, unit="s")

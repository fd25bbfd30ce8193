"""What each process counts while it works, in Prometheus' own form.

Names and labels are an interface that users build alerts and dashboards on;
docs/reference/metrics.md is made from them. No label ever holds what users make up freely (a pod, a
claim, a sentence), so the number of series is bounded by models, results and reasons.
"""

from functools import partial

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)

# When each counter began is a series more for every one, and nobody asks for it.
disable_created_metrics()  # type: ignore[no-untyped-call] # their library, untyped here

# Seconds. A decision takes a fraction of a millisecond; what takes over 5 s has failed.
_DECISIONS = (0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5)
_ROUND_TRIPS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_LANDINGS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0)
_WAITS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
# Most policies score from 0 to 100; what makes something worse scores below.
_SCORES = (-100, -50, -20, -10, -5, -2, -0.5, 0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99)
_PREPARES = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 45.0)

# Makes one that is collected with the others.
_Counters = partial[Counter]
_Histograms = partial[Histogram]


class ControllerMetrics:
    """What the controller counts while it works; gauges of its state are collected when read."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        counter = partial(Counter, registry=registry)
        histogram = partial(Histogram, registry=registry)
        self._commits(counter, histogram)
        self._placements(counter, histogram)

    def _commits(self, counter: _Counters, histogram: _Histograms) -> None:
        self.reviews = counter(
            "quadrant_commit_reviews", "Reviews of allocations by what came of them.", ["result"]
        )
        self.denials = counter(
            "quadrant_commit_denials", "Allocations refused, by the kind of reason.", ["reason"]
        )
        self.rejections = counter(
            "quadrant_rejections",
            "Decisions that found no devices or no node, once for each kind of reason.",
            ["axis", "reason"],
        )
        self.scores = histogram(
            "quadrant_commit_score",
            "Scores of the chosen devices; what they mean is the policy's business.",
            ["policy"],
            buckets=_SCORES,
        )
        self.decisions = histogram(
            "quadrant_commit_decision_seconds",
            "Time of one decision about the devices of a claim.",
            buckets=_DECISIONS,
        )
        self.landed = histogram(
            "quadrant_commit_landed_seconds",
            "Time from our answer until the watch shows the allocation.",
            buckets=_LANDINGS,
        )
        self.conflicts = counter(
            "quadrant_conflicts",
            "Reviews of claims, and writes of ours, that a newer version had overtaken.",
            ["what"],
        )
        self.round_trips = histogram(
            "quadrant_admission_seconds",
            "Time from the first byte of a review to its answer.",
            ["path", "result"],
            buckets=_ROUND_TRIPS,
        )

    def _placements(self, counter: _Counters, histogram: _Histograms) -> None:
        self.placements = counter(
            "quadrant_placements",
            "Pods whose scheduling gate was lifted, by what came of the search for a node.",
            ["result"],
        )
        self.waits = histogram(
            "quadrant_placement_wait_seconds",
            "Time from a pod's creation until its gate was lifted.",
            buckets=_WAITS,
        )
        self.plans = histogram(
            "quadrant_placement_decision_seconds",
            "Time to find the best node for a pod, the turns of others in between included.",
            buckets=_DECISIONS,
        )
        self.reclaimed = counter(
            "quadrant_allocations_reclaimed",
            "Allocations that nobody used and that were taken away.",
        )
        self.calls = histogram(
            "quadrant_api_call_seconds",
            "Time of one call to the API server, watches apart; each try counts.",
            ["verb", "result"],
            buckets=_ROUND_TRIPS,
        )

    def called(self, verb: str, result: str, seconds: float) -> None:
        """The API server has answered a call of ours, or has not (see `driver.kube.rest.Rest`)."""
        self.calls.labels(verb, result).observe(seconds)
        if result == "Conflict":
            self.conflicts.labels("write").inc()


class NodeMetrics:
    """What the node plugin counts while it works; series per device are collected when read."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.claims = Histogram(
            "quadrant_node_claim_seconds",
            "Time to prepare or unprepare one claim, waiting for others included.",
            ["operation", "result"],
            registry=registry,
            buckets=_PREPARES,
        )
        self.double_uses = Counter(
            "quadrant_node_double_uses_refused",
            "Claims refused because another claim on this node holds their device.",
            registry=registry,
        )
        self.slice_writes = Counter(
            "quadrant_node_slice_writes",
            "Attempts to publish the node's slices, by result.",
            ["result"],
            registry=registry,
        )
        self.registered = Gauge(
            "quadrant_node_registered",
            "Whether the kubelet has accepted the plugin.",
            registry=registry,
        )

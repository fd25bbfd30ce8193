"""What playing a trace came to: the data of the table and of `-o json`."""

import msgspec

from driver.cli.simulation.report import API_VERSION

KIND = "TraceSimulation"


class _Reported(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all parts: every field is written, also one that has its default."""


class Departures(_Reported, frozen=True, kw_only=True):
    """The same tasks, each leaving after as long as it ran; see docs/simulate.md for `served`."""

    served: float
    failed: int
    tasks: int
    interval_seconds: float


class Played(_Reported, frozen=True, kw_only=True):
    """What one policy made of it; percentages are of all cards, null where it never came so far."""

    policy: str
    a95: float | None
    a100: float | None
    a130: float | None
    tasks: int
    failed: int
    fragmentation: float | None
    decision_mean_ms: float
    decision_p99_ms: float
    departures: Departures | None = None


class TraceReport(_Reported, frozen=True, kw_only=True):
    """Everything that is said; `cpuOnly` tells who placed tasks without a card."""

    api_version: str = API_VERSION
    kind: str = KIND
    nodes: int
    cards: int
    seed: int
    until: float
    cpu_only: str
    policies: tuple[Played, ...]

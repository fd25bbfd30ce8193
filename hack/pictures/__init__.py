"""Pictures of the documentation, drawn from what the program does; a test compares them."""

from functools import cache
from pathlib import Path

from hack.pictures.figure import Side, figure
from hack.pictures.mix import arrivals
from hack.pictures.played import COMPACT, NOBODY, Outcome, play

FILE = Path(__file__).resolve().parents[2] / "docs" / "pictures" / "placed-twice.svg"
SEED = 6


@cache
def outcomes() -> tuple[Outcome, Outcome]:
    """What becomes of the same pods: by kube-scheduler alone, and by `compact`."""
    came = list(arrivals(SEED))
    return play(came, NOBODY), play(came, COMPACT)


def picture() -> str:
    """The same pods placed by kube-scheduler alone and by `compact`, as SVG."""
    alone, ours = outcomes()
    return figure(
        (
            Side(
                "kube-scheduler alone",
                "the least allocated node, the first devices that fit",
                alone,
                "bad",
            ),
            Side(
                "kube-scheduler with Quadrant",
                "the fullest node that fits, the fullest devices (policy compact)",
                ours,
                "good",
            ),
        ),
        seed=SEED,
    )

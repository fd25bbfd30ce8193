"""Pictures of the documentation, drawn from what the program does; a test compares them."""

from pathlib import Path

from hack.pictures.figure import Side, figure
from hack.pictures.mix import arrivals
from hack.pictures.played import COMPACT, NOBODY, play

FILE = Path(__file__).resolve().parents[2] / "docs" / "pictures" / "placed-twice.svg"
SEED = 6


def picture() -> str:
    """The same pods placed by kube-scheduler alone and by `compact`, as SVG."""
    came = list(arrivals(SEED))
    return figure(
        (
            Side(
                "kube-scheduler alone",
                "the least allocated node, the first devices that fit",
                play(came, NOBODY),
                "bad",
            ),
            Side(
                "kube-scheduler with Quadrant",
                "the fullest node that fits, the fullest devices (policy compact)",
                play(came, COMPACT),
                "good",
            ),
        ),
        seed=SEED,
    )

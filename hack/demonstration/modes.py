"""What are the four modes, and what must come out of each? Knows nothing of how they are run."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "two-by-two"
REPLICAS = 4


class Row(NamedTuple):
    """One pod: where it runs, and the card that it was given."""

    pod: str
    node: str
    gpu: int
    uuid: str


class Mode(NamedTuple):
    """One pair of policies, its manifest, and a check that says what is wrong (nothing: "")."""

    letter: str
    node: str
    gpu: str
    expected: str
    check: Callable[[Sequence[Row]], str]

    @property
    def manifest(self) -> Path:
        """The Deployment of this mode."""
        return EXAMPLES / f"{self.letter.lower()}-node-{self.node}-gpu-{self.gpu}.yaml"

    @property
    def deployment(self) -> str:
        """The name of the Deployment."""
        return f"demo-{self.letter.lower()}"


def _counted(nodes: int, gpus: int) -> Callable[[Sequence[Row]], str]:
    """So many pods on as many nodes and GPUs, evenly over the nodes."""

    def check(rows: Sequence[Row]) -> str:
        if len(rows) != REPLICAS:
            return f"{len(rows)} of {REPLICAS} pods run"
        on = [row.node for row in rows]
        used = len({row.uuid for row in rows})
        if len(set(on)) != nodes:
            return f"expected {nodes} node(s), found {len(set(on))}"
        if used != gpus:
            return f"expected {gpus} GPU(s), found {used}"
        if {on.count(node) for node in on} != {REPLICAS // nodes}:
            return f"expected {REPLICAS // nodes} pods on each node, found {sorted(on)}"
        return ""

    return check


# Four shares of 7500 MiB need two cards, of 15360 MiB (two each) and of 23028 MiB (three) alike.
MODES = (
    Mode("A", "compact", "compact", "one node, the two GPUs that hold four", _counted(1, 2)),
    Mode("B", "spread", "compact", "two nodes, on each two pods on one GPU", _counted(2, 2)),
    Mode("C", "compact", "spread", "one node, four GPUs", _counted(1, 4)),
    Mode("D", "spread", "spread", "two nodes, on each two pods on two GPUs", _counted(2, 4)),
)

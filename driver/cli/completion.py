"""Completion in shells: of kubectl's plugins, and of names that only the cluster knows.

kubectl runs `kubectl_complete-quadrant` with what was typed, the word under the cursor last, and
expects one candidate a line and then a directive, as cobra's programs print them.
"""

import os
import shlex
import sys
from collections.abc import Iterable
from contextlib import suppress

_VARIABLE = "_QUADRANT_COMPLETE"
# cobra: offer nothing else, in particular no files.
_NO_FILES = 4
_FILES = 0
_FILE_OPTIONS = frozenset({"-f", "--filename", "--kubeconfig", "--inventory", "--trace"})
_LONGEST_S = "2s"


def main() -> None:
    """Answer kubectl."""
    from driver.cli.main import app  # noqa: PLC0415

    words = sys.argv[1:] or [""]
    os.environ |= {
        _VARIABLE: "complete_bash",
        "COMP_WORDS": shlex.join(["quadrant", *filter(None, words)]),
        "COMP_CWORD": str(len(words)),
    }
    with suppress(SystemExit):
        app(prog_name="quadrant")
    wants_file = len(words) > 1 and words[-2] in _FILE_OPTIONS
    print(f":{_FILES if wants_file else _NO_FILES}")  # noqa: T201 - it is for kubectl


def nodes(kubeconfig: str | None, context: str | None, incomplete: str) -> Iterable[str]:
    """Nodes with cards, whose names begin so; nothing where the cluster does not say at once."""
    found = _matrix(kubeconfig, context)
    return [name for name in found if name.startswith(incomplete)]


def cards(kubeconfig: str | None, context: str | None, incomplete: str) -> Iterable[str]:
    """NODE/GPU; first the node, then its cards."""
    found = _matrix(kubeconfig, context)
    node, slash, _ = incomplete.partition("/")
    if not slash:
        return [f"{name}/" for name in found if name.startswith(node)]
    names = (f"{node}/{card}" for card in found.get(node, ()))
    return [name for name in names if name.startswith(incomplete)]


def _matrix(kubeconfig: str | None, context: str | None) -> dict[str, list[str]]:
    """The names of each node's cards."""
    from driver.cli.asking import Access, ask  # noqa: PLC0415
    from driver.cli.fleet.look import Wanted, look  # noqa: PLC0415
    from driver.cli.fleet.nodes import matrix  # noqa: PLC0415
    from driver.kube.rest import Rest  # noqa: PLC0415
    from driver.model.errors import QuadrantError  # noqa: PLC0415
    from driver.model.names import DRIVER  # noqa: PLC0415

    async def question(rest: Rest) -> dict[str, list[str]]:
        found = await look(rest, Wanted(driver=DRIVER))
        rows = matrix(found.state).nodes
        return {row.node: [card.device for card in row.cards] for row in rows}

    try:
        return ask(Access(kubeconfig=kubeconfig, context=context, timeout=_LONGEST_S), question)
    except QuadrantError:
        # The user is typing: an error has no place there.
        return {}

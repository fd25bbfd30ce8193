"""Cards that an operator has closed: written on the Node, so that it survives everything here.

The plugin only reads its own Node; `quadrant cordon` writes the annotation, as can anybody who may
change nodes. What runs on a closed card stays.
"""

from collections.abc import Collection

import structlog

from driver.kube.events import Recorder, Subject
from driver.kube.informer import Informer
from driver.kube.rest import Rest
from driver.kube.store import Event, Upsert
from driver.model import events
from driver.model.core import Node
from driver.model.names import CORDONED, CORDONED_TAINT
from driver.model.resourceslice import DeviceTaint
from driver.node.board import Board, card_name

NODES = "/api/v1/nodes"

# What the board knows us by.
_SOURCE = "cordon"

log = structlog.get_logger(__name__)


class Cordon:
    """Keeps the taints of closed cards on the board; `run` it as a task."""

    def __init__(
        self, rest: Rest, board: Board, recorder: Recorder, *, driver: str, node: str
    ) -> None:
        self._board = board
        self._recorder = recorder
        self._node = node
        self._taint = DeviceTaint(key=f"{driver}/{CORDONED_TAINT}", effect="NoSchedule")
        self._text = ""
        self._informer = Informer(
            rest, NODES, Node, on_event=self._on_event, field_selector=f"metadata.name={node}"
        )

    async def run(self) -> None:
        """Follow the Node until cancelled."""
        await self._informer.run()

    async def synced(self) -> None:
        """Wait until it is known which cards are closed."""
        await self._informer.synced()

    def _on_event(self, event: Event[Node]) -> None:
        # A Node that is gone closes and opens nothing: it comes back with its annotation or not.
        if not isinstance(event, Upsert):
            return
        text = event.object.metadata.annotations.get(CORDONED, "")
        if text != self._text:
            self._text = text
            self._close(event.object, cordoned(text))

    def _close(self, node: Node, names: Collection[str]) -> None:
        self._board.taints(_SOURCE, dict.fromkeys(names, (self._taint,)))
        known = dict.fromkeys([*map(card_name, self._board.names), *self._board.names])
        unknown = [name for name in names if name not in known]
        log.info("cordoned cards", cards=list(names), unknown=unknown)
        if unknown:
            self._recorder.record(
                Subject(api_version="v1", kind="Node", name=self._node, uid=node.metadata.uid),
                events.UNKNOWN_CARD,
                f"annotation {CORDONED} names {', '.join(unknown)}, which is no GPU of this node; "
                f"it has {', '.join(known) or 'none'}",
            )


def cordoned(text: str) -> tuple[str, ...]:
    """The cards that the annotation names: "gpu-1,gpu-3", with or without blanks."""
    return tuple(dict.fromkeys(filter(None, (name.strip() for name in text.split(",")))))

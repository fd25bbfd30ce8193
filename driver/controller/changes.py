"""Which nodes have changed since when, as far as a placement depends on them.

A version is a plain number that rises with every change. It knows no reasons: whoever changes
something that counts on a node says so here, and whoever remembers results asks what is outdated.
"""

from collections.abc import Iterator


class Changes:
    """The latest change of each node, newest last."""

    def __init__(self) -> None:
        self._now = 0
        self._everywhere = 0
        self._at: dict[str, int] = {}

    @property
    def now(self) -> int:
        """The version of the last change; 0 before the first one."""
        return self._now

    def touch(self, node: str) -> None:
        """Something on this node has changed."""
        self._now += 1
        # Taken out first, so that the nodes stand in the order of their last change.
        self._at.pop(node, None)
        self._at[node] = self._now

    def touch_all(self) -> None:
        """Something has changed that may count on every node."""
        self._now = self._everywhere = self._now + 1
        self._at.clear()

    def at(self, node: str) -> int:
        """The version of this node's last change."""
        return self._at.get(node, self._everywhere)

    def since(self, version: int) -> Iterator[str] | None:
        """The nodes changed after this version, the newest first; None: all of them.

        Takes time only for what it yields.
        """
        if version < self._everywhere:
            return None
        return self._after(version)

    def _after(self, version: int) -> Iterator[str]:
        for node in reversed(self._at):
            if self._at[node] <= version:
                return
            yield node

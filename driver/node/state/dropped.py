"""Which claims the other instance of the plugin has let go of since a moment.

Pure. What it cannot know any more (the file was compacted by the other instance and read anew, or
too many claims went by) counts as let go of: who asks begins again, and is then right.
"""

_KEPT = 1024


class Dropped:
    """Counts what the other instance drops; its moments mean nothing outside of this process."""

    def __init__(self) -> None:
        self._now = 0
        self._last: dict[str, int] = {}
        # Nothing is known of what was dropped up to here.
        self._unknown = 0

    def now(self) -> int:
        """This moment, to ask about later; any thread may call it."""
        return self._now

    def note(self, uid: str) -> None:
        """The other instance has dropped a claim, held or not."""
        if len(self._last) >= _KEPT:
            self.forget()
        self._now += 1
        self._last[uid] = self._now

    def forget(self) -> None:
        """Anything may have been dropped up to now."""
        self._now += 1
        self._unknown = self._now
        self._last.clear()

    def since(self, uid: str, moment: int) -> bool:
        """Whether the claim was, or may have been, dropped after `moment`."""
        return max(self._unknown, self._last.get(uid, 0)) > moment

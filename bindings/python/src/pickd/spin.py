"""How long to look for an answer before going on. Pure: no clock, no queue."""

_SHORTEST_NS = 2000
_EVERY = 64  # picks without a look, before one tries again


class Spin:
    """How long the loop looks for the answer of a pick that is alone.

    A daemon that is awake answers in a few microseconds, and going through the loop's selector takes longer. Looking
    that fails costs its whole time, so then there is less of it, down to a look now and then.
    """

    __slots__ = ("_longest_ns", "_now_ns", "_skipped")

    def __init__(self, longest_ns: int) -> None:
        self._longest_ns = self._now_ns = max(longest_ns, 0)
        self._skipped = 0

    def budget_ns(self) -> int:
        """Of the next pick; 0: do not look."""
        if self._longest_ns == 0 or self._now_ns >= _SHORTEST_NS:
            return self._now_ns
        self._skipped += 1
        if self._skipped < _EVERY:
            return 0
        self._skipped = 0
        return self._longest_ns

    def learn(self, found: bool) -> None:
        """One success restores the whole budget, each failure halves it."""
        self._now_ns = self._longest_ns if found else self._now_ns // 2

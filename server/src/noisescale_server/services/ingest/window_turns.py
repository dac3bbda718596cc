"""Which batches compute the latest window of their run: so many a second that storing comes first."""

import time
from collections.abc import Callable

WINDOWS_A_SECOND = 20.0
"""Of all batches of a process. What is beyond waits for a round, or for whoever reads the run."""


class WindowTurns:
    """A bucket of turns that fills by the second: a few jobs always find one, a thousand share what there is."""

    def __init__(self, a_second: float = WINDOWS_A_SECOND, now: Callable[[], float] = time.monotonic) -> None:
        """Create a full one.

        Args:
            a_second: Turns, and the most that are kept.
            now: A clock in seconds.
        """
        self._a_second = a_second
        self._now = now
        self._left = a_second
        self._filled_at = now()

    def take(self) -> bool:
        """Whether there was a turn left; it is gone then."""
        at = self._now()
        self._left = min(self._a_second, self._left + self._a_second * (at - self._filled_at))
        self._filled_at = at
        if self._left < 1:
            return False
        self._left -= 1
        return True

"""Whether the disk is too slow for the training thread to wait for it."""

SLOW_SECONDS = 0.050
QUICK_SECONDS = 0.005
NUM_QUICK = 100


class WriteSpeed:
    """Remembers how long writes took: one slow one is enough to stop waiting, a hundred quick ones to begin again.

    Attributes:
        is_slow: Somebody else should write.
    """

    def __init__(self) -> None:
        self.is_slow = False
        self._num_quick = 0

    def see(self, seconds: float) -> None:
        """Take the time of one write."""
        if seconds > SLOW_SECONDS:
            self.is_slow = True
            self._num_quick = 0
        elif self.is_slow:
            self._num_quick = self._num_quick + 1 if seconds < QUICK_SECONDS else 0
            self.is_slow = self._num_quick < NUM_QUICK

"""When a stream that has nothing to send lets its server know that its process lives."""

import time

HEARTBEAT_SECONDS = 20.0
"""A third of the time after which a server calls a run silent."""

LONGEST_STEP_SECONDS = 3600.0
"""Who logs nothing for so long, as a notebook that was left open, is not training: its run may become silent."""


class Heartbeat:
    """Due when the server has heard nothing for a while, although the newest record is not old."""

    def __init__(self) -> None:
        self._heard_at = self._logged_at = time.monotonic()
        self._num_logged = 0

    def was_heard(self) -> None:
        """The server has answered."""
        self._heard_at = time.monotonic()

    def is_due(self, num_logged: int) -> bool:
        """Whether to say something now, after so many records."""
        now = time.monotonic()
        if num_logged != self._num_logged:
            self._num_logged, self._logged_at = num_logged, now
        return now - self._heard_at >= HEARTBEAT_SECONDS and now - self._logged_at < LONGEST_STEP_SECONDS

"""How many records are sent at once, and how often a stream that has none to send is heard of."""

import time

HEARTBEAT_SECONDS = 20.0
"""A third of the time after which a server calls a run silent."""

LONGEST_STEP_SECONDS = 3600.0
"""Who logs nothing for so long, as a notebook that was left open, is not training: its run may become silent."""

MAX_RECORDS = 1000
LARGER_AGAIN_SECONDS = 60.0
"""How long after a refusal the next larger size is tried again."""


# When a stream that has nothing to send lets its server know that its process lives.


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


class BatchSize:
    """Half after each refusal, twice after each batch that arrived; all again where nothing is left to halve.

    Attributes:
        num_records: At most in the next batch.
    """

    def __init__(self) -> None:
        self.num_records = MAX_RECORDS
        self._largest = MAX_RECORDS
        self._refused_at = time.monotonic()

    def refuse(self, num_records: int) -> None:
        """A batch of so many was too large, for all anyone knows."""
        self._refused_at = time.monotonic()
        self.num_records = self._largest = num_records // 2 or MAX_RECORDS

    def take(self) -> None:
        """A batch has arrived."""
        if time.monotonic() - self._refused_at >= LARGER_AGAIN_SECONDS:
            self._largest = MAX_RECORDS
        self.num_records = min(self._largest, 2 * self.num_records)

"""How many records a batch may have, where something on the way takes only so many."""

import time

MAX_RECORDS = 1000
LARGER_AGAIN_SECONDS = 60.0
"""How long after a refusal the next larger size is tried again."""


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

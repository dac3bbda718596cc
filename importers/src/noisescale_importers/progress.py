"""How far an import is, in a line of the terminal that is written over; none where standard error is no terminal."""

import sys
import time

SECONDS = 0.1
WIDTH = 30


class Bar:
    """Runs that are done, and records of the one that is under way."""

    def __init__(self, num_runs: int) -> None:
        self._num_runs = max(1, num_runs)
        self._num_done = 0
        self._is_shown = sys.stderr.isatty()
        self._said_at = -SECONDS

    def item(self, number: int) -> None:
        """So many records of the present run are done."""
        now = time.monotonic()
        if self._is_shown and now - self._said_at >= SECONDS:
            self._said_at = now
            bar = "█" * int(WIDTH * self._num_done / self._num_runs)
            sys.stderr.write(
                f"\r{bar:░<{WIDTH}} run {self._num_done + 1:,} of {self._num_runs:,}, record {number:,}\x1b[K"
            )
            sys.stderr.flush()

    def run_done(self) -> None:
        """One run more is done."""
        self._num_done += 1

    def clear(self) -> None:
        """Wipe the line, before something is said."""
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

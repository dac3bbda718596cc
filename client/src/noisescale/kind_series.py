"""A further kind of noise scale of a run: a series of its own, with its own stream and its own latest window."""

from collections.abc import Callable
from dataclasses import replace

from noisescale.estimators.noise_scale import Terms
from noisescale.outbox import Outbox
from noisescale.recent_updates import RecentUpdates
from noisescale.recording import Recording
from noisescale.transport.wire import FinishRecord, RunRecord
from noisescale.updates import Update


class KindSeries:
    """Rows of one kind; they hold no loss, the series of kind "simple" has it.

    Args:
        outbox: Of the kind's own stream; None: nothing is sent.
        log_every: Updates per row.
        now: Unix seconds.

    Attributes:
        recent: The latest window.
    """

    def __init__(self, outbox: Outbox | None, *, log_every: int, now: Callable[[], float]) -> None:
        self._outbox = outbox
        self.recent = RecentUpdates()
        self._recording = Recording(
            lambda record: None if outbox is None else outbox.send(record),
            log_every=log_every,
            group_seconds=0.0,
            group_names=[],
            start_time=now(),
        )

    def add(self, update: Update, terms: Terms | None) -> None:
        """Add the kind's terms of a step; None where the step gave none."""
        if terms is not None:
            self.recent.add(terms)
            self._recording.add(replace(update, terms=terms, layers=[], loss=None))

    def describe_again(self, record: RunRecord) -> None:
        """Say anew how the stream measures; one that has not begun says it when it does."""
        if self._outbox is not None and self.recent.num_updates:
            self._outbox.send(record)

    def close(self, last: FinishRecord, timeout_seconds: float) -> None:
        """Deliver what is left for at most so long.

        Args:
            last: Ends the stream, if it has begun.
            timeout_seconds: Longest wait.
        """
        self._recording.flush(last.wall_time)
        if self._outbox is not None:
            if self.recent.num_updates:
                self._outbox.send(last)
            self._outbox.close(timeout_seconds)

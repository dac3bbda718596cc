"""A further kind of noise scale of a run: a series of its own, with its own stream and its own latest window."""

from collections.abc import Callable

from noisescale.guard import Notices
from noisescale.notices.missing_estimates import why_no_estimate, why_no_terms
from noisescale.notices.readable import several
from noisescale.outbox.outbox import Outbox
from noisescale.rows.recording import Recording
from noisescale.rows.updates import Update
from noisescale.transport.wire import FinishRecord, RunRecord
from noisescale.window.recent_updates import RecentUpdates
from noisescale_core.estimators.dual_norm_noise_scale import Bracket
from noisescale_core.estimators.noise_scale import Terms

SILENT_STEPS = 32
"""Measured steps without terms of a kind after which the job says why."""


class KindSeries:
    """Rows of one kind; they hold no loss, the series of kind "simple" has it.

    Args:
        outbox: Of the kind's own stream; None: nothing is sent.
        kind: Of noise scale.
        example: What is sampled independently, in the singular.
        log_every: Updates per row.
        now: Unix seconds.
        notices: Says sentences for people.

    Attributes:
        recent: The latest window.
    """

    def __init__(
        self,
        outbox: Outbox | None,
        *,
        kind: str,
        example: str,
        log_every: int,
        now: Callable[[], float],
        notices: Notices,
    ) -> None:
        self._outbox = outbox
        self._kind = kind
        self._notices = notices
        self._examples = several(example)
        self._num_seen = 0
        self._newest: Update | None = None
        self._bracket: Bracket | None = None
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
            self.recent.add(terms, update.logged.step)
            self._recording.add(update._replace(terms=terms, layers=None, loss=None, path=None))

    def see(self, update: Update, terms: Terms | None, bracket: Bracket | None) -> None:
        """Take a measured step; `add` where it gave terms.

        Args:
            update: Of kind `simple`.
            terms: Of this kind.
            bracket: Between which values the noise scale lies so far; None where that is not known.
        """
        self.add(update, terms)
        if self.recent.num_updates:
            return
        self._newest, self._bracket = update, bracket or self._bracket
        self._num_seen += 1
        if self._num_seen == SILENT_STEPS:
            self._notices.say(f"kind {self._kind} after {SILENT_STEPS} measured steps: {self.why_nothing()}")

    def why_nothing(self) -> str:
        """Why no step has given terms, where none has."""
        if self._newest is None or self._newest.terms is None:
            return why_no_estimate(None if self._newest is None else self._newest.flags, is_silent=False)
        return why_no_terms(
            self._kind,
            num_steps=self._num_seen,
            num_small_batches=self._newest.num_micro_batches,
            bracket=self._bracket,
            examples=self._examples,
        )

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

"""What one recorder knows of its run when it is asked: which latest window answers, and why it is empty."""

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from noisescale.description import RunDescription
from noisescale.guard import Notices
from noisescale.notices.explanations import way_to_measure, why_no_estimate
from noisescale.track.stream_description import StreamDescription
from noisescale.track.watching import Watching
from noisescale.window.recent_updates import NoiseScale, RecentUpdates
from noisescale.window.run_history import RunHistory
from noisescale_core.advice.early import Early, why_early
from noisescale_core.advice.learning_rate.rate_verdict import far_off
from noisescale_core.advice.parts.parts import RateOff
from noisescale_core.estimators.divergence import Divergence
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate

if TYPE_CHECKING:
    from noisescale.track.further_kinds import FurtherKinds, KindSeries
    from noisescale.track.step_log import StepLog


MOST_POINTS = 4_000
"""Of one metric; where there would be more every second one goes. A curve of 2,000 is enough to cross a target."""


# What a job knows of its run when it is asked for advice.


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """The measurements of one optimizer.

    Attributes:
        description: What the run is called and made of.
        optimizer: Class of the optimizer; None where none is watched.
        momentum: Of it, as its path knows; None where there is none.
        noise_scale: Of the latest window, in examples.
        has_signal: The run has shown a gradient.
        history: What was spent.
        batch_size: In use now, in examples; None while unknown.
        newest_step: The last optimizer step that was logged.
        has_ended: It takes no more steps.
        is_silent: Another rank of the job has the numbers.
        divergence: Since when loss or gradients are not finite; None where they are.
        noise_scale_step: The last step that is in the noise scale.
        rate_off: How far the learning rate is off; None where it is not, or nobody knows.
    """

    description: RunDescription
    optimizer: str | None
    noise_scale: NoiseScaleEstimate
    has_signal: bool
    history: RunHistory
    batch_size: float | None
    newest_step: int
    has_ended: bool
    is_silent: bool
    divergence: Divergence | None = None
    noise_scale_step: int | None = None
    rate_off: RateOff | None = None
    momentum: float | None = None


# What a run has logged with `log_metrics()`, kept in little memory, for a sweep that reads its runs.


class MetricHistory:
    """Steps and values of every metric, in the order in which they were logged."""

    def __init__(self) -> None:
        self._by_name: dict[str, tuple[array[int], array[float]]] = {}

    def add(self, step: int, values: Mapping[str, float | None]) -> None:
        """Add numbers of a step; None is a value that was not finite."""
        for name, value in values.items():
            steps, kept = self._by_name.setdefault(name, (array("q"), array("d")))
            steps.append(step)
            kept.append(math.nan if value is None else value)
            if len(steps) > MOST_POINTS:
                # the newest stays, as a target may be reached there
                self._by_name[name] = steps[::-2][::-1], kept[::-2][::-1]

    def of(self, name: str) -> list[tuple[int, float]]:
        """Steps and values of a metric, not a number where it was not finite; empty where it was never logged."""
        steps, values = self._by_name.get(name, ((), ()))
        return list(zip(steps, values, strict=True))

    @property
    def names(self) -> list[str]:
        """What was logged."""
        return sorted(self._by_name)


class Results:
    """Answers from what was recorded so far.

    Args:
        log: Of kind `simple`.
        kinds: The further kinds.
        stream: How it was measured.
        watching: What measures now.
        notices: Sentences that were said.
    """

    def __init__(
        self, log: "StepLog", kinds: "FurtherKinds", stream: StreamDescription, watching: Watching, notices: Notices
    ) -> None:
        self._log = log
        self._kinds = kinds
        self._stream = stream
        self._watching = watching
        self._notices = notices

    def noise_scale(self, kind: str, described: RunDescription) -> NoiseScale:
        """The noise scale of the latest window; of a kind that is not measured it is unresolved.

        Args:
            kind: Of noise scale.
            described: Says in which units it is told.
        """
        log, watch = self._log, self._watching.watch
        recent, why_nothing = _latest_window(
            kind, log, self._kinds.series, self._notices, is_silent=self._watching.is_silent
        )
        now = recent.estimate()
        return NoiseScale(
            now,
            recent.num_updates,
            described.example,
            described.unit,
            described.units_per_example,
            steps_per_update=1 if watch is None else watch.duty.every,
            seconds_per_step=log.pace.seconds_per_step,
            why_nothing=why_nothing,
            divergence=log.finite.divergence,
            step=log.finite.estimated_step,
            early=_early_of(now, log, described.planned_steps) if kind == "simple" else None,
            covered=self._stream.covered,
        )

    def measured(self, described: RunDescription, *, has_ended: bool) -> MeasuredRun:
        """What a recommendation is made from.

        Args:
            described: What the run is called and made of.
            has_ended: It takes no more steps.
        """
        log = self._log
        return MeasuredRun(
            description=described,
            optimizer=self._stream.optimizer,
            momentum=None if log.path.path is None else log.path.path.momentum,
            noise_scale=log.recent.estimate(),
            has_signal=log.recent.has_signal,
            history=log.history.now(),
            batch_size=log.batch_in_use,
            newest_step=log.steps.newest_step,
            has_ended=has_ended,
            is_silent=self._watching.is_silent,
            divergence=log.finite.divergence,
            noise_scale_step=log.finite.estimated_step,
            rate_off=far_off(log.learning_rate(self._stream.optimizer, described.planned_steps, has_ended=has_ended)),
        )


def _latest_window(
    kind: str, log: "StepLog", kinds: "Mapping[str, KindSeries]", notices: Notices, *, is_silent: bool
) -> tuple[RecentUpdates, str]:
    """The window, and why no step has given it an estimate.

    Args:
        kind: Of noise scale.
        log: Of kind `simple`.
        kinds: Of the further kinds.
        notices: Told what to do about a kind that is not measured.
        is_silent: Another rank of the job sends.
    """
    if kind == "simple":
        return log.recent, why_no_estimate(log.newest_flags, is_silent=is_silent)
    series = kinds.get(kind)
    if series is not None:
        return series.recent, series.why_nothing()
    not_measured = f"kind {kind!r} is not measured: {way_to_measure(kind)}"
    notices.once(f"kind {kind}", not_measured)
    return RecentUpdates(), not_measured


def _early_of(now: NoiseScaleEstimate, log: "StepLog", planned_steps: int | None) -> Early | None:
    """Why a noise scale of kind `simple` is early; None where it is not.

    Args:
        now: Of the latest window.
        log: Of the run.
        planned_steps: Of the whole run; None where that is unknown.
    """
    steps_done = log.steps.next_step
    before = log.history.half_way(steps_done, has_signal=log.recent.has_signal)
    return why_early(now, before, steps_done=steps_done, planned_steps=planned_steps)

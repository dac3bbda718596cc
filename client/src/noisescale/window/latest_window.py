"""Which latest window answers for a kind of noise scale, why it is empty, and why it will not stay as it is."""

from collections.abc import Mapping

from noisescale.guard import Notices
from noisescale.notices.explanations import way_to_measure
from noisescale.notices.missing_estimates import why_no_estimate
from noisescale.rows.kind_series import KindSeries
from noisescale.track.step_log import StepLog
from noisescale.window.recent_updates import RecentUpdates
from noisescale_core.advice.early import Early, why_early
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate


def latest_window(
    kind: str, log: StepLog, kinds: Mapping[str, KindSeries], notices: Notices, *, is_silent: bool
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


def early_of(now: NoiseScaleEstimate, log: StepLog, planned_steps: int | None) -> Early | None:
    """Why a noise scale of kind `simple` is early; None where it is not.

    Args:
        now: Of the latest window.
        log: Of the run.
        planned_steps: Of the whole run; None where that is unknown.
    """
    steps_done = log.steps.next_step
    before = log.history.half_way(steps_done, has_signal=log.recent.has_signal)
    return why_early(now, before, steps_done=steps_done, planned_steps=planned_steps)

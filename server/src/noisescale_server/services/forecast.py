"""How the noise scale of a run, or the critical batch of a sweep, goes on: the law over what was seen, and beyond."""

import asyncio
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

import numpy as np
from cachetools import LRUCache
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.theory.temperature import windows_to_use
from noisescale_server.analysis.forecast.laws.ladder import Crossing, fit_ladder
from noisescale_server.analysis.forecast.laws.law import FAR, Law, LawPoint, NoLaw, curve, fit_law
from noisescale_server.analysis.forecast.laws.shape_fit import LawObservations
from noisescale_server.analysis.forecast.laws.shapes import Axis
from noisescale_server.analysis.sweeps.steps_to_target.best_of_grid import best_of_grid
from noisescale_server.analysis.sweeps.steps_to_target.setting import Setting
from noisescale_server.services.platform.errors import RunNotFound, refuse
from noisescale_server.services.series import separate_windows as run_windows
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.services.series.separate_windows import RunWindow
from noisescale_server.services.series.whole_run import WholeRuns
from noisescale_server.services.sweeps import curves as sweep_curves
from noisescale_server.services.sweeps import sweeps
from noisescale_server.services.sweeps.curves import targets_of
from noisescale_server.storage import sweeps as sweep_version
from noisescale_server.storage.platform.tables import Run
from noisescale_server.storage.runs import runs, streams
from noisescale_server.storage.runs.streams import SIMPLE
from noisescale_server.storage.sweeps import SweepRow

Quantity = Literal["noise_scale", "critical_batch"]
WarningCode = Literal["far", "one_run", "confounded", "cannot_tell", "levels_off", "noise_scale"]

NUM_SEGMENTS = 6
"""Parts of a run whose errors are taken to be independent: a sixth is longer than its errors go together.

Over simulated runs of 20 windows whose errors had a correlation of 0.5 from one to the next, 95 % intervals held the
exponent in 95 %; with eight parts in 93 %."""

HOW_FAR = 2.0
"""A forecast without a stated end goes on to twice the steps or examples, where nothing was planned."""

HOW_FAR_IN_LOSS = 0.9


KEPT = 256
GROWTH = 1.01
"""A law of a run is fitted again when the run is so many times as long."""
"""Forecasts that are kept, of some 60 points each."""


@dataclass(frozen=True, slots=True)
class Warned:
    """A caution about a forecast: a code for programs, a sentence for people."""

    code: WarningCode
    text: str


@dataclass(frozen=True, slots=True)
class Observed:
    """What the law was fitted to, in examples."""

    x: float
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Forecast:
    """A law with what it rests on and where it leads.

    Attributes:
        quantity: Of what.
        axis: Over what.
        observed: Windows or targets, in the order of x.
        num_unresolved: Windows left out since they are not resolved.
        num_cold: Windows left out since their learning rate is below a tenth of the peak.
        outcome: The law, or why there is none.
        curve: Over what was seen and on to the end of the forecast; empty without a law.
        warnings: What to know before using it.
    """

    quantity: Quantity
    axis: Axis
    observed: tuple[Observed, ...]
    num_unresolved: int
    num_cold: int
    outcome: Law | NoLaw
    curve: tuple[LawPoint, ...]
    warnings: tuple[Warned, ...]


_kept: LRUCache[Hashable, Forecast] = LRUCache(KEPT)


async def of_run(
    session: AsyncSession,
    whole_runs: WholeRuns,
    run_id: UUID,
    *,
    axis: Axis,
    to: float | None,
    num_points: int,
    level: float,
) -> tuple[Run, Forecast]:
    """The forecast of a run's noise scale.

    Raises:
        RunNotFound: When no run has this id.
        InvalidInput: When `to` is not positive.
    """
    run = await runs.get(session, run_id)
    if run is None:
        raise RunNotFound(run_id)
    _check(to)
    live = LiveSeries.of(run_id, SIMPLE, await streams.coverage_of_run(session, run_id, SIMPLE))
    end = to or _planned(run, axis)
    key = (run_id, run.created_at, _grown(live), axis, end, num_points, level)
    known = _kept.get(key)
    if known is not None:
        return run, known
    has_signal = bool(live.intervals) and await whole_runs.has_signal(session, run, live, live.newest_step)
    found = await run_windows.of_run(session, live, has_signal=has_signal)
    # off the event loop: four curves take some 30 ms
    _kept[key] = forecast = await asyncio.to_thread(forecast_of_windows, found, axis, end, num_points, level)
    return run, forecast


def _grown(live: LiveSeries) -> Hashable:
    """Which streams the run has and its length, to one percent: a window is as long, and a fit takes its time."""
    streams_of_run = tuple((one.stream_id, one.first_step) for one in live.covered)
    num_steps = live.newest_step - live.first_step + 1 if live.intervals else 0
    return streams_of_run, math.floor(math.log(num_steps) / math.log(GROWTH)) if num_steps > 0 else None


async def of_sweep(
    session: AsyncSession, sweep_id: UUID, *, targets: Sequence[float], to: float | None, num_points: int, level: float
) -> tuple[SweepRow, Forecast]:
    """The forecast of a sweep's B_crit over its targets.

    Raises:
        SweepNotFound: When no sweep has this id.
        InvalidInput: When `to` is not positive, or the metric rises.
    """
    row = await sweeps.row(session, sweep_id)
    _check(to)
    sweep = row.sweep
    if sweep.goal == "max":
        raise refuse("sweep_id", "has a metric that rises, and the law is over a loss: take a sweep of a loss")
    # before the data: what is newer than its version is only computed once more
    version = await sweep_version.version_of(session, sweep_id)
    key = (sweep_id, sweep.created_at, version, tuple(targets), to, num_points, level)
    known = _kept.get(key)
    if known is not None:
        return row, known
    settings = await sweep_curves.settings_of_sweep(session, sweep)
    wanted = list(targets) or targets_of(sweep, settings)
    _kept[key] = found = await asyncio.to_thread(forecast_of_ladder, settings, wanted, to, num_points, level)
    return row, found


def forecast_of_windows(
    windows: Sequence[RunWindow], axis: Axis, to: float | None, num_points: int, level: float
) -> Forecast:
    """The forecast from the windows of one run."""
    resolved = [one for one in windows if one.is_resolved and (_x(one, axis) or 0.0) > 0]
    rates = [one.learning_rate for one in resolved]
    known = [rate for rate in rates if rate is not None]
    is_warm = windows_to_use(known) if len(known) == len(rates) and any(known) else [True] * len(resolved)
    used = [one for one, is_used in zip(resolved, is_warm, strict=True) if is_used]
    outcome = fit_law(_observations(used, axis), axis, level=level)
    observed = sorted((_observed(one, axis) for one in used), key=lambda one: one.x)
    end = _end(outcome, to)
    return Forecast(
        quantity="noise_scale",
        axis=axis,
        observed=tuple(observed),
        num_unresolved=len(windows) - len(resolved),
        num_cold=len(resolved) - len(used),
        outcome=outcome,
        curve=tuple(curve(outcome, end, num_points)) if isinstance(outcome, Law) else (),
        warnings=_warnings(outcome, end, "noise_scale"),
    )


def forecast_of_ladder(
    settings: Sequence[Setting], targets: Sequence[float], to: float | None, num_points: int, level: float
) -> Forecast:
    """The forecast from the steps of a sweep's runs to several targets."""
    crossings = [
        Crossing(target, point.batch_size, point.average.steps.steps)
        for target in targets
        for point in best_of_grid(settings, target)
        if point.average.steps.steps is not None and point.average.steps.low > 0
    ]
    outcome = fit_ladder(crossings, level=level)
    end = _end(outcome, to)
    is_law = isinstance(outcome, Law)
    return Forecast(
        quantity="critical_batch",
        axis=Axis.LOSS,
        observed=(),
        num_unresolved=0,
        num_cold=0,
        outcome=outcome,
        curve=tuple(curve(outcome, end, num_points)) if isinstance(outcome, Law) else (),
        warnings=_warnings(outcome, end, "critical_batch") if is_law else (),
    )


def _check(to: float | None) -> None:
    if to is not None and not 0 < to < math.inf:
        raise refuse("to", "must be positive: a loss, steps or examples to forecast to", to)


def _planned(run: Run, axis: Axis) -> float | None:
    """The end of the plan in steps or examples; None where it is behind, or nothing was planned."""
    if run.planned_steps is None or run.latest_step is None or run.planned_steps <= run.latest_step + 1:
        return None
    if axis is Axis.STEPS:
        return float(run.planned_steps)
    if axis is Axis.EXAMPLES and run.latest_examples is not None and run.latest_global_batch is not None:
        return run.latest_examples + (run.planned_steps - run.latest_step - 1) * run.latest_global_batch
    return None


def _x(window: RunWindow, axis: Axis) -> float | None:
    return {Axis.LOSS: window.loss, Axis.STEPS: window.steps, Axis.EXAMPLES: window.examples}[axis]


def _observations(windows: Sequence[RunWindow], axis: Axis) -> LawObservations:
    values = [one.estimate.value for one in windows]
    noise = [one.loss_standard_error if axis is Axis.LOSS else 0.0 for one in windows]
    return LawObservations(
        x=np.array([_x(one, axis) for one in windows], dtype=float),
        log_value=np.log(np.array(values, dtype=float)),
        standard_error=np.array([one.log_standard_error for one in windows], dtype=float),
        x_standard_error=np.array(noise, dtype=float),
        cluster=np.arange(len(windows)) * NUM_SEGMENTS // max(len(windows), 1),
    )


def _observed(window: RunWindow, axis: Axis) -> Observed:
    x, found = _x(window, axis), window.estimate
    assert x is not None, "windows without are left out"
    assert found.value is not None, "so are unresolved ones"
    return Observed(x, found.value, found.low, found.high)


def _end(outcome: Law | NoLaw, to: float | None) -> float | None:
    if to is not None or isinstance(outcome, NoLaw):
        return to
    return outcome.lowest * HOW_FAR_IN_LOSS if outcome.axis is Axis.LOSS else outcome.highest * HOW_FAR


def _warnings(outcome: Law | NoLaw, end: float | None, quantity: Quantity) -> tuple[Warned, ...]:
    if isinstance(outcome, NoLaw):
        return ()
    found = []
    if end is not None and outcome.decades_beyond(end) > FAR:
        found.append(Warned("far", f"The forecast leaves what was seen by {outcome.decades_beyond(end):.2g} decades."))
    if outcome.choice.verdict == "cannot_tell":
        found.append(Warned("cannot_tell", outcome.choice.explanation))
    if outcome.choice.verdict == "levels_off":
        found.append(Warned("levels_off", outcome.choice.explanation))
    if quantity == "noise_scale":
        found += [
            Warned(
                "one_run", "Errors that the whole run has in common are not in the band: another run may lie beside."
            ),
            Warned("confounded", "Inside one run loss, steps and learning rate change together: none is the cause."),
            Warned(
                "noise_scale", "This is the noise scale: the critical batch is κ times it, and κ comes from a sweep."
            ),
        ]
    return tuple(found)

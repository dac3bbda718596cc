"""The best learning rate at each batch size of a sweep, the curves through them, and what theory claims of them."""

import asyncio
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from cachetools import LRUCache
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.theory.learning_rate import family_of
from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.sweeps.batch_sweep.target_answer import target_answer
from noisescale_server.analysis.sweeps.fitting.sweep_fit import SweepFit
from noisescale_server.analysis.sweeps.learning_rate_sweep.best_rates import BestRate, best_rates
from noisescale_server.analysis.sweeps.learning_rate_sweep.claims import Claim, claims
from noisescale_server.analysis.sweeps.learning_rate_sweep.fit import (
    FEWEST_BATCH_SIZES,
    NoRateFits,
    RateCurve,
    RateFits,
    fit_rates,
)
from noisescale_server.analysis.sweeps.steps_to_target.setting import Setting
from noisescale_server.services.sweeps import curves as sweep_curves
from noisescale_server.services.sweeps import sweeps
from noisescale_server.services.sweeps.curves import targets_of
from noisescale_server.storage import sweeps as sweep_version
from noisescale_server.storage.sweeps import SweepRow

NUM_CURVE_POINTS = 33
REACH = 2.0
"""Curves are drawn to half the smallest and twice the largest batch size."""


@dataclass(frozen=True, slots=True)
class RateAtBatch:
    """A curve at a batch size.

    Attributes:
        batch_size: In examples.
        lr: With the band of the curve.
        is_extrapolated: Outside the batch sizes that were tuned.
        is_past_critical: Extrapolated beyond B_crit, where no rule for the learning rate is to be trusted.
    """

    batch_size: float
    lr: Estimate
    is_extrapolated: bool
    is_past_critical: bool


@dataclass(frozen=True, slots=True)
class LearningRates:
    """What a sweep says about learning rates at one target.

    Attributes:
        target: Value of the metric; None where the sweep has none.
        rates: By batch size.
        outcome: The curves, or why there are none.
        drawn: Of each curve with support, by name.
        critical_batch: Of the sweep at this target; None where its fit was refused.
        claims: What theory claims of the optimizer.
        warnings: What to know before using them.
    """

    target: float | None
    rates: tuple[BestRate, ...]
    outcome: RateFits | NoRateFits
    drawn: dict[str, tuple[RateAtBatch, ...]]
    critical_batch: Estimate | None
    claims: tuple[Claim, ...]
    warnings: tuple[str, ...]


KEPT = 256

_kept: LRUCache[Hashable, LearningRates] = LRUCache(KEPT)


async def of_sweep(
    session: AsyncSession, sweep_id: UUID, *, target: float | None, level: float
) -> tuple[SweepRow, LearningRates]:
    """The learning rates of a sweep at a target, by default the hardest at which enough of them are known.

    Raises:
        SweepNotFound: When no sweep has this id.
    """
    row = await sweeps.row(session, sweep_id)
    sweep = row.sweep
    # before the data: what is newer than its version is only computed once more
    version = await sweep_version.version_of(session, sweep_id)
    key = (sweep_id, sweep.created_at, version, target, level)
    known = _kept.get(key)
    if known is not None:
        return row, known
    settings = await sweep_curves.settings_of_sweep(session, sweep)
    targets = targets_of(sweep, settings) if target is None else [target]
    # off the event loop: five curves and their profile take some 50 ms
    _kept[key] = found = await asyncio.to_thread(learning_rates, settings, targets, sweep.optimizer, level)
    return row, found


def learning_rates(
    settings: Sequence[Setting], targets: Sequence[float], optimizer: str | None, level: float
) -> LearningRates:
    """What the settings say; of several targets, the hardest first, the first at which a curve can be fitted."""
    target, rates = _at_a_target(settings, targets)
    outcome = fit_rates(rates, level=level)
    critical = _critical_batch(settings, target, level)
    drawn: dict[str, tuple[RateAtBatch, ...]] = {}
    if isinstance(outcome, RateFits):
        supported = [one for one in outcome.curves if one.has_support] or list(outcome.curves[:1])
        drawn = {one.curve.name.value: _drawn(one, outcome.used, critical) for one in supported}
    return LearningRates(
        target=target,
        rates=rates,
        outcome=outcome,
        drawn=drawn,
        critical_batch=critical,
        claims=claims(outcome, family_of(optimizer), critical) if isinstance(outcome, RateFits) else (),
        warnings=_warnings(rates, drawn, critical),
    )


def _at_a_target(settings: Sequence[Setting], targets: Sequence[float]) -> tuple[float | None, tuple[BestRate, ...]]:
    found = [(target, best_rates(settings, target)) for target in targets]
    for target, rates in found:
        if sum(rate.log_standard_error is not None for rate in rates) >= FEWEST_BATCH_SIZES:
            return target, rates
    return found[0] if found else (None, ())


def _critical_batch(settings: Sequence[Setting], target: float | None, level: float) -> Estimate | None:
    if target is None:
        return None
    outcome = target_answer(settings, target, level=level).outcome
    return outcome.critical_batch if isinstance(outcome, SweepFit) else None


def _drawn(curve: RateCurve, used: Sequence[float], critical: Estimate | None) -> tuple[RateAtBatch, ...]:
    smallest, largest = min(used), max(used)
    sizes = np.geomspace(smallest / REACH, largest * REACH, NUM_CURVE_POINTS)
    return tuple(
        RateAtBatch(
            batch_size=float(size),
            lr=curve.at(float(size)),
            is_extrapolated=not smallest <= size <= largest,
            is_past_critical=bool(size > max(largest, math.inf if critical is None else critical.value)),
        )
        for size in sizes
    )


def _warnings(
    rates: Sequence[BestRate], drawn: dict[str, tuple[RateAtBatch, ...]], critical: Estimate | None
) -> tuple[str, ...]:
    found = []
    edges = [f"{rate.batch_size:g}" for rate in rates if rate.is_at_grid_edge]
    if edges:
        found.append(
            f"At batch size {', '.join(edges)} the best learning rate is the last one tried: try rates beyond."
        )
    if any(point.is_past_critical for points in drawn.values() for point in points) and critical is not None:
        found.append(
            f"Beyond the largest batch size tuned the curve is past B_crit, about {critical.value:,.3g}: "
            "no rule for the learning rate holds there, tune it."
        )
    if drawn and critical is None:
        found.append("The sweep has no B_crit, and beyond it no rule for the learning rate holds: do not extrapolate.")
    return tuple(found)

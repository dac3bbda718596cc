"""What the runs of a sweep say of how their paths tell their learning rates, as the sweep knows the best one."""

import math
from collections.abc import Hashable, Sequence
from typing import Any

from cachetools import LRUCache
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.advice.learning_rate.rate_coefficients import Schedule, coefficients, family_of
from noisescale_core.advice.learning_rate.rate_verdict import bent, with_momentum
from noisescale_core.estimators.path import path_ratio
from noisescale_server.analysis.calibration.rate_lines import REACH
from noisescale_server.analysis.sweeps.learning_rate_sweep.best_rates import BestRate
from noisescale_server.services import learning_rate
from noisescale_server.services.learning_rate import Moment, planned_steps
from noisescale_server.services.sweeps.measured import MeasuredSweep
from noisescale_server.services.sweeps.sweeps import SweepView
from noisescale_server.storage.platform.tables import Run, SweepRun
from noisescale_server.storage.runs import runs, streams

MAX_RUNS = 24
"""Of a sweep that are read, those nearest to the best rate."""

NEAR = 0.1
"""Of a share of the plan: how far from it a moment may lie."""

KEPT = 1_000
_kept: LRUCache[Hashable, "Readings | None"] = LRUCache(KEPT)

Readings = tuple[str, list[Schedule], list[float | None], list[float | None]]
"""Family of optimizers; schedule until then, q and bent push at the shares of the plan at which lines stand."""


async def of_sweep(session: AsyncSession, view: SweepView, sweep: MeasuredSweep) -> list[dict[str, Any]]:
    """The readings of its finished runs near the best rate, as they are stored; empty where no best rate is known.

    Args:
        session: Where to read.
        view: The sweep with its runs.
        sweep: What it says.
    """
    best = {one.batch_size: one for one in sweep.best_rates if one.log_standard_error is not None}
    near = [(_octaves(run, best[run.batch_size]), run) for run in view.runs if _counts(run) and run.batch_size in best]
    known = sorted(((y, one) for y, one in near if abs(y) <= REACH), key=lambda pair: (abs(pair[0]), pair[1].run_id))
    found = []
    for octaves, one in known[:MAX_RUNS]:
        readings = await _readings(session, await runs.get(session, one.run_id))
        error = best[one.batch_size].log_standard_error or 0.0
        if readings is not None:
            family, schedules, ratios, pushes = readings
            found.append(
                {
                    "run_id": str(one.run_id),
                    "family": family,
                    "schedules": schedules,
                    "octaves": octaves,
                    "error": error / math.log(2),
                    "ratios": ratios,
                    "pushes": pushes,
                }
            )
    return found


def _counts(run: SweepRun) -> bool:
    return run.is_stored and run.status != "infeasible"


def _octaves(run: SweepRun, best: BestRate) -> float:
    return math.log2(run.lr) - math.log2(best.lr)


async def _readings(session: AsyncSession, run: Run | None) -> Readings | None:
    if run is None or run.finish_status != "finished" or run.optimizer is None:
        return None
    if run.loss_broken_since is not None or run.gradients_broken_since is not None:
        return None
    covered = tuple(await streams.coverage_of_run(session, run.id))
    # stored rows never change: the same steps give the same path
    key = (run.id, run.created_at, covered, run.optimizer, planned_steps(run))
    if key not in _kept:
        walked = await learning_rate.path_of_run(session, run)
        _kept[key] = readings_of(run, walked.moments)
    return _kept[key]


def readings_of(run: Run, moments: Sequence[Moment]) -> Readings | None:
    """What a run's path says at the shares of its plan; None where its optimizer tells nothing.

    Args:
        run: That has finished.
        moments: Of its path.
    """
    planned = planned_steps(run)
    if not moments or not planned:
        return None
    family = family_of(run.optimizer, moments[-1].path.momentum)
    if family is None:
        return None
    at = [_moment_at(moments, share * planned) for share in coefficients().progress]
    told = [None if one is None else with_momentum(one.path, coefficients().families[family]) for one in at]
    ratios = [None if path is None else path_ratio(path) for path in told]
    pushes = [None if path is None or path.push is None else bent(path.push) for path in told]
    if not any(ratios):
        return None
    return (
        family,
        ["unknown" if one is None else one.schedule for one in at],
        [None if one is None else round(one.value, 4) for one in ratios],
        [None if one is None else round(one.value, 4) for one in pushes],
    )


def _moment_at(moments: Sequence[Moment], num_updates: float) -> Moment | None:
    nearest = min(moments, key=lambda one: abs(one.path.num_updates - num_updates))
    return nearest if abs(nearest.path.num_updates - num_updates) <= NEAR * num_updates else None

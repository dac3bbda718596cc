"""Runs whose batch changed, as answers: each held against a sweep, and what it says of κ."""

import math
from statistics import NormalDist
from uuid import UUID

from noisescale_server.api.platform.schemas import Answer
from noisescale_server.storage.calibration import HELD_AGAINST, STEPS
from noisescale_server.storage.platform.tables import Calibration, Sweep

LEVEL = 0.95


class KnownKappa(Answer):
    """κ as one run says it; without a value the bounds that it leaves, null where open."""

    value: float | None
    low: float | None
    high: float | None
    level: float


class FollowedRunAnswer(Answer):
    """A run whose batch changed, held against a sweep: κ by its steps to the target and S_min, or why it says nothing.

    `run_id`, `sweep_id` and `steps` are null of one that another server has measured.
    """

    id: UUID
    run_id: UUID | None
    sweep_id: UUID | None
    name: str
    optimizer: str
    target: float | None
    steps: float | None
    min_steps: float | None
    kappa: KnownKappa | None
    missing: str | None


def followed_answer(row: Calibration, sweep: Sweep) -> FollowedRunAnswer:
    """One run as JSON.

    Args:
        row: Its calibration.
        sweep: The row of kind followed that this belongs to.
    """
    held_against = sweep.details.get(HELD_AGAINST)
    return FollowedRunAnswer(
        id=sweep.id,
        run_id=sweep.run_id,
        sweep_id=None if held_against is None else UUID(held_against),
        name=sweep.name,
        optimizer=row.optimizer,
        target=row.target,
        steps=sweep.details.get(STEPS),
        min_steps=row.min_steps,
        kappa=_kappa(row),
        missing=row.missing,
    )


def _kappa(row: Calibration) -> KnownKappa | None:
    low, high, error = row.log_kappa_low, row.log_kappa_high, row.error
    if error is None:
        return None
    reach = NormalDist().inv_cdf(0.5 + LEVEL / 2) * error
    return KnownKappa(
        value=math.exp(low) if low is not None and low == high else None,
        low=None if low is None else _exp(low - reach),
        high=None if high is None else _exp(high + reach),
        level=LEVEL,
    )


def _exp(value: float) -> float | None:
    """None beyond the floats: an imported error may be as large as anything."""
    return math.exp(value) if abs(value) < 700 else None

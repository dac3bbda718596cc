"""The decision of a run as SQL, so that a list can be filtered by it: as `theory.advice` decides for a balanced reader.

The best batch is κ φ, and its log error half of that of B_crit (statistical and model part in quadrature), as a reader
who names no price pays the B_crit of now for a step. Tested against the theory, run by run.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import ColumnElement, and_, case, func, literal, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.estimators.divergence import MIN_GRADIENT_STEPS
from noisescale_server.storage.tables import Calibration, Run

SMALLEST, LARGEST = math.log(1e-9), math.log(1e15)
"""Batches and noise scales beyond these plan nothing."""

KEPT_WITHIN = math.log(2)
"""A batch within 2 × of the best one costs at most 12.5 %."""


@dataclass(frozen=True, slots=True)
class RunKind:
    """What κ depends on."""

    project_id: UUID
    task_id: UUID
    optimizer: str | None
    family: str | None


@dataclass(frozen=True, slots=True)
class KappaOfKind:
    """What is known of κ for the runs of a kind; without one, for all runs that have none of their own.

    Attributes:
        log_mean: Mean of log κ.
        log_error: Half the width of its interval at the level of the stored noise scales, natural logarithm.
    """

    kind: RunKind | None
    log_mean: float
    log_error: float


async def kinds(session: AsyncSession) -> list[RunKind]:
    """Every kind that there are runs of, in projects that have measured a κ."""
    measured = select(Calibration.project_id).where(Calibration.error.is_not(None))
    columns = (Run.project_id, Run.task_id, Run.optimizer, Run.family)
    found = await session.execute(select(*columns).where(Run.project_id.in_(measured)).distinct())
    return [RunKind(*row) for row in found]


def decision_word(kappas: Sequence[KappaOfKind]) -> ColumnElement[str]:
    """What to do with each run's batch, as in `RowDecision`; just one of the kappas is without a kind."""
    kappa = _of_run({one: one.log_mean for one in kappas})
    error = _of_run({one: one.log_error for one in kappas})
    best = func.ln(Run.noise_scale_value) + kappa
    batch = func.ln(Run.latest_global_batch)
    # null where nothing bounds the noise scale below, and then no comparison with it holds
    low = func.nullif(func.greatest(Run.noise_scale_low, 0), 0)
    down = func.sqrt(_square(func.ln(Run.noise_scale_value / low)) + _square(error)) / 2
    up = func.sqrt(_square(func.ln(Run.noise_scale_high / Run.noise_scale_value)) + _square(error)) / 2
    from_batch = best - batch
    # CASE goes from top to bottom, so no logarithm is taken of what the first line refuses
    return case(
        (or_(*_nothing_to_decide()), "insufficient_evidence"),
        (~and_(best.between(SMALLEST, LARGEST), batch.between(SMALLEST, LARGEST)), "insufficient_evidence"),
        (from_batch - down > 0, "increase"),
        (from_batch + up < 0, "decrease"),
        (and_(from_batch - down >= -KEPT_WITHIN, from_batch + up <= KEPT_WITHIN), "keep"),
        else_="insufficient_evidence",
    )


def _nothing_to_decide() -> list[ColumnElement[bool]]:
    return [
        Run.noise_scale_state.is_distinct_from("resolved"),
        func.coalesce(Run.noise_scale_value, 0) <= 0,
        Run.noise_scale_high.is_(None),
        func.coalesce(Run.latest_global_batch, 0) <= 0,
        has_diverged(),
    ]


def has_diverged() -> ColumnElement[bool]:
    """Whether `estimators.divergence` says so."""
    num_steps = Run.latest_step - Run.gradients_broken_since + 1
    return or_(Run.loss_broken_since.is_not(None), func.coalesce(num_steps, 0) >= MIN_GRADIENT_STEPS)


def _of_run(values: dict[KappaOfKind, float]) -> ColumnElement[float]:
    """The value of the run's kind."""
    whens = [(_is_of(one.kind), literal(value)) for one, value in values.items() if one.kind is not None]
    (otherwise,) = (literal(value) for one, value in values.items() if one.kind is None)
    return case(*whens, else_=otherwise) if whens else otherwise


def _is_of(kind: RunKind) -> ColumnElement[bool]:
    return and_(
        Run.task_id == kind.task_id,
        Run.optimizer.is_not_distinct_from(kind.optimizer),
        Run.family.is_not_distinct_from(kind.family),
    )


def _square(of: ColumnElement[float]) -> ColumnElement[float]:
    return of * of

"""GET /api/v1/sweeps/{sweep_id}/learning-rates: the best learning rate at each batch size, and curves through them."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.sweeps.learning_rate_sweep.best_rates import BestRate
from noisescale_server.analysis.sweeps.learning_rate_sweep.claims import Claim
from noisescale_server.analysis.sweeps.learning_rate_sweep.curves import CurveName
from noisescale_server.analysis.sweeps.learning_rate_sweep.fit import RateCurve, RateFits
from noisescale_server.api.platform.deps import ReadSession
from noisescale_server.api.platform.schemas import Answer
from noisescale_server.api.sweeps.schemas import Value
from noisescale_server.api.sweeps.sweeps import SweepId
from noisescale_server.services.sweeps import learning_rate_fit
from noisescale_server.services.sweeps.learning_rate_fit import LearningRates, RateAtBatch

router = APIRouter(tags=["sweeps"])


class LearningRatesQuery(BaseModel):
    """Which target, and how sure."""

    model_config = ConfigDict(extra="forbid")

    target: Annotated[Value | None, Field(description="default: the hardest with enough tuned batch sizes")] = None
    level: Annotated[float, Field(ge=0.5, le=0.999, description="confidence level of the intervals")] = 0.95


class RateCurveAnswer(Answer):
    """One curve; `points` are empty where it has no support."""

    name: CurveName
    formula: str
    estimates: dict[str, Estimate]
    rms: float
    aicc_difference: float | None
    has_support: bool
    points: tuple[RateAtBatch, ...]


class LearningRatesAnswer(Answer):
    """Learning rates of a sweep at one target."""

    sweep_id: UUID
    metric: str | None
    optimizer: str | None
    unit: str
    level: float
    target: float | None
    rates: tuple[BestRate, ...]
    curves: list[RateCurveAnswer]
    can_tell: bool
    explanation: str
    critical_batch: Estimate | None
    claims: tuple[Claim, ...]
    warnings: tuple[str, ...]


@router.get("/sweeps/{sweep_id}/learning-rates")
async def get_learning_rates(
    sweep_id: SweepId, query: Annotated[LearningRatesQuery, Query()], session: ReadSession
) -> LearningRatesAnswer:
    """The best learning rate at each batch size with whiskers, the curves, and the claims of theory held against it."""
    row, found = await learning_rate_fit.of_sweep(session, sweep_id, target=query.target, level=query.level)
    sweep = row.sweep
    outcome = found.outcome
    return LearningRatesAnswer(
        sweep_id=sweep.id,
        metric=sweep.metric,
        optimizer=sweep.optimizer,
        unit=sweep.unit,
        level=query.level,
        target=found.target,
        rates=found.rates,
        curves=[_curve(one, found) for one in outcome.curves] if isinstance(outcome, RateFits) else [],
        can_tell=isinstance(outcome, RateFits) and outcome.can_tell,
        explanation=outcome.explanation,
        critical_batch=found.critical_batch,
        claims=found.claims,
        warnings=found.warnings,
    )


def _curve(one: RateCurve, found: LearningRates) -> RateCurveAnswer:
    return RateCurveAnswer(
        name=one.curve.name,
        formula=one.curve.formula,
        estimates=one.estimates,
        rms=one.rms,
        aicc_difference=one.aicc_difference,
        has_support=one.has_support,
        points=found.drawn.get(one.curve.name.value, ()),
    )

"""All that a campaign says, in one place: for tables, files and whoever draws it."""

from collections.abc import Sequence
from dataclasses import dataclass

from noisescale_lab.reproduce.claim.exact_quadratics import QuadraticCheck
from noisescale_lab.reproduce.claim.judged.loss_law import LossLaw, SizeEffect, loss_laws, size_effect
from noisescale_lab.reproduce.claim.judged.other_claims import (
    CurveMisfit,
    Growth,
    HooksCheck,
    RateGrowth,
    curve_misfits,
    growth,
    hooks_check,
    rate_growth,
)
from noisescale_lab.reproduce.claim.judged.retrospect import Series, exclusions, series
from noisescale_lab.reproduce.claim.task_result import TaskResult


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that follows from the results of the tasks.

    Attributes:
        results: Of the tasks.
        series: Noise scale against B_crit, in every combination of targets, tasks and averages.
        exclusions: What is left out, and why.
        hooks: Measured against exact, task by task.
        quadratics: The same where the truth is known.
        growth: Late against early noise scale.
        loss_laws: Noise scale as a power of the loss.
        size_effect: Of a model's size at an equal loss; None where sizes were not run.
        misfits: Measured against fitted steps.
        rate_growth: Best learning rate as a power of the batch size.
    """

    results: tuple[TaskResult, ...]
    series: tuple[Series, ...]
    exclusions: tuple[str, ...]
    hooks: tuple[HooksCheck, ...]
    quadratics: tuple[QuadraticCheck, ...]
    growth: tuple[Growth, ...]
    loss_laws: tuple[LossLaw, ...]
    size_effect: SizeEffect | None
    misfits: tuple[CurveMisfit, ...]
    rate_growth: tuple[RateGrowth, ...]


def findings(results: Sequence[TaskResult], quadratics: Sequence[QuadraticCheck]) -> Findings:
    """What the results say.

    Args:
        results: Of all tasks.
        quadratics: Checks against exact truth.
    """
    return Findings(
        results=tuple(results),
        series=series(results),
        exclusions=exclusions(results),
        hooks=hooks_check(results),
        quadratics=tuple(quadratics),
        growth=growth(results),
        loss_laws=loss_laws(results),
        size_effect=size_effect(results),
        misfits=curve_misfits(results),
        rate_growth=rate_growth(results),
    )

"""The noise scale as a power of the loss along a run, and whether a model's size does anything at an equal loss.

Sources: McCandlish et al. 2018, arXiv:1812.06162, section 4.3; Kaplan et al. 2020, arXiv:2001.08361, section 5.1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from noisescale_core.estimators.student_t import t_quantile
from noisescale_lab.reproduce.claim.judged.retrospect import Figure
from noisescale_lab.reproduce.claim.task_result import TaskResult, TunedRun, run_nearest_critical

LEVEL = 0.975
"""Of the quantile at either end of a 95 % interval."""

FEWEST_SPANS = 5
SIZE_BATCH = 64
"""Batch size at which models are compared: all of them are trained with it."""

SIZES = {"digits_mlp_16": 16, "digits_mlp": 64, "digits_mlp_256": 256}
"""Hidden units by task."""


# Ordinary least squares with t intervals.


@dataclass(frozen=True, slots=True)
class LeastSquares:
    """A fit with a constant.

    Attributes:
        slopes: One a column, each with its 95 % interval for independent normal errors.
        r_squared: Share of the variance that the columns explain.
        num_points: Rows.
    """

    slopes: tuple[Figure, ...]
    r_squared: float
    num_points: int


def least_squares(columns: Sequence[Sequence[float]], answers: Sequence[float]) -> LeastSquares | None:
    """The fit; None where there are too few rows, or columns that say the same.

    Args:
        columns: What explains, each as long as the answers.
        answers: What is explained.
    """
    design = np.column_stack([np.ones(len(answers)), *columns])
    free = len(answers) - design.shape[1]
    if free < 1 or np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    y = np.asarray(answers)
    inverse = np.linalg.inv(design.T @ design)
    coefficients = inverse @ design.T @ y
    squares = float(((y - design @ coefficients) ** 2).sum())
    half = t_quantile(LEVEL, free) * np.sqrt(np.diag(inverse) * squares / free)
    total = float(((y - y.mean()) ** 2).sum())
    slopes = zip(coefficients[1:].tolist(), half[1:].tolist(), strict=True)
    return LeastSquares(
        slopes=tuple(Figure(slope, slope - width, slope + width) for slope, width in slopes),
        r_squared=1 - squares / total if total > 0 else 0.0,
        num_points=len(answers),
    )


@dataclass(frozen=True, slots=True)
class LossLaw:
    """Noise scale ∝ loss to a power, along the tuned run nearest B_crit.

    Attributes:
        task: Its name.
        exponent: Negative where the noise scale grows as the loss falls.
        r_squared: Share of the variance of log noise scale that log loss explains.
        highest_loss: Of the windows.
        lowest_loss: Of the windows.
        num_windows: Along the run.
    """

    task: str
    exponent: Figure
    r_squared: float
    highest_loss: float
    lowest_loss: float
    num_windows: int


@dataclass(frozen=True, slots=True)
class SizeEffect:
    """What explains the noise scale of models of several sizes, all trained with one batch size.

    Attributes:
        sizes: Hidden units.
        loss_exponent: Of the loss, at an equal size.
        size_exponent: Of the size, at an equal loss.
        r_squared: Share of the variance of log noise scale that both explain.
        num_windows: Of all runs.
    """

    sizes: tuple[int, ...]
    loss_exponent: Figure
    size_exponent: Figure
    r_squared: float
    num_windows: int


def loss_laws(results: Sequence[TaskResult]) -> tuple[LossLaw, ...]:
    """One row for each task with a loss that falls."""
    found = (_loss_law(result) for result in results if result.goal == "min")
    return tuple(one for one in found if one is not None)


def size_effect(results: Sequence[TaskResult]) -> SizeEffect | None:
    """The equal-loss test; None where fewer than two sizes were run."""
    runs = {
        SIZES[result.task]: run
        for result in results
        if result.task in SIZES
        for run in result.runs
        if run.batch == SIZE_BATCH
    }
    rows = [(math.log(size), *pair) for size, run in runs.items() for pair in _logs(run)]
    if len(runs) < 2 or len(rows) < FEWEST_SPANS:
        return None
    sizes, losses, noise = zip(*rows, strict=True)
    found = least_squares([losses, sizes], noise)
    if found is None:
        return None
    return SizeEffect(tuple(sorted(runs)), found.slopes[0], found.slopes[1], found.r_squared, found.num_points)


def _loss_law(result: TaskResult) -> LossLaw | None:
    run = run_nearest_critical(result)
    pairs = [] if run is None else _logs(run)
    if len(pairs) < FEWEST_SPANS:
        return None
    losses, noise = zip(*pairs, strict=True)
    found = least_squares([losses], noise)
    if found is None:
        return None
    ends = math.exp(max(losses)), math.exp(min(losses))
    return LossLaw(result.task, found.slopes[0], found.r_squared, *ends, found.num_points)


def _logs(run: TunedRun) -> list[tuple[float, float]]:
    """Logarithms of loss and noise scale in the middle of each span."""
    steps, losses = zip(*run.curve, strict=True)
    known = [(one.first + one.num_steps / 2, one.value) for one in run.spans if one.value is not None]
    return [(math.log(float(np.interp(at, steps, losses))), math.log(value)) for at, value in known]

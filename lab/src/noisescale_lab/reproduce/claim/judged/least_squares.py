"""Ordinary least squares with t intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from noisescale_core.estimators.student_t import t_quantile
from noisescale_lab.reproduce.claim.judged.agreement_over_tasks import Figure

LEVEL = 0.975
"""Of the quantile at either end of a 95 % interval."""


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

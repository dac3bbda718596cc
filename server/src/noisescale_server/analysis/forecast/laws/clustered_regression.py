"""A linear regression of log noise scales over several runs, whose windows go together by run."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.forecast.laws.cluster_robust import ClusterRobust, cluster_robust

Array = NDArray[np.float64]

NUM_ROUNDS = 20


@dataclass(frozen=True, slots=True)
class Regression:
    """Coefficients by name, with clustered errors.

    Attributes:
        names: Of the coefficients, in order.
        coefficients: [P].
        errors: Theirs.
        excess_variance: About the plane beyond the errors of measurement.
    """

    names: tuple[str, ...]
    coefficients: Array
    errors: ClusterRobust
    excess_variance: float

    def estimate(self, name: str, level: float) -> Estimate:
        """A coefficient with its interval."""
        place = self.names.index(name)
        value = float(self.coefficients[place])
        half = self.errors.half_width(np.eye(len(self.names))[place], level)
        return Estimate(value, value - half, value + half, level)


def regress(columns: dict[str, Array], y: Array, standard_error: Array, clusters: Sequence[int]) -> Regression:
    """The weighted least squares of y on the columns and a constant; weights hold what the plane leaves as well.

    Args:
        columns: By name, [N] each; they are centred, so that the constant is the middle of the data.
        y: [N].
        standard_error: Of each y, positive, [N].
        clusters: Errors of one number go together, [N].
    """
    design = np.column_stack([np.ones(y.size), *(column - column.mean() for column in columns.values())])
    variance, excess = standard_error**2, 0.0
    for _ in range(NUM_ROUNDS):
        weights = 1 / (variance + excess)
        root = np.sqrt(weights)
        found: Array = np.linalg.lstsq(design * root[:, None], y * root, rcond=None)[0]
        residuals = y - design @ found
        before, excess = excess, excess_variance(residuals, variance, design.shape[1])
        if abs(excess - before) < 1e-12:
            break
    errors = cluster_robust(design, residuals, weights, clusters, found)
    return Regression(("constant", *columns), found, errors, excess)


def excess_variance(residuals: Array, variance: Array, num_parameters: int) -> float:
    """The moment estimate of the variance about a curve beyond that of measurement.

    Source: DerSimonian & Laird 1986, Controlled Clinical Trials 7.
    """
    weights = 1 / variance
    freedom = residuals.size - num_parameters
    total = float(weights.sum())
    spread = total - float((weights**2).sum()) / total
    if freedom <= 0 or spread <= 0:
        return 0.0
    return max(0.0, (float(weights @ residuals**2) - freedom) / spread)

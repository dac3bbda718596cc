"""A shape fitted to observations of log φ with errors in both directions and in clusters.

Where the loss is noisy a straight line reads too flat; x is then moved along its error to where the curve is nearest
(York 1968, Earth and Planetary Science Letters 5; for a line with equal errors this is Deming's regression).
What the curve leaves beyond the errors of measurement is added to them (DerSimonian & Laird 1986, Controlled Clinical
Trials 7), so that a few sharp windows do not decide alone.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from noisescale_server.analysis.errors import AnalysisError
from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.forecast.laws.cluster_robust import ClusterRobust, cluster_robust
from noisescale_server.analysis.forecast.laws.clustered_regression import excess_variance
from noisescale_server.analysis.forecast.laws.shapes import Shape

Array = NDArray[np.float64]

NUM_ROUNDS = 30
CLOSE = 1e-9
STEP = 1e-7


@dataclass(frozen=True, slots=True)
class LawObservations:
    """Noise scales or critical batches at several losses, steps or examples.

    Attributes:
        x: Loss, steps or examples, positive, [N].
        log_value: log of the noise scale, [N].
        standard_error: Of log_value, positive, [N].
        x_standard_error: Of x; zero where it is exact, [N].
        cluster: Errors of one number go together, [N].
    """

    x: Array
    log_value: Array
    standard_error: Array
    x_standard_error: Array
    cluster: NDArray[np.int_]

    def __post_init__(self) -> None:
        """Check the observations.

        Raises:
            AnalysisError: If lengths differ, or an x or a standard error is not positive and finite.
        """
        columns = (self.log_value, self.standard_error, self.x_standard_error, self.cluster)
        if any(column.shape != self.x.shape for column in columns):
            raise AnalysisError("observations must be columns of one length")
        for name, column in (("x", self.x), ("standard_error", self.standard_error)):
            if not (np.isfinite(column).all() and (column > 0).all()):
                raise AnalysisError(f"{name} must be positive and finite: leave such observations out")

    @property
    def num_clusters(self) -> int:
        """How many parts do not depend on each other."""
        return int(np.unique(self.cluster).size)


@dataclass(frozen=True, slots=True)
class ShapeFit:
    """A fitted shape.

    Attributes:
        shape: The shape.
        parameters: Its parameters, [P].
        errors: Their errors.
        residuals: log_value minus the curve, [N].
        weights: One over the variance of each residual, [N].
        excess_variance: Of log φ about the curve beyond the errors of measurement.
        typical_variance: Median squared error of measurement of log φ.
    """

    shape: Shape
    parameters: Array
    errors: ClusterRobust
    residuals: Array
    weights: Array
    excess_variance: float
    typical_variance: float

    @property
    def sum_of_squares(self) -> float:
        """Σ w r²."""
        return float(self.weights @ self.residuals**2)

    def bands(self, x: float, level: float) -> tuple[Estimate, Estimate]:
        """φ at x with the band of the curve, and with the one in which a further window falls."""
        log_value = float(self.shape.log_value(self.parameters, np.array([x]))[0])
        gradient = _derivatives(self.shape, self.parameters, np.array([x]))[0]

        def within(extra_variance: float) -> Estimate:
            half = self.errors.half_width(gradient, level, extra_variance)
            return Estimate(_exp(log_value), _exp(log_value - half), _exp(log_value + half), level)

        return within(0.0), within(self.excess_variance + self.typical_variance)


def fit_shape(shape: Shape, data: LawObservations) -> ShapeFit:
    """The shape through the observations; weights settle together with what the curve leaves."""
    excess = 0.0
    x = data.x
    variance = data.standard_error**2
    parameters = _search(shape, x, data.log_value, 1 / variance, shape.starts(x, data.log_value))
    for _ in range(NUM_ROUNDS):
        slope = _slope(shape, parameters, x)
        whole = variance + excess + (slope * data.x_standard_error) ** 2
        # the tangent at the moved x stands for the curve at the measured one
        target = data.log_value + slope * (x - data.x)
        found = _search(shape, x, target, 1 / whole, [parameters])
        residuals = data.log_value - shape.log_value(found, x) + slope * (x - data.x)
        moved = _moved(shape, found, data, excess)
        new_excess = excess_variance(residuals, variance + (slope * data.x_standard_error) ** 2, shape.num_parameters)
        is_settled = np.allclose(found, parameters, rtol=CLOSE, atol=CLOSE) and abs(new_excess - excess) < CLOSE
        parameters, x, excess = found, moved, new_excess
        if is_settled:
            break
    weights = 1 / whole
    design = _derivatives(shape, parameters, x)
    errors = cluster_robust(design, residuals, weights, [int(one) for one in data.cluster], parameters)
    return ShapeFit(shape, parameters, errors, residuals, weights, excess, float(np.median(variance)))


def _search(shape: Shape, x: Array, y: Array, weights: Array, starts: list[Array]) -> Array:
    root = np.sqrt(weights)

    def misses(parameters: Array) -> Array:
        return root * (shape.log_value(parameters, x) - y)

    # MINPACK in one call: scipy's own methods take steps in Python, five times as long
    found = [least_squares(misses, start, method="lm", x_scale="jac") for start in starts]
    best: Array = min(found, key=lambda one: float(one.cost)).x
    return best


def _moved(shape: Shape, parameters: Array, data: LawObservations, excess: float) -> Array:
    """Where on the curve each observation most likely belongs, never past half of its way to zero."""
    if not data.x_standard_error.any():
        return data.x
    slope = _slope(shape, parameters, data.x)
    error = data.x_standard_error**2
    miss = data.log_value - shape.log_value(parameters, data.x)
    moved: Array = data.x + miss * slope * error / (data.standard_error**2 + excess + slope**2 * error)
    return np.maximum(moved, data.x / 2)


def _slope(shape: Shape, parameters: Array, x: Array) -> Array:
    """Derivative of log φ by x, [N]."""
    step = 1e-5 * x
    found: Array = (shape.log_value(parameters, x + step) - shape.log_value(parameters, x - step)) / (2 * step)
    return found


def _derivatives(shape: Shape, parameters: Array, x: Array) -> Array:
    """[N, P], by differences to one side."""
    here = shape.log_value(parameters, x)
    changes = [shape.log_value(parameters + step, x) - here for step in STEP * np.eye(parameters.size)]
    return np.stack(changes, axis=1) / STEP


def _exp(value: float) -> float:
    return math.exp(min(max(value, -690.0), 690.0))

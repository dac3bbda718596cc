"""Intervals of least squares whose errors go together in clusters: the windows of a run, the targets of a sweep.

The sandwich with the correction CR2, and Student's t with Satterthwaite's degrees of freedom: with the usual sandwich
and the normal quantile, intervals over ten runs hold far less than they say.

Sources: Bell & McCaffrey 2002, Survey Methodology 28; Imbens & Kolesár 2016, Review of Economics and Statistics 98, for
degrees of freedom under errors that a cluster shares; Pustejovsky & Tipton 2018, Journal of Business & Economic
Statistics 36, for weights.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

Array = NDArray[np.float64]
Integers = NDArray[np.int_]

SMALLEST_EIGENVALUE = 1e-9
"""Directions of a cluster that the fit takes wholly for itself leave no residual to learn from."""


@dataclass(frozen=True, slots=True)
class ClusterRobust:
    """Coefficients of a (linearised) weighted least squares with what their errors need.

    Attributes:
        coefficients: [P].
        covariance: CR2, [P, P].
        loadings: For the degrees of freedom: a cluster's part in each coefficient as a function of the weighted errors,
            [N, C, P].
        cluster: Of each error, 0 … C - 1, [N].
        correlation: Of two errors of one cluster, from the residuals; at least 0.
    """

    coefficients: Array
    covariance: Array
    loadings: Array
    cluster: Integers
    correlation: float

    def standard_error(self, contrast: Array) -> float:
        """Of the sum of coefficients with these factors, [P]."""
        return math.sqrt(max(float(contrast @ self.covariance @ contrast), 0.0))

    def freedom(self, contrast: Array) -> float:
        """Satterthwaite's degrees of freedom of that standard error, for errors of equal correlation in a cluster."""
        parts = self.loadings @ contrast
        num_clusters = parts.shape[1]
        sums = np.zeros((num_clusters, num_clusters))
        np.add.at(sums, self.cluster, parts)
        products = (1 - self.correlation) * parts.T @ parts + self.correlation * sums.T @ sums
        squares = float((products**2).sum())
        return float(np.trace(products)) ** 2 / squares if squares > 0 else 1.0

    def half_width(self, contrast: Array, level: float, extra_variance: float = 0.0) -> float:
        """Of the interval of that sum; `extra_variance` is what one more observation adds."""
        # Student's t; scipy.stats takes 50 times as long to get there
        quantile = float(stdtrit(max(self.freedom(contrast), 1.0), 0.5 + level / 2))
        return quantile * math.sqrt(self.standard_error(contrast) ** 2 + extra_variance)


def cluster_robust(
    design: Array, residuals: Array, weights: Array, clusters: Sequence[int], coefficients: Array
) -> ClusterRobust:
    """The errors of a fit that has been made.

    Args:
        design: Derivatives of the curve by the coefficients, [N, P].
        residuals: Data minus curve, [N].
        weights: One over the variance of each, up to a factor, [N].
        clusters: Any number for each cluster, [N].
        coefficients: As fitted, [P].
    """
    root = np.sqrt(weights)
    x, u = design * root[:, None], residuals * root
    cluster = np.unique(np.asarray(clusters), return_inverse=True)[1]
    inverse = np.linalg.pinv(x.T @ x)
    num_clusters = int(cluster.max()) + 1
    middle = np.zeros((x.shape[1], x.shape[1]))
    loadings = np.zeros((x.shape[0], num_clusters, x.shape[1]))
    for number in range(num_clusters):
        here = cluster == number
        own = x[here]
        adjusted = _inverse_root(np.eye(own.shape[0]) - own @ inverse @ own.T) @ own
        score = adjusted.T @ u[here]
        middle += np.outer(score, score)
        part = adjusted @ inverse
        loadings[here, number] += part
        loadings[:, number] -= x @ (inverse @ (own.T @ part))
    covariance = inverse @ middle @ inverse
    return ClusterRobust(coefficients, covariance, loadings, cluster, _correlation(u, cluster))


def _inverse_root(matrix: Array) -> Array:
    values, vectors = np.linalg.eigh(matrix)
    kept = values > SMALLEST_EIGENVALUE
    found: Array = (vectors[:, kept] / np.sqrt(values[kept])) @ vectors[:, kept].T
    return found


def _correlation(errors: Array, cluster: Integers) -> float:
    """Mean product of two residuals of one cluster over their mean square, from 0 to almost 1."""
    sums = np.bincount(cluster, weights=errors)
    squares = np.bincount(cluster, weights=errors**2)
    counts = np.bincount(cluster).astype(float)
    num_pairs = float((counts * (counts - 1)).sum())
    mean_square = float((errors**2).mean())
    if num_pairs == 0 or mean_square == 0:
        return 0.0
    return min(max(float((sums**2 - squares).sum()) / num_pairs / mean_square, 0.0), 0.99)

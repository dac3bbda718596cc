"""Two estimates of scipy.stats, which takes some 0.4 s to load: every start of a server would wait for it."""

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray


def interval_of_share(count: int, total: int, level: float) -> tuple[float, float]:
    """The interval of a share, which is inside [0, 1] for any count.

    Args:
        count: Of those counted in, 0 to `total`.
        total: At least 1.
        level: Confidence level.

    Source: Wilson 1927, Journal of the American Statistical Association 22, 209-212.
    """
    z = NormalDist().inv_cdf(0.5 + level / 2)
    share, weight = count / total, z * z / total
    middle = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * math.sqrt(share * (1 - share) / total + weight / (4 * total))
    # exactly 0 and 1 where the formula is, whatever its roots are rounded to
    return 0.0 if count == 0 else middle - half, 1.0 if count == total else middle + half


def theil_sen(x: NDArray[np.float64], y: NDArray[np.float64], level: float) -> tuple[float, float, float]:
    """The median slope of all pairs of points, with the ends of its interval.

    Args:
        x: Shape [n], at least two different values.
        y: Shape [n].
        level: Confidence level.

    Source: Sen 1968, Journal of the American Statistical Association 63, 1379-1389; equation 2.6 is the interval, whose
        variance takes ties of either into account.
    """
    first, second = np.triu_indices(len(x), 1)
    across = x[second] - x[first]
    apart = across != 0
    slopes = np.sort((y[second] - y[first])[apart] / across[apart])
    variance = (_pairs_variance(len(x)) - _of_ties(x) - _of_ties(y)) / 18
    reach = NormalDist().inv_cdf(0.5 + level / 2) * math.sqrt(max(variance, 0.0))
    upper = min(round((len(slopes) + reach) / 2), len(slopes) - 1)
    lower = max(round((len(slopes) - reach) / 2) - 1, 0)
    return float(np.median(slopes)), float(slopes[lower]), float(slopes[upper])


def _pairs_variance(n: float) -> float:
    return n * (n - 1) * (2 * n + 5)


def _of_ties(values: NDArray[np.float64]) -> float:
    _, counts = np.unique(values, return_counts=True)
    return math.fsum(map(_pairs_variance, counts.astype(float)))

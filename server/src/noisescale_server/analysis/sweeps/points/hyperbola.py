"""The model of a sweep: S = S_min (1 + (B_crit / B)^ν)^(1/ν), with ν = 1 in the theory.

Source: McCandlish et al. 2018, arXiv:1812.06162, eq. 2.11 and appendix D.1; the exponent ν is our own test of it.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LIMIT = 40.0
"""A log B_crit this far from every batch size is as good as 0 or infinite: e⁻⁴⁰ is below the rounding of doubles."""


def log_steps_ratio(log_critical: Array | float, log_batch: Array | float, exponent: Array | float = 1.0) -> Array:
    """log(S / S_min) = log(1 + (B_crit / B)^ν) / ν, for any broadcastable shapes."""
    distance = np.asarray(log_critical, dtype=float) - np.asarray(log_batch, dtype=float)
    ratio: Array = np.logaddexp(0.0, exponent * distance) / exponent
    return ratio


def example_share(log_critical: Array | float, log_batch: Array | float) -> Array:
    """B_crit / (B_crit + B), the derivative of log S by log B_crit: 1 where batches are small, 0 where large."""
    distance = np.asarray(log_critical, dtype=float) - np.asarray(log_batch, dtype=float)
    share: Array = np.exp(-np.logaddexp(0.0, -distance))
    return share

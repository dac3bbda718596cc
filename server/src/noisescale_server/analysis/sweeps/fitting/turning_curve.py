"""The curve of a sweep that turns: E = E_0 (1 + B / B_crit + (s / B)^p).

Below some batch size real sweeps need more examples again, where β2, weight decay or the floor of a rate were not
rescaled. Without the last term this is the hyperbola of McCandlish et al. 2018, arXiv:1812.06162; the last term is our
description of published sweeps.
"""

import numpy as np

from noisescale_server.analysis.sweeps.points.hyperbola import Array

POWERS = (0.75, 1.0, 1.5, 2.0, 3.0)
"""Values of p between which a sweep chooses: how steep the turn is differs between tasks."""

USUAL_POWER = 1.5
LOG_POWER_SPREAD = 0.35
"""Of ln p about ln 1.5, as known before a sweep is seen. Chosen by simulation, see docs/decisions/0026."""


def log_rise(
    log_critical: Array | float, log_start: Array | float, power: Array | float, log_batch: Array | float
) -> Array:
    """Log of examples, and of steps, over those of the hyperbola: log(1 + (s / B)^p / (1 + B / B_crit)).

    Args:
        log_critical: log B_crit.
        log_start: log s.
        power: p.
        log_batch: log B; all four broadcast.
    """
    distance = np.asarray(log_start, dtype=float) - np.asarray(log_batch, dtype=float)
    hyperbola = np.logaddexp(0.0, np.asarray(log_batch, dtype=float) - np.asarray(log_critical, dtype=float))
    rise: Array = np.logaddexp(0.0, np.asarray(power, dtype=float) * distance - hyperbola)
    return rise


def log_best_batch(log_critical: Array | float, log_start: Array | float, power: Array | float) -> Array:
    """Log B_opt, where examples are fewest: B^(p+1) = p s^p B_crit."""
    p = np.asarray(power, dtype=float)
    found: Array = (np.log(p) + np.asarray(log_critical) + p * np.asarray(log_start)) / (1 + p)
    return found


def rise(log_critical: float, log_start: float, power: float, log_batch: float) -> float:
    """Examples at a batch over those at B_opt, less 1."""
    best = float(log_best_batch(log_critical, log_start, power))
    at, least = (
        np.logaddexp(0.0, one - log_critical) + log_rise(log_critical, log_start, power, one)
        for one in (log_batch, best)
    )
    return float(np.expm1(at - least))


def log_prior(power: Array | float) -> Array:
    """Log of the prior of p, up to a constant."""
    found: Array = -((np.log(np.asarray(power, dtype=float) / USUAL_POWER) / LOG_POWER_SPREAD) ** 2) / 2
    return found

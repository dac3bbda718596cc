"""Crossings of many weighted means of the same runs at once."""

import numpy as np

from noisescale_server.analysis.sweeps.points.hyperbola import Array
from noisescale_server.analysis.sweeps.steps_to_target.crossing import Direction
from noisescale_server.analysis.sweeps.steps_to_target.seed_average import CommonCurves


def many_crossings(curves: CommonCurves, weights: Array, target: float) -> Array:
    """Log steps to a target of each mean, as `steps_to_target` interpolates them; infinite where not reached, [R].

    Args:
        curves: The runs.
        weights: Of each run in each mean, adding up to 1, [R, N].
        target: Value of the metric.
    """
    values = weights @ curves.values
    sign = 1.0 if curves.direction is Direction.MAX else -1.0
    is_past = sign * (values - target) >= 0
    place = is_past.argmax(axis=1)
    rows, before = np.arange(len(place)), np.maximum(place - 1, 0)
    steps = np.array(curves.steps)
    first, last = values[rows, before], values[rows, place]
    share = _share(first, last, target)
    after, seen_at = steps[before], steps[place]
    log_after, log_seen = np.log(np.maximum(after, 1e-300)), np.log(np.maximum(seen_at, 1.0))
    inside = np.where(
        after > 0, log_after + share * (log_seen - log_after), np.log(np.maximum(share * seen_at, 1e-300))
    )
    found = np.where(place == 0, log_seen, np.minimum(inside, log_seen))
    return np.where(is_past.any(axis=1), found, np.inf)


def _share(first: Array, last: Array, target: float) -> Array:
    """How much of the way from the first values to the last the target is; on log scales where all are positive."""
    is_positive = (np.minimum(first, last) > 0) & (target > 0)
    one = np.where(is_positive, first, 1.0)
    other = np.where(is_positive, last, 2.0)
    in_logs = (np.log(max(target, 1e-300)) - np.log(one)) / np.where(one == other, 1.0, np.log(other) - np.log(one))
    straight = (target - first) / np.where(first == last, 1.0, last - first)
    share: Array = np.where(is_positive, in_logs, straight)
    return share

"""Targets over the range that runs reached: B_crit depends on the target, so one is not enough."""

import math
from collections.abc import Sequence

from noisescale_server.analysis.errors import AnalysisError
from noisescale_server.analysis.sweeps.steps_to_target.crossing import Direction, MetricCurve

EASIEST = 0.2
"""Share of the way from start to the hardest target: what is reached in the first steps tells of the start alone."""


def target_ladder(curves: Sequence[MetricCurve], *, num_targets: int = 5) -> tuple[float, ...]:
    """Targets from easy to hard, evenly spaced but for rounding, that every run reached.

    The hardest is the worst of the runs' best values, the easiest lies a fifth of the way there from the worst first
    value. Each is rounded to the easier side, by less than a hundredth of the way. Empty where some run did not improve
    on that start.

    Raises:
        AnalysisError: If there are no curves, their directions differ, or num_targets is below 1.
    """
    if not curves or len({curve.direction for curve in curves}) != 1 or num_targets < 1:
        raise AnalysisError("a ladder needs curves of one direction and num_targets >= 1")
    sign = 1.0 if curves[0].direction is Direction.MAX else -1.0
    # a value that is not a number is neither a start nor a best one
    scores = [[sign * value for value in curve.values if abs(value) < float("inf")] for curve in curves]
    if not all(scores):
        return ()
    start, hardest = min(values[0] for values in scores), min(max(values) for values in scores)
    if hardest <= start:
        return ()
    spacing = (1 - EASIEST) / max(num_targets - 1, 1)
    shares = [1 - number * spacing for number in reversed(range(num_targets))]
    return tuple(
        # no further than the hardest, where rounding of float64 would go beyond
        sign * _rounded_down(min((1 - share) * start + share * hardest, hardest), hardest - start)
        for share in shares
    )


def _rounded_down(value: float, way: float) -> float:
    """To a place of decimals, by less than a hundredth of the way; as it is where float64 has no such place."""
    digits = 2 - math.floor(math.log10(min(way, 1e300)))
    scaled = value * 10.0**digits if digits < 300 else math.inf
    if not abs(scaled) < 2**53:
        return value
    return min(round(math.floor(scaled) / 10.0**digits, digits), value)

"""Targets over the range that runs reached: B_crit depends on the target, so one is not enough."""

from collections.abc import Sequence

from noisescale_server.analysis.errors import AnalysisError
from noisescale_server.analysis.sweeps.steps_to_target.crossing import Direction, MetricCurve

EASIEST = 0.2
"""Share of the way from start to the hardest target: what is reached in the first steps tells of the start alone."""


def target_ladder(curves: Sequence[MetricCurve], *, num_targets: int = 5) -> tuple[float, ...]:
    """Targets from easy to hard, evenly spaced, that every run reached.

    The hardest is the worst of the runs' best values, the easiest lies a fifth of the way there from the worst first
    value. Empty where some run did not improve on that start.

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
    if num_targets == 1:
        return (sign * hardest,)
    spacing = (1 - EASIEST) / (num_targets - 1)
    return tuple(sign * (start + (EASIEST + number * spacing) * (hardest - start)) for number in range(num_targets))

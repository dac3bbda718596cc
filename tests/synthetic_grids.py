"""Sweeps with a grid of learning rates: curves that meet the target after a known number of steps."""

import functools
import math

from noisescale_server.analysis.steps_to_target.crossing import Direction, MetricCurve
from noisescale_server.analysis.steps_to_target.setting import Trial

TARGET = 0.5
POWER = 0.3


@functools.cache
def evaluations(shift: float = 0.0) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """A geometric grid of steps, 5 % apart, and the power of each."""
    steps = tuple(dict.fromkeys(round(1.05**number) + shift for number in range(210)))
    return steps, tuple(step**-POWER for step in steps)


def trial(batch_size: float, lr: float, steps: float | None, *, seed: int = 0, shift: float = 0.0) -> Trial:
    """A run whose loss is a power of the step and meets the target after so many steps; None: it diverged."""
    if steps is None:
        return Trial(batch_size, lr, seed, None)
    grid, powers = evaluations(shift)
    scale = TARGET * math.pow(steps, POWER)
    return Trial(batch_size, lr, seed, MetricCurve(grid, tuple(scale * power for power in powers), Direction.MIN))

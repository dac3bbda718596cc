"""Where a sweep scales perfectly, with diminishing returns, or not at all, from the points themselves.

Source of the three regimes: Shallue et al. 2019, arXiv:1811.03600, section 4.1; the limits on the slope are ours.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from noisescale_server.analysis.errors import AnalysisError

PERFECT_SLOPE = -0.9
MAXIMAL_SLOPE = -0.1


class Regime(StrEnum):
    """How steps answer to a larger batch."""

    PERFECT = "perfect"
    DIMINISHING = "diminishing"
    MAXIMAL = "maximal"


@dataclass(frozen=True, slots=True)
class LocalSlope:
    """d log S / d log B between two neighbouring batch sizes.

    Attributes:
        from_batch_size: The smaller, in examples.
        to_batch_size: The larger, in examples.
        slope: -1 where doubling the batch halves the steps, 0 where it saves none.
        regime: What that is called.
    """

    from_batch_size: float
    to_batch_size: float
    slope: float
    regime: Regime


def local_slopes(
    points: Sequence[tuple[float, float]], *, perfect: float = PERFECT_SLOPE, maximal: float = MAXIMAL_SLOPE
) -> tuple[LocalSlope, ...]:
    """The slope and regime of each neighbouring pair of batch sizes with known steps, small to large.

    Args:
        points: Batch size and steps, where they are known.
        perfect: Slopes up to this are perfect scaling.
        maximal: Slopes from this on are maximal data parallelism.

    Raises:
        AnalysisError: Unless perfect < maximal.
    """
    if not perfect < maximal:
        raise AnalysisError(f"perfect must be below maximal, got slopes {perfect} and {maximal}")
    found = []
    for (small, steps), (large, fewer) in pairwise(sorted(points)):
        slope = math.log(fewer / steps) / math.log(large / small)
        regime = Regime.PERFECT if slope <= perfect else Regime.MAXIMAL if slope >= maximal else Regime.DIMINISHING
        found.append(LocalSlope(small, large, slope, regime))
    return tuple(found)

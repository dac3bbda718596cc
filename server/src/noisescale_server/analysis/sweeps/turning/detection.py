"""Whether examples to the target rise towards small batches by more than they scatter."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from noisescale_server.analysis.sweeps.fitting.likelihood import NormalLikelihood
from noisescale_server.analysis.sweeps.fitting.noise import RepeatNoise, variances_of_means
from noisescale_server.analysis.sweeps.fitting.observations import NoiseLevel, Observations, observations
from noisescale_server.analysis.sweeps.fitting.profile_region import best_log_critical, search_grid
from noisescale_server.analysis.sweeps.fitting.turning_curve import USUAL_POWER, log_best_batch, rise
from noisescale_server.analysis.sweeps.points.sweep import Repeats, SweepPoint
from noisescale_server.analysis.sweeps.turning.likelihood import BestTurn, TurningLikelihood

FEWEST_BATCH_SIZES = 5
"""A turning curve has three parameters, and its noise must be seen besides."""

USUAL_SCATTER = 0.045
"""Standard deviation of log S of a batch size that was tuned and run once, as usual: 2 to 8 %. It counts as much as
four batch sizes do: seven by themselves hardly know their scatter, and turns of 10 % were then missed."""

SCATTER_OF_TUNING = 0.02
"""What whole batch sizes scatter besides repeats that are known."""

USUAL_COUNTS_AS = 4

PROBABILITY = 0.05
PROBABILITY_FOR = 7
"""Chance of such squares in a sweep of so many batch sizes without a turn. In longer ones a turn has more places to
show itself, so the limit falls with the square of their number: 5 % of sweeps of twelve were found to turn without."""

LEAST_RISE = 0.06
RISE_OVER_SCATTER = 1.25
"""Examples at the smallest batch size over the fewest must be more by this share, and by so many standard deviations:
a bend that is sharper than the hyperbola's, without any rise, was found to turn in 4 to 6 of 10 sweeps else."""


@dataclass(frozen=True, slots=True)
class Detection:
    """That a sweep turns.

    Attributes:
        points: Its batch sizes with known steps, which alone say so.
        data: The same as arrays.
        probability: Of so clear a turn by chance.
    """

    points: tuple[SweepPoint, ...]
    data: Observations
    probability: float


def find_turn(points: Sequence[SweepPoint], noise: RepeatNoise | None) -> Detection | None:
    """The turn of a sweep, or None where its examples do not rise towards small batches beyond their scatter.

    The squares that the turning curve explains beyond the hyperbola, over the variance of a batch size: what is left,
    drawn towards the usual scatter. Its root is read as Student's t, one-sided; and the curve itself must rise.
    """
    known = tuple(one for one in map(_known, points) if one is not None)
    if len(known) < FEWEST_BATCH_SIZES:
        return None
    data = as_data(known, noise)
    grid = search_grid(data.log_batch)
    hyperbola = NormalLikelihood(data)
    turning = BestTurn(TurningLikelihood(data), (USUAL_POWER,))
    without, _ = best_log_critical(hyperbola, grid)
    best, _ = best_log_critical(turning, grid)
    start, power = (float(one[0]) for one in turning.best_turns(np.array([best])))
    if not _is_inside(data, float(log_best_batch(best, start, power))):
        return None
    left = [
        float(one.scatter[0]) ** 2 * data.num_values
        for one in (hyperbola.profile(np.array([without])), turning.profile(np.array([best])))
    ]
    freedom = len(known) - 3 + USUAL_COUNTS_AS
    variance = (left[1] + USUAL_COUNTS_AS * usual_variance(points, known, noise)) / freedom
    if rise(best, start, power, float(data.log_batch.min())) < max(LEAST_RISE, RISE_OVER_SCATTER * math.sqrt(variance)):
        return None
    probability = float(stdtr(freedom, -math.sqrt(max(left[0] - left[1], 0.0) / variance)))
    allowed = PROBABILITY * min(1.0, PROBABILITY_FOR / len(known)) ** 2
    return Detection(known, data, probability) if probability <= allowed else None


def as_data(known: Sequence[SweepPoint], noise: RepeatNoise | None) -> Observations:
    """Batch sizes as what scatters, weighted by their own variance where repeats scatter differently."""
    return observations(known, NoiseLevel.BATCH_SIZES, own_variances(known, noise))


def own_variances(known: Sequence[SweepPoint], noise: RepeatNoise | None) -> tuple[float, ...] | None:
    """Of each batch size's mean, where repeats scatter differently and all batch sizes are known; else None."""
    if noise is None or not noise.may_be_unequal or len(noise.variances) != len(known):
        return None
    return variances_of_means(known, noise)


def usual_variance(points: Sequence[SweepPoint], known: Sequence[SweepPoint], noise: RepeatNoise | None) -> float:
    """Of log S of a batch size of weight 1, before the curve is seen: from repeats where they are known.

    Args:
        points: The sweep; what is known between two ends only is rounded.
        known: Its batch sizes with known steps.
        noise: What repeats show.
    """
    widths = [math.log(high / low) for point in points for low, high in point.censored if low > 0 and high < math.inf]
    rounding = math.fsum(width**2 for width in widths) / 12 / len(points)
    if noise is None or not noise.is_known:
        return USUAL_SCATTER**2 + rounding
    variances = own_variances(known, noise)
    if variances is None:
        variances = tuple(noise.sd**2 / max(1, point.repeats.count) for point in known if point.repeats is not None)
        return SCATTER_OF_TUNING**2 + float(np.mean(variances)) + rounding
    # weights are inverse variances over their mean
    return SCATTER_OF_TUNING**2 + 1 / float(np.mean([1 / one for one in variances])) + rounding


def _known(point: SweepPoint) -> SweepPoint | None:
    """The point with intervals at their middle; None where a run has not arrived, which says nothing of a turn."""
    if any(low <= 0 or high == math.inf for low, high in point.censored):
        return None
    if not point.censored:
        return point
    middles = [math.log(low * high) / 2 for low, high in point.censored]
    repeats = point.repeats or Repeats(0, 0.0, 0.0)
    count = repeats.count + len(middles)
    mean = (repeats.count * repeats.mean_log_steps + math.fsum(middles)) / count
    return SweepPoint(point.batch_size, Repeats(count, mean, 0.0), is_at_grid_edge=point.is_at_grid_edge)


def _is_inside(data: Observations, log_best: float) -> bool:
    """Whether examples are fewest beyond the middle of the two smallest batch sizes, and not at the largest."""
    smallest, next_one = np.sort(data.log_batch)[:2]
    fewest = data.log_batch[(data.log_steps + data.log_batch).argmin()]
    return bool(log_best > (smallest + next_one) / 2 and fewest < data.log_batch.max())

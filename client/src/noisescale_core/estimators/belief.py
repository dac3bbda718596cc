"""How likely each noise scale is, from all looks of a run: those count, too, in which no window is resolved.

A look with the means a of tr Σ and c of |G|² over n steps at batch B says of a noise scale φ how far c lies from a / φ,
in the standard error that φ itself implies. One that shows no gradient at all is evidence still: φ is not small. From
look to look φ may drift, so that what an early look said fades as the run goes on.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import mul
from statistics import NormalDist

from noisescale_core.estimators.looks import Look
from noisescale_core.estimators.uncertainty import ROUNDING

SPACING = 0.1
"""Of the grid of ln φ."""

SMALLEST, LARGEST = 1e-3, 3e4
"""Noise scales that are told apart, in batches of the last look: of a steady batch, no run tells more.

A flat belief that reached further would hold a young run's noise scale for larger than it is."""

FEWEST_UPDATES = 8
"""Measured steps before anything is said."""

DRIFT = 0.7
"""Standard deviation of the drift of ln φ between looks, in √ln of the growth of the steps: |G|² falls about as a power
of the steps. With half of it or 1.4 times as much the odds on real runs were as honest (`docs/deciding.md`)."""

LEAST_ERROR = 0.1
"""Of a / φ: no look says φ to better than a tenth, as φ does not stand still within one."""

PRIOR_WEIGHT, PRIOR_INVERSE_DIMENSION = 6.0, 1 / 20
"""Before the first look the noise is taken for that of 20 equal directions, which weighs as much as 6 steps."""

NEGLIGIBLE = 1e-9
"""Of the largest weight: what is less likely is left out."""

UNBOUNDED_FROM = 30.0
"""Upper over lower end of a 95 % interval that bounds nothing above."""

UNBOUNDED_LOG_SD = 3.0
"""Stands for a lower end that nothing bounds."""

_COUNT = math.floor(math.log(LARGEST / SMALLEST) / SPACING) + 1


@dataclass(frozen=True, slots=True)
class Belief:
    """Weights of equally spaced values of ln φ; they add up to 1.

    Attributes:
        start: The first ln φ, φ in examples.
        spacing: From one to the next.
        weights: How likely each is.
    """

    start: float
    spacing: float
    weights: tuple[float, ...]

    def quantile(self, share: float) -> float:
        """The noise scale that lies below the true one with this probability, in examples.

        Args:
            share: Between 0 and 1.
        """
        below = 0.0
        for place, weight in enumerate(self.weights):
            if below + weight >= share:
                inside = (share - below) / weight if weight else 0.5
                return math.exp(self.start + self.spacing * (place - 0.5 + inside))
            below += weight
        return math.exp(self.start + self.spacing * (len(self.weights) - 0.5))

    @property
    def is_bounded(self) -> bool:
        """Whether large values are ruled out: where no gradient has shown, the noise scale may be any of them."""
        return self.quantile(0.975) < UNBOUNDED_FROM * self.quantile(0.025)

    def points(self) -> Iterator[tuple[float, float]]:
        """The logarithm of each value with its weight."""
        return ((self.start + self.spacing * place, weight) for place, weight in enumerate(self.weights))

    def resampled(self, spacing: float) -> "Belief":
        """The same on a grid of another spacing; each weight is split between its neighbours there, so the mean stays.

        Args:
            spacing: Of the new grid.
        """
        weights = [0.0] * (math.ceil((len(self.weights) - 1) * self.spacing / spacing) + 2)
        for place, weight in enumerate(self.weights):
            below, share = divmod(place * self.spacing / spacing, 1.0)
            weights[int(below)] += weight * (1 - share)
            weights[int(below) + 1] += weight * share
        return Belief(self.start, spacing, tuple(weights))

    @classmethod
    def of_logarithms(cls, start: float, spacing: float, log_weights: Sequence[float]) -> "Belief":
        """The belief whose weights have these logarithms but for a constant, without what is hardly possible.

        Args:
            start: The first value's logarithm.
            spacing: From one to the next.
            log_weights: At least one is finite.
        """
        top = max(log_weights)
        weights = [math.exp(one - top) for one in log_weights]
        first = next(place for place, one in enumerate(weights) if one > NEGLIGIBLE)
        last = next(place for place in range(len(weights) - 1, -1, -1) if weights[place] > NEGLIGIBLE)
        kept = weights[first : last + 1]
        total = math.fsum(kept)
        return cls(start + spacing * first, spacing, tuple(weight / total for weight in kept))

    @classmethod
    def of_interval(cls, value: float, low: float, high: float, level: float) -> "Belief":
        """A normal belief on the log scale, of another width to either side of the value.

        Args:
            value: Its median, positive.
            low: Lower end of its interval; 0 where nothing bounds it.
            high: Upper end.
            level: Of the interval.
        """
        quantile = NormalDist().inv_cdf(0.5 + level / 2)
        down = math.log(value / low) / quantile if low > 0 else UNBOUNDED_LOG_SD
        up = math.log(high / value) / quantile
        spacing = max(min(SPACING, max(down, up) / 4), 1e-3)
        before, after = (math.ceil(5 * sd / spacing) for sd in (down, up))
        places = range(-before, after + 1)
        # each half holds one half of the weight, whatever its width
        edges = [spacing * (place - 0.5) for place in (*places, after + 1)]
        below = [NormalDist().cdf(edge / sd) if (sd := down if edge < 0 else up) else float(edge > 0) for edge in edges]
        weights = [then - now for now, then in pairwise(below)]
        logs = [math.log(weight) if weight > 0 else -math.inf for weight in weights]
        return cls.of_logarithms(math.log(value) - spacing * before, spacing, logs)


def belief(looks: Iterable[Look]) -> Belief | None:
    """What the looks say together; None before 8 measured steps, or where no look can be used.

    Args:
        looks: Of the run so far, oldest first; those without an estimate, a batch or a positive tr Σ say nothing.

    Source: a filter on a grid with Student's t as the likelihood; the variance of |G|² is that of Gaussian noise in d
        equal directions (`estimators/signal.py` tests for a gradient by less), d from the spread of all looks.
    """
    usable = [one for one in looks if _is_usable(one)]
    if sum(one.num_updates for one in usable) < FEWEST_UPDATES:
        return None
    origin = math.log(SMALLEST * _batch_of(usable[-1]))
    inverses = [math.exp(-(origin + SPACING * place)) for place in range(_COUNT)]
    inverse_dimension, freedom = _dimension(usable)
    low, weights, steps_before = 0, [1.0] * _COUNT, 0.0
    for look in usable:
        if steps_before:
            low, weights = _blurred(low, weights, DRIFT * math.sqrt(math.log1p(look.num_updates / steps_before)))
        low, weights = _with_look(low, weights, inverses, look, inverse_dimension, freedom)
        steps_before += look.num_updates
    total = math.fsum(weights)
    return Belief(origin + SPACING * low, SPACING, tuple(weight / total for weight in weights))


def _is_usable(look: Look) -> bool:
    n, x, y = look.num_updates, look.trace_cov, look.grad_sq_norm
    if not (n > 0 and look.num_batches > 0 and look.examples > 0 and math.isfinite(x) and math.isfinite(y)):
        return False
    # equal small batches would say that any batch is large enough; the noise of a step must not vanish in float64
    return x / n / _batch_of(look) > 0 and x >= ROUNDING * y


def _batch_of(look: Look) -> float:
    return look.examples / look.num_batches


def _dimension(looks: Sequence[Look]) -> tuple[float, float]:
    """1 / d of the noise, and how many degrees of freedom that rests on."""
    weighted, freedom = PRIOR_WEIGHT * PRIOR_INVERSE_DIMENSION, PRIOR_WEIGHT
    for look in looks:
        n, batch = look.num_updates, _batch_of(look)
        noise, signal = look.trace_cov / n / batch, max(0.0, look.grad_sq_norm / n)
        # the sum of squares about the mean, which rounding can leave a little below 0
        squares = max(0.0, look.grad_sq_norm_sq - look.grad_sq_norm * look.grad_sq_norm / n)
        expected = 2 * noise * noise + 4 * noise * signal
        if expected > 0 and squares < math.inf:
            weighted += squares / expected
            freedom += n - 1
    return weighted / freedom, freedom


def _with_look(
    low: int,
    weights: Sequence[float],
    inverses: Sequence[float],
    look: Look,
    inverse_dimension: float,
    freedom: float,
) -> tuple[int, list[float]]:
    """The weights after a look, and the number of the first on the grid, of whose values 1 / φ is given."""
    n, batch = look.num_updates, _batch_of(look)
    # in units of the noise of a step, so that no square leaves float64
    noise = look.trace_cov / n / batch
    c = look.grad_sq_norm / n / noise
    of_noise, of_signal = 2 * inverse_dimension / n, 4 * inverse_dimension / n * batch
    half, least = (freedom + 1) / 2, (LEAST_ERROR * batch) ** 2
    log1p, log = math.log1p, math.log
    found = []
    for inverse, weight in zip(inverses[low : low + len(weights)], weights, strict=True):
        variance = of_noise + inverse * (of_signal + least * inverse)
        far = c - batch * inverse
        found.append(log(weight) - half * log1p(far * far / (freedom * variance)) - log(variance) / 2)
    top = max(found)
    likely = [math.exp(one - top) for one in found]
    first = next(place for place, one in enumerate(likely) if one > NEGLIGIBLE)
    last = next(place for place in range(len(likely) - 1, -1, -1) if likely[place] > NEGLIGIBLE)
    kept = likely[first : last + 1]
    # a gap between two peaks has a logarithm, too
    return low + first, [max(one, NEGLIGIBLE) for one in kept]


def _blurred(low: int, weights: Sequence[float], log_sd: float) -> tuple[int, list[float]]:
    """The weights after a normal drift, on the grid as far as it reaches."""
    width = log_sd / SPACING
    reach, num = max(1, math.ceil(4 * width)), len(weights)
    half = [math.exp(-0.5 * (place / width) ** 2) for place in range(reach, 0, -1)]
    start, end = max(0, low - reach), min(_COUNT, low + num + reach)
    # what the first weight gives to each place, from the last on: that of the next one lies a place further
    given = [*[0.0] * (num - 1), *half, 1.0, *reversed(half), *[0.0] * (num - 1)]
    first = num - 1 + reach + low - start  # of what each place is made of
    # a drift much smaller than the grid leaves nothing at its ends, which must keep a logarithm
    least = NEGLIGIBLE * max(weights)
    return start, [
        one if (one := sum(map(mul, given[place : place + num], weights))) > least else least
        for place in range(first, first - (end - start), -1)
    ]

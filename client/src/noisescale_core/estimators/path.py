"""The path of the parameters: how far a run got for the updates that it made, against a random walk of these updates.

With updates u_1 … u_T from θ_0 on, |θ_T - θ_0|² = Σ |u_t|² + 2 Σ u_t · (θ_t - θ_0). The last sum is 0 where gradients
neither push on along the path, as with a learning rate that is too low, nor back, as with one that is too high. What
the optimizer's own momentum adds to it is known and divided out. Such a ratio needs neither loss nor noise scale.

Of the last half of the updates the same sum is told by two distances: the growth of |θ - θ_0|² beyond what a random
walk of these updates adds. It is of recent steps, and turns where the whole path still remembers earlier ones.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from noisescale_core.errors import EstimationError

SKETCH_SIZE = 1021
"""Numbers of a count-sketch: its error is 0.03 octaves of q, a fifth of what q scatters from run to run.

A prime, as a place's bucket is its remainder: with a power of two a column of a matrix would fall into one bucket."""

WIDEST = 1.5
"""Times the updates of one moment at the next, between which a path is taken for straight."""

NUMBERS = 5
"""Of a path, before its push."""

Z = 1.959964
"""Half the width of a 95 % interval in standard deviations."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A number that is read off a path.

    Attributes:
        value: The number.
        sd: Its standard deviation by measurement: the sketch, and the updates that were not looked at.
    """

    value: float
    sd: float

    @property
    def low(self) -> float:
        """Lower end of the 95 % interval."""
        return self.value - Z * self.sd

    @property
    def high(self) -> float:
        """Upper end of the 95 % interval."""
        return self.value + Z * self.sd


class PathRatio(Reading):
    """q, the length that a random walk of the same updates would have got to over the one that was got to, in octaves.

    Below 0 the updates pull together, above 0 they take each other back.
    """

    __slots__ = ()


class Push(Reading):
    """How the last half of a path's updates went along it: (growth of |θ - θ_0|²) / (factor · Σ |u|²) - 1.

    Above 0 they push on, below 0 back.
    """

    __slots__ = ()


class Promised(NamedTuple):
    """What the updates since some step have promised.

    Attributes:
        num_updates: Updates that the sum is of.
        total: -Σ u · G over them, in units of the loss.
        variance: Of that sum: some updates only were looked at, and each look has the noise of a batch.
    """

    num_updates: float = 0.0
    total: float = 0.0
    variance: float = 0.0

    def times(self, factor: float) -> "Promised":
        """As if there had been so many times the updates.

        Args:
            factor: On their number.
        """
        return Promised(self.num_updates * factor, self.total * factor, self.variance * factor * factor)

    def since(self, before: "Promised") -> "Promised":
        """What was promised after an earlier moment.

        Args:
            before: That moment.
        """
        return Promised(
            self.num_updates - before.num_updates,
            self.total - before.total,
            max(0.0, self.variance - before.variance),
        )


class Path(NamedTuple):
    """What is known of a run's path.

    Attributes:
        num_updates: T, updates since θ_0.
        sum_sq_norm: Σ |u_t|² over them, without weight decay.
        variance: Of that sum, as some updates only were looked at.
        sq_distance: |θ_T - θ_0|² by a count-sketch.
        momentum: Share of an update that the next one repeats.
        push: Of the last half of the updates; None where that is not known.
        promised: What its updates have promised; None where that is not measured.
    """

    num_updates: float
    sum_sq_norm: float
    variance: float
    sq_distance: float
    momentum: float = 0.0
    push: Push | None = None
    promised: Promised | None = None


def path_ratio(path: Path) -> PathRatio | None:
    """The ratio q = ½ log₂( factor · Σ |u_t|² / |θ_T - θ_0|² ); None where nothing has moved, or not finitely.

    Args:
        path: Of the run so far.

    Source: rate over that of DoG (Ivgi et al. 2023, arXiv:2302.12022), the factor of momentum divided out.
    """
    numbers = path.num_updates, path.sum_sq_norm, path.sq_distance
    if not all(0 < one < math.inf for one in numbers) or not 0 <= path.variance < math.inf:
        return None
    octaves = 0.5 * (
        math.log2(walk_factor(path.momentum, path.num_updates))
        + math.log2(path.sum_sq_norm)
        - math.log2(path.sq_distance)
    )
    relative_error = math.sqrt(path.variance) / path.sum_sq_norm
    return PathRatio(octaves, 0.5 / math.log(2) * math.hypot(sketch_error(), relative_error))


def push_since(half: Path, now: Path) -> Push | None:
    """The push of the updates between two moments of a path; None where it is not finite, or momentum never fades.

    Without momentum it is 2 Σ u · (θ - θ_0) / Σ |u|²: 0 where gradients push the parameters neither on nor back along
    the path. What momentum repeats is divided out, as in the path's ratio.

    Args:
        half: At about half of the updates.
        now: After all of them.
    """
    if not 0 <= now.momentum < 1:
        return None
    factor = (1 + now.momentum) / (1 - now.momentum)
    made = factor * (now.sum_sq_norm - half.sum_sq_norm)
    gone = now.sq_distance - half.sq_distance
    if not (0 < made < math.inf and math.isfinite(gone) and min(half.sq_distance, now.sq_distance) >= 0):
        return None
    moved = max(made, (math.sqrt(now.sq_distance) - math.sqrt(half.sq_distance)) ** 2)
    along = (gone - moved) / 2
    # of inner products by a count-sketch: (|x|²|y|² + (x·y)²) / buckets
    of_sketch = sketch_error() ** 2 * (2 * (half.sq_distance * moved + along * along) + moved * moved)
    grown = gone / made * factor
    of_updates = grown * grown * max(0.0, now.variance - half.variance)
    found = Push(gone / made - 1, math.sqrt(of_sketch + of_updates) / made)
    return found if math.isfinite(found.value) and math.isfinite(found.sd) else None


def at_half(moments: Sequence[Path], now: Path) -> Path | None:
    """The path when half of its updates were made; None where no two moments about then are known.

    It lies on the line between them, so that those who know other moments of a path find the same.

    Args:
        moments: Oldest first.
        now: After all updates.
    """
    half = now.num_updates / 2
    place = bisect_left(moments, half, key=lambda one: one.num_updates)
    if not 0 < place <= len(moments) or not moments[place - 1].num_updates > 0:
        return None
    before, after = moments[place - 1], moments[place] if place < len(moments) else now
    if after.num_updates > WIDEST * before.num_updates:
        return None
    share = (half - before.num_updates) / (after.num_updates - before.num_updates)
    return Path(
        num_updates=half,
        sum_sq_norm=(1 - share) * before.sum_sq_norm + share * after.sum_sq_norm,
        variance=(1 - share) * before.variance + share * after.variance,
        sq_distance=(1 - share) * before.sq_distance + share * after.sq_distance,
        momentum=after.momentum,
        promised=None
        if before.promised is None or after.promised is None
        else between(before.promised, after.promised, share),
    )


def between(before: Promised, after: Promised, share: float) -> Promised:
    """What was promised at a moment on the line between two.

    Args:
        before: At the first.
        after: At the second.
        share: Of the way from the one to the other.
    """
    numbers = ((1 - share) * one + share * other for one, other in zip(before, after, strict=True))
    return Promised(*numbers)


def walk_factor(momentum: float, num_updates: float) -> float:
    """E|Σ u_t|² / E Σ |u_t|² of updates u_t = μ u_{t-1} + noise: (1+μ)/(1-μ), less for few steps.

    Args:
        momentum: μ.
        num_updates: T.

    Raises:
        EstimationError: Unless 0 ≤ μ < 1 and T ≥ 1.

    Source: the variance of the mean of a first-order autoregression; Σ_{s,t} μ^|s-t| / T.
    """
    if not 0 <= momentum < 1:
        raise EstimationError(f"momentum must be from 0 up to, without, 1, got {momentum!r}")
    if not num_updates >= 1:
        raise EstimationError(f"a path needs an update, got num_updates={num_updates!r}")
    rest = 1 - momentum
    repeated: float = 1 - momentum**num_updates
    return (1 + momentum) / rest - 2 * momentum * repeated / (num_updates * rest * rest)


def without_lookahead(momentum: float) -> float:
    """The μ of plain momentum whose random walk gets as far as that of Nesterov's, for the same Σ |u_t|².

    Nesterov's update holds the gradient of k steps ago with weight 1 + μ at k = 0 and μ^(k+1) later on; the factor of
    a long walk is (Σ weights)² / Σ weights².

    Args:
        momentum: Of the optimizer.
    """
    total = 1 / (1 - momentum)
    squares = (1 + momentum) ** 2 + momentum**4 / (1 - momentum * momentum)
    factor = total * total / squares
    return (factor - 1) / (factor + 1)


def sketch_error() -> float:
    """Relative standard deviation of a squared norm by a count-sketch, where no few coordinates rule.

    Source: Charikar, Chen, Farach-Colton 2002; the variance is at most 2 |x|⁴ / buckets.
    """
    return math.sqrt(2 / SKETCH_SIZE)

"""The noise scale of one run over that of another where both have come equally far."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from noisescale_server.analysis.comparison.comparison import quotient
from noisescale_server.analysis.estimate import Estimate


@dataclass(frozen=True, slots=True)
class Place:
    """A window of a run.

    Attributes:
        x: How far the run had come.
        scale: Its noise scale; None where the window gives no interval with two ends.
        is_resolved: Whether decisions may rest on it.
    """

    x: float
    scale: Estimate | None
    is_resolved: bool


@dataclass(frozen=True, slots=True)
class RatioPoint:
    """The ratio at one place; resolved where both noise scales are."""

    x: float
    ratio: Estimate
    is_resolved: bool


@dataclass(frozen=True, slots=True)
class Ratio:
    """The ratio along the axis.

    Attributes:
        points: Where both runs have a noise scale, by x.
        mean: Geometric mean over the resolved points; None without any. Its ends are the means of the points' ends:
            windows overlap and drift together, so averaging does not make the interval narrower.
    """

    points: tuple[RatioPoint, ...]
    mean: Estimate | None


def ratio_along(of: Sequence[Place], to: Sequence[Place]) -> Ratio:
    """`of` over `to`, both by rising x: at the places of `of`, `to` interpolated on a log scale between neighbours."""
    at = [place.x for place in to]
    found = []
    for place in of:
        other = None if place.scale is None else _between(to, at, place.x)
        if place.scale is not None and other is not None and other.scale is not None:
            both = place.is_resolved and other.is_resolved
            found.append(RatioPoint(place.x, quotient(place.scale, other.scale), both))
    return Ratio(tuple(found), _mean([point.ratio for point in found if point.is_resolved]))


def first_at_each_loss(places: Sequence[Place]) -> list[Place]:
    """Of windows by time whose x is a loss those that reach a new lowest one; x becomes its negative, which rises."""
    found: list[Place] = []
    for place in places:
        if not found or -place.x > found[-1].x:
            found.append(Place(-place.x, place.scale, place.is_resolved))
    return found


def _between(places: Sequence[Place], at: Sequence[float], x: float) -> Place | None:
    """What lies at x; None outside, and where a neighbour has no noise scale: nothing is guessed across a gap."""
    after = bisect_left(at, x)
    if after < len(at) and at[after] == x:
        return places[after]
    if after in (0, len(at)):
        return None
    left, right = places[after - 1], places[after]
    if left.scale is None or right.scale is None:
        return None
    share = (x - left.x) / (right.x - left.x)
    return Place(x, _mixed(left.scale, right.scale, share), left.is_resolved and right.is_resolved)


def _mixed(left: Estimate, right: Estimate, share: float) -> Estimate:
    def mixed(name: str) -> float | None:
        ends = getattr(left, name), getattr(right, name)
        if any(end is None or end <= 0 for end in ends):
            return None
        return math.exp((1 - share) * math.log(ends[0]) + share * math.log(ends[1]))

    value = mixed("value")
    assert value is not None, "an estimate is positive"
    return Estimate(value, mixed("low"), mixed("high"), min(left.level, right.level))


def _mean(ratios: Sequence[Estimate]) -> Estimate | None:
    if not ratios:
        return None

    def mean(values: Sequence[float]) -> float:
        return math.exp(math.fsum(map(math.log, values)) / len(values))

    lows = [one.low for one in ratios if one.low is not None]
    highs = [one.high for one in ratios if one.high is not None]
    return Estimate(
        mean([one.value for one in ratios]),
        mean(lows) if len(lows) == len(ratios) else None,
        mean(highs) if len(highs) == len(ratios) else None,
        ratios[0].level,
    )

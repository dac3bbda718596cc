"""The noise scale or critical batch as a function of the loss, of steps or of examples: fit, bands and forecast.

Over the loss: log B_crit = log B* - (1 / α) log(L - L∞) (Kaplan et al. 2020, arXiv:2001.08361, eq. 5.3, where L∞ = 0).
Constants of one tokenizer and data set say nothing about another.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.forecast.laws.choice import Choice, choose
from noisescale_server.analysis.forecast.laws.shape_fit import Array, LawObservations, ShapeFit, fit_shape
from noisescale_server.analysis.forecast.laws.shapes import NEAREST_LIMIT, Axis, ShapeName, shapes

FEWEST_OBSERVATIONS = 6
FEWEST_CLUSTERS = 3

FAR = 0.5
"""Decades of x beyond what was seen, from which on a forecast carries a warning."""

LEAST_RANGE = 1.05
"""Largest over smallest x below which nothing is learnt of how one changes with the other."""

WIDEST = math.log(1e4)
"""A half band beyond this factor is no bound."""

NUM_LIMITS = 200


@dataclass(frozen=True, slots=True)
class NoLaw:
    """Too little was seen; the explanation says what is missing."""

    explanation: str


@dataclass(frozen=True, slots=True)
class LawPoint:
    """The law at one x.

    Attributes:
        x: Loss, steps or examples.
        curve: The value with the band of the curve, over every shape with support; ends are None where unbounded.
        window: The same value with the band in which one more window falls.
        is_extrapolated: x lies outside what was seen.
        is_far: By more than half a decade.
    """

    x: float
    curve: Estimate
    window: Estimate
    is_extrapolated: bool
    is_far: bool


@dataclass(frozen=True, slots=True)
class Law:
    """A fitted law.

    Attributes:
        axis: What it is over.
        power: d log φ / d log x of the power law; over the loss -1 / α.
        alpha: α of Kaplan's law; None over steps and examples. An end is None where the power may be zero.
        irreducible_loss: L∞ from the profile; None over steps and examples, and where nothing is known. An end is None
            where the data set no bound.
        choice: Power law, plateau or constant.
        fits: Of every shape.
        num_observations: Windows or targets.
        num_clusters: Parts whose errors do not depend on each other.
        lowest: Smallest x seen.
        highest: Largest x seen.
        level: Confidence level.
    """

    axis: Axis
    power: Estimate
    alpha: Estimate | None
    irreducible_loss: Estimate | None
    choice: Choice
    fits: tuple[ShapeFit, ...]
    num_observations: int
    num_clusters: int
    lowest: float
    highest: float
    level: float

    def at(self, x: float) -> LawPoint:
        """The law at a loss, after steps or after examples."""
        supported = {one.shape for one in self.choice.candidates if one.has_support} | {self.choice.shape}
        bands = {fit.shape.name: fit.bands(x, self.level) for fit in self.fits if fit.shape.name in supported}
        return LawPoint(
            x=x,
            curve=self._envelope({name: of_curve for name, (of_curve, _) in bands.items()}),
            window=self._envelope({name: of_window for name, (_, of_window) in bands.items()}),
            is_extrapolated=not self.lowest <= x <= self.highest,
            is_far=self.decades_beyond(x) > FAR,
        )

    def decades_beyond(self, x: float) -> float:
        """How far x lies outside what was seen, in decades; 0 inside."""
        return max(math.log10(x / self.highest), math.log10(self.lowest / x), 0.0)

    def _envelope(self, found: Mapping[ShapeName, Estimate]) -> Estimate:
        value = found[self.choice.shape].value
        lows = [one.low for one in found.values() if one.low is not None]
        highs = [one.high for one in found.values() if one.high is not None]
        low, high = min(lows), max(highs)
        return Estimate(
            value,
            low if math.log(value / low) < WIDEST else None,
            high if math.log(high / value) < WIDEST else None,
            self.level,
        )


def fit_law(data: LawObservations, axis: Axis, *, level: float = 0.95) -> Law | NoLaw:
    """The law through observations, or why there is none."""
    missing = _missing(data)
    if missing is not None:
        return NoLaw(missing)
    lowest, highest = float(data.x.min()), float(data.x.max())
    fits = tuple(fit_shape(shape, data) for shape in shapes(axis, lowest))
    by_name = {fit.shape.name: fit for fit in fits}
    choice = choose(fits, [int(count) for count in np.unique(data.cluster, return_counts=True)[1]])
    power = power_of(by_name[ShapeName.POWER], level)
    return Law(
        axis=axis,
        power=power,
        alpha=alpha_of(power) if axis is Axis.LOSS else None,
        irreducible_loss=_irreducible_loss(data, choice.num_effective, level) if axis is Axis.LOSS else None,
        choice=choice,
        fits=fits,
        num_observations=data.x.size,
        num_clusters=data.num_clusters,
        lowest=lowest,
        highest=highest,
        level=level,
    )


def power_of(fit: ShapeFit, level: float) -> Estimate:
    """The exponent of a power law with its interval."""
    value = float(fit.parameters[1])
    half = fit.errors.half_width(np.array([0.0, 1.0]), level)
    return Estimate(value, value - half, value + half, level)


def alpha_of(power: Estimate) -> Estimate | None:
    """α = -1 / power; None for a power that is not negative, an end None where the power may reach zero."""
    assert power.low is not None, "a fitted power has both ends"
    assert power.high is not None, "a fitted power has both ends"
    if power.value >= 0:
        return None
    return Estimate(-1 / power.value, -1 / power.low, -1 / power.high if power.high < 0 else None, power.level)


def _missing(data: LawObservations) -> str | None:
    if data.x.size < FEWEST_OBSERVATIONS:
        return f"{data.x.size} resolved values are known and a law needs {FEWEST_OBSERVATIONS}: train on."
    if data.num_clusters < FEWEST_CLUSTERS:
        return f"The values come in {data.num_clusters} parts and errors need {FEWEST_CLUSTERS}: train on."
    reach = float(data.x.max() / data.x.min())
    if reach < LEAST_RANGE:
        return f"What the law is over changed by a factor of {reach:.3g} only, and {LEAST_RANGE} is needed: train on."
    return None


def _irreducible_loss(data: LawObservations, num_effective: float, level: float) -> Estimate | None:
    """The profile of L∞: for each value the best straight line in log(L - L∞)."""
    limits = np.linspace(0.0, NEAREST_LIMIT * float(data.x.min()), NUM_LIMITS)
    weights = 1 / data.standard_error**2
    misses = np.array([_squares(np.log(data.x - limit), data.log_value, weights) for limit in limits])
    freedom = num_effective - 3
    if freedom <= 1:
        return None
    quantile = float(stdtrit(freedom, 0.5 + level / 2))
    allowed = np.flatnonzero(misses <= misses.min() * (1 + quantile**2 / freedom))
    is_open = allowed[-1] == limits.size - 1
    return Estimate(
        float(limits[misses.argmin()]),
        float(limits[allowed[0]]),
        None if is_open else float(limits[allowed[-1]]),
        level,
    )


def _squares(x: Array, y: Array, weights: Array) -> float:
    x = x - weights @ x / weights.sum()
    y = y - weights @ y / weights.sum()
    spread = float(weights @ x**2)
    slope = float(weights @ (x * y)) / spread if spread > 0 else 0.0
    return float(weights @ (y - slope * x) ** 2)


def curve(law: Law, to: float | None, num_points: int) -> Sequence[LawPoint]:
    """The law at points evenly spaced on the log scale over what was seen, and on to `to`."""
    ends = [law.lowest, law.highest, *([] if to is None else [to])]
    return [law.at(float(x)) for x in np.geomspace(min(ends), max(ends), num_points)]

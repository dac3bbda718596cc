"""B_crit as a function of the target, from one sweep crossed at several targets.

The crossings of one batch size are of the same runs: a batch size that was tuned badly moves every target together. So
all targets are fitted at once, log S = log S_min(target) + log(1 + B_crit(target) / B) with B_crit a law of the target,
and the errors of a batch size are one cluster. Fitting the law to the targets' separate values of B_crit would count
the same luck several times.

Sources: McCandlish et al. 2018, arXiv:1812.06162, eq. 2.11; Kaplan et al. 2020, arXiv:2001.08361, eq. 5.3.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from noisescale_server.analysis.forecast.laws.choice import choose
from noisescale_server.analysis.forecast.laws.cluster_robust import ClusterRobust, cluster_robust
from noisescale_server.analysis.forecast.laws.law import Law, NoLaw, alpha_of, power_of
from noisescale_server.analysis.forecast.laws.shape_fit import ShapeFit
from noisescale_server.analysis.forecast.laws.shapes import Axis, Shape, ShapeName, shapes

Array = NDArray[np.float64]

FEWEST_TARGETS = 3
FEWEST_BATCH_SIZES = 4
MOST_OCTAVES_APART = 40.0


@dataclass(frozen=True, slots=True)
class Crossing:
    """Steps to a target at one batch size.

    Attributes:
        target: Loss, positive.
        batch_size: In examples.
        steps: Interpolated crossing.
    """

    target: float
    batch_size: float
    steps: float


def fit_ladder(crossings: Sequence[Crossing], *, level: float = 0.95) -> Law | NoLaw:
    """The law of B_crit over the targets, or why there is none."""
    missing = _missing(crossings)
    if missing is not None:
        return NoLaw(missing)
    data = _columns(crossings)
    known = shapes(Axis.LOSS, float(data.targets[0]))
    fits = tuple(_fit(shape, data) for shape in known if shape.num_parameters < data.targets.size)
    by_name = {fit.shape.name: fit for fit in fits}
    power = power_of(by_name[ShapeName.POWER], level)
    return Law(
        axis=Axis.LOSS,
        power=power,
        alpha=alpha_of(power),
        irreducible_loss=None,
        choice=choose(fits, [int(count) for count in np.unique(data.cluster, return_counts=True)[1]]),
        fits=fits,
        num_observations=int(data.targets.size),
        num_clusters=int(np.unique(data.cluster).size),
        lowest=float(data.targets[0]),
        highest=float(data.targets[-1]),
        level=level,
    )


@dataclass(frozen=True, slots=True)
class _Columns:
    """Targets rising, [J]; of each crossing its target's place, log batch size, log steps and cluster, [N]."""

    targets: Array
    place: NDArray[np.int_]
    log_batch: Array
    log_steps: Array
    cluster: NDArray[np.int_]


def _missing(crossings: Sequence[Crossing]) -> str | None:
    targets = {one.target for one in crossings}
    sizes = {one.batch_size for one in crossings}
    if any(target <= 0 for target in targets):
        return "Targets that are not positive have no power law: choose a loss."
    if len(targets) < FEWEST_TARGETS:
        return f"A law over targets needs {FEWEST_TARGETS} that runs reached, and has {len(targets)}: name more."
    if len(sizes) < FEWEST_BATCH_SIZES:
        return f"Errors need {FEWEST_BATCH_SIZES} batch sizes that reached a target, and {len(sizes)} did: add some."
    return None


def _columns(crossings: Sequence[Crossing]) -> _Columns:
    targets, place = np.unique([one.target for one in crossings], return_inverse=True)
    cluster = np.unique([one.batch_size for one in crossings], return_inverse=True)[1]
    log_batch = np.log([one.batch_size for one in crossings])
    return _Columns(targets, place, log_batch, np.log([one.steps for one in crossings]), cluster)


def _fit(shape: Shape, data: _Columns) -> ShapeFit:
    """The joint fit; the levels log S_min of the targets are eliminated, each is a mean."""
    middle = float(np.median(data.log_batch))
    starts = [
        start
        for shift in (-2.0, 0.0, 2.0)
        for start in shape.starts(data.targets, middle + shift - np.log(data.targets / data.targets.mean()))
    ]
    # MINPACK in one call: scipy's own methods take steps in Python, five times as long
    found = [
        least_squares(lambda one: _misses(shape, one, data), start, method="lm", x_scale="jac") for start in starts
    ]
    best = min(found, key=lambda one: float(one.cost))
    design = np.atleast_2d(best.jac)
    errors = cluster_robust(_with_levels(-design, data), -best.fun, np.ones(best.fun.size), list(data.cluster), best.x)
    return ShapeFit(shape, best.x, _of_shape(errors, shape.num_parameters), -best.fun, np.ones(best.fun.size), 0.0, 0.0)


def _misses(shape: Shape, parameters: Array, data: _Columns) -> Array:
    """Curve minus data, each target at its best level."""
    log_critical = shape.log_value(parameters, data.targets)[data.place]
    distance = np.clip(log_critical - data.log_batch, -MOST_OCTAVES_APART, MOST_OCTAVES_APART)
    miss = np.logaddexp(0.0, distance) - data.log_steps
    return miss - (np.bincount(data.place, weights=miss) / np.bincount(data.place))[data.place]


def _with_levels(design: Array, data: _Columns) -> Array:
    """The design with a column for each target's level: they cost degrees of freedom."""
    return np.hstack([design, (data.place[:, None] == np.arange(data.targets.size)).astype(float)])


def _of_shape(errors: ClusterRobust, count: int) -> ClusterRobust:
    """The errors of the shape's parameters alone."""
    return ClusterRobust(
        errors.coefficients[:count],
        errors.covariance[:count, :count],
        errors.loadings[:, :, :count],
        errors.cluster,
        errors.correlation,
    )

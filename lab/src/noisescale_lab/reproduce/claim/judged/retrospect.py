"""The retrospective figures: which points count, in which series, and what each series says."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from noisescale_lab.reproduce.claim.effort import LEFT_OUT_OF_QUICK
from noisescale_lab.reproduce.claim.task_result import TargetResult, TaskResult
from noisescale_lab.reproduce.trainer import Array

# How well noise scales predict B_crit over tasks, each figure with its bootstrap interval over tasks.
#
# r² is governed by the span: it never stands without span, rms factor and shares. Logarithms are to base 10.
#
# Source of the comparison: McCandlish et al. 2018, arXiv:1812.06162, Table 1 and section 3.

FEWEST_POINTS = 5
NUM_RESAMPLES = 2_000
SEED = 20181214

TINY = 1e-9
"""Below it a sum of squared logarithms is rounding: all points are one."""


@dataclass(frozen=True, slots=True)
class Point:
    """One target of one task, both numbers in the task's unit."""

    task: str
    target: float | None
    noise_scale: float
    critical_batch: float


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with its 95 % interval over tasks."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True, slots=True)
class Agreement:
    """The figures of one series of points.

    Attributes:
        num_points: Targets.
        num_tasks: Different tasks among them.
        r_squared_of_fit: About the fitted line, the squared correlation.
        r_squared_of_identity: About B_crit = noise scale; may be negative.
        rms_factor: 10 to the root mean square of log κ, κ = B_crit / noise scale.
        within_factor_2: Share of points with 1/2 ≤ κ ≤ 2.
        within_factor_3: Share of points with 1/3 ≤ κ ≤ 3.
        slope: Of log B_crit on log noise scale.
        decades: Of B_crit, smallest to largest.
    """

    num_points: int
    num_tasks: int
    r_squared_of_fit: Figure
    r_squared_of_identity: Figure
    rms_factor: Figure
    within_factor_2: Figure
    within_factor_3: Figure
    slope: Figure
    decades: float


def agreement(points: Sequence[Point]) -> Agreement | None:
    """The figures of some points; None for fewer than five tasks.

    Tasks are resampled with all their targets, as targets of one task are no independent trials (Efron & Tibshirani
    1993, section 13.3: percentiles).
    """
    tasks = sorted({point.task for point in points})
    if len(tasks) < FEWEST_POINTS:
        return None
    sums = np.array([_sums([point for point in points if point.task == task]) for task in tasks])
    drawn = np.random.default_rng(SEED).multinomial(len(tasks), np.full(len(tasks), 1 / len(tasks)), NUM_RESAMPLES)
    own = {name: float(values[0]) for name, values in _figures(sums.sum(0, keepdims=True)).items()}
    resampled = _figures(drawn @ sums)
    return Agreement(
        num_points=len(points),
        num_tasks=len(tasks),
        decades=float(np.ptp(np.log10([point.critical_batch for point in points]))),
        **{name: _figure(value, resampled[name]) for name, value in own.items()},
    )


def _sums(points: Sequence[Point]) -> list[float]:
    """Of one task: what the figures are made of, and what adds over tasks."""
    logs = np.log10([(point.noise_scale, point.critical_batch) for point in points])
    x, y = logs[:, 0], logs[:, 1]
    distance = np.abs(y - x)
    # a factor that is met exactly is within it, whatever the rounding of logarithms
    within = [float((distance <= math.log10(factor) + 1e-12).sum()) for factor in (2, 3)]
    return [float(len(x)), *(float(term.sum()) for term in (x, y, x * x, y * y, x * y, distance**2)), *within]


def _figures(sums: Array) -> dict[str, Array]:
    """The figures of rows of sums; not a number where all points of a row are one."""
    n, x, y, x_sq, y_sq, cross, distance_sq, within_2, within_3 = sums.T
    xx, yy, xy = x_sq - x * x / n, y_sq - y * y / n, cross - x * y / n
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "r_squared_of_fit": np.where(xx * yy > TINY, xy**2 / (xx * yy), np.nan),
            "r_squared_of_identity": np.where(yy > TINY, 1 - distance_sq / yy, np.nan),
            "rms_factor": 10 ** np.sqrt(distance_sq / n),
            "within_factor_2": within_2 / n,
            "within_factor_3": within_3 / n,
            "slope": np.where(xx > TINY, xy / xx, np.nan),
        }


def _figure(value: float, resampled: Array) -> Figure:
    low, high = np.nanquantile(resampled, [0.025, 0.975])
    return Figure(value, float(low), float(high))


# The published noise scales and critical batches, as a second series beside one's own.
#
# Averages over training, where both numbers are single ones; a range over games and a lower bound are left out.
#
# Source: McCandlish et al. 2018, arXiv:1812.06162, Table 1.

PUBLISHED = (
    Point("MNIST", None, 900, 200),
    Point("SVHN", None, 4_000, 500),
    Point("CIFAR10", None, 2_000, 900),
    Point("ImageNet (ResNet-50)", None, 30_000, 15_000),
    Point("Autoencoder (SVHN)", None, 2, 40),
    Point("VAE (SVHN)", None, 10, 200),
    Point("Billion Word LM (LSTM)", None, 150_000, 100_000),
    Point("Dota 1v1 (PPO)", None, 300_000, 3_000_000),
)


AVERAGES: dict[str, Callable[[TargetResult], float | None]] = {
    "near_critical": lambda found: found.near_critical,
    "ideal_steps": lambda found: found.ideal_steps,
    "all_batches": lambda found: found.all_batches,
}
"""Along the tuned run nearest B_crit; the same in ideal steps; and over tuned runs at all batch sizes."""

TARGETS = ("all", "hardest")
GROUPS: dict[str, frozenset[str]] = {
    "all tasks": frozenset(),
    "without own": frozenset({"own"}),
    "without label noise": frozenset({"label_noise"}),
    "without both": frozenset({"own", "label_noise"}),
}
"""Groups of tasks that are left out."""


@dataclass(frozen=True, slots=True)
class Series:
    """One choice of points.

    Attributes:
        average: How the noise scale was averaged; "published" for the paper's own.
        targets: "all" or "hardest".
        tasks: Which tasks, in words.
        points: What counts.
        agreement: None with fewer than five tasks.
    """

    average: str
    targets: str
    tasks: str
    points: tuple[Point, ...]
    agreement: Agreement | None


def series(results: Sequence[TaskResult]) -> tuple[Series, ...]:
    """Every combination, the headline first, and the published table last."""
    found = []
    for targets, tasks, average in product(("hardest", "all"), GROUPS, AVERAGES):
        counted = [result for result in results if result.group not in GROUPS[tasks] | {"size"}]
        points = tuple(_points(counted, average, only_hardest=targets == "hardest"))
        found.append(Series(average, targets, tasks, points, agreement(points)))
    return (*found, Series("published", "all", "Table 1", PUBLISHED, agreement(PUBLISHED)))


def exclusions(results: Sequence[TaskResult]) -> tuple[str, ...]:
    """What is left out, and why, one line each."""
    left_out = [
        f"{result.task} at {found.target:g}: {found.exclusion}"
        for result in results
        for found in result.targets
        if found.exclusion is not None
    ]
    done = {result.task for result in results}
    is_quick = any(result.effort == "quick" for result in results)
    never_run = LEFT_OUT_OF_QUICK.items() if is_quick else ()
    return (*left_out, *(f"{task}: {reason}" for task, reason in never_run if task not in done))


def _points(results: Iterable[TaskResult], average: str, *, only_hardest: bool) -> Iterable[Point]:
    for result in results:
        counted = [found for found in result.targets if found.exclusion is None]
        for found in counted[-1:] if only_hardest else counted:
            value = AVERAGES[average](found)
            if value is not None and found.fit is not None:
                in_units = (result.in_units(number) for number in (value, found.fit.critical_batch))
                yield Point(result.task, found.target, *in_units)

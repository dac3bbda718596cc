"""Sweeps with a known S_min and B_crit, and the shares of intervals that hold them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from noisescale_server.analysis.estimate import Bounds, Estimate
from noisescale_server.analysis.sweeps.batch_sweep.fit import fit_sweep
from noisescale_server.analysis.sweeps.fitting.sweep_fit import SweepFit
from noisescale_server.analysis.sweeps.points.steps import StepsToTarget
from noisescale_server.analysis.sweeps.points.sweep import SweepPoint, sweep_point

MIN_STEPS = 1000.0
CRITICAL_BATCH = 256.0


@dataclass(frozen=True)
class Setting:
    """A sweep's design and noise.

    octaves: log2 of the smallest and largest batch size, relative to B_crit. scatter: sd of log S of a run, at the
    smallest and at the largest batch size. tuning: sd of what a batch size's runs share. budget: steps after which a
    run ends. spacing: ratio of neighbouring evaluations. edge: log learning rate, relative to the best, of the
    last grid point at each batch size, or None.
    """

    octaves: tuple[float, float] = (-4, 4)
    num_batch_sizes: int = 9
    repeats: int = 5
    scatter: tuple[float, float] = (0.05, 0.05)
    tuning: float = 0.0
    exponent: float = 1.0
    budget: float | None = None
    spacing: float | None = None

    def batch_sizes(self) -> np.ndarray:
        return CRITICAL_BATCH * 2.0 ** np.linspace(*self.octaves, self.num_batch_sizes)

    def sweep(self, rng: np.random.Generator) -> list[SweepPoint]:
        sizes = self.batch_sizes()
        curve = MIN_STEPS * (1 + (CRITICAL_BATCH / sizes) ** self.exponent) ** (1 / self.exponent)
        scatter = np.geomspace(*self.scatter, sizes.size)
        points = []
        for batch_size, mean, sd in zip(sizes, curve, scatter, strict=True):
            shared = self.tuning * rng.standard_normal()
            steps = mean * np.exp(shared + sd * rng.standard_normal(self.repeats))
            point = sweep_point(batch_size, [self._seen(value) for value in steps])
            points += [] if point is None else [point]
        return points

    def _seen(self, steps: float) -> StepsToTarget:
        if self.budget is not None and steps > self.budget:
            return StepsToTarget.beyond(self.budget)
        if self.spacing is None:
            return StepsToTarget.at(steps)
        number = np.ceil(np.log(steps) / np.log(self.spacing))
        high = max(steps, self.spacing**number)
        return StepsToTarget.at(steps, after=self.spacing ** (number - 1), seen_at=high)


@dataclass(frozen=True)
class Shares:
    """Shares of sweeps."""

    min_steps: float
    min_examples: float
    critical_batch: float
    fitted: float
    lack_of_fit: float


def shares(setting: Setting, *, sweeps: int, seed: int) -> Shares:
    """How often the 95 % intervals, or one-sided bounds, hold the truth; how often fitted, and flagged of these."""
    rng = np.random.default_rng(seed)
    held = {"min_steps": 0, "min_examples": 0, "critical_batch": 0}
    truth = {
        "min_steps": MIN_STEPS,
        "min_examples": MIN_STEPS * CRITICAL_BATCH,
        "critical_batch": CRITICAL_BATCH,
    }
    fitted = flagged = 0
    for _ in range(sweeps):
        outcome = fit_sweep(setting.sweep(rng))
        fitted += isinstance(outcome, SweepFit)
        flagged += not isinstance(outcome, SweepFit) or outcome.lack_of_fit.is_found
        for name, value in truth.items():
            held[name] += holds(getattr(outcome, name), value)
    return Shares(*(count / sweeps for count in (*held.values(), fitted, flagged)))


def holds(interval: Estimate | Bounds | None, value: float) -> bool:
    """Whether an interval holds a value; knowing nothing holds everything."""
    if interval is None:
        return True
    return (interval.low or 0.0) <= value and (interval.high is None or value <= interval.high)


def exact_sweep(batch_sizes: Sequence[float], steps: Callable[[float], float]) -> list[SweepPoint]:
    """One noiseless run at each batch size."""
    points = (sweep_point(size, [StepsToTarget.at(steps(size))]) for size in batch_sizes)
    return [point for point in points if point is not None]

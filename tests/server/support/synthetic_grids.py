"""Sweeps with a grid of learning rates: curves that meet the target after a known number of steps."""

import functools
import math
from dataclasses import dataclass

import numpy as np

from noisescale_server.analysis.sweeps.batch_sweep.target_answer import target_answer
from noisescale_server.analysis.sweeps.fitting.lack_of_fit import Finding
from noisescale_server.analysis.sweeps.fitting.sweep_fit import SweepFit
from noisescale_server.analysis.sweeps.steps_to_target.crossing import Direction, MetricCurve
from noisescale_server.analysis.sweeps.steps_to_target.setting import Setting, Trial, settings_of

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


@dataclass(frozen=True)
class GridSetting:
    """A sweep whose rates, a factor 2 apart, are the same at every batch size, while the best rate grows with it.

    beyond: octaves from the last rate of the grid up to the best one of the largest batch size; negative where the grid
    goes on. valley: how much log steps rise one octave from the best rate; they rise as the square. scatter: sd of
    log S of a run.
    """

    beyond: float
    num_batch_sizes: int = 7
    num_rates: int = 8
    seeds: int = 3
    valley: float = 0.15
    scatter: float = 0.05
    min_steps: float = 400.0
    critical_batch: float = 256.0

    def sweep(self, rng: np.random.Generator) -> tuple[Setting, ...]:
        """The best rate grows by half an octave for each octave of the batch size, as for Adam far below B_crit."""
        sizes = self.critical_batch * 2.0 ** np.linspace(-3, 3, self.num_batch_sizes)
        last = math.log2(sizes[-1]) / 2 - self.beyond
        trials = []
        for size in sizes:
            for octave in last - np.arange(self.num_rates):
                away = self.valley * (octave - math.log2(size) / 2) ** 2
                mean = self.min_steps * (1 + self.critical_batch / size) * math.exp(away)
                for seed in range(self.seeds):
                    steps = mean * math.exp(self.scatter * rng.standard_normal())
                    trials.append(trial(float(size), 2.0**octave, steps, seed=seed))
        return settings_of(trials)


def findings(setting: GridSetting, *, sweeps: int, seed: int) -> list[frozenset[Finding]]:
    """What speaks against the fit of each sweep; a refusal counts as everything."""
    rng = np.random.default_rng(seed)
    outcomes = [target_answer(setting.sweep(rng), TARGET, level=0.95).outcome for _ in range(sweeps)]
    return [frozenset(one.lack_of_fit.findings if isinstance(one, SweepFit) else list(Finding)) for one in outcomes]

"""Is a long run decided rightly at a quarter of its plan? Noisy quadratics of 500 to 24,000 steps, of exact truth.

The tuned steps at every batch size follow from the expected loss in closed form, and B_crit from their fit; runs are
drawn, and the product is asked at shares of the plan. Writes results/quadratics.csv; `--smoke` draws two problems.

Source: SGD on ½ θᵀHθ with gradient noise of variance Σ / B: E θ² ← (1 - ε h)² E θ² + ε² Σ / B, H and Σ diagonal.
"""

import math
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
import numpy as np
from numpy.typing import NDArray

from benchmarks.results_file import Figure, write
from benchmarks.smoke import IS_SMOKE
from noisescale_core.advice.decision import KEEP_REGRET
from noisescale_core.advice.evidence.evidence import Measured
from noisescale_core.advice.parts.known_noise_scale import known_noise_scale
from noisescale_core.advice.parts.parts import Decision, RunSoFar
from noisescale_core.advice.question import Question
from noisescale_core.advice.recommendation import decide
from noisescale_core.estimators.looks import Looks
from noisescale_core.estimators.noise_scale import Terms
from noisescale_core.estimators.uncertainty import NOTHING_MEASURED
from noisescale_core.theory.trade_off import regret_at_price
from noisescale_lab.reproduce.advice.sweep import PLAN, fit

Array = NDArray[np.float64]

SIZE = 100
GROUPS = 4
"""Small batches of a step."""

POWERS, NOISES = (1.0, 1.4), ("as curvature", "white")
"""H falls as the rank to minus this power; the noise of a direction as its curvature, or alike in all."""

TARGETS = (0.03, 0.01, 0.003)
"""Of the first loss: how far a run goes, and so how long it is."""

BATCHES = tuple(2.0**exponent for exponent in range(-6, 19))
RATES = 2.0 ** np.arange(-14, 1.01, 0.5)
LENGTHS = (500, 24_000)
"""Tuned steps of the runs that are drawn."""

OFF, RATES_OFF = (1 / 8, 1.0, 8.0), (0.5, 1.0)
SHARES = (0.1, 0.25, 0.5)
PRICES = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)
SEEDS = (500,) if IS_SMOKE else (500, 501)
DECIDED = ("increase", "decrease", "keep")


@dataclass(frozen=True, slots=True)
class Problem:
    """One quadratic with its answer.

    Attributes:
        name: Its name.
        curvature: Diagonal of H.
        variance: Diagonal of Σ for one example.
        tuned: Steps to the target by batch size, with the best rate there.
        critical: B_crit of their fit.
    """

    name: str
    curvature: Array
    variance: Array
    tuned: dict[float, tuple[int, float]]
    critical: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What was said of a run at a share of its plan and a price."""

    share: float
    said: Decision
    is_right: bool
    regret: float
    kept: float
    control: float


def problems() -> Iterator[Problem]:
    """All of which some batch size takes a number of steps in `LENGTHS`."""
    ranks = np.arange(1, SIZE + 1)
    for power, noise, target in product(POWERS, NOISES, TARGETS):
        curvature = ranks**-power
        variance = 4.0 * (curvature if noise == "as curvature" else np.full(SIZE, curvature.mean()))
        tuned = {batch: found for batch in BATCHES if (found := _tuned(curvature, variance, batch, target))}
        if len(tuned) >= 5:
            _, critical = fit([(batch, steps) for batch, (steps, _) in tuned.items()])  # type: ignore[misc]
            yield Problem(f"rank^-{power:g}, noise {noise}, to {target:g}", curvature, variance, tuned, critical)


def _tuned(curvature: Array, variance: Array, batch: float, target: float) -> tuple[int, float] | None:
    """Fewest expected steps and their rate; None where none gets there within 200,000."""
    best: tuple[int, float] | None = None
    for rate in RATES[RATES * curvature.max() < 2]:
        steps = _steps(curvature, variance / batch, float(rate), target)
        if steps is not None and (best is None or steps < best[0]):
            best = steps, float(rate)
    return best


def _steps(curvature: Array, variance: Array, rate: float, target: float) -> int | None:
    def loss(steps: float) -> float:
        kept = (1 - rate * curvature) ** 2
        floor = rate**2 * variance / (1 - kept)
        return float(curvature @ (kept**steps * (1 - floor) + floor)) / float(curvature.sum())

    low, high = 0, 200_000
    if loss(high) > target:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if loss(middle) <= target else (middle, high)
    return high


def answers(problem: Problem, batch: float, rate: float, seed: int) -> Iterator[Answer]:
    """What a run is told at each share and price.

    Args:
        problem: What is trained.
        batch: In examples.
        rate: Learning rate.
        seed: Of all draws.
    """
    planned = round(PLAN * problem.tuned[batch][0])
    source, looks, done = np.random.default_rng(seed), Looks(), 0
    theta = source.choice((-1.0, 1.0), SIZE)
    spread = np.sqrt(problem.variance * GROUPS / batch)
    for share in SHARES:
        until = round(share * planned)
        for step in range(done, until):
            groups = problem.curvature * theta + spread * source.standard_normal((GROUPS, SIZE))
            mean = groups.mean(0)
            trace_cov = batch / GROUPS * float(((groups - mean) ** 2).sum()) / (GROUPS - 1)
            looks.add(step, Terms(trace_cov, float(mean @ mean) - trace_cov / batch), batch, rate)
            theta = theta - rate * mean
        done = until
        yield from _at_prices(problem, batch, share, looks, done, planned)


def _at_prices(problem: Problem, batch: float, share: float, looks: Looks, done: int, planned: int) -> Iterator[Answer]:
    known = known_noise_scale(looks.so_far())
    run = RunSoFar(noise_scale=NOTHING_MEASURED, batch_size=batch, steps_done=done, planned_steps=planned, known=known)
    for ratio in PRICES:
        price = ratio * problem.critical
        said = decide(run, Measured(), Question(examples_per_step=price))
        regret, kept, control = (
            regret_at_price(batch=one, critical_batch=problem.critical, examples_per_step=price)
            for one in (said.batch_size or batch, batch, price)
        )
        is_right = kept <= KEEP_REGRET if said.decision == "keep" else regret < kept
        yield Answer(share, said, is_right, regret, kept, control)


def all_answers() -> list[Answer]:
    """Every problem from every start whose tuned steps lie in `LENGTHS`."""
    found = []
    for number, problem in enumerate(problems()):
        if IS_SMOKE and number == 2:
            break
        best = min(problem.tuned, key=lambda size: abs(math.log(size / problem.critical)))
        for off, rate_off, seed in product(OFF, RATES_OFF, SEEDS):
            batch = best * off
            if batch in problem.tuned and LENGTHS[0] <= problem.tuned[batch][0] <= LENGTHS[1]:
                found += answers(problem, batch, problem.tuned[batch][1] * rate_off, seed)
        print(problem.name, f"B_crit {problem.critical:.3g}", len(found), flush=True)
    return found


def figures(found: Sequence[Answer]) -> Iterator[Figure]:
    """By share of the plan."""
    for share in SHARES:
        some = [one for one in found if one.share == share]
        decided = [one for one in some if one.said.decision in DECIDED]
        name = f"{share:.0%} of the plan"
        asked = ("at least 30", "at least 90") if share == 0.25 else ("", "")
        yield Figure(f"{name}: answers", len(some), "")
        yield Figure(f"{name}: decided", 100 * len(decided) / len(some), "%", asked[0])
        right = statistics.fmean(one.is_right for one in decided) if decided else math.nan
        yield Figure(f"{name}: of these right", 100 * right, "%", asked[1])
        for word, costs in (
            ("the batch of least expected cost", sorted(one.regret for one in some)),
            ("keeping", sorted(one.kept for one in some)),
            ("B = r", sorted(one.control for one in some)),
        ):
            yield Figure(f"{name}: regret of {word}, median", 100 * statistics.median(costs), "%")
            yield Figure(f"{name}: regret of {word}, 90th percentile", 100 * costs[int(0.9 * len(costs))], "%")


if __name__ == "__main__":
    write("quadratics", list(figures(all_answers())), command="python benchmarks/policies/benchmark_quadratics.py")

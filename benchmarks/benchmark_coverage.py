"""Is the interval honest? Coverage at fixed steps and at the first "resolved", pure noise, and ranks that differ."""

import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.extend(map(str, (Path(__file__).parents[1] / "tests").glob("**/support")))
from benchmarks.results_file import Figure, write
from benchmarks.smoke import size
from noisescale_core.estimators.heterogeneity import MeanSquares, RankHeterogeneity
from noisescale_core.estimators.student_t import t_quantile
from noisescale_core.estimators.uncertainty import SKEWNESS_ALLOWANCE
from noisescale_server.services.series.series import default_window
from server_windows import blocks_in_a_chart, blocks_of_the_latest_window
from simulated_runs import Setting, first_moments, look_at_window, looks, simulated_terms

TRIALS = size(4000, 60)
RUNS = size(1500, 20)
FIXED_STEPS = (8, 32, 128)
NORMAL_QUANTILE = 1.96

AT_FIXED_STEPS = (
    Setting(0.1, 2, "30 equal"),
    Setting(1, 8, "30 equal"),
    Setting(1, 2, "3 equal"),
    Setting(3, 8, "power law"),
    Setting(10, 8, "30 equal"),
    Setting(30, 8, "1000 equal"),
    Setting(100, 32, "3 equal"),
    Setting(1, 8, 5, examples_per_group=4),
    Setting(0.3, 2, 5, examples_per_group=1),
)

ALL_LOOKED_AT = (
    (Setting(0.1, 2, "3 equal"), 1000, 1),
    (Setting(0.1, 32, "steep"), 1000, 1),
    (Setting(1, 2, "3 equal"), 4000, 1),
    (Setting(1, 32, "steep"), 2000, 1),
    (Setting(5, 8, "power law"), 6000, 1),
    (Setting(30, 8, "1000 equal"), 4000, 1),
    (Setting(100, 32, "1000 equal"), 16_000, 4),
    (Setting(0.3, 2, 5, examples_per_group=1), 2000, 1),
    (Setting(3, 4, 40, examples_per_group=4), 2000, 1),
    (Setting(10, 8, "30 equal", drift="rises"), 6000, 2),
    (Setting(10, 8, "30 equal", drift="swings"), 8000, 2),
)

LOOKED_AT_EVERY_STEP = size(ALL_LOOKED_AT, ALL_LOOKED_AT[:2])

PURE_NOISE = (Setting(1e4, 2, "3 equal", drift="zero"), Setting(1e4, 8, 5, examples_per_group=1, drift="zero"))


def oracle_widths(trace: np.ndarray, square: np.ndarray, covariance: np.ndarray, quantile: float) -> np.ndarray:
    """Widths of the bounded sets where the covariance of the two means is known."""
    a, c = trace.mean(1), square.mean(1)
    v_aa, v_ac, v_cc = covariance[0, 0], covariance[0, 1], covariance[1, 1]
    q_sq = quantile**2
    quadratic, half_linear, constant = c**2 - q_sq * v_cc, a * c - q_sq * v_ac, a**2 - q_sq * v_aa
    is_bounded = (quadratic > 0) & (a > 0) & (c > 0)
    return (2 * np.sqrt(np.maximum(half_linear**2 - quadratic * constant, 0)) / quadratic)[is_bounded]


def at_fixed_steps() -> Iterator[Figure]:
    """Coverage whether bounded or not, and how much wider than with the true covariance."""
    for setting in AT_FIXED_STEPS:
        trace, square = simulated_terms(np.random.default_rng(1), setting, runs=TRIALS, steps=max(FIXED_STEPS))
        covariance = np.cov(trace.ravel(), square.ravel())
        for steps in FIXED_STEPS:
            look = look_at_window(trace[:, :steps], square[:, :steps], setting.noise_over_batch)
            share = look.is_bounded.mean()
            yield Figure(f"{setting}: coverage, {steps} steps", look.holds_truth.mean(), "", "0.925 to 0.975")
            yield Figure(f"{setting}: bounded, {steps} steps", share, "")
            if share > 0.2:
                width = np.median((look.high - look.low)[look.is_bounded])
                of_product = t_quantile(0.975, min(steps, 32) - 1) * (1 + SKEWNESS_ALLOWANCE / steps)
                for name, quantile in (("the same quantile", of_product), ("the normal quantile", NORMAL_QUANTILE)):
                    widths = oracle_widths(trace[:, :steps], square[:, :steps], covariance / steps, quantile)
                    ratio = width / np.median(widths)
                    yield Figure(f"{setting}: width to oracle covariance, {name}, {steps} steps", ratio, "", "<= 1.25")


def at_first_resolved() -> Iterator[Figure]:
    """What people act on: the first value that says "resolved", looking at every step."""
    for setting, steps, every in LOOKED_AT_EVERY_STEP:
        now, own = first_moments(
            np.random.default_rng(2),
            setting,
            runs=RUNS,
            steps=steps,
            every=every,
            rules=("is_resolved", "is_resolved_by_itself"),
        )
        yield Figure(f"{setting}: resolved", now.share_resolved, "")
        yield Figure(f"{setting}: coverage at first resolved", now.coverage, "", ">= 0.93")
        yield Figure(f"{setting}: under half the truth at first resolved", now.under_half, "", "<= 0.03")
        yield Figure(f"{setting}: median step of first resolved", now.median_step, "steps")
        yield Figure(f"{setting}: coverage at first z >= 5 of the window itself", own.coverage, "")
        yield Figure(f"{setting}: under half at first z >= 5 of the window itself", own.under_half, "")
        yield Figure(f"{setting}: median step of first z >= 5 of the window itself", own.median_step, "steps")


def at_first_resolved_on_the_server() -> Iterator[Figure]:
    """The same of the server's latest window, in a run that begins at step 1,000, and of the points of its chart."""
    for setting, steps, every in LOOKED_AT_EVERY_STEP:
        window = default_window(run_steps=steps, shown_steps=steps)
        for name, blocks in (
            ("the server's latest window", blocks_of_the_latest_window(1_000)),
            (f"the chart's windows of {window} steps", blocks_in_a_chart(window)),
        ):
            rng = np.random.default_rng(2)
            [found] = first_moments(rng, setting, runs=RUNS, steps=steps, every=every, blocks=blocks)
            yield Figure(f"{setting}: coverage at first resolved of {name}", found.coverage, "", ">= 0.93")
            yield Figure(f"{setting}: under half at first resolved of {name}", found.under_half, "", "<= 0.03")
            yield Figure(f"{setting}: median step of first resolved of {name}", found.median_step, "steps")


def on_pure_noise() -> Iterator[Figure]:
    """G = 0, 100 runs of 10,000 steps, a look at each."""
    for setting in PURE_NOISE:
        trace, square = simulated_terms(np.random.default_rng(3), setting, runs=size(100, 2), steps=10_000)
        bounded = numbers = 0
        for look in looks(trace, square, np.ones(10_000), np.zeros(10_000)):
            bounded += int(look.is_bounded.sum())
            numbers += int(look.has_value.sum())
        yield Figure(f"{setting}: bounded sets in 1,000,000 looks", bounded, "looks")
        yield Figure(f"{setting}: numbers in 1,000,000 looks", numbers, "looks", "0")


def mean_squares_of(rng: np.random.Generator, excess: float, dimension: float, steps: int) -> Sequence[MeanSquares]:
    """Steps of 4 ranks of 2 micro-batches; one rank's own data raise tr Σ over all groups by the excess."""
    freedom = 3 * dimension, 4 * dimension
    shift = excess * 7 / 3 * freedom[0]
    between = rng.noncentral_chisquare(freedom[0], shift, steps) if shift else rng.chisquare(freedom[0], steps)
    within = rng.chisquare(freedom[1], steps)
    return [
        MeanSquares(x / freedom[0], y / freedom[1], 4, 8)
        for x, y in zip(between.tolist(), within.tolist(), strict=True)
    ]


def first_alarm(steps: Sequence[MeanSquares]) -> float:
    """The step after which ranks are said to differ; infinite if never."""
    found = RankHeterogeneity()
    for number, step in enumerate(steps, start=1):
        found = found.plus(step)
        if found.is_heterogeneous:
            return number
    return float("inf")


def on_ranks() -> Iterator[Figure]:
    """False alarms where ranks see the same data, and the steps it takes to find one that does not."""
    for dimension in (1, 10):
        rng = np.random.default_rng(4)
        alarms = [first_alarm(mean_squares_of(rng, 0.0, dimension, 10_000)) for _ in range(size(50, 2))]
        name = f"4 ranks of 2 micro-batches, d_eff {dimension}"
        yield Figure(f"{name}: alarms in 50 runs of 10,000 looks", float(np.isfinite(alarms).sum()), "runs", "0")
        shifted = [first_alarm(mean_squares_of(rng, 0.2, dimension, 1000)) for _ in range(size(200, 3))]
        yield Figure(f"{name}: median step of the alarm, tr Σ overstated by 20 %", float(np.median(shifted)), "steps")


def main() -> None:
    """Measure and write the results."""
    # unbounded sets divide by differences that may be 0; their ends are not used
    warnings.simplefilter("ignore", RuntimeWarning)
    on_the_server = at_first_resolved_on_the_server()
    write("coverage", [*at_fixed_steps(), *at_first_resolved(), *on_the_server, *on_pure_noise(), *on_ranks()])


if __name__ == "__main__":
    main()

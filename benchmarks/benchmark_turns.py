"""Are sweeps found that turn up again at small batches, and is their B_crit right? Single runs, seven batch sizes.

Planted sweeps: examples at the smallest batch size are 10 to 30 % more than at the best one, steps scatter by 2 to 8 %,
and B_crit lies at the third to the sixth of the batch sizes, an octave apart. What rises has several shapes.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.extend(map(str, (Path(__file__).parents[1] / "tests").glob("**/support")))
from benchmarks.results_file import Figure, write
from benchmarks.smoke import size
from noisescale_server.analysis.sweeps.batch_sweep.fit import fit_sweep
from noisescale_server.analysis.sweeps.fitting.refusal import Refusal
from noisescale_server.analysis.sweeps.fitting.sweep_fit import SweepFit
from noisescale_server.analysis.sweeps.points.sweep import SweepPoint
from noisescale_server.analysis.sweeps.published import published_sweeps
from noisescale_server.analysis.sweeps.turning.detection import find_turn
from turning_sweeps import CRITICAL_BATCH, TurningSetting, lifted, power

SWEEPS = size(600, 4)
FITS = size(160, 2)
PLACES = (2.0, 5.0)
RISES = (0.1, 0.3)
SCATTERS = (0.02, 0.08)
SHAPES = {
    "(s/B)^1.5": power(1.5),
    "s/B": power(1.0),
    "(s/B)^2": power(2.0),
    "the two smallest lifted": lifted(2),
    "the three smallest lifted": lifted(3),
}
CELLS = ((0.1, 0.02), (0.2, 0.05), (0.3, 0.08), (0.1, 0.08))
NEAR = math.log(1.15)


def of_hyperbolas() -> Iterator[Figure]:
    """Shares of sweeps without a turn in which one is found."""
    rng = np.random.default_rng(21)
    everything = []
    for scatter in (0.02, 0.04, 0.06, 0.08):
        found = [_is_found(_setting(rng, rise=0.0, scatter=scatter).sweep(rng)) for _ in range(SWEEPS)]
        everything += found
        yield Figure(f"hyperbola, scatter {scatter:.0%}: a turn found", float(np.mean(found)), "")
    yield Figure("hyperbola, scatter 2 to 8 %: a turn found", float(np.mean(everything)), "", "at most 0.03")


def of_turns() -> Iterator[Figure]:
    """Shares of turning sweeps in which that is found."""
    rng = np.random.default_rng(22)
    for name, shape in SHAPES.items():
        found = [_is_found(_setting(rng, shape=shape).sweep(rng)) for _ in range(SWEEPS)]
        target = "at least 0.9" if name == "(s/B)^1.5" else ""
        yield Figure(f"turn as {name}: found", float(np.mean(found)), "", target)
    for rise, scatter in CELLS:
        found = [_is_found(_setting(rng, rise=rise, scatter=scatter).sweep(rng)) for _ in range(SWEEPS)]
        yield Figure(f"turn of {rise:.0%}, scatter {scatter:.0%}: found", float(np.mean(found)), "")


def of_critical_batches() -> Iterator[Figure]:
    """B_crit over the truth where a turn is found, beside the hyperbola from the best batch size upwards."""
    rng = np.random.default_rng(23)
    for name, shape in SHAPES.items():
        found: list[SweepFit] = []
        branches: list[SweepFit] = []
        while len(found) < FITS:
            setting = _setting(rng, shape=shape)
            points = setting.sweep(rng)
            outcome = fit_sweep(points)
            if not isinstance(outcome, SweepFit) or outcome.turn is None:
                continue
            found.append(outcome)
            branch = fit_sweep(_right_branch(points))
            branches += [] if isinstance(branch, Refusal) else [branch]
        for fits, what in ((found, "turning curve"), (branches, "right branch")):
            errors = np.array([math.log(fit.critical_batch.value / CRITICAL_BATCH) for fit in fits])
            held = [fit.critical_batch.holds(CRITICAL_BATCH) for fit in fits]
            is_ours = what == "turning curve"
            begin = f"turn as {name}, {what}"
            target = "0.87 to 1.15" if is_ours else ""
            yield Figure(f"{begin}: B_crit over the truth, median", math.exp(float(np.median(errors))), "×", target)
            yield Figure(f"{begin}: B_crit within × 1.15", float(np.mean(np.abs(errors) <= NEAR)), "")
            yield Figure(f"{begin}: B_crit held", float(np.mean(held)), "", "at least 0.9" if is_ours else "")
            yield Figure(f"{begin}: fitted", len(fits) / FITS, "")


def of_best_batches() -> Iterator[Figure]:
    """Shares of intervals of B_opt that hold the truth."""
    rng, held, found = np.random.default_rng(24), 0, 0
    while found < FITS:
        setting = _setting(rng)
        outcome = fit_sweep(setting.sweep(rng))
        if isinstance(outcome, SweepFit) and outcome.turn is not None:
            found += 1
            held += outcome.turn.best_batch.holds(setting.best_batch())
    yield Figure("turn as (s/B)^1.5: B_opt held", held / found, "", "at least 0.9")


def of_published_sweeps() -> Iterator[Figure]:
    """B_crit and B_opt of language models' published sweeps, in tokens."""
    of_models = [one for one in published_sweeps() if one.workload.tokens_per_example is not None]
    for sweep in of_models:
        name, tokens = sweep.workload.name, sweep.workload.tokens_per_example or 1
        if isinstance(sweep.outcome, Refusal):
            yield Figure(f"{name}: refused, {sweep.outcome.reason}", 1, "")
            continue
        turn = sweep.outcome.turn
        yield Figure(f"{name}: B_crit", sweep.outcome.critical_batch.value * tokens, "tokens")
        yield Figure(f"{name}: turns", float(turn is not None), "")
        if turn is not None:
            yield Figure(f"{name}: B_opt", turn.best_batch.value * tokens, "tokens")


def _setting(rng: np.random.Generator, **fixed: object) -> TurningSetting:
    drawn = {
        "rise": rng.uniform(*RISES),
        "scatter": rng.uniform(*SCATTERS),
        "critical_place": rng.uniform(*PLACES),
    }
    return TurningSetting(**{**drawn, **fixed})  # type: ignore[arg-type]


def _is_found(points: Sequence[SweepPoint]) -> bool:
    return find_turn(points, None) is not None


def _right_branch(points: list[SweepPoint]) -> list[SweepPoint]:
    """From the batch size with the fewest examples upwards."""
    assert all(point.repeats is not None for point in points)
    examples = [math.log(point.batch_size) + point.repeats.mean_log_steps for point in points if point.repeats]
    return points[int(np.argmin(examples)) :]


def main() -> None:
    """Measure and write the results."""
    write(
        "turns",
        [*of_hyperbolas(), *of_turns(), *of_critical_batches(), *of_best_batches(), *of_published_sweeps()],
    )


if __name__ == "__main__":
    main()

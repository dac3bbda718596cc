"""Fit the course of κ over a run, and how φ goes with a falling rate, on the design tasks. Writes results/kappa.csv.

What `noisescale_core.advice.evidence.kappa` holds as `COURSE`, `RATE_EXPONENT` and `OF_AVERAGED_GRADIENTS` are
these figures, rounded; `ODDS_LOG_SD` lies a little below its own. The held-out tasks stand beside and are not fitted.
`--smoke` fits one task and writes nothing.
"""

import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
import numpy as np
import torch

from benchmarks.results_file import Figure, write
from benchmarks.smoke import IS_SMOKE
from noisescale_core.estimators.belief import Belief
from noisescale_lab.reproduce.advice.glimpses import planned_steps, watched
from noisescale_lab.reproduce.advice.odds import known_after
from noisescale_lab.reproduce.advice.replays import all_starts
from noisescale_lab.reproduce.advice.sweep import complete
from noisescale_lab.reproduce.registry import ADVICE_TARGETS, BY_OTHER_OPTIMIZERS, DESIGN, EVERY

REFERENCES = Path(__file__).with_name("references.csv")
QUICK = ("powerlaw_regression",)
SEEDS = (200,) if IS_SMOKE else (200, 201, 202)
SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)
KNOTS = (0.1, 0.25, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Seen:
    """A run at a share of its plan.

    Attributes:
        cell: Task, share and schedule: each weighs as much as any other.
        is_design: Of the tasks that are fitted.
        averages: Its optimizer averages gradients over steps, as momentum and Adam do.
        progress: Of the last look that counts.
        relative_rate: Learning rate there over its peak.
        log_kappa: ln of the sweep's B_crit over the mean of ln φ.
        variance: Of ln φ, as the run itself knows it.
    """

    cell: tuple[str, float, bool]
    is_design: bool
    averages: bool
    progress: float
    relative_rate: float
    log_kappa: float
    variance: float


def all_seen() -> Iterator[Seen]:
    """Every run of every task at both schedules."""
    names = QUICK if IS_SMOKE else (*ADVICE_TARGETS, *BY_OTHER_OPTIMIZERS)
    references = complete(REFERENCES, names)
    for name in names:
        reference, task = references[name], EVERY[name]()
        averages = task.optimizer.momentum > 0
        for decays in (False, True):
            for run, batch in watched(task, reference, all_starts(SEEDS, decays=decays)):
                for share in SHARES:
                    found = known_after(run, batch, round(share * planned_steps(reference, batch)))
                    if found is not None:
                        mean, variance = _moments(found.belief)
                        yield Seen(
                            (name, share, decays),
                            name in DESIGN or name in BY_OTHER_OPTIMIZERS,
                            averages,
                            share * found.share,
                            found.relative_rate,
                            math.log(reference.critical_batch) - mean,
                            variance,
                        )


def _moments(belief: Belief) -> tuple[float, float]:
    points = list(belief.points())
    mean = math.fsum(weight * value for value, weight in points)
    return mean, math.fsum(weight * (value - mean) ** 2 for value, weight in points)


def _row(one: Seen) -> list[float]:
    """Weights of the knots, straight in ln progress, ln of the relative rate, and whether gradients are averaged."""
    progress, weights = min(max(one.progress, KNOTS[0]), KNOTS[-1]), [0.0] * len(KNOTS)
    for place, (low, high) in enumerate(pairwise(KNOTS)):
        if low <= progress <= high:
            share = math.log(progress / low) / math.log(high / low)
            weights[place], weights[place + 1] = 1 - share, share
            break
    return [*weights, math.log(one.relative_rate), float(one.averages)]


def figures(seen: Sequence[Seen]) -> Iterator[Figure]:
    """The fit of each group by itself."""
    for group, some in (
        ("design tasks", [one for one in seen if one.is_design]),
        ("held-out tasks, not fitted for the product", [one for one in seen if not one.is_design]),
    ):
        if not some:
            continue
        counts = Counter(one.cell for one in some)
        weights = np.sqrt([1 / counts[one.cell] for one in some])
        rows, values = np.array([_row(one) for one in some]), np.array([one.log_kappa for one in some])
        found, *_ = np.linalg.lstsq(rows * weights[:, None], values * weights, rcond=None)
        yield Figure(f"{group}: runs and moments", len(some), "")
        for knot, value in zip(KNOTS, found, strict=False):
            yield Figure(f"{group}: mean of ln κ at {100 * knot:.0f} % of the plan", float(value), "")
        yield Figure(f"{group}: exponent of the relative learning rate", float(found[-2]), "")
        yield Figure(f"{group}: more where gradients are averaged", float(found[-1]), "")
        for kind, averages in (("plain", False), ("averaged", True)):
            of_kind = [place for place, one in enumerate(some) if one.averages is averages]
            if of_kind:
                rest = (values - rows @ found)[of_kind]
                known = float(np.mean([some[place].variance for place in of_kind]))
                spread = math.sqrt(max(0.0, float(rest.var()) - known))
                yield Figure(f"{group}: standard deviation of ln κ about it, {kind} gradients", spread, "")


if __name__ == "__main__":
    torch.set_num_threads(1)
    write("kappa", list(figures(list(all_seen()))), command="python benchmarks/policies/benchmark_kappa.py")

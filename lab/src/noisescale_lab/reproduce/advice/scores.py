"""Regret by policy and kind of start, and the total cost relative to keeping what one has, with an interval."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from noisescale_lab.reproduce.advice.replay import CAP
from noisescale_lab.reproduce.advice.run import Outcome, Start

BOOTSTRAPS = 2000

KINDS: dict[str, Callable[[Start], bool]] = {
    "all": lambda start: True,
    "right": lambda start: start.batch_factor == 1 and start.rate_factor == 1,
    "batch off": lambda start: start.batch_factor != 1 and start.rate_factor == 1,
    "rate off": lambda start: start.batch_factor == 1 and start.rate_factor != 1,
    "both off": lambda start: start.batch_factor != 1 and start.rate_factor != 1,
}


@dataclass(frozen=True, slots=True)
class Score:
    """One policy on one kind of start.

    Attributes:
        policy: Its name.
        kind: Of the starts.
        runs: How many.
        median: Of the regret in %; regret is cost over that of the best constant run, less one.
        p90: Regret in % that nine runs in ten stay below.
        added: Median of the regret in % beyond that of keeping what one has, paired by start.
        relative: Sum of costs over the sum of costs of keeping.
        low: Lower end of its 95 % interval.
        high: Upper end.
        missed: Share of runs that spent eight times the best cost without reaching the target.
    """

    policy: str
    kind: str
    runs: int
    median: float
    p90: float
    added: float
    relative: float
    low: float
    high: float
    missed: float


Results = dict[str, Sequence[Outcome]]


def scores(results: Results) -> list[Score]:
    """Every policy on every kind of start, over all tasks."""
    names = list(dict.fromkeys(outcome.policy for found in results.values() for outcome in found))
    return [score(results, name, kind) for name in names for kind in KINDS]


def score(results: Results, policy: str, kind: str) -> Score:
    """One policy on one kind of start."""
    pairs = paired(results, policy, KINDS[kind])
    cost, kept = np.concatenate([rows for seeds in pairs for rows in seeds]).T
    low, high = interval(pairs)
    regret = 100 * (cost - 1)
    return Score(
        policy=policy,
        kind=kind,
        runs=len(cost),
        median=float(np.median(regret)),
        p90=float(np.quantile(regret, 0.9)),
        added=float(np.median(100 * (cost - kept))),
        relative=float(cost.sum() / kept.sum()),
        low=low,
        high=high,
        missed=float((cost >= CAP).mean()),
    )


def paired(results: Results, policy: str, is_kind: Callable[[Start], bool]) -> list[list[np.ndarray]]:
    """(cost, cost of keeping) of each run, by task and seed."""
    found = []
    for outcomes in results.values():
        kept = {outcome.start: outcome.cost for outcome in outcomes if outcome.policy == "keep"}
        by_seed: dict[int, list[tuple[float, float]]] = {}
        for outcome in outcomes:
            if outcome.policy == policy and is_kind(outcome.start):
                by_seed.setdefault(outcome.start.seed, []).append((outcome.cost, kept[outcome.start]))
        found.append([np.array(rows) for rows in by_seed.values()])
    return found


def interval(pairs: list[list[np.ndarray]]) -> tuple[float, float]:
    """The 95 % interval of the relative cost: tasks are drawn with replacement, and seeds within each."""
    rng = np.random.default_rng(0)
    sums = [np.array([rows.sum(0) for rows in seeds]) for seeds in pairs]
    drawn = []
    for _ in range(BOOTSTRAPS):
        tasks = rng.integers(len(sums), size=len(sums))
        total = sum(sums[task][rng.integers(len(sums[task]), size=len(sums[task]))].sum(0) for task in tasks)
        drawn.append(total[0] / total[1])
    low, high = np.quantile(drawn, (0.025, 0.975))
    return float(low), float(high)

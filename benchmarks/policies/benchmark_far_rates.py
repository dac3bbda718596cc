"""Do the odds of an advice hold where the learning rate is far off? Writes results/far_rates.csv.

Runs of all tasks at a batch that is right or 8 × off, at rates from a thirty-second to four times the best one, go on
as they are; what they are told at a quarter and half of their plan, at five prices, is held against the task's sweep.
`--smoke` prints one task and writes nothing.
"""

import statistics
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
import torch

from benchmarks.policies.benchmark_odds import QUICK, REFERENCES
from benchmarks.results_file import Figure, write
from benchmarks.smoke import IS_SMOKE
from noisescale_core.advice.hindsight import Hindsight
from noisescale_lab.reproduce.advice.odds import BY_PROGRESS, judged
from noisescale_lab.reproduce.advice.run import Start
from noisescale_lab.reproduce.advice.sweep import read
from noisescale_lab.reproduce.registry import ADVICE_TARGETS, ALL, DESIGN

RATES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0)
SEEDS = (900,) if IS_SMOKE else (900, 901)
SHARES = (0.25, 0.5)
WORDS = ("increase", "probably_increase", "keep", "decrease", "probably_decrease")
FEWEST = 20
"""Answers whose share is told."""


def told(name: str, rate: float) -> Iterator[Hindsight]:
    """What the runs of a task at a rate are told, at both schedules."""
    reference = read(REFERENCES)[name]
    for decays in (False, True):
        starts = [Start(batch, rate, seed, decays) for seed in SEEDS for batch in (1 / 8, 1.0, 8.0)]
        yield from (one.said for one in judged(ALL[name](), reference, starts, SHARES) if one.kappa == BY_PROGRESS)


def figures() -> Iterator[Figure]:
    """How many of each answer are right, and how many its odds say."""
    names = QUICK if IS_SMOKE else ADVICE_TARGETS
    for group in ("design tasks", "held-out tasks"):
        some = [name for name in names if (name in DESIGN) == (group == "design tasks")]
        found = {rate: [one for name in some for one in told(name, rate)] for rate in RATES if some}
        for (rate, answers), word in product(found.items(), WORDS):
            yield from _of(f"{group}, rate {rate:g} × the best, {word}", [one for one in answers if one.word == word])


def _of(name: str, answers: Sequence[Hindsight]) -> Iterator[Figure]:
    yield Figure(f"{name}: answers", len(answers), "answers")
    if len(answers) >= FEWEST:
        yield Figure(f"{name}: right", 100 * statistics.fmean(bool(one.is_right) for one in answers), "%")
        if answers[0].word != "keep":
            yield Figure(f"{name}: odds said", 100 * statistics.fmean(one.probability for one in answers), "%")


if __name__ == "__main__":
    torch.set_num_threads(1)
    write("far_rates", list(figures()), command="python benchmarks/policies/benchmark_far_rates.py")

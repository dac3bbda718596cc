"""Do the odds of an advice come true? Writes results/odds.csv.

Runs of all tasks from all starts go on as they are; the product's advice at shares of their plan, at five prices, is
held against the task's sweep. `--smoke` prints one task and writes nothing.
"""

import math
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
import torch

from benchmarks.results_file import Figure, write
from benchmarks.smoke import IS_SMOKE
from noisescale_lab.reproduce.advice.odds import BY_PROGRESS, KAPPAS, Judged, judged
from noisescale_lab.reproduce.advice.replays import all_starts
from noisescale_lab.reproduce.advice.sweep import complete
from noisescale_lab.reproduce.registry import ADVICE_TARGETS, BY_OTHER_OPTIMIZERS, DESIGN, EVERY
from noisescale_lab.reproduce.stacked.optimizers import Optimizer

REFERENCES = Path(__file__).with_name("references.csv")
QUICK = ("powerlaw_regression",)
SEEDS = (400, 401, 402)
"""Not those of which κ's course was fitted, 200 and 201."""

SHARES = (0.1, 0.25, 0.5)
EDGES = (0.5, 0.6, 0.7, 0.8, 0.9, math.inf)
FEWEST = 100
"""Decisions of a bin whose odds are compared."""

CHANGES = ("increase", "decrease")
DECIDED = (*CHANGES, "keep")
MUST = {
    (BY_PROGRESS, "decided"): "at least 75",
    (BY_PROGRESS, "right"): "at least 83",
    ("published spread", "decided"): "at least 55",
    ("published spread", "right"): "at least 90",
}


KINDS: Mapping[str, Callable[[Optimizer], bool]] = {
    "by plain SGD": lambda optimizer: optimizer.name == "sgd",
    "with momentum": lambda optimizer: optimizer.name == "momentum",
    "by Adam": lambda optimizer: optimizer.name == "adam",
}


def all_judged() -> list[Judged]:
    """Every task at both schedules, design tasks by other optimizers, too."""
    names = QUICK if IS_SMOKE else (*ADVICE_TARGETS, *BY_OTHER_OPTIMIZERS)
    references, found = complete(REFERENCES, names), list[Judged]()
    for name in names:
        for decays in (False, True):
            found += judged(EVERY[name](), references[name], all_starts(SEEDS, decays=decays), SHARES)
    return found


def figures(found: Sequence[Judged]) -> Iterator[Figure]:
    """What was decided, how much of it was right, what following it costs, and how the odds came true."""
    held_out = [one for one in found if one.task not in DESIGN and one.task not in BY_OTHER_OPTIMIZERS]
    groups = {"held-out tasks": held_out, "design tasks": [one for one in found if one.task in DESIGN]}
    for (group, rows), decays, share, kappa in product(groups.items(), (False, True), SHARES, KAPPAS):
        some = [one for one in rows if (one.decays, one.progress, one.kappa) == (decays, share, kappa)]
        if some:
            schedule = "decaying" if decays else "constant"
            is_asked = group == "held-out tasks" and not decays
            yield from _of(f"{group}, {schedule} rate, {share:.0%} of the plan, {kappa}", some, is_asked=is_asked)


def figures_by_optimizer(found: Sequence[Judged]) -> Iterator[Figure]:
    """How the odds came true of smaller and of larger batches, by what the optimizer does with gradients."""
    for group, kind, word in product(("design tasks", "held-out tasks"), KINDS, CHANGES):
        names = {
            one.task for one in found if (one.task in (*DESIGN, *BY_OTHER_OPTIMIZERS)) == (group == "design tasks")
        }
        of_kind = {name for name in names if KINDS[kind](EVERY[name]().optimizer)}
        some = [one for one in found if one.task in of_kind and one.kappa == BY_PROGRESS and one.said.word == word]
        if len(some) < FEWEST:
            continue
        name = f"{group} {kind}, told to {word}"
        yield Figure(f"{name}: answers", len(some), "")
        yield Figure(f"{name}: odds, said", 100 * statistics.fmean(one.said.probability for one in some), "%")
        yield Figure(f"{name}: odds, came true", 100 * statistics.fmean(one.said.is_cheaper for one in some), "%")


def _of(name: str, some: Sequence[Judged], *, is_asked: bool) -> Iterator[Figure]:
    kappa, share = some[0].kappa, some[0].progress
    decided = [one for one in some if one.said.word in DECIDED]
    changes = [one for one in some if one.said.word in CHANGES]
    kept = [one for one in some if one.said.word == "keep"]

    def must(word: str) -> str:
        return MUST.get((kappa, word), "") if is_asked and share == 0.5 else ""

    yield Figure(f"{name}: judged", len(some), "answers")
    yield Figure(f"{name}: decided", 100 * len(decided) / len(some), "%", must("decided"))
    yield Figure(f"{name}: of these right", _percent([bool(one.said.is_right) for one in decided]), "%", must("right"))
    yield Figure(f"{name}: changes right", _percent([bool(one.said.is_right) for one in changes]), "%")
    yield Figure(f"{name}: keep right", _percent([bool(one.said.is_right) for one in kept]), "%")
    yield Figure(f"{name}: interval of B_crit holds", _percent([one.holds for one in some]), "%")
    at_tenth = is_asked and share == 0.1 and kappa == BY_PROGRESS
    for word, costs in (
        ("the batch of least expected cost", [one.said.regret for one in some]),
        ("keeping", [one.said.kept for one in some]),
        ("B = r", [one.said.control for one in some]),
    ):
        asked = ("at most 5", "at most 20") if at_tenth and word.startswith("the") else ("", "")
        yield Figure(f"{name}: regret of {word}, median", 100 * statistics.median(costs), "%", asked[0])
        yield Figure(f"{name}: regret of {word}, 90th percentile", 100 * _quantile(costs, 0.9), "%", asked[1])
    for low, high in pairwise(EDGES):
        inside = [one.said for one in some if one.said.is_change and low <= one.said.probability < high]
        if len(inside) >= FEWEST:
            said = statistics.fmean(one.probability for one in inside)
            true = statistics.fmean(one.is_cheaper for one in inside)
            yield Figure(f"{name}: odds {low:.0%} to {min(high, 1.0):.0%}, said", 100 * said, "%")
            yield Figure(f"{name}: odds {low:.0%} to {min(high, 1.0):.0%}, came true", 100 * true, "%")


def _percent(values: Sequence[bool]) -> float:
    return 100 * statistics.fmean(values) if values else math.nan


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, math.floor(share * len(values)))]


if __name__ == "__main__":
    torch.set_num_threads(1)
    answers = all_judged()
    write(
        "odds",
        [*figures(answers), *figures_by_optimizer(answers)],
        command="python benchmarks/policies/benchmark_odds.py",
    )

"""Are verdicts on the learning rate right? Writes results/rates.csv.

Held-out tasks with SGD, momentum and AdamW, warm-up, a constant rate and a cosine, at rates from an eighth to eight
times the best one, which a grid finds: what is said at shares of the plan is held against it. Then the same where five
runs of the task are known, or five of each of the other tasks: those of the first seed about the rate that is best by
that seed, and what is judged are runs of the other seeds. `--smoke` prints one task; `--design` takes the tasks on
which the spreads of own runs were chosen, into results/rates_design.csv.
"""

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
import torch

from benchmarks.policies.rate_runs import SETTINGS, RateRun, Setting, best_rate, train
from benchmarks.results_file import Figure, write
from benchmarks.smoke import IS_SMOKE, size
from noisescale_core.advice.learning_rate.rate_coefficients import OwnLines, family_of
from noisescale_core.advice.learning_rate.rate_verdict import RateVerdict, bent, rate_verdict
from noisescale_core.estimators.path import path_ratio
from noisescale_lab.reproduce.registry import ALL, DESIGN
from noisescale_server.analysis.calibration.rate_lines import KnownRate, KnownRates, own_lines

IS_DESIGN = "--design" in sys.argv
TASKS = tuple(DESIGN) if IS_DESIGN else (
    "charlm_mlp", "digits_labelnoise9", "cancer_logistic", "teacher_student", "patches_ae_adam", "digits_deep_adam",
    "powerlaw_regression", "digits_vae_adam",
)  # fmt: skip
"""Of the held-out ones those whose runs are quick; the coefficients were fitted on the design tasks."""

PLANNED = size(500, 60)
SEEDS = (700, 701, 702)
"""Not those of which the coefficients were fitted, 600 to 602."""

SHARES = (0.12, 0.25, 0.5)
REACH = 3.5
"""Octaves from the best rate that count."""

PRIOR = 1.4
"""Standard deviation of log₂(rate / best rate) that a stated spread takes for granted, in octaves."""

OWN_RATES = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Times the best one: the runs of a task that are known."""

OF_A_GRID = 1 / math.sqrt(12)
"""Octaves that the best rate of a grid of factors of 2 is off, as a standard deviation."""

PUBLISHED, OWN, OTHERS = "", "with 5 runs of the task known, ", "with 5 runs of each other task known, "

CHANGES = ("too_low", "perhaps_too_low", "perhaps_too_high", "too_high")
MUST = {
    (0.12, "said"): "at least 45 %", (0.12, "right"): "at least 82 %",
    (0.25, "said"): "at least 45 %", (0.25, "right"): "at least 88 %", (0.25, "found"): "at least 85 %",
    (0.5, "right"): "at least 93 %",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Judged:
    """One verdict and the truth.

    Attributes:
        task: Name.
        setting: Of the runs.
        share: Of the plan.
        octaves: log₂(rate / best rate), as it is.
        said: The verdict.
    """

    task: str
    setting: Setting
    share: float
    octaves: float
    said: RateVerdict

    @property
    def is_said(self) -> bool:
        """Whether it names a side."""
        return self.said.verdict in CHANGES

    @property
    def is_right(self) -> bool:
        """Whether the best rate lies on that side."""
        return self.said.octaves is not None and self.said.octaves * self.octaves > 0


def judged(name: str, setting: Setting, runs: Sequence[RateRun], own: OwnLines | None = None) -> Iterator[Judged]:
    """All verdicts of a task and a setting; none where the best rate is at the edge of the grid."""
    best = best_rate(runs)
    if best is None:
        return
    for run in runs:
        octaves = math.log2(run.rate / best)
        if abs(octaves) > REACH:
            continue
        for share, path in zip(SHARES, run.paths, strict=True):
            if path is not None:
                said = rate_verdict(
                    path, optimizer=setting.optimizer, planned_steps=PLANNED, schedule=setting.schedule, own=own
                )
                yield Judged(name, setting, share, octaves, said)


def known_rates(runs: Sequence[RateRun]) -> KnownRates | None:
    """What somebody knows who has trained a grid of rates with the first seed, and keeps five of these runs."""
    first = [run for run in runs if run.seed == SEEDS[0]]
    best = best_rate(first)
    if best is None:
        return None
    nearest = {min(first, key=lambda run: abs(math.log(run.rate / (best * times)))).rate for times in OWN_RATES}
    return KnownRates(OF_A_GRID, tuple(_known(run, best) for run in first if run.rate in nearest))


def _known(run: RateRun, best: float) -> KnownRate:
    ratios = [None if path is None else path_ratio(path) for path in run.paths]
    pushes = [None if path is None or path.push is None else bent(path.push) for path in run.paths]
    # at the end of the plan nobody asks here
    return KnownRate(
        math.log2(run.rate / best),
        (*(None if one is None else one.value for one in ratios), None),
        (*(None if one is None else one.value for one in pushes), None),
    )


def with_own_runs(trained: Mapping[tuple[str, Setting], Sequence[RateRun]]) -> Iterator[tuple[str, Judged]]:
    """Verdicts on runs of the other seeds, by what is known of the first seed's."""
    known = {place: known_rates(runs) for place, runs in trained.items()}
    for (name, setting), runs in trained.items():
        later = [run for run in runs if run.seed != SEEDS[0]]
        family = family_of(setting.optimizer, setting.momentum)
        own = known[name, setting]
        others = [found for (task, of), found in known.items() if of == setting and task != name and found is not None]
        if family is not None and own is not None:
            lines = own_lines(family, setting.schedule, (own,), ())
            yield from ((OWN, one) for one in judged(name, setting, later, lines))
        if family is not None and others:
            lines = own_lines(family, setting.schedule, (), tuple((one,) for one in others))
            yield from ((OTHERS, one) for one in judged(name, setting, later, lines))


def figures(found: Sequence[Judged], knowing: str = PUBLISHED) -> Iterator[Figure]:
    """Shares that are said, right and found, and how honest the stated spread is.

    Args:
        found: Verdicts with the truth.
        knowing: Which runs were known, as the beginning of each name.
    """
    groups: dict[str, Callable[[Judged], bool]] = {"all": lambda _: True}
    groups |= {setting.name: lambda one, it=setting: one.setting == it for setting in SETTINGS}  # type: ignore[misc]
    groups |= {name: lambda one, it=name: one.task == it for name in TASKS}  # type: ignore[misc]
    for group, share in product(groups if knowing == PUBLISHED else ["all"], SHARES):
        some = [one for one in found if one.share == share and groups[group](one)]
        if some:
            name = f"{knowing}{group}, {100 * share:.0f} % of the plan"
            yield from _of_group(name, some, share if group == "all" else None)


def _of_group(name: str, some: Sequence[Judged], share: float | None) -> Iterator[Figure]:
    def must(what: str) -> str:
        return "" if share is None else MUST.get((share, what), "")

    said = [one for one in some if one.is_said]
    yield Figure(f"{name}: verdicts that name a side, of {len(some)} runs", _percent(said, some), "%", must("said"))
    if said:
        right = [one for one in said if one.is_right]
        yield Figure(f"{name}: of these right", _percent(right, said), "%", must("right"))
    if share is None:
        return
    for factor, octaves in (("4 × too low", -2.0), ("2 × too low", -1.0), ("2 × too high", 1.0), ("4 × too high", 2.0)):
        near = [one for one in some if abs(one.octaves - octaves) <= 0.5]
        hits = [one for one in near if one.is_said and one.is_right]
        must_be = must("found") if factor == "4 × too low" else ""
        yield Figure(f"{name}: {factor}, found of {len(near)}", _percent(hits, near), "%", must_be)
    yield from _about_right(name, some)
    yield Figure(f"{name}: error over stated spread, rms as the prior weighs rates", _honesty(some), "", "0.85 to 1.15")


def _about_right(name: str, some: Sequence[Judged]) -> Iterator[Figure]:
    """How often, and how often rightly, a rate is called about right; rates count as the prior weighs them."""
    called = [one for one in some if one.said.verdict == "about_right"]
    total = sum(map(_usual, called))
    yield Figure(f"{name}: called about right, as the prior weighs rates", 100 * total / sum(map(_usual, some)), "%")
    if called:
        within = sum(_usual(one) for one in called if abs(one.octaves) <= 1)
        stated = sum(_usual(one) * (one.said.probability or 0.0) for one in called)
        yield Figure(f"{name}: of these within a factor 2 of the best rate", 100 * within / total, "%")
        yield Figure(f"{name}: of these within a factor 2, as stated", 100 * stated / total, "%")


def _usual(one: Judged) -> float:
    return math.exp(-(one.octaves**2) / (2 * PRIOR**2))


def _honesty(some: Sequence[Judged]) -> float:
    """Error of the octaves over the stated spread; rates that the prior holds for unlikely count less."""
    total = weight = 0.0
    for one in some:
        said = one.said
        if said.octaves is not None and said.high is not None and said.low is not None:
            usual = _usual(one)
            total += usual * ((one.octaves - said.octaves) / ((said.high - said.low) / (2 * 1.96))) ** 2
            weight += usual
    return math.sqrt(total / weight) if weight else math.nan


def _percent(part: Sequence[object], whole: Sequence[object]) -> float:
    return 100 * len(part) / len(whole) if whole else math.nan


if __name__ == "__main__":
    torch.set_num_threads(1)
    trained: dict[tuple[str, Setting], Sequence[RateRun]] = {}
    for task_name, of_task in product(TASKS[:1] if IS_SMOKE else TASKS, SETTINGS[:1] if IS_SMOKE else SETTINGS):
        trained[task_name, of_task] = train(ALL[task_name](), of_task, SEEDS, planned=PLANNED, shares=SHARES)
        print(f"{task_name}, {of_task.name}", file=sys.stderr, flush=True)
    everything = [one for (name, setting), runs in trained.items() for one in judged(name, setting, runs)]
    later = list(with_own_runs(trained))
    measured = list(figures(everything))
    for knowing in (OWN, OTHERS):
        measured += figures([one for known, one in later if known == knowing], knowing)
    called = "python benchmarks/policies/benchmark_rates.py"
    if IS_DESIGN:
        write("rates_design", measured, command=f"{called} --design")
    else:
        write("rates", measured, command=called)

"""Are verdicts on the learning rate right? Writes results/rates.csv.

Held-out tasks with SGD, momentum and AdamW, warm-up, a constant rate and a cosine, at rates from an eighth to eight
times the best one, which a grid finds: what is said at shares of the plan is held against it. `--smoke` prints one task
and writes nothing.
"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
import torch

from benchmarks.policies.rate_runs import SETTINGS, Setting, best_rate, train
from benchmarks.results_file import Figure, write
from benchmarks.smoke import IS_SMOKE, size
from noisescale_core.advice.learning_rate.rate_verdict import RateVerdict, rate_verdict
from noisescale_lab.reproduce.registry import ALL

TASKS = (
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


def judged(name: str, setting: Setting) -> Iterator[Judged]:
    """All verdicts of a task and a setting; none where the best rate is at the edge of the grid."""
    runs = train(ALL[name](), setting, SEEDS, planned=PLANNED, shares=SHARES)
    best = best_rate(runs)
    if best is None:
        return
    for run in runs:
        octaves = math.log2(run.rate / best)
        if abs(octaves) > REACH:
            continue
        for share, path in zip(SHARES, run.paths, strict=True):
            if path is not None:
                said = rate_verdict(path, optimizer=setting.optimizer, planned_steps=PLANNED, schedule=setting.schedule)
                yield Judged(name, setting, share, octaves, said)


def figures(found: Sequence[Judged]) -> Iterator[Figure]:
    """Shares that are said, right and found, and how honest the stated spread is."""
    groups: dict[str, Callable[[Judged], bool]] = {"all": lambda _: True}
    groups |= {setting.name: lambda one, it=setting: one.setting == it for setting in SETTINGS}  # type: ignore[misc]
    groups |= {name: lambda one, it=name: one.task == it for name in TASKS}  # type: ignore[misc]
    for group, share in product(groups, SHARES):
        some = [one for one in found if one.share == share and groups[group](one)]
        if some:
            yield from _of_group(f"{group}, {100 * share:.0f} % of the plan", some, share if group == "all" else None)


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
    everything: list[Judged] = []
    for task_name, of_task in product(TASKS[:1] if IS_SMOKE else TASKS, SETTINGS[:1] if IS_SMOKE else SETTINGS):
        verdicts = list(judged(task_name, of_task))
        everything += verdicts
        print(f"{task_name}, {of_task.name}: {len(verdicts)} verdicts", file=sys.stderr, flush=True)
    write("rates", list(figures(everything)), command="python benchmarks/policies/benchmark_rates.py")

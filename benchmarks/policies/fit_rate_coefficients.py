"""Fits how the path ratio tells the learning rate on the design tasks, and writes the core's rate_coefficients.json.

    python benchmarks/policies/fit_rate_coefficients.py

Runs of each task with each setting at a grid of rates; q, and the push, against log₂(rate / best rate) by Huber's
regression, weighted as the prior weighs the rates. The scatter about the line holds what differs from task to task, so
that a stated spread is that of a task that nobody has seen. Muon's lines are those of runs of before, and as wide as
the widest of the rest.
"""

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))
import numpy as np
import torch

from benchmarks.policies.rate_runs import BATCH, SETTINGS, Setting, best_rate, train
from noisescale_core.advice.learning_rate.rate_coefficients import SCALE_OF_PUSH, Line, family_of
from noisescale_core.advice.learning_rate.rate_verdict import octaves_of
from noisescale_core.estimators.path import Reading, path_ratio
from noisescale_lab.reproduce.registry import DESIGN

FILE = Path(__file__).parents[2] / "client/src/noisescale_core/advice/learning_rate/rate_coefficients.json"
SEEDS = (600, 601, 602)
PLANNED = 500
SHARES = (0.12, 0.25, 0.5, 1.0)
PRIOR = 1.4
REACH = 3.5
HUBER = 1.5
"""Standard deviations from which on a run weighs less: one that got stuck says nothing of others."""

MUON = {0.5: (0.22, -0.11), 1.0: (0.22, -0.11)}
"""Slope and offset from half of the plan on, of 204 earlier runs of four small tasks with momentum, AdamW and Muon."""


class Point(NamedTuple):
    """A run at a share of its plan.

    Attributes:
        task: Its name.
        y: log₂(rate / best rate).
        ratio: q.
        push: asinh(SCALE_OF_PUSH · push).
    """

    task: str
    y: float
    ratio: float
    push: float


Points = list[Point]


def points(setting: Setting) -> dict[float, Points]:
    """All runs at each share of the plan."""
    found: dict[float, Points] = {share: [] for share in SHARES}
    for name, task in DESIGN.items():
        runs = train(task(), setting, SEEDS, planned=PLANNED, shares=SHARES)
        best = best_rate(runs)
        print(f"{name}, {setting.name}: best rate {best}", file=sys.stderr, flush=True)
        if best is None:
            continue
        for run in runs:
            y = math.log2(run.rate / best)
            for share, path in zip(SHARES, run.paths, strict=True):
                ratio = None if path is None or abs(y) > REACH else path_ratio(path)
                if path is not None and ratio is not None and path.push is not None:
                    found[share].append(Point(name, y, ratio.value, math.asinh(SCALE_OF_PUSH * path.push.value)))
    return found


def fit(some: Sequence[tuple[float, float]]) -> Line:
    """The line through points, and the scatter about it.

    Args:
        some: (y, q).
    """
    y, q = np.array(some).T
    usual = np.exp(-(y**2) / (2 * PRIOR**2))
    weights = usual
    for _ in range(50):
        root = np.sqrt(weights)
        design = np.stack([np.ones_like(y), y], axis=1)
        (offset, slope), *_ = np.linalg.lstsq(design * root[:, None], q * root, rcond=None)
        left = q - offset - slope * y
        spread = 1.4826 * float(np.median(np.abs(left)))
        weights = usual / np.maximum(1, np.abs(left) / (HUBER * spread))
    scatter = math.sqrt(float((weights * left**2).sum() / weights.sum()))
    return Line(float(slope), float(offset), scatter)


def both_sd(some: Sequence[Point]) -> float:
    """Of y about the mean of what ratio and push tell, each task by lines of the others, as the prior weighs rates.

    Args:
        some: Runs of several tasks.
    """
    total = weight = 0.0
    for task in {one.task for one in some}:
        others = [one for one in some if one.task != task]
        by_ratio = fit([(one.y, one.ratio) for one in others])
        by_push = fit([(one.y, one.push) for one in others])
        for one in some:
            if one.task == task:
                told = [
                    octaves_of(Reading(v, 0.0), line).mean for v, line in ((one.ratio, by_ratio), (one.push, by_push))
                ]
                usual = math.exp(-(one.y**2) / (2 * PRIOR**2))
                total, weight = total + usual * (one.y - sum(told) / 2) ** 2, weight + usual
    return math.sqrt(total / weight)


def columns(lines: Sequence[Line]) -> dict[str, list[float]]:
    """As the file has them."""
    return {name: [round(getattr(line, name), 3) for line in lines] for name in ("slope", "offset", "scatter")}


def push_columns(of: Mapping[float, Points]) -> dict[str, list[float]]:
    """The lines of the push, and what both readings leave open."""
    lines = [fit([(one.y, one.push) for one in of[share]]) for share in SHARES]
    return {**columns(lines), "both_sd": [round(both_sd(of[share]), 3) for share in SHARES]}


def families() -> Iterator[tuple[str, dict[str, object]]]:
    """Each family of optimizers with its lines."""
    widest = 0.0
    for optimizer, momentum in dict.fromkeys((one.optimizer, one.momentum) for one in SETTINGS):
        of_schedule = {
            one.schedule: points(one) for one in SETTINGS if (one.optimizer, one.momentum) == (optimizer, momentum)
        }
        pooled = {share: [point for of in of_schedule.values() for point in of[share]] for share in SHARES}
        every = {**of_schedule, "unknown": pooled}
        schedules = {
            name: [fit([(one.y, one.ratio) for one in of[share]]) for share in SHARES] for name, of in every.items()
        }
        widest = max(widest, *(line.scatter for lines in schedules.values() for line in lines[2:]))
        lines = {name: columns(of) for name, of in schedules.items()}
        pushes = {name: push_columns(of) for name, of in every.items()}
        family = {"from_progress": 0.1, "momentum": None, "schedules": lines, "pushes": pushes}
        yield str(family_of(optimizer, momentum)), family
    muon = [Line(*MUON[max(share, 0.5)], widest) for share in SHARES]
    schedules_of_muon = dict.fromkeys(("constant", "cosine", "unknown"), columns(muon))
    yield "Muon", {"from_progress": 0.5, "momentum": 0.9, "schedules": schedules_of_muon}


def main() -> None:
    """Fit and write."""
    torch.set_num_threads(1)
    content = {
        "what": "How the path ratio q of a run tells y = log2(learning rate / best learning rate): "
        "q = offset + slope * y + scatter, y normal with prior_sd; all in octaves, at shares of the plan (progress). "
        "pushes: the same of asinh(6 push), and the standard deviation of y about the mean of what both tell, each "
        "task by lines of the others.",
        "source": f"python benchmarks/policies/fit_rate_coefficients.py: SGD with and without momentum and AdamW, 6 % "
        f"warm-up, constant and cosine to zero, {PLANNED} steps of {BATCH} examples, seeds {SEEDS}; the best rate is "
        "that of the least evaluation loss at the end of the plan. Muon: slope and offset of 204 earlier runs of four "
        "small tasks, its scatter the widest of the other families.",
        "tasks": list(DESIGN),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "prior_sd": PRIOR,
        "progress": list(SHARES),
        "families": dict(families()),
    }
    FILE.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()

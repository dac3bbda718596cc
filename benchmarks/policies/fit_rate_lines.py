"""Fits how a run's path and losses tell its learning rate where getting to a loss counts; writes lab's rate_lines.json.

    python benchmarks/policies/fit_rate_lines.py

Runs of the design tasks that keep what they have, from batches and rates that are off, as a follower would see them;
y = log₂(rate / best rate at that batch). Prints, too, how far off each task is by the lines of the others.
"""

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
import numpy as np
import torch

from benchmarks.smoke import IS_SMOKE
from noisescale_core.advice.learning_rate.rate_coefficients import Line, family_of
from noisescale_core.advice.learning_rate.rate_verdict import octaves_of
from noisescale_core.estimators.path import Path as ParameterPath
from noisescale_core.estimators.path import Reading, path_ratio
from noisescale_lab.follow.walk import Span, kept_promise
from noisescale_lab.reproduce.advice.run import FIRST_LOOKS, LOOK_RATIO
from noisescale_lab.reproduce.advice.sweep import PLAN, Reference, complete
from noisescale_lab.reproduce.registry import ADVICE_TARGETS, BY_OTHER_OPTIMIZERS, DESIGN, EVERY
from noisescale_lab.reproduce.stacked.random_stream import RandomStream
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.trainer import Replicas, train

FILE = Path(__file__).parents[2] / "lab/src/noisescale_lab/follow/rate_lines.json"
REFERENCES = Path(__file__).with_name("references.csv")
SEEDS = (20, 21, 22)
BATCHES = (1 / 8, 1.0, 8.0)
RATES = (1 / 4, 1 / 2, 2**-0.5, 1.0, 2**0.5, 2.0, 4.0)
SHARES = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0)

FROM = {"SGD": 0.03, "momentum": 0.25, "Adam": 0.12}
"""Share from which on moves by the path save something, each design task by lines of the others (decisions 42, 43)."""

WITH_PROMISE = {"SGD": (0.06, 0.12, 0.25, 0.5), "Adam": (0.12, 0.25, 0.5)}
"""Shares from which on what came of the promise told more than nothing, each design task by lines of the others."""


@dataclass(frozen=True, slots=True)
class Point:
    """A run at a share of its plan."""

    task: str
    family: str
    share: float
    octaves: float
    ratio: float
    promise: float | None


def points(task: Task, reference: Reference, batch_factor: float) -> list[Point]:
    """All rates and seeds at one batch."""
    tuned = reference.nearest(reference.best.batch * batch_factor)
    planned, cells = PLAN * tuned.steps, list(product(RATES, SEEDS))
    replicas, stream = Replicas.new(task, [seed for _, seed in cells]), RandomStream()
    origin, sums = replicas.parameters.clone(), np.zeros(len(cells))
    spans: list[list[Span]] = [[] for _ in cells]
    edges = looks(round(planned))
    ends = {min(edges, key=lambda edge: abs(edge - max(2, share * planned))): share for share in SHARES}
    rates = [tuned.learning_rate * factor for factor, _ in cells]
    found, done = [], 0
    for edge in edges:
        record = train(
            task, stream, replicas, seeds=[seed for _, seed in cells], learning_rate=rates, batch=tuned.batch,
            steps=edge - done,
        )  # fmt: skip
        sums += record.update_sq_norm.sum(0)
        for row in range(len(cells)):
            losses = record.loss[:, row]
            error = float(losses.std(ddof=1)) / math.sqrt(len(losses)) if len(losses) > 1 else math.inf
            spans[row].append(Span(edge - done, float(losses.mean()), error, float(record.promised[:, row].sum())))
        done = edge
        if done in ends:
            distances = (replicas.parameters - origin).double().square().sum(1).tolist()
            momentum = task.optimizer.momentum
            for (factor, _), total, distance, spent in zip(cells, sums.tolist(), distances, spans, strict=True):
                measured = path_ratio(ParameterPath(done, total, 0.0, distance, momentum))
                if measured is not None:
                    promise = kept_promise(spent)
                    family = family_of(task.optimizer.class_name, momentum)
                    assert family is not None
                    found.append(Point(task.name, family, ends[done], math.log2(factor), measured.value, promise))
    return found


def looks(planned: int) -> list[int]:
    """Steps at which a follower looks."""
    found = [0]
    while found[-1] < planned:
        found.append(found[-1] + max(1, round(FIRST_LOOKS * planned), round(LOOK_RATIO * found[-1])))
    return [*(step for step in found if 0 < step < planned), planned]


def line(some: Sequence[Point]) -> tuple[float, float, float]:
    """Slope and offset of q in y, and the scatter about them."""
    ratio = np.array([one.ratio for one in some])
    design = np.array([[one.octaves, 1.0] for one in some])
    fitted = np.linalg.lstsq(design, ratio, rcond=None)[0]
    return float(fitted[0]), float(fitted[1]), float(np.std(ratio - design @ fitted))


def error_of_unseen(some: Sequence[Point]) -> float:
    """Root mean square of y less what is told, in octaves, each task by the line of the others.

    A task is the same by every optimizer.
    """
    squares = []
    for task in {_trained(one) for one in some}:
        by_others = Line(*line([one for one in some if _trained(one) != task]))
        told = [(one, octaves_of(Reading(one.ratio, 0.0), by_others)) for one in some if _trained(one) == task]
        squares += [(one.octaves - found.mean) ** 2 for one, found in told]
    return math.sqrt(sum(squares) / len(squares))


def _trained(one: Point) -> str:
    return one.task.partition("_by_")[0]


def with_promise(some: Sequence[Point]) -> tuple[float, float, float, float]:
    """Y by q and the promise: constant, two coefficients, and the standard deviation that is left."""
    known = [one for one in some if one.promise is not None]
    octaves = np.array([one.octaves for one in known])
    design = np.array([[1.0, one.ratio, one.promise] for one in known])
    fitted = np.linalg.lstsq(design, octaves, rcond=None)[0]
    return (*map(float, fitted), float(np.std(octaves - design @ fitted)))


def main() -> None:
    """Train, fit and write; a smoke form prints."""
    torch.set_num_threads(1)
    of_design = [name for name in ADVICE_TARGETS if name in DESIGN] + list(BY_OTHER_OPTIMIZERS)
    references, found = complete(REFERENCES, of_design), []
    for name in ("digits_softmax",) if IS_SMOKE else of_design:
        for batch_factor in BATCHES[1:2] if IS_SMOKE else BATCHES:
            found += points(EVERY[name](), references[name], batch_factor)
    families = list(dict.fromkeys(one.family for one in found))
    for family in families:
        for share in SHARES:
            some = _some(found, family, share)
            nothing = math.sqrt(sum(one.octaves**2 for one in some) / len(some))
            told = math.nan if IS_SMOKE else error_of_unseen(some)
            print(f"{family}, {share:.0%} of the plan: {told:.2f} octaves off, {nothing:.2f} by saying nothing")
    content = {
        "what": "How the path ratio q of a run tells y = log2(learning rate / the rate that reaches a loss soonest): "
        "q = offset + slope * y + scatter; all in octaves, at shares of the plan (progress).",
        "source": "python benchmarks/policies/fit_rate_lines.py: least squares over runs of the design tasks, by their "
        "own optimizers and by others, at the batch of least cost, an eighth and eight times as much, constant rate, "
        f"no warm-up, rates from a quarter to four times the best one at that batch, seeds {SEEDS}; a plan is {PLAN} "
        "times as long as the tuned run. A family begins where moves by its path save something on tasks that its line "
        "was not fitted on (docs/decisions/0042).",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "families": {family: _lines(found, family) for family in families},
        "with_promise": {
            "what": "Where losses tell the share that has come of the fall that was promised: "
            "y = constant + of_ratio * q + of_promise * ln(share), with standard deviation sd.",
            **{family: _with_promise(found, family) for family in families if family in WITH_PROMISE},
        },
    }
    text = json.dumps(content, indent=1) + "\n"
    print(text) if IS_SMOKE else FILE.write_text(text)


def _lines(found: Sequence[Point], family: str) -> dict[str, list[float]]:
    shares = [share for share in SHARES if share >= FROM[family]]
    rows = [line(_some(found, family, share)) for share in shares]
    return {"progress": shares, **_columns(("slope", "offset", "scatter"), rows)}


def _with_promise(found: Sequence[Point], family: str) -> dict[str, list[float]]:
    rows = [with_promise(_some(found, family, share)) for share in WITH_PROMISE[family]]
    names = ("constant", "of_ratio", "of_promise", "sd")
    return {"progress": list(WITH_PROMISE[family]), **_columns(names, rows)}


def _some(found: Sequence[Point], family: str, share: float) -> list[Point]:
    return [one for one in found if (one.family, one.share) == (family, share)]


def _columns(names: Sequence[str], rows: Sequence[Sequence[float]]) -> dict[str, list[float]]:
    return {name: [round(row[place], 2) for row in rows] for place, name in enumerate(names)}


if __name__ == "__main__":
    main()

"""How far a run's learning rate is from the one that gets to a loss soonest, by the path of its parameters.

The verdict of the Run page judges a rate by the loss at the end of a plan (`advice/learning_rate/rate_verdict.py`);
here the cost of getting to a loss counts, and some of it is saved by acting early. Both take the best rate from tuned
runs of the design tasks: those behind these lines reach a loss as soon as they can, those behind the verdict's reach
the least loss in a given number of steps, which smaller rates do (decision 28). Of optimizers that were not replayed
the verdict's lines are taken.

Each family is read from the share of the plan on from which moves by it cost least on design tasks, each by lines of
the others (decisions 42 and 43): by SGD from 3 % on, by Adam from 12 %, with momentum from a quarter.
"""

import functools
import json
import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from noisescale_core.advice.learning_rate.rate_coefficients import COLUMNS, Line, coefficients, family_of
from noisescale_core.advice.learning_rate.rate_verdict import FARTHEST, FEWEST_UPDATES, Octaves, octaves_of
from noisescale_core.estimators.path import path_ratio
from noisescale_lab.follow.actions import RunState

FEWEST = 2
"""Updates of a path that tells something of the rate where lines say how little."""

WITH_PROMISE = ("constant", "of_ratio", "of_promise", "sd")

EARLIER = 0.75
"""Of the first share of the plan with a promise: from there on it counts."""


def octaves_from_best(run: RunState) -> Octaves | None:
    """What is known of log₂(rate / best rate); None where nothing is.

    Args:
        run: As it stands.
    """
    path = run.path
    if path is None or not run.has_plan or path.num_updates < FEWEST:
        return None
    measured = path_ratio(path)
    if measured is None:
        return None
    both = _known().with_promise.get(family_of(run.optimizer, path.momentum) or "")
    if run.promise is not None and both is not None and run.progress >= both.progress[0] * EARLIER:
        return both.octaves(measured.value, run.promise, run.progress)
    line = _line(run)
    return None if line is None else octaves_of(measured, line)


def first_share(optimizer: str | None, momentum: float) -> float | None:
    """Share of the plan from which on a path tells of the rate; None of an optimizer of which nothing is known.

    Args:
        optimizer: Class name.
        momentum: Of its group.
    """
    family = family_of(optimizer, momentum)
    if family is None:
        return None
    known = _known().lines.get(family)
    return coefficients().families[family].from_progress if known is None else known.progress[0]


def _line(run: RunState) -> Line | None:
    path = run.path
    assert path is not None
    family = family_of(run.optimizer, path.momentum)
    if family is not None and family in _known().lines:
        return _known().lines[family].at(run.progress)
    if family is None or path.num_updates < FEWEST_UPDATES:
        return None
    known = coefficients()
    is_late_enough = run.progress >= known.families[family].from_progress
    return known.line_at(family, run.progress, run.schedule) if is_late_enough else None


def _between(progress: Sequence[float], rows: Sequence[Sequence[float]], at: float) -> list[float]:
    """Straight in ln progress between the known shares, flat outside."""
    place = bisect_left(progress, at)
    if place in (0, len(progress)):
        return list(rows[min(place, len(progress) - 1)])
    share = math.log(at / progress[place - 1]) / math.log(progress[place] / progress[place - 1])
    return [(1 - share) * before + share * after for before, after in zip(rows[place - 1], rows[place], strict=True)]


@dataclass(frozen=True, slots=True)
class _Lines:
    """(slope, offset, scatter) of one family at rising shares of the plan."""

    progress: Sequence[float]
    rows: Sequence[Sequence[float]]

    def at(self, progress: float) -> Line | None:
        """The line at a share of the plan; None before the first, where a path tells nothing yet."""
        return None if progress < self.progress[0] else Line(*_between(self.progress, self.rows, progress))


@dataclass(frozen=True, slots=True)
class _WithPromise:
    """y = constant + of_ratio · q + of_promise · ln(share of the promise that came), with a standard deviation."""

    progress: Sequence[float]
    rows: Sequence[Sequence[float]]

    def octaves(self, ratio: float, promise: float, progress: float) -> Octaves:
        constant, of_ratio, of_promise, sd = _between(self.progress, self.rows, progress)
        mean = constant + of_ratio * ratio + of_promise * promise
        return Octaves(max(-FARTHEST, min(FARTHEST, mean)), sd)


@dataclass(frozen=True, slots=True)
class _Known:
    """The file: the lines of each family, and what the promise adds."""

    lines: Mapping[str, _Lines]
    with_promise: Mapping[str, _WithPromise]


@functools.cache
def _known() -> _Known:
    found = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    both = {name: one for name, one in found["with_promise"].items() if name != "what"}
    return _Known(
        {name: _Lines(one["progress"], _rows(one, COLUMNS)) for name, one in found["families"].items()},
        {name: _WithPromise(one["progress"], _rows(one, WITH_PROMISE)) for name, one in both.items()},
    )


def _rows(columns: Mapping[str, Sequence[float]], names: Sequence[str]) -> list[tuple[float, ...]]:
    return list(zip(*(columns[name] for name in names), strict=True))

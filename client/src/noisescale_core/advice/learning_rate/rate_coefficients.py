"""What runs of known best learning rate say of the path ratio: the numbers of `rate_coefficients.json`, read once."""

import functools
import json
import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Schedule = Literal["unknown", "constant", "cosine"]
"""Of the learning rate after warm-up; cosine: to zero at the end of the plan."""

SAME = 1e-3
"""Of the peak: rates this near are one."""

LIKE = 0.02
"""Of the peak, and a tenth of the fall: how near to a cosine a rate has to be."""


@dataclass(frozen=True, slots=True)
class Line:
    """q = offset + slope · y + scatter at one share of the plan, y = log₂(rate / best rate), in octaves.

    Attributes:
        slope: Of q in y.
        offset: q at the best rate.
        scatter: Standard deviation of q about the line, over tasks and runs.
    """

    slope: float
    offset: float
    scatter: float


@dataclass(frozen=True, slots=True)
class PushLine:
    """The same of asinh(SCALE_OF_PUSH · push), and what both readings leave open.

    Attributes:
        line: Of the push.
        both_sd: Standard deviation of y about the mean of what path ratio and push tell, of tasks not fitted on.
    """

    line: Line
    both_sd: float


@dataclass(frozen=True, slots=True)
class PathFamily:
    """Optimizers whose paths tell alike.

    Attributes:
        from_progress: Share of the plan from which on they tell something.
        momentum: Stands for the optimizer's own; None: its own counts.
        lines: Of each schedule, one a share of the plan.
        pushes: The same of the push; empty where nobody has measured it.
    """

    from_progress: float
    momentum: float | None
    lines: Mapping[str, Sequence[Line]]
    pushes: Mapping[str, Sequence[PushLine]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OwnLines:
    """The lines of one family and schedule as runs of one's own have moved them, at the shares of the file.

    Attributes:
        lines: Of the path ratio.
        pushes: Of the push; empty where nobody has measured it.
        said: What moved them, as a sentence.
    """

    lines: tuple[Line, ...]
    pushes: tuple[PushLine, ...]
    said: str


@dataclass(frozen=True, slots=True)
class Coefficients:
    """The whole file.

    Attributes:
        source: Which runs they were fitted on.
        date: When.
        prior_sd: Standard deviation of y before anything is known, in octaves.
        progress: Shares of the plan that the lines stand at, rising.
        families: By name; of other optimizers nothing is known.
    """

    source: str
    date: str
    prior_sd: float
    progress: Sequence[float]
    families: Mapping[str, PathFamily]

    def line_at(self, family: str, progress: float, schedule: Schedule, own: OwnLines | None = None) -> Line:
        """The line at a share of the plan: straight in ln progress between the known ones, flat outside.

        Args:
            family: One of the file.
            progress: Share of the plan, above 0.
            schedule: Of the learning rate.
            own: Of this family and schedule, in place of the file's.
        """
        lines = self.families[family].lines[schedule] if own is None else own.lines
        return _between(lines, *self._place(progress))

    def push_at(self, family: str, progress: float, schedule: Schedule, own: OwnLines | None = None) -> PushLine | None:
        """The same of the push; None where nothing is known of it.

        Args:
            family: One of the file.
            progress: Share of the plan, above 0.
            schedule: Of the learning rate.
            own: Of this family and schedule, in place of the file's.
        """
        known = self.families[family].pushes.get(schedule, ()) if own is None else own.pushes
        if not known:
            return None
        before, after, share = self._place(progress)
        both_sd = (1 - share) * known[before].both_sd + share * known[after].both_sd
        return PushLine(_between([one.line for one in known], before, after, share), both_sd)

    def _place(self, progress: float) -> tuple[int, int, float]:
        """The known shares of the plan on both sides of one, and how far it lies from the first to the second."""
        place = bisect_left(self.progress, progress)
        if place == 0 or place == len(self.progress):
            nearest = min(place, len(self.progress) - 1)
            return nearest, nearest, 0.0
        start, end = self.progress[place - 1], self.progress[place]
        return place - 1, place, math.log(progress / start) / math.log(end / start)


def _between(lines: Sequence[Line], before: int, after: int, share: float) -> Line:
    return Line(
        *((1 - share) * getattr(lines[before], name) + share * getattr(lines[after], name) for name in COLUMNS),
    )


COLUMNS = ("slope", "offset", "scatter")
"""Of a schedule in the file."""

SCALE_OF_PUSH = 6.0
"""In asinh(scale · push): of 1, 3, 6, 12 and more those from 3 on left the same scatter in tasks held out."""

_FAMILIES = {"Adam": "Adam", "AdamW": "Adam", "Muon": "Muon"}


def family_of(optimizer: str | None, momentum: float) -> str | None:
    """The family of an optimizer; None where nothing is known of it.

    Args:
        optimizer: Class name.
        momentum: Of its group.
    """
    if optimizer == "SGD":
        return "momentum" if momentum else "SGD"
    return _FAMILIES.get(optimizer or "")


@functools.cache
def coefficients() -> Coefficients:
    """The numbers of the file; it is read on first use."""
    found = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    return Coefficients(
        source=found["source"],
        date=found["date"],
        prior_sd=found["prior_sd"],
        progress=found["progress"],
        families={
            name: PathFamily(
                one["from_progress"],
                one["momentum"],
                {
                    schedule: [Line(*line) for line in zip(*(columns[name] for name in COLUMNS), strict=True)]
                    for schedule, columns in one["schedules"].items()
                },
                {
                    schedule: [
                        PushLine(Line(*line), both_sd)
                        for *line, both_sd in zip(*(columns[name] for name in (*COLUMNS, "both_sd")), strict=True)
                    ]
                    for schedule, columns in one.get("pushes", {}).items()
                },
            )
            for name, one in found["families"].items()
        },
    )


# Which schedule a learning rate has followed so far.


def schedule_of(rates: Sequence[tuple[int, float]], planned_steps: int | None) -> Schedule:
    """The schedule of the rates so far, warm-up left out.

    Args:
        rates: (step, learning rate), oldest first.
        planned_steps: Of the whole run; None where nobody has said, and then no cosine is seen.
    """
    peak = max((rate for _, rate in rates), default=0.0)
    if not 0 < peak < math.inf:
        return "unknown"
    first = next(place for place, (_, rate) in enumerate(rates) if rate >= (1 - SAME) * peak)
    after = rates[first:]
    start, newest = after[0][0], after[-1][0]
    if 2 * start > newest:
        return "unknown"
    if all(rate >= (1 - SAME) * peak for _, rate in after):
        return "constant"
    if planned_steps is None or planned_steps <= start:
        return "unknown"
    falls = [(1 - rate / peak, _cosine_fall((step - start) / (planned_steps - start))) for step, rate in after]
    return "cosine" if all(abs(own - fall) <= LIKE + fall / 10 for own, fall in falls) else "unknown"


def _cosine_fall(share: float) -> float:
    return 0.5 * (1 - math.cos(math.pi * min(share, 1.0)))

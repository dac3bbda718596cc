"""What runs of known best learning rate say of the path ratio: the numbers of `rate_coefficients.json`, read once."""

import functools
import json
import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Literal

Schedule = Literal["unknown", "constant", "cosine"]
"""Of the learning rate after warm-up; cosine: to zero at the end of the plan."""


@dataclass(frozen=True, slots=True)
class Line:
    """q = offset + slope · y + scatter at one share of the plan, y = log₂(rate / best rate), in octaves.

    Attributes:
        slope: Of q in y.
        offset: q at the best rate.
        scatter: Standard deviation of q about the line.
        sd: Of y once q is known, as other tasks and optimizers had it.
    """

    slope: float
    offset: float
    scatter: float
    sd: float


@dataclass(frozen=True, slots=True)
class OfOptimizer:
    """From when on the path of an optimizer tells something.

    Attributes:
        from_progress: Share of the plan.
        momentum: Stands for the optimizer's own; None: its own counts.
    """

    from_progress: float
    momentum: float | None = None


@dataclass(frozen=True, slots=True)
class Coefficients:
    """The whole file.

    Attributes:
        source: Which runs they were fitted on.
        date: When.
        prior_sd: Standard deviation of y before anything is known, in octaves.
        progress: Shares of the plan that the lines stand at, rising.
        lines: Of each schedule, one a share.
        optimizers: By class name; of others nothing is known.
    """

    source: str
    date: str
    prior_sd: float
    progress: Sequence[float]
    lines: Mapping[str, Sequence[Line]]
    optimizers: Mapping[str, OfOptimizer]

    def line_at(self, progress: float, schedule: Schedule) -> Line:
        """The line at a share of the plan: straight in ln progress between the known ones, flat outside.

        Args:
            progress: Share of the plan, above 0.
            schedule: Of the learning rate.
        """
        lines, place = self.lines[schedule], bisect_left(self.progress, progress)
        if place == 0 or place == len(lines):
            return lines[min(place, len(lines) - 1)]
        start, end = self.progress[place - 1], self.progress[place]
        share = math.log(progress / start) / math.log(end / start)
        before, after = lines[place - 1], lines[place]
        return Line(
            *(
                (1 - share) * getattr(before, name) + share * getattr(after, name)
                for name in ("slope", "offset", "scatter", "sd")
            )
        )


@functools.cache
def coefficients() -> Coefficients:
    """The numbers of the file; it is read on first use."""
    text = resources.files("noisescale_core.advice").joinpath("rate_coefficients.json").read_text(encoding="utf-8")
    found = json.loads(text)
    return Coefficients(
        source=found["source"],
        date=found["date"],
        prior_sd=found["prior_sd"],
        progress=found["progress"],
        lines={
            name: [
                Line(*one)
                for one in zip(columns["slope"], columns["offset"], columns["scatter"], columns["sd"], strict=True)
            ]
            for name, columns in found["schedules"].items()
        },
        optimizers={name: OfOptimizer(**one) for name, one in found["optimizers"].items()},
    )

"""Windows of a run that do not overlap, with what a law needs of each: noise scale, loss, learning rate, progress."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.estimators.uncertainty import NoiseScaleEstimate, State
from noisescale_server.services.series import windows
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.services.series.resolution import Range, choose, spacing_of
from noisescale_server.storage.series.series import PointColumns

NUM_WINDOWS = 20
"""Of 5 % of the run each, as everywhere: wider ones read low while |G|² falls."""

POINTS_PER_WINDOW = 8


@dataclass(frozen=True, slots=True)
class RunWindow:
    """One window of a run.

    Attributes:
        estimate: The noise scale over it.
        steps: Optimizer steps taken, to its middle.
        examples: Examples seen, to its middle; None where nobody counted.
        loss: Mean training loss; None where none was logged.
        loss_standard_error: Of the mean, from differences of neighbouring points; 0 where there are too few.
        learning_rate: Mean over its points; None where none was logged.
        batch_size: Mean global batch, in examples; None where it is not known.
    """

    estimate: NoiseScaleEstimate
    steps: float
    examples: float | None
    loss: float | None
    loss_standard_error: float
    learning_rate: float | None
    batch_size: float | None

    @property
    def is_resolved(self) -> bool:
        """Whether a law may rest on it: an interval that reaches 0 has no width on the log scale."""
        return self.estimate.state is State.RESOLVED and bool(self.estimate.low)

    @property
    def log_standard_error(self) -> float:
        """Of the log of a resolved noise scale, from its interval."""
        assert self.estimate.low, "windows whose interval reaches 0 are left out"
        assert self.estimate.high is not None, "a resolved estimate has both ends"
        return math.log(self.estimate.high / self.estimate.low) / (2 * _NORMAL_QUANTILE)


_NORMAL_QUANTILE = 1.959964


async def of_run(session: AsyncSession, live: LiveSeries, *, has_signal: bool) -> list[RunWindow]:
    """The windows up to where the newest stream stands, oldest first; none without steps."""
    if not live.intervals:
        return []
    first, last = live.first_step, live.newest_step
    whole = Range(first, last, first, last)
    window = -(-whole.num_steps // NUM_WINDOWS)
    how = choose(
        whole,
        window=window,
        max_points=NUM_WINDOWS * POINTS_PER_WINDOW,
        spacing=spacing_of(live.covered),
        finest=live.finest_level(0, whole.high),
    )
    found = await windows.read(session, live, whole, how, has_signal=has_signal)
    length = how.num_window_points
    # from the newest backwards: what is left over is the beginning, where least is known
    ends = range(len(found.points), length - 1, -length)
    return [_window(found.points, found.estimates[end - 1], end - length, end) for end in reversed(ends)]


def _window(points: PointColumns, estimate: NoiseScaleEstimate, start: int, end: int) -> RunWindow:
    counts, sums = points.num_loss[start:end], points.sum_loss[start:end]
    losses = [total / count for total, count in zip(sums, counts, strict=True) if count]
    rates = [rate for rate in points.lr_last[start:end] if rate is not None]
    examples = [count for count in points.examples_last[start:end] if count is not None]
    num_batch = sum(points.num_global_batch[start:end])
    return RunWindow(
        estimate=estimate,
        steps=fmean(points.step_last[start:end]) + 1,
        examples=fmean(examples) if examples else None,
        loss=sum(sums) / sum(counts) if losses else None,
        loss_standard_error=standard_error(losses),
        learning_rate=fmean(rates) if rates else None,
        batch_size=sum(points.sum_global_batch[start:end]) / num_batch if num_batch else None,
    )


def standard_error(values: Sequence[float]) -> float:
    """Of the mean of values that also drift: the mean square of neighbours' differences is twice their variance.

    Source: von Neumann 1941, Annals of Mathematical Statistics 12.
    """
    if len(values) < 3:
        return 0.0
    squares = math.fsum((after - before) ** 2 for before, after in pairwise(values))
    return math.sqrt(squares / (2 * (len(values) - 1) * len(values)))

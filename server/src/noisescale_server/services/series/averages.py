"""The noise scale of a run up to a step, averaged over its resolved windows in four ways, and of several runs."""

import math
from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.estimators.uncertainty import NoiseScaleEstimate, State
from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.series.averages import Averages, Window, averages
from noisescale_server.services.series import evidence, windows
from noisescale_server.services.series.latest import steps_of_window
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.services.series.resolution import Range, choose, spacing_of
from noisescale_server.services.series.whole_run import NUM_AVERAGED
from noisescale_server.services.series.windows import Windows
from noisescale_server.storage.comparison import MeasuredRun
from noisescale_server.storage.runs.streams import SIMPLE
from noisescale_server.storage.series.series import PointColumns


async def of_run(session: AsyncSession, run: MeasuredRun, to_step: int | None) -> Averages | None:
    """The averages up to a step, by default the newest; the same windows as the run's average everywhere else."""
    found = await read_windows(session, run, to_step)
    return averages(resolved_windows(found.points, found.estimates))


async def read_windows(session: AsyncSession, run: MeasuredRun, to_step: int | None) -> Windows:
    """Windows of 5 % of the steps up to this one, each half covered by the next."""
    live = LiveSeries.of(run.run_id, SIMPLE, run.coverage)
    first, last = live.first_step, live.newest_step
    high = last if to_step is None else min(max(to_step, first), last)
    wanted = Range(first, high, first, high)
    window = steps_of_window(wanted.num_steps, live.covered)
    how = choose(
        wanted,
        window=window,
        max_points=NUM_AVERAGED,
        spacing=spacing_of(live.covered),
        finest=live.finest_level(0, wanted.high),
    )
    has_signal = await evidence.has_signal(session, live, high)
    return await windows.read(session, live, wanted, how, has_signal=has_signal)


def resolved_windows(points: PointColumns, estimates: Sequence[NoiseScaleEstimate]) -> list[Window]:
    """The windows that decisions may rest on, of points with a known batch size, oldest first."""
    found = []
    columns = (points.num_updates, points.sum_global_batch, points.num_global_batch, estimates)
    for num_updates, sum_batch, num_batch, one in zip(*columns, strict=True):
        if one.state is State.RESOLVED and num_updates > 0 and num_batch > 0:
            assert one.value is not None, "a resolved estimate has a value"
            assert one.low is not None, "and both ends"
            assert one.high is not None, "and both ends"
            found.append(Window(num_updates, sum_batch / num_batch, one.value, one.low, one.high, one.level))
    return found


def of_runs(found: Sequence[Averages]) -> Averages | None:
    """The geometric mean over repeats of a setting, of the ends too; None without any."""
    if not found:
        return None
    return Averages(
        run_average=_mean([one.run_average for one in found]),
        ideal_step_average=_mean([one.ideal_step_average for one in found]),
        equal_example_average=_mean([one.equal_example_average for one in found]),
        start=_mean([one.start for one in found]),
    )


def _mean(estimates: Sequence[Estimate]) -> Estimate:
    def mean(values: Sequence[float]) -> float:
        return math.exp(math.fsum(map(math.log, values)) / len(values))

    lows = [one.low for one in estimates if one.low is not None and one.low > 0]
    highs = [one.high for one in estimates if one.high is not None]
    return Estimate(
        mean([one.value for one in estimates]),
        mean(lows) if len(lows) == len(estimates) else None,
        mean(highs) if len(highs) == len(estimates) else None,
        estimates[0].level,
    )

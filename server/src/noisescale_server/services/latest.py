"""What a run shows of its newest measurements: the latest window's noise scale, loss, batch size, learning rate."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale.estimators.uncertainty import MIN_BLOCKS, NoiseScaleEstimate, estimate
from noisescale_server.services.live import cut, live_intervals, pieces
from noisescale_server.services.resolution import block, level_with_blocks, spacing_of
from noisescale_server.services.windows import NOTHING_MEASURED
from noisescale_server.storage import series
from noisescale_server.storage.streams import Coverage

LATEST_SHARE = 20
"""The latest window is a twentieth of the steps."""

LONGER = 4
"""How much further back a window reaches when it held fewer than 8 blocks."""


def newest(streams: Iterable[Coverage]) -> Coverage:
    """The stream that started last; of two at one moment, the one with the greater id."""
    return max(streams, key=lambda stream: (stream.started_at, stream.stream_id))


async def noise_scale(session: AsyncSession, run_id: UUID, streams: Sequence[Coverage]) -> NoiseScaleEstimate:
    """The estimate over the last 5 % of the steps and at least 8 blocks, ending at the newest stream's last step.

    A resumed job is shown where it stands, not where the one before it had got to.
    """
    if not any(stream.num_estimates for stream in streams):
        return NOTHING_MEASURED
    intervals = live_intervals(streams)
    first, last = intervals[0].low, newest(streams).last_step
    num_steps = max(-(-(last - first + 1) // LATEST_SHARE), MIN_BLOCKS * spacing_of(streams))
    level = level_with_blocks(min(num_steps, last - first + 1))
    while True:
        low = max(first, last - num_steps + 1)
        low -= low % block(level)
        sums = await series.window(session, run_id, pieces(cut(intervals, low, last), level), level=level)
        if sums.num_blocks >= MIN_BLOCKS or low <= first:
            return estimate(sums)
        num_steps *= LONGER

"""What a run shows of its newest measurements: the latest window's noise scale and flags."""

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale.estimators.uncertainty import MIN_BLOCKS, estimate
from noisescale_server.services import evidence
from noisescale_server.services.live import LiveSeries
from noisescale_server.services.resolution import block, level_with_blocks, spacing_of
from noisescale_server.services.windows import NOTHING_MEASURED
from noisescale_server.storage import series
from noisescale_server.storage.progress import LatestWindow

LATEST_SHARE = 20
"""The latest window is a twentieth of the steps."""

LONGER = 4
"""How much further back a window reaches when it held fewer than 8 blocks."""


async def window(session: AsyncSession, live: LiveSeries) -> LatestWindow:
    """The estimate over the last 5 % of the steps and at least 8 blocks, ending at the newest stream's last step.

    A resumed job is shown where it stands, not where the one before it had got to.
    """
    if not live.covered:
        return LatestWindow(NOTHING_MEASURED, flags=0, has_signal=False)
    first, last = live.first_step, live.newest_step
    has_estimates = any(stream.num_estimates for stream in live.covered)
    has_signal = has_estimates and await evidence.has_signal(session, live, last)
    num_steps = max(-(-(last - first + 1) // LATEST_SHARE), MIN_BLOCKS * spacing_of(live.covered))
    level = level_with_blocks(min(num_steps, last - first + 1))
    while True:
        low = max(first, last - num_steps + 1)
        low -= low % block(level)
        chosen = live.pieces(low, last, level)
        sums, flags = await series.window(session, live.run_id, chosen, level=level, kind=live.kind)
        if sums.num_blocks >= MIN_BLOCKS or low <= first or not has_estimates:
            return LatestWindow(estimate(sums, has_signal=has_signal), flags, has_signal)
        num_steps *= LONGER

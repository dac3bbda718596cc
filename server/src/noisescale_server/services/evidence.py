"""Whether a run has shown a gradient at all: before that, no window of it is a number.

The evidence is the whole run up to the last step that is looked at, read from the top of the pyramid: a few rows.
"""

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale.estimators import signal
from noisescale_server.services.live import LiveSeries
from noisescale_server.storage import series
from noisescale_server.storage.pyramid import TOP_LEVEL


async def has_signal(session: AsyncSession, live: LiveSeries, high: int) -> bool:
    """Whether the live steps up to `high` show a gradient beyond chance."""
    chosen = live.pieces(live.first_step, high, TOP_LEVEL)
    found = await series.evidence(session, live.run_id, chosen, kind=live.kind)
    return signal.has_signal(**found._asdict())

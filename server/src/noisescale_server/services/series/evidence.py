"""Whether a run has shown a gradient at all: before that, no window of it is a number.

The evidence is the whole run up to the last step that is looked at, octave by octave. An octave is at most 16 buckets
of the pyramid, but the last one, which may be cut.
"""

from collections.abc import Iterable
from functools import reduce
from itertools import groupby

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.estimators import signal
from noisescale_core.estimators.signal import NO_EVIDENCE, Evidence
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.storage.series import piece_sums
from noisescale_server.storage.series.pyramid import BITS_PER_LEVEL, TOP_LEVEL
from noisescale_server.storage.series.series import Piece


async def has_signal(session: AsyncSession, live: LiveSeries, high: int) -> bool:
    """Whether the live steps up to `high` show a gradient beyond chance."""
    return signal.has_signal(await of_octaves(session, live, high))


async def of_octaves(session: AsyncSession, live: LiveSeries, high: int) -> list[Evidence]:
    """The evidence of each octave of the live steps up to `high` that holds any, oldest first."""
    found = await piece_sums.evidence(session, live.run_id, _pieces(live, high), kind=live.kind)
    by_octave = groupby(found, key=lambda piece: signal.octave_of(piece[0]))
    return [sum_of(evidence for _, evidence in pieces) for _, pieces in by_octave]


def sum_of(parts: Iterable[Evidence]) -> Evidence:
    """All of them together."""
    return reduce(Evidence.plus, parts, NO_EVIDENCE)


def _pieces(live: LiveSeries, high: int) -> list[Piece]:
    octaves = range(signal.octave_of(live.first_step), signal.octave_of(high) + 1)
    return [
        piece
        for first, last in map(signal.steps_of, octaves)
        for piece in live.pieces(max(first, live.first_step), min(last, high), _level(first))
    ]


def _level(first: int) -> int:
    """The highest level whose buckets an octave is made of: its length is its first step, a power of two."""
    return min(TOP_LEVEL, max(0, first.bit_length() - 1) // BITS_PER_LEVEL)

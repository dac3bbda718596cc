"""What a run shows of its newest measurements: the latest window's noise scale and flags.

The window is the one of the training job's own `noise_scale()`, in the same blocks and judged by the same updates
before it. So both say the same number and the same state.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.estimators.uncertainty import MIN_BLOCKS, NOTHING_MEASURED, WINDOWS_BEFORE, estimate
from noisescale_core.estimators.windows import WindowSums
from noisescale_server.services.series import evidence
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.services.series.resolution import block, spacing_of
from noisescale_server.storage.ingest.progress import LatestWindow
from noisescale_server.storage.runs.streams import Coverage
from noisescale_server.storage.series import piece_sums, series
from noisescale_server.storage.series.pyramid import BITS_PER_LEVEL, TOP_LEVEL
from noisescale_server.storage.series.series import Block

LATEST_SHARE = 20
"""The latest window is a twentieth of the steps."""

MIN_UPDATES = 16
"""A window of fewer has too rough a covariance, where the run is long enough to have more."""

MAX_BLOCKS = 32
"""Blocks of a window, or one more. With a block for every step coverage at the first "resolved" was 0.91 where |G|²
swings, and 0.94 with these."""

LONGER = 4
"""How much further back a window reaches when it held fewer than 8 blocks."""


@dataclass(frozen=True, slots=True)
class Span:
    """Blocks, numbered from step 0.

    Attributes:
        steps_per_block: A power of two.
        before: The first block of the windows before.
        low: The first block of the window; its last one holds the last step, which may cut it.
    """

    steps_per_block: int
    before: int
    low: int

    @property
    def level(self) -> int:
        """The highest level of the pyramid whose buckets make up the blocks."""
        return min(TOP_LEVEL, (self.steps_per_block.bit_length() - 1) // BITS_PER_LEVEL)

    @property
    def buckets_per_block(self) -> int:
        """Buckets of that level in a block."""
        return self.steps_per_block >> (BITS_PER_LEVEL * self.level)


def steps_of_window(num_steps: int, covered: Iterable[Coverage]) -> int:
    """Steps of the latest window of a run so long: 5 %, and at least 16 of the updates that its streams measure."""
    return max(-(-num_steps // LATEST_SHARE), MIN_UPDATES * spacing_of(covered))


def span(*, first: int, last: int, num_steps: int, smallest: int = 1) -> Span:
    """The blocks of the last `num_steps` of the steps from `first` to `last`, and of four times as many before them.

    Blocks are at least of `smallest` steps, a power of two.
    """
    num_steps = min(num_steps, last - first + 1)
    size = smallest
    while num_steps > MAX_BLOCKS * size:
        size *= 2
    low = (last - num_steps + 1) // size
    num_blocks = last // size - low + 1
    return Span(size, max(first // size, low - WINDOWS_BEFORE * num_blocks), low)


async def window(session: AsyncSession, live: LiveSeries) -> LatestWindow:
    """The estimate over the last 5 % of the steps and at least 16 updates, ending at the newest stream's last step.

    A resumed job is shown where it stands, not where the one before it had got to.
    """
    return (await window_and_span(session, live))[0]


async def window_and_span(session: AsyncSession, live: LiveSeries) -> tuple[LatestWindow, Span]:
    """The same with the blocks that it was read from."""
    if not live.covered:
        return LatestWindow(NOTHING_MEASURED, flags=0, has_signal=False), Span(1, 0, 0)
    first, last = live.first_step, live.newest_step
    has_estimates = any(stream.num_estimates for stream in live.covered)
    has_signal = has_estimates and await evidence.has_signal(session, live, last)
    num_steps = steps_of_window(last - first + 1, live.covered)
    while True:
        wanted = _span(live, first, last, num_steps)
        blocks = await _read(session, live, wanted, last)
        own = [one for one in blocks if one.number >= wanted.low]
        sums = _sums(own)
        if sums.num_blocks >= MIN_BLOCKS or num_steps > last - first or not has_estimates:
            before = _sums(one for one in blocks if one.number < wanted.low)
            newest = estimate(sums, has_signal=has_signal, before=before)
            flags = reduce(or_, (one.flags for one in own), 0)
            step = await _last_step(session, live, wanted, last, [one.number for one in own if one.num_updates])
            return LatestWindow(newest, flags, has_signal, step), wanted
        num_steps *= LONGER


def _span(live: LiveSeries, first: int, last: int, num_steps: int) -> Span:
    """As `span`; blocks of 32 steps where rows of the smaller ones are folded, as of a job that went on long after."""
    wanted = span(first=first, last=last, num_steps=num_steps)
    finest = live.finest_level(wanted.before * wanted.steps_per_block, last)
    return span(first=first, last=last, num_steps=num_steps, smallest=block(finest)) if finest else wanted


async def _read(session: AsyncSession, live: LiveSeries, wanted: Span, last: int) -> list[Block]:
    pieces = live.pieces(wanted.before * wanted.steps_per_block, last, wanted.level)
    return await series.blocks(
        session,
        live.run_id,
        pieces,
        level=wanted.level,
        buckets_per_block=wanted.buckets_per_block,
        kind=live.kind,
    )


async def _last_step(
    session: AsyncSession, live: LiveSeries, wanted: Span, last: int, numbers: Sequence[int]
) -> int | None:
    """The last step of the blocks of these numbers that has an estimate: rows without one may follow it."""
    if not numbers:
        return None
    low = numbers[-1] * wanted.steps_per_block
    pieces = live.pieces(low, min(last, low + wanted.steps_per_block - 1), 0)
    return await piece_sums.last_estimated_step(session, live.run_id, pieces, kind=live.kind)


def _sums(blocks: Iterable[Block]) -> WindowSums:
    return WindowSums.from_blocks(
        (one.num_updates, one.trace_cov, one.grad_sq_norm) for one in blocks if one.num_updates
    )

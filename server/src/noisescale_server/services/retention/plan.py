"""Which rows of a run can go without a figure of a page showing it.

What a page shows of a whole run it reads off buckets of 32 steps or more, if the run has 5,120 steps. Rows are read
one by one at a run's beginning (short looks and octaves), at the ends of streams, where another one takes over, and in
the latest window of a run of fewer than 20,480 steps. These stay, and so do all rows of shorter runs.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.estimators.uncertainty import MIN_BLOCKS
from noisescale_server.services.series import latest
from noisescale_server.services.series.latest import LATEST_SHARE
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.services.series.resolution import block
from noisescale_server.services.series.whole_run import NUM_AVERAGED
from noisescale_server.storage.retention.folding import Units
from noisescale_server.storage.retention.units import UNIT_BITS
from noisescale_server.storage.runs import streams
from noisescale_server.storage.runs.streams import KINDS

MIN_STEPS: Final = LATEST_SHARE * MIN_BLOCKS * block(1)
"""From so many steps on 5 % of them hold eight buckets."""

MIN_STEPS_OF_GROUPS: Final = NUM_AVERAGED << UNIT_BITS
"""From so many steps on a layer's windows are made of buckets, too."""

UNITS_AT_ONCE: Final = 16
"""Of one transaction: 16,384 steps, a fifth of a second."""


async def of_run(session: AsyncSession, run_id: UUID) -> list[Units]:
    """What can be folded of a run, in parts of one transaction each.

    What has been folded before comes at the end: records of it may have come since.
    """
    new: list[Units] = []
    old: list[Units] = []
    for kind in KINDS:
        live = LiveSeries.of(run_id, kind, await streams.coverage_of_run(session, run_id, kind))
        num_steps = live.newest_step - live.first_step + 1 if live.intervals else 0
        if num_steps < MIN_STEPS:
            continue
        has_groups = num_steps >= MIN_STEPS_OF_GROUPS
        kept = await _kept(session, live)
        for stream in live.covered:
            first, last = stream.first_step >> UNIT_BITS, stream.last_step >> UNIT_BITS
            # its first row says the rate that it began with, its last one how it stands
            free = [unit for unit in range(first + 1, last) if unit not in kept]
            ranges = zip(stream.folded[::2], stream.folded[1::2], strict=True)
            folded = {unit for low, high in ranges for unit in range(low, high + 1)}
            ends = parts([unit for unit in free if unit not in folded], at_once=UNITS_AT_ONCE)
            new += [Units(run_id, stream.stream_id, kind, *of_part, has_groups) for of_part in ends]
            ends = parts([unit for unit in free if unit in folded], at_once=len(folded))
            old += [Units(run_id, stream.stream_id, kind, *of_part, has_groups) for of_part in ends]
    return new + old


async def _kept(session: AsyncSession, live: LiveSeries) -> set[int]:
    """Units whose rows are read one by one."""
    window, span = await latest.window_and_span(session, live)
    steps = [0] if window.step is None else [0, window.step]
    for interval in live.intervals:
        steps += [interval.low, interval.high]
    if span.level == 0:
        # a latest window of rows, of a run of fewer than 20,480 steps
        steps += range(span.before * span.steps_per_block, live.newest_step, 1 << UNIT_BITS)
    return {step >> UNIT_BITS for step in steps}


def parts(units: Iterable[int], *, at_once: int) -> list[tuple[int, int]]:
    """First and last of neighbouring units, at most so many together."""
    rows = groupby(enumerate(units), key=lambda one: one[1] - one[0])
    found: list[tuple[int, int]] = []
    for _, row in rows:
        neighbours = [unit for _, unit in row]
        for start in range(0, len(neighbours), at_once):
            part = neighbours[start : start + at_once]
            found.append((part[0], part[-1]))
    return found

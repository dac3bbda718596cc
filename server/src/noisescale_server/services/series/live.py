"""Which stream a view shows at each step: the newest one that covers it.

A job that resumes from a checkpoint logs steps again under a new stream. Both are kept. A read cuts its range into the
intervals that one stream owns and takes each from that stream's own pyramid, so nothing is ever subtracted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from noisescale_server.storage.platform.tables import Stream
from noisescale_server.storage.retention.folding import UNIT_LEVEL, rows_of, steps_of_units, without_rows
from noisescale_server.storage.runs.streams import Coverage, Kind
from noisescale_server.storage.series.pyramid import BITS_PER_LEVEL
from noisescale_server.storage.series.series import Piece


@dataclass(frozen=True, slots=True)
class LiveInterval:
    """Steps from `low` to `high`, both included, that a view takes from one stream.

    `is_first` and `is_last` say that the stream has no steps before `low`, after `high`: its buckets there hold nothing
    else.
    """

    stream_id: UUID
    low: int
    high: int
    is_first: bool
    is_last: bool


@dataclass(frozen=True, slots=True)
class LiveSeries:
    """One kind of noise scale of a run, as views show it.

    Attributes:
        run_id: The run.
        kind: The kind.
        covered: What the streams of this kind cover.
        intervals: Which of them each step is read from; empty while there are no steps.
    """

    run_id: UUID
    kind: Kind
    covered: tuple[Coverage, ...]
    intervals: tuple[LiveInterval, ...]

    @classmethod
    def of(cls, run_id: UUID, kind: Kind, covered: Iterable[Coverage]) -> "LiveSeries":
        """The series of streams that cover these steps."""
        streams = tuple(covered)
        return cls(run_id, kind, streams, tuple(live_intervals(streams)))

    @property
    def first_step(self) -> int:
        """The first step of all; there must be one."""
        return self.intervals[0].low

    @property
    def newest_step(self) -> int:
        """Where the stream that started last stands; of two at one moment, the one with the greater id."""
        return max(self.covered, key=lambda stream: (stream.started_at, stream.stream_id)).last_step

    def pieces(self, low: int, high: int, level: int) -> list[Piece]:
        """What holds exactly the rows from step `low` to `high`: whole buckets of `level` and smaller ones.

        Where rows are folded, a bucket of 32 steps that the range cuts is taken whole.
        """
        return without_rows(pieces(cut(self.intervals, low, high), level), self._folded(), level=1)

    def group_pieces(self, low: int, high: int, level: int) -> list[Piece]:
        """The same for group records, whose pyramid begins at 1,024 steps."""
        found = [rows_of(piece) for piece in pieces(cut(self.intervals, low, high), level)]
        return without_rows(found, self._folded_groups(), level=UNIT_LEVEL)

    def finest_level(self, low: int, high: int) -> int:
        """1 where rows of steps of the range are folded, as nothing lower is there; else 0."""
        return 1 if _any_within(self._folded(), low, high) else 0

    def finest_level_of_groups(self, low: int, high: int) -> int:
        """The same of group records: 2, or 0."""
        return UNIT_LEVEL if _any_within(self._folded_groups(), low, high) else 0

    def _folded(self) -> dict[UUID, list[tuple[int, int]]]:
        return {one.stream_id: steps_of_units(one.folded) for one in self.covered if one.folded}

    def _folded_groups(self) -> dict[UUID, list[tuple[int, int]]]:
        return {one.stream_id: steps_of_units(one.folded_groups) for one in self.covered if one.folded_groups}


def _any_within(folded: Mapping[UUID, Sequence[tuple[int, int]]], low: int, high: int) -> bool:
    return any(first <= high and last >= low for steps in folded.values() for first, last in steps)


def live_intervals(streams: Iterable[Coverage]) -> list[LiveInterval]:
    """Disjoint intervals in the order of steps; together they are all steps that any stream covers."""
    newest_first = sorted(streams, key=lambda stream: (stream.started_at, stream.stream_id), reverse=True)
    taken: list[tuple[int, int]] = []
    live: list[LiveInterval] = []
    for stream in newest_first:
        for low, high in _uncovered(stream.first_step, stream.last_step, taken):
            live.append(LiveInterval(stream.stream_id, low, high, low == stream.first_step, high == stream.last_step))
        taken = _joined([*taken, (stream.first_step, stream.last_step)])
    return sorted(live, key=lambda interval: interval.low)


def not_overtaken(streams: Iterable[Stream], low: int, high: int) -> list[Piece]:
    """For each stream the steps in [low, high] that no newer stream covers, whether it covers them itself or not.

    For metrics: an evaluation may come at a step that no measurement names, or from a stream that measures nothing.
    """
    taken: list[tuple[int, int]] = []
    found: list[Piece] = []
    for stream in sorted(streams, key=lambda stream: (stream.started_at, stream.id), reverse=True):
        found += [Piece(stream.id, 0, first, last) for first, last in _uncovered(low, high, taken)]
        if stream.first_step is not None and stream.last_step is not None:
            taken = _joined([*taken, (stream.first_step, stream.last_step)])
    return found


def _uncovered(low: int, high: int, taken: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """What [low, high] leaves free of the disjoint, sorted intervals `taken`."""
    free = []
    for taken_low, taken_high in taken:
        if taken_high < low or taken_low > high:
            continue
        if taken_low > low:
            free.append((low, taken_low - 1))
        low = taken_high + 1
    return [*free, (low, high)] if low <= high else free


def _joined(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for low, high in sorted(intervals):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    return joined


def cut(intervals: Iterable[LiveInterval], low: int, high: int) -> list[LiveInterval]:
    """The intervals within [low, high]."""
    return [
        LiveInterval(
            one.stream_id,
            max(one.low, low),
            min(one.high, high),
            one.is_first and one.low >= low,
            one.is_last and one.high <= high,
        )
        for one in intervals
        if one.low <= high and one.high >= low
    ]


def pieces(intervals: Sequence[LiveInterval], level: int) -> list[Piece]:
    """Whole buckets of `level` and below it, down to rows, that hold exactly the rows of the intervals.

    A bucket of `level` that is taken whole is shared with no other piece: blocks can be read off it without grouping.
    """
    found: list[Piece] = []
    for index, interval in enumerate(intervals):
        before = intervals[index - 1].high if index else -1
        after = intervals[index + 1].low if index + 1 < len(intervals) else None
        low, high = _widened(interval, level, before, after)
        found += _decomposed(interval.stream_id, low, high, level)
    return found


def _widened(interval: LiveInterval, level: int, before: int, after: int | None) -> tuple[int, int]:
    """The interval out to the bucket's ends, where its stream has nothing else and no other interval reaches in."""
    size = 1 << (BITS_PER_LEVEL * level)
    low, high = interval.low, interval.high
    bucket_low = low - low % size
    bucket_high = high - high % size + size - 1
    if interval.is_first and bucket_low > before:
        low = bucket_low
    if interval.is_last and (after is None or bucket_high < after):
        high = bucket_high
    return low, high


def _decomposed(stream_id: UUID, low: int, high: int, level: int) -> list[Piece]:
    if low > high:
        return []
    if level == 0:
        return [Piece(stream_id, 0, low, high)]
    size = 1 << (BITS_PER_LEVEL * level)
    first, end = -(-low // size), (high + 1) // size
    if first >= end:
        return _decomposed(stream_id, low, high, level - 1)
    return [
        *_decomposed(stream_id, low, first * size - 1, level - 1),
        Piece(stream_id, level, first, end - 1),
        *_decomposed(stream_id, end * size, high, level - 1),
    ]

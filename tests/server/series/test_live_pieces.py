"""Which buckets a view reads: as large as they may be, and none whole that another stream reaches into."""

import itertools
import random
from datetime import UTC, datetime
from uuid import UUID

import pytest

from noisescale_server.services.series.live import LiveSeries, cut, live_intervals, pieces
from noisescale_server.storage.runs.streams import Coverage
from noisescale_server.storage.series.series import Piece


def coverage(number: int, first_step: int, last_step: int) -> Coverage:
    return Coverage(UUID(int=number), datetime.fromtimestamp(number, UTC), first_step, last_step, 100, 100)


def read(level: int, *covered: Coverage, low: int = 0, high: int = 10**9) -> list[tuple[int, int, int, int]]:
    """(stream, level, first, last) of each piece."""
    found = pieces(cut(live_intervals(covered), low, high), level)
    return [(one.stream_id.int, one.level, one.low, one.high) for one in found]


@pytest.mark.parametrize(
    ("covered", "level", "expected"),
    [
        ([(5, 40)], 0, [(1, 0, 5, 40)]),
        ([(5, 40)], 1, [(1, 1, 0, 1)]),
        ([(5, 40)], 2, [(1, 2, 0, 0)]),
        ([(5, 60)], 1, [(1, 1, 0, 1)]),
        ([(30, 60), (64, 90)], 1, [(1, 1, 0, 1), (2, 1, 2, 2)]),
        ([(0, 31), (40, 70)], 1, [(1, 1, 0, 0), (2, 1, 1, 2)]),
        # both have steps in the second bucket: neither may take it whole
        ([(0, 39), (40, 70)], 1, [(1, 1, 0, 0), (1, 0, 32, 39), (2, 0, 40, 63), (2, 1, 2, 2)]),
        ([(0, 30), (31, 70)], 1, [(1, 0, 0, 30), (2, 0, 31, 31), (2, 1, 1, 2)]),
        ([(0, 32), (33, 70)], 1, [(1, 1, 0, 0), (1, 0, 32, 32), (2, 0, 33, 63), (2, 1, 2, 2)]),
        ([(0, 31), (32, 70)], 1, [(1, 1, 0, 0), (2, 1, 1, 2)]),
        # what was overtaken goes on after the newer one: its buckets there hold overtaken rows, too
        ([(0, 99), (40, 50)], 1, [(1, 1, 0, 0), (1, 0, 32, 39), (2, 0, 40, 50), (1, 0, 51, 63), (1, 1, 2, 3)]),
    ],
)
def test_a_stream_takes_its_first_and_last_bucket_whole_where_nobody_else_reaches_in(
    covered: list[tuple[int, int]], level: int, expected: list[tuple[int, int, int, int]]
) -> None:
    streams = [coverage(number, *ends) for number, ends in enumerate(covered, start=1)]

    assert read(level, *streams) == expected


def test_a_range_that_begins_or_ends_within_a_bucket_reads_its_rows() -> None:
    whole = coverage(1, 0, 199)

    assert read(1, whole, low=32, high=95) == [(1, 1, 1, 2)]
    assert read(1, whole, low=31, high=96) == [(1, 0, 31, 31), (1, 1, 1, 2), (1, 0, 96, 96)]
    assert read(1, whole, low=40, high=50) == [(1, 0, 40, 50)]
    assert read(2, whole, low=0, high=100) == [(1, 1, 0, 2), (1, 0, 96, 100)]
    assert read(1, whole, low=200) == []


def steps_of(piece: Piece) -> tuple[int, int]:
    return piece.low << (5 * piece.level), ((piece.high + 1) << (5 * piece.level)) - 1


@pytest.mark.parametrize("level", [1, 2])
def test_a_bucket_that_is_taken_whole_is_shared_with_no_other_piece(level: int) -> None:
    rng = random.Random(level)
    for _ in range(400):
        covered = []
        for number in range(1, rng.randrange(2, 6)):
            low = rng.choice([rng.randrange(32 ** (level + 1)), 32**level * rng.randrange(20) + rng.choice([-1, 0, 1])])
            covered.append(coverage(number, max(0, low), max(0, low) + rng.choice([0, 1, 31, 32, 33, 400])))
        low, high = sorted(rng.randrange(32 ** (level + 1)) for _ in "ab")

        found = pieces(cut(live_intervals(covered), low, high), level)

        ends = sorted((steps_of(one), one.level == level) for one in found)
        for ((_, last), is_whole), ((first, _), is_next_whole) in itertools.pairwise(ends):
            assert last < first
            if is_whole or is_next_whole:
                assert last >> (5 * level) < first >> (5 * level)


def test_a_series_knows_where_it_begins_and_where_its_newest_stream_stands() -> None:
    series = LiveSeries.of(UUID(int=9), "simple", [coverage(2, 500, 600), coverage(1, 3, 999)])
    same_moment = datetime.fromtimestamp(0, UTC)
    twins = [Coverage(UUID(int=number), same_moment, 0, 10 * number, 1, 1) for number in (2, 1)]

    assert (series.first_step, series.newest_step) == (3, 600)
    assert LiveSeries.of(UUID(int=9), "simple", twins).newest_step == 20
    assert [one.level for one in series.pieces(0, 31, 1)] == [1]


@pytest.mark.parametrize(("low", "high", "expected"), [(0, 5, (5, 5)), (9, 20, (9, 9)), (0, 4, None), (10, 20, None)])
def test_a_range_that_only_touches_a_stream_reads_the_step_that_they_share(
    low: int, high: int, expected: tuple[int, int] | None
) -> None:
    found = cut(live_intervals([coverage(1, 5, 9)]), low, high)

    assert [(one.low, one.high) for one in found] == ([expected] if expected else [])

"""Sliding windows and what is before them, against sums over plain lists."""

import random

import numpy as np
import pytest

from noisescale_core.estimators.windows import WindowSums
from noisescale_server.analysis.series import sliding_sums
from noisescale_server.services.series.sliding import over_points, window_sums
from noisescale_server.storage.series.series import Block

Blocks = list[tuple[int, float, float, float]]
"""Of each block its number, n, X and Y; n = 0 where it holds no estimate."""


def uneven_blocks(rng: random.Random, count: int, *, gap: int) -> Blocks:
    """Blocks with holes between them, some of them without estimates, whose |G|² falls over ten orders of magnitude."""
    numbers = sorted(rng.sample(range(count * gap), count))
    blocks = []
    for number in numbers:
        n = float(rng.choice([0, 1, 1, 1, 3]))
        falling = 10.0 ** (-10 * number / (count * gap))
        blocks.append((number, n, n * rng.uniform(1, 2), n * falling * rng.uniform(1, 2)))
    return blocks


def reaching_back(blocks: Blocks, low: int, high: int, num_blocks: int) -> tuple[int, WindowSums]:
    """The first number from which on there are as many blocks up to `high`, at most `low`; and their sums."""
    while True:
        chosen = [(n, x, y) for number, n, x, y in blocks if low <= number <= high and n]
        if len(chosen) >= num_blocks or low <= 0:
            return low, WindowSums.from_blocks(chosen)
        low -= 1


def assert_same(found: WindowSums, expected: WindowSums) -> None:
    for name in WindowSums._fields:
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-12), name


@pytest.mark.thorough
@pytest.mark.parametrize("window", [1, 8, 20])
@pytest.mark.parametrize("gap", [1, 4])
def test_windows_of_points_and_the_four_before_them_equal_brute_force(window: int, gap: int) -> None:
    rng = random.Random(10 * window + gap)
    blocks = uneven_blocks(rng, 300, gap=gap)
    items = [(number, tuple(as_sums(n, x, y))) for number, n, x, y in blocks]
    shown = rng.randrange(100)

    found = list(over_points(items[:shown], items[shown:], num_window_points=window))
    columns = sliding_sums.over_points(
        items[:shown],
        [number for number, _ in items[shown:]],
        np.array([ten for _, ten in items[shown:]]),
        num_window_points=window,
    )

    assert columns.is_widened.tolist() == [one.is_widened for one in found]
    assert columns.sums == pytest.approx(np.array([one.sums for one in found]), rel=1e-12)
    assert columns.before == pytest.approx(np.array([one.before for one in found]), rel=1e-12)
    for (number, *_), one in zip(blocks[shown:], found, strict=True):
        low, sums = reaching_back(blocks, number - window + 1, number, 8)
        _, before = reaching_back(blocks, low - 4 * window, low - 1, 32)
        assert_same(window_sums(one.sums), sums)
        assert_same(one.before, before)
        assert one.is_widened == (low < number - window + 1 and sums.num_blocks > 0)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("window", [3, 32, 50])
def test_windows_of_parts_of_blocks_are_cut_at_the_point_and_before_them_are_whole_blocks(window: int) -> None:
    rng = random.Random(window)
    points = uneven_blocks(rng, 900, gap=2)
    per_block = 4
    first_shown = rng.randrange(200, 300)
    low_number = points[first_shown][0]

    found = sliding_sums.within_blocks(
        [Block(*one, 0) for one in in_blocks(points[:first_shown], per_block)],
        [number for number, *_ in points[first_shown:]],
        np.array([terms for _, *terms in points[first_shown:]]),
        points_per_block=per_block,
        num_window_points=window,
    )

    assert low_number % per_block, "the first point's block begins before it"
    for position, (sums_found, before_found, is_widened) in enumerate(zip(*found, strict=True), start=first_shown):
        number = points[position][0]
        blocks = in_blocks(points[: position + 1], per_block)
        low, sums = reaching_back(blocks, (number - window + 1) // per_block, number // per_block, 8)
        _, before = reaching_back(blocks, low - -(-4 * window // per_block), low - 1, 32)
        assert_same(WindowSums._make(sums_found), sums)
        assert_same(WindowSums._make(before_found), before)
        if all(n for _, n, *_ in blocks):
            assert is_widened == (low < (number - window + 1) // per_block)


@pytest.mark.parametrize("first_shown", [0, 1, 2])
def test_windows_of_the_first_parts_of_blocks_hold_what_there_is(first_shown: int) -> None:
    points = [(2, 1.0, 3.0, 1.0), (3, 1.0, 5.0, 2.0), (4, 2.0, 7.0, 1.0), (9, 1.0, 2.0, 2.0)]

    found = sliding_sums.within_blocks(
        [Block(*one, 0) for one in in_blocks(points[:first_shown], 4)],
        [number for number, *_ in points[first_shown:]],
        np.array([terms for _, *terms in points[first_shown:]]).reshape(-1, 3),
        points_per_block=4,
        num_window_points=100,
    )

    for position, sums in enumerate(found.sums, start=first_shown):
        whole = [terms for _, *terms in in_blocks(points[: position + 1], 4)]
        assert_same(WindowSums._make(sums), WindowSums.from_blocks(whole))
    assert not found.before.any()
    assert not found.is_widened.any()


def test_no_points_have_no_windows() -> None:
    nothing = np.zeros((0, 10))
    columns = (
        sliding_sums.over_points([], [], nothing, num_window_points=8),
        sliding_sums.within_blocks([(0, 1.0, 2.0, 1.0)], [], nothing[:, :3], points_per_block=4, num_window_points=8),
    )

    assert [len(one.sums) for one in columns] == [0, 0]


def as_sums(n: float, x: float, y: float) -> list[float]:
    sums = WindowSums.from_blocks([(n, x, y)] if n else [])
    return list(sums)


def in_blocks(points: Blocks, points_per_block: int) -> Blocks:
    """The same, added up to whole blocks."""
    blocks: dict[int, tuple[float, float, float]] = {}
    for number, *own in points:
        so_far = blocks.get(number // points_per_block, (0.0, 0.0, 0.0))
        n, x, y = map(sum, zip(so_far, own, strict=True))
        blocks[number // points_per_block] = (n, x, y)
    return [(number, *own) for number, own in blocks.items()]

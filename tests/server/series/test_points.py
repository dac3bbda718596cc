"""How many steps a point has: few enough points for any range, found at once."""

import random
from uuid import uuid4

import httpx
import pytest

from noisescale_server.services.series.resolution import Range, points_of
from problems import assert_problem


def num_points(wanted: Range, steps: int) -> int:
    return wanted.high // steps - wanted.low // steps + 1


@pytest.mark.parametrize("max_points", [1, 2, 7, 500])
@pytest.mark.parametrize("steps_per_block", [1, 32, 32**5])
def test_any_range_fits_into_the_points_asked_for(max_points: int, steps_per_block: int) -> None:
    rng = random.Random(max_points)
    for _ in range(300):
        low, high = sorted(rng.randrange(1 << rng.randrange(1, 53)) for _ in range(2))
        wanted = Range(0, high, low, high)

        steps = points_of(wanted, max_points=max_points, steps_per_block=steps_per_block)

        assert num_points(wanted, steps) <= max_points


def test_the_length_of_a_single_point_is_not_searched_for_step_by_step() -> None:
    """Every longer length was tried until one held the range: a request stopped the server for hours."""
    wanted = Range(0, 2**53, 2**40, 2**53 - 2)

    assert points_of(wanted, max_points=1) == 2**53 - 1


def test_a_range_that_starts_within_a_point_keeps_nearly_all_the_points_asked_for() -> None:
    wanted = Range(0, 99_999, 12_345, 99_999)

    steps = points_of(wanted, max_points=500, steps_per_block=1)

    assert 480 <= num_points(wanted, steps) <= 500


@pytest.mark.parametrize("path", ["noise-scale", "metrics"])
async def test_more_than_a_thousand_points_are_refused_by_name(shared_client: httpx.AsyncClient, path: str) -> None:
    answer = await shared_client.get(f"/api/v1/runs/{uuid4()}/{path}", params={"points": 1001})

    assert_problem(answer, 422, "invalid-input", field="points")

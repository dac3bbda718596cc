"""What a point says does not depend on the range that is shown: enough is read before it."""

import math
from typing import Any
from uuid import uuid4

import httpx
import pytest

from factories import make_batch, make_measurements


async def points(client: httpx.AsyncClient, run_id: object, **query: int) -> dict[str, Any]:
    answer = await client.get(f"/api/v1/runs/{run_id}/noise-scale", params=query)
    found: dict[str, Any] = answer.raise_for_status().json()
    return found


@pytest.mark.parametrize(("window", "level", "steps_per_point"), [(100, 0, 1), (100, 0, 2), (300, 1, 1), (300, 1, 32)])
async def test_a_zoom_says_of_each_step_what_the_whole_run_says(
    shared_client: httpx.AsyncClient, window: int, level: int, steps_per_point: int
) -> None:
    """Rows and buckets, points of one or more blocks and parts of blocks; some of them resolved and some not."""
    rows = make_measurements(steps=range(1_900))
    # |G|² is about 5 standard errors of its mean over a window
    weaker_by = 1.0 - 2.5 / math.sqrt(window)
    rows["sum_grad_sq_norm"] = [y - weaker_by for y in rows["sum_grad_sq_norm"]]
    run_id = uuid4()
    sent = await shared_client.post(
        f"/api/v1/streams/{uuid4()}/batches", json=make_batch(run_id=run_id, measurements=rows)
    )
    assert sent.status_code == 200, sent.text
    query = {"window": window, "to": 1_899}

    wide = await points(shared_client, run_id, **query, **{"from": 960, "points": 940 // steps_per_point + 1})
    zoomed = await points(shared_client, run_id, **query, **{"from": 1_600, "points": 300 // steps_per_point + 1})

    assert (wide["level"], zoomed["level"]) == (level, level)
    num = zoomed["num_points"]
    for name in ("step", "state", "z"):
        assert wide["points"][name][-num:] == pytest.approx(zoomed["points"][name]), name
    assert {"resolved", "tentative"} <= set(zoomed["points"]["state"])

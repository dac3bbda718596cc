from uuid import uuid4

import pytest

from factories import make_batch, make_measurements
from noisescale_server.api.ingest.streams import batch_of
from noisescale_server.api.ingest.wire_schemas import BatchBody
from noisescale_server.services.ingest import ingestion
from noisescale_server.services.series import series
from noisescale_server.services.series.series import default_window
from noisescale_server.services.series.whole_run import WholeRuns


@pytest.mark.parametrize(
    ("run_steps", "window"),
    [(1, 1), (300, 15), (800, 40), (5_120, 256), (20_000, 256), (25_600, 256), (100_000, 1_000)],
)
def test_the_window_nobody_chose_is_5_percent_of_a_short_run_and_1_percent_of_a_long_one(run_steps, window):
    assert default_window(run_steps=run_steps, shown_steps=run_steps) == window


@pytest.mark.parametrize(
    ("run_steps", "blocks_of"),
    [(200 * 32**2, 32**2), (300_000, 32**2), (10_000_000, 32**3), (300_000_000, 32**4), (10**10, 32**5)],
)
def test_a_level_that_draws_a_smooth_line_gives_the_window_its_8_blocks(run_steps, blocks_of):
    window = default_window(run_steps=run_steps, shown_steps=run_steps)

    assert window == 8 * blocks_of
    assert 0.01 * run_steps <= window <= 0.05 * run_steps


@pytest.mark.parametrize("run_steps", [200 * 32**2 - 1, 3 * 10**11])
def test_a_level_with_fewer_than_200_points_or_above_the_highest_gives_none(run_steps):
    assert default_window(run_steps=run_steps, shown_steps=run_steps) == -(-run_steps // 100)


def test_a_zoom_into_a_long_run_gets_the_finer_window():
    assert default_window(run_steps=10_000_000, shown_steps=1_000_000) == 100_000


@pytest.mark.parametrize(("num_steps", "window"), [(1_981, 100), (2_000, 100), (2_001, 101)])
async def test_a_run_is_as_long_as_its_first_and_last_step_say(session, num_steps, window):
    run_id = uuid4()
    rows = make_measurements(steps=[num_steps // 2, num_steps - 1], log_every=num_steps // 2)
    rows["num_updates"] = [num_steps // 2 + 1, num_steps - num_steps // 2 - 1]
    body = BatchBody.model_validate(make_batch(run_id=run_id, measurements=rows), strict=False)
    await ingestion.accept(session, batch_of(uuid4(), body))

    found = await series.of_run(session, WholeRuns(), run_id, low=None, high=None, max_points=500, window=None)

    assert (found.low, found.high) == (0, num_steps - 1)
    assert found.how.window_steps == window


@pytest.mark.parametrize(("low", "window", "num_blocks"), [(20, 21, 21), (20, 22, 21), (20, 20, 20), (0, 21, 1)])
async def test_a_window_reaches_back_to_the_first_step_of_a_run(session, low, window, num_blocks):
    run_id = uuid4()
    body = BatchBody.model_validate(
        make_batch(run_id=run_id, measurements=make_measurements(steps=range(40))), strict=False
    )
    await ingestion.accept(session, batch_of(uuid4(), body))

    found = await series.of_run(session, WholeRuns(), run_id, low=low, high=None, max_points=500, window=window)

    assert found.how.level == 0
    assert found.estimates[0].num_blocks == num_blocks

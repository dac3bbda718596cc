"""The latest window: the last 5 % of the steps, whole blocks, ending where the newest stream stands."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy.ext.asyncio import AsyncSession

import brute_force
from factories import make_batch, make_measurements, make_stream
from noisescale.estimators.uncertainty import NoiseScaleEstimate, estimate
from noisescale_server.api.streams import batch_of
from noisescale_server.api.wire_schemas import BatchBody
from noisescale_server.services import ingestion, latest
from noisescale_server.services.live import LiveSeries
from noisescale_server.storage import runs, streams


async def accept(session: AsyncSession, stream_id: UUID, body: dict[str, Any]) -> None:
    await ingestion.accept(session, batch_of(stream_id, BatchBody.model_validate(body, strict=False)))


async def log(session: AsyncSession, run_id: UUID, steps: Sequence[int], *, started_at: float = 1e9) -> None:
    """One stream with a row at each step, in batches of 1,300 rows."""
    stream_id = uuid4()
    for start in range(0, len(steps), 1_300):
        first_seq = start + 2
        rows = make_measurements(first_seq=first_seq, steps=steps[start : start + 1_300])
        first_seq -= start == 0
        stream = make_stream(started_at=started_at)
        body = make_batch(run_id=run_id, first_seq=first_seq, stream=stream, measurements=rows)
        await accept(session, stream_id, body)


async def latest_noise_scale(session: AsyncSession, run_id: UUID) -> NoiseScaleEstimate:
    covered = await streams.coverage_of_run(session, run_id)
    return (await latest.window(session, LiveSeries.of(run_id, "simple", covered))).noise_scale


async def test_the_latest_window_starts_with_a_whole_block(session: AsyncSession) -> None:
    """5 % of 5,200 steps are 260: eight buckets of 32, the oldest of which begins twelve steps earlier."""
    run_id = uuid4()
    await log(session, run_id, range(5_200))

    found = await latest_noise_scale(session, run_id)

    rows = brute_force.rows_of(0, make_measurements(first_seq=3_902, steps=range(3_900, 5_200)))
    expected = estimate(brute_force.window_sums([row for row in rows if row.step >= 4_928], level=1))
    assert (found.num_updates, found.num_blocks) == (272, 9)
    assert (found.value, found.low) == pytest.approx((expected.value, expected.low))


async def test_a_resumed_run_is_shown_where_its_newest_stream_stands(session: AsyncSession) -> None:
    run_id = uuid4()
    await log(session, run_id, range(1_000))
    await log(session, run_id, range(400, 450), started_at=2e9)

    found = await latest_noise_scale(session, run_id)

    run = await runs.get(session, run_id)
    assert run is not None
    assert (run.first_step, run.latest_step) == (0, 449)
    # 5 % of the 450 steps up to there
    assert found.num_updates == 23


async def test_a_late_batch_of_an_older_stream_does_not_move_the_run_back(session: AsyncSession) -> None:
    run_id = uuid4()
    await log(session, run_id, range(100), started_at=2e9)
    await log(session, run_id, range(50), started_at=1e9)

    run = await runs.get(session, run_id)

    assert run is not None
    assert run.latest_step == 99


async def test_what_a_resumed_run_ends_with_holds_its_last_batch(session: AsyncSession) -> None:
    """The batch that ends a run is the last chance: nothing refreshes its noise scale afterwards."""
    run_id = uuid4()
    await log(session, run_id, range(1_000))
    rows = make_measurements(steps=range(400, 450))
    stream = make_stream(started_at=2e9)
    finish = {"seq": 52, "status": "finished", "wall_time": 2e9 + 60}
    body = make_batch(run_id=run_id, stream=stream, measurements=rows, finish=finish)

    await accept(session, uuid4(), body)

    run = await runs.get(session, run_id)
    whole = await latest_noise_scale(session, run_id)
    assert run is not None
    assert (run.latest_step, run.noise_scale_num_updates) == (449, 23)
    assert run.noise_scale_value == pytest.approx(whole.value)

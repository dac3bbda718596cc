"""The latest window: what the job itself says, the last 5 % of the steps, ending where the newest stream stands."""

import random
from collections.abc import Sequence
from dataclasses import fields
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy.ext.asyncio import AsyncSession

from factories import make_batch, make_measurements, make_stream
from noisescale.window.recent_updates import RecentUpdates
from noisescale_core.estimators.noise_scale import Terms
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate, State, estimate
from noisescale_core.estimators.windows import WindowSums
from noisescale_server.api.ingest.streams import batch_of
from noisescale_server.api.ingest.wire_schemas import BatchBody
from noisescale_server.services.ingest import ingestion, stale_windows
from noisescale_server.services.series import latest
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.storage.runs import runs, streams


async def accept(session: AsyncSession, stream_id: UUID, body: dict[str, Any]) -> None:
    await ingestion.accept(session, batch_of(stream_id, BatchBody.model_validate(body, strict=False)))


async def log_rows(session: AsyncSession, run_id: UUID, rows: dict[str, list[Any]]) -> None:
    """One stream with these rows, in batches of 1,900."""
    stream_id = uuid4()
    for start in range(0, len(rows["seq"]), 1_900):
        part = {name: column[start : start + 1_900] for name, column in rows.items()}
        first_seq = part["seq"][0] - (start == 0)
        body = make_batch(run_id=run_id, first_seq=first_seq, stream=make_stream(), measurements=part)
        await accept(session, stream_id, body)


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


def weak_gradient(num_steps: int, seed: int = 0) -> tuple[list[float], list[float]]:
    """tr Σ̂ and |G|²^ of each step; a window needs about 300 steps for z = 5."""
    rng = random.Random(seed)
    return (
        [rng.gammavariate(20.0, 5.0) for _ in range(num_steps)],
        [rng.gammavariate(2.0, 0.5) - 0.8 for _ in range(num_steps)],
    )


def rows_with(trace_covs: list[float], grad_sq_norms: list[float]) -> dict[str, list[Any]]:
    x, y = trace_covs, grad_sq_norms
    return make_measurements(steps=range(len(x))) | {
        "sum_trace_cov": x,
        "sum_grad_sq_norm": y,
        "sum_trace_cov_sq": [a * a for a in x],
        "sum_grad_sq_norm_sq": [b * b for b in y],
        "sum_trace_cov_grad_sq_norm": [a * b for a, b in zip(x, y, strict=True)],
    }


SEEN_BY_BOTH: dict[int, State] = {
    5: State.UNRESOLVED,
    40: State.UNRESOLVED,
    700: State.TENTATIVE,
    1_800: State.TENTATIVE,
    21_000: State.RESOLVED,
}


@pytest.mark.parametrize(("num_steps", "state"), SEEN_BY_BOTH.items())
async def test_the_server_says_of_a_run_what_the_job_itself_says(
    session: AsyncSession, num_steps: int, state: State
) -> None:
    """In rows and in buckets: value, interval, state, and how many updates it takes."""
    x, y = weak_gradient(num_steps)
    in_the_job = RecentUpdates()
    for terms in zip(x, y, strict=True):
        in_the_job.add(Terms(*terms))
    run_id = uuid4()
    await log_rows(session, run_id, rows_with(x, y))

    found = await latest_noise_scale(session, run_id)

    expected = in_the_job.estimate()
    assert found.state is state
    for field in fields(NoiseScaleEstimate):
        assert getattr(found, field.name) == pytest.approx(getattr(expected, field.name)), field.name


async def test_the_latest_window_starts_with_a_whole_block(session: AsyncSession) -> None:
    """5 % of 5,200 steps are 260: blocks of 16, the oldest of which begins twelve steps earlier."""
    run_id = uuid4()
    await log(session, run_id, range(5_200))

    found = await latest_noise_scale(session, run_id)

    rows = make_measurements(first_seq=3_902, steps=range(3_900, 5_200))
    x, y = rows["sum_trace_cov"][-272:], rows["sum_grad_sq_norm"][-272:]
    blocks = [(16.0, sum(x[start : start + 16]), sum(y[start : start + 16])) for start in range(0, 272, 16)]
    expected = estimate(WindowSums.from_blocks(blocks))
    assert (found.num_updates, found.num_blocks) == (272, 17)
    assert (found.value, found.low) == pytest.approx((expected.value, expected.low))


async def test_a_window_that_looks_good_is_not_resolved_by_itself(session: AsyncSession) -> None:
    """Its own z is far above 5 and below what is beyond doubt; what came before it promises less than 5."""
    x, y = weak_gradient(2_000, seed=1)
    run_id = uuid4()
    await log_rows(session, run_id, rows_with(x, [*y[:-100], *(value + 0.6 for value in y[-100:])]))

    found = await latest_noise_scale(session, run_id)

    assert found.z is not None
    assert found.z > 5.5
    assert (found.state, found.value is not None) == (State.TENTATIVE, True)
    assert found.updates_needed is not None
    assert found.updates_needed > found.num_updates


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


async def test_a_job_that_was_killed_and_is_sent_later_shows_the_noise_scale_of_its_last_rows(
    session: AsyncSession,
) -> None:
    """Its batches come in one second, and none of them says that the run has ended."""
    run_id = uuid4()
    rows = rows_with([100.0] * 6_000, [2.0 - step / 4_000 for step in range(6_000)])
    await log_rows(session, run_id, rows)

    await stale_windows.refresh(session, run_id)

    await assert_shows_its_rows(session, run_id)


async def test_a_late_batch_of_an_older_stream_that_the_window_reaches_into_is_in_it(session: AsyncSession) -> None:
    run_id, old = uuid4(), uuid4()
    parts = [rows_with([100.0] * 1_000, [float(1 + (step >= 900)) for step in range(1_000)])]
    first = {name: column[:900] for name, column in parts[0].items()}
    late = {name: column[900:] for name, column in parts[0].items()}
    await accept(session, old, make_batch(run_id=run_id, stream=make_stream(started_at=1e9), measurements=first))
    await log(session, run_id, range(1_000, 1_005), started_at=2e9)

    await accept(session, old, make_batch(run_id=run_id, first_seq=902, with_run=False, measurements=late))
    await stale_windows.refresh(session, run_id)

    await assert_shows_its_rows(session, run_id)


async def test_what_a_resumed_run_ends_with_holds_its_last_batch(session: AsyncSession) -> None:
    run_id = uuid4()
    await log(session, run_id, range(1_000))
    rows = make_measurements(steps=range(400, 450))
    stream = make_stream(started_at=2e9)
    finish = {"seq": 52, "status": "finished", "wall_time": 2e9 + 60}
    body = make_batch(run_id=run_id, stream=stream, measurements=rows, finish=finish)

    await accept(session, uuid4(), body)

    await assert_shows_its_rows(session, run_id)
    run = await runs.get(session, run_id)
    assert run is not None
    assert (run.latest_step, run.noise_scale_num_updates) == (449, 23)


async def assert_shows_its_rows(session: AsyncSession, run_id: UUID) -> None:
    """The run's row says what the newest window of its stored rows says."""
    run = await runs.get(session, run_id)
    of_rows = await latest_noise_scale(session, run_id)
    assert run is not None
    assert run.noise_scale_value == pytest.approx(of_rows.value)
    assert (run.noise_scale_num_updates, run.noise_scale_z) == (of_rows.num_updates, pytest.approx(of_rows.z))
    assert run.noise_scale_step == run.latest_step

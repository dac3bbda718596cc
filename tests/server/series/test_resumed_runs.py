"""A resumed run shows each step as its newest stream logged it, at every zoom level."""

import math
import random
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy.ext.asyncio import AsyncSession

import brute_force
from factories import make_batch, make_measurements, make_stream, without_estimates
from noisescale_core.estimators.uncertainty import estimate
from noisescale_server.api.ingest.streams import batch_of
from noisescale_server.api.ingest.wire_schemas import BatchBody
from noisescale_server.services.ingest import ingestion
from noisescale_server.services.series import series as series_service
from noisescale_server.services.series.live import LiveSeries, cut, live_intervals, pieces
from noisescale_server.services.series.resolution import Resolution
from noisescale_server.services.series.whole_run import WholeRuns
from noisescale_server.storage.runs import streams
from noisescale_server.storage.runs.streams import SIMPLE, Coverage
from noisescale_server.storage.series import series
from noisescale_server.storage.series.series import PointColumns
from quick import quick_or_slow

MAX_ROWS = 1_900


async def store(session: AsyncSession, run_id: UUID, histories: list[dict[str, list[Any]]]) -> None:
    """One stream for each history, each started later than the one before."""
    for number, rows in enumerate(histories):
        stream_id = uuid4()
        for start in range(0, len(rows["seq"]), MAX_ROWS):
            part = {name: column[start : start + MAX_ROWS] for name, column in rows.items()}
            body = make_batch(
                run_id=run_id,
                first_seq=part["seq"][0] - (start == 0),
                stream=make_stream(started_at=1e9 + number),
                measurements=part,
            )
            await ingestion.accept(session, batch_of(stream_id, BatchBody.model_validate(body, strict=False)))


def history(
    rng: random.Random, *, steps: list[int], log_every: int, batch: float, weaker_by: float = 0.0
) -> dict[str, list[Any]]:
    """Rows at these steps, some of them without estimates."""
    rows = make_measurements(steps=steps, log_every=log_every, seed=rng.randrange(10**6), global_batch=batch)
    rows["lr"] = [rng.uniform(0.1, 0.2) for _ in steps]
    # so weak that windows differ in their states
    rows["sum_grad_sq_norm"] = [y - weaker_by * log_every for y in rows["sum_grad_sq_norm"]]
    return without_estimates(rows, rng.sample(range(len(steps)), len(steps) // 10))


def resumed_twice(rng: random.Random, num_steps: int, *, log_every: int) -> list[dict[str, list[Any]]]:
    """Three streams, each resumed from a checkpoint of the one before; the second logs every `log_every`-th step."""
    first_checkpoint, second_checkpoint = num_steps // 3 + rng.randrange(40), num_steps // 2 + rng.randrange(40)
    return [
        history(rng, steps=list(range(2 * num_steps // 3)), log_every=1, batch=64.0),
        history(rng, steps=list(range(first_checkpoint + 49, num_steps, 50)), log_every=50, batch=128.0),
        history(
            rng,
            steps=list(range(second_checkpoint, second_checkpoint + num_steps // 4)),
            log_every=1,
            batch=256.0,
            weaker_by=0.7,
        ),
    ]


def sparse(rng: random.Random, num_steps: int) -> list[dict[str, list[Any]]]:
    """Three overlapping streams with few rows, so far apart that every level of the pyramid has buckets."""
    histories = []
    for share in (0.0, 0.3, 0.5):
        steps = sorted(rng.sample(range(int(share * num_steps), int((share + 0.45) * num_steps)), 600))
        histories.append(history(rng, steps=steps, log_every=1, batch=32.0))
    return histories


def assert_same_sums(found: tuple[float, ...], expected: Any) -> None:
    assert list(found) == pytest.approx(list(expected), rel=1e-9, abs=1e-9)


def assert_close(found: float | None, expected: float | None) -> None:
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert math.isclose(found, expected, rel_tol=1e-9)


@pytest.mark.parametrize("level", quick_or_slow(range(6), [1, 3]))
async def test_every_level_of_the_pyramid_equals_brute_force_over_the_live_rows(
    session: AsyncSession, level: int
) -> None:
    rng = random.Random(level)
    num_steps = 70_000_000 if level == 5 else 4_000_000
    histories = sparse(rng, num_steps)
    run_id = uuid4()
    await store(session, run_id, histories)
    live = live_intervals(await streams.coverage_of_run(session, run_id))
    rows = brute_force.live_rows([brute_force.rows_of(i, rows) for i, rows in enumerate(histories)])

    for _ in range(12):
        low, high = sorted(rng.sample(range(num_steps), 2))
        blocks_per_point = rng.randrange(1, 40)
        found = await series.points(
            session, run_id, pieces(cut(live, low, high), level), level=level, blocks_per_point=blocks_per_point
        )

        chosen = [row for row in rows if low <= row.step <= high]
        size = blocks_per_point * 32**level
        assert list(found.point) == sorted({row.step // size for row in chosen})
        rows_found = zip(found.point, found.block_sums(), found.flags, found.step_last, found.lr_last, strict=True)
        for point, sums, flags, step_last, lr_last in rows_found:
            of_point = [row for row in chosen if row.step // size == point]
            expected = brute_force.own(of_point)
            assert_same_sums(sums, brute_force.window_sums(of_point, level))
            assert (flags, step_last, lr_last) == (expected["flags"], expected["step"], expected["lr"])


@pytest.mark.parametrize(("seed", "log_every"), [pytest.param(0, 1, marks=pytest.mark.slow), (1, 1), (2, 50), (3, 50)])
async def test_a_run_resumed_twice_equals_brute_force_in_every_range_and_window(
    session: AsyncSession, seed: int, log_every: int
) -> None:
    rng = random.Random(seed)
    num_steps = 2_000
    histories = resumed_twice(rng, num_steps, log_every=log_every)
    run_id = uuid4()
    await store(session, run_id, histories)
    rows = brute_force.live_rows([brute_force.rows_of(i, rows) for i, rows in enumerate(histories)])
    found = await assert_equals_brute_force(
        session,
        run_id,
        rows,
        [
            (0, 60, 500, None),  # blocks are rows
            (500, 1_999, 30, 1_500),  # a point is several buckets
            (500, 1_999, 500, 500),  # a bucket is several points
            *((rng.randrange(900), rng.randrange(900, 2_000), points, None) for points in (500, 40, 7)),
            *((rng.randrange(900), rng.randrange(900, 2_000), points, 300) for points in (300, 60, 13)),
        ],
    )
    assert {(how.level, how.steps_per_point >= how.steps_per_block) for how, _ in found} == {
        (0, True),
        (1, True),
        (1, False),
    }
    assert {"resolved", "tentative"} <= {state for _, state in found}


@pytest.mark.parametrize(("max_points", "window"), [(500, 300), (8, 330)], ids=["parts of blocks", "whole blocks"])
async def test_of_a_run_that_logs_each_step_the_four_windows_before_each_point_are_read_whole(
    session: AsyncSession, max_points: int, window: int
) -> None:
    """They are read from no further back than five windows, and a point or a block more."""
    run_id = uuid4()
    dense = make_measurements(steps=range(2_000), seed=4)
    # a run that has shown a gradient, and then one so weak that what came before says how long it still takes
    dense["sum_grad_sq_norm"] = [y - 0.95 * (step >= 200) for step, y in enumerate(dense["sum_grad_sq_norm"])]
    await store(session, run_id, [dense])

    found = await assert_equals_brute_force(
        session, run_id, brute_force.rows_of(0, dense), [(1_800, 1_999, max_points, window)]
    )

    assert {how.steps_per_point >= how.steps_per_block for how, _ in found} == {max_points == 8}
    assert {state for _, state in found} - {"resolved"}


@pytest.mark.parametrize("level", [0, 1])
async def test_a_history_reads_the_same_points_as_a_chart_without_losses_and_extremes(
    session: AsyncSession, level: int
) -> None:
    run_id = uuid4()
    await store(session, run_id, resumed_twice(random.Random(3), 600, log_every=50))
    live = LiveSeries.of(run_id, SIMPLE, await streams.coverage_of_run(session, run_id))
    asked: Any = (session, run_id, live.pieces(live.first_step, live.newest_step, level))

    full = await series.points(*asked, level=level, blocks_per_point=3)
    found = await series.spent(*asked, level=level, blocks_per_point=3)

    read = {name: getattr(found, name) for name in PointColumns.__slots__ if getattr(found, name)}
    assert read == {name: getattr(full, name) for name in read}
    assert set(PointColumns.__slots__) - set(read) == {
        *("trace_cov_min", "trace_cov_max", "grad_sq_norm_min", "grad_sq_norm_max"),
        *("sum_loss", "num_loss", "loss_min", "loss_max", "global_batch_min", "global_batch_max"),
    }


async def assert_equals_brute_force(
    session: AsyncSession,
    run_id: UUID,
    rows: list[brute_force.Row],
    ranges: Iterable[tuple[int, int, int, int | None]],
) -> set[tuple[Resolution, str]]:
    """How the ranges (low, high, most points, window) were shown, and in which states."""
    seen = set()
    for low, high, max_points, window in ranges:
        found = await series_service.of_run(
            session, WholeRuns(), run_id, low=low, high=high, max_points=max_points, window=window
        )
        assert found.low is not None
        assert found.high is not None
        assert len(found.points) <= max_points
        expected = brute_force.windows(
            rows,
            level=found.how.level,
            steps_per_point=found.how.steps_per_point,
            window_steps=found.how.window_steps,
            low=found.low,
            high=found.high,
        )
        assert list(found.points.point) == sorted(expected)
        for one, point in zip(found.estimates, found.points.point, strict=True):
            sums, before = expected[point]
            wanted = estimate(sums, before=before)
            assert (one.num_blocks, one.num_updates, one.state) == (wanted.num_blocks, wanted.num_updates, wanted.state)
            # what was before the window also says how long it still takes
            assert one.updates_needed == wanted.updates_needed
            for name in ("value", "low", "high"):
                assert_close(getattr(one, name), getattr(wanted, name))
            seen.add((found.how, one.state))
    return seen


@pytest.mark.parametrize("level", [0, 1, 2])
async def test_steps_that_go_back_within_one_stream_are_added_up_and_the_highest_counts_as_last(
    session: AsyncSession, level: int
) -> None:
    """Rows across batches: the second starts where the pyramid already has higher steps."""
    rng = random.Random(5)
    steps = [*range(1_900), *range(500, 700)]
    rows = history(rng, steps=steps, log_every=1, batch=64.0)
    run_id = uuid4()
    await store(session, run_id, [rows])
    live = live_intervals(await streams.coverage_of_run(session, run_id))
    brute = brute_force.rows_of(0, rows)

    found = await series.points(session, run_id, pieces(live, level), level=level, blocks_per_point=32**2)

    size = 32**level * 32**2
    assert list(found.point) == sorted({step // size for step in steps})
    for point, sums, step_last, lr_last in zip(
        found.point, found.block_sums(), found.step_last, found.lr_last, strict=True
    ):
        of_point = [row for row in brute if row.step // size == point]
        expected = brute_force.own(of_point)
        assert_same_sums(sums, brute_force.window_sums(of_point, level))
        assert (step_last, lr_last) == (expected["step"], expected["lr"])


def coverage(number: int, first_step: int, last_step: int) -> Coverage:
    return Coverage(UUID(int=number), datetime.fromtimestamp(number, UTC), first_step, last_step, 100, 100)


def shown(*covered: Coverage) -> list[tuple[int, int, int]]:
    return [(interval.stream_id.int, interval.low, interval.high) for interval in live_intervals(covered)]


def test_a_resumed_stream_takes_over_the_steps_it_covers_and_leaves_the_rest() -> None:
    older, newer = coverage(1, 0, 999), coverage(2, 500, 600)

    assert shown(older, newer) == [(1, 0, 499), (2, 500, 600), (1, 601, 999)]


def test_of_two_streams_started_at_once_the_greater_id_is_shown() -> None:
    same_time = datetime.fromtimestamp(0, UTC)
    first, second = Coverage(UUID(int=1), same_time, 0, 9, 1, 1), Coverage(UUID(int=2), same_time, 5, 9, 1, 1)

    assert shown(second, first) == [(1, 0, 4), (2, 5, 9)]


def test_live_intervals_show_each_step_once_as_its_newest_stream() -> None:
    rng = random.Random(7)
    for _ in range(200):
        covered = []
        for number in range(rng.randrange(1, 7)):
            low = rng.randrange(40)
            covered.append(coverage(number, low, low + rng.randrange(30)))

        by_step = {step: number for number, low, high in shown(*covered) for step in range(low, high + 1)}

        expected = {step: one.stream_id.int for one in covered for step in range(one.first_step, one.last_step + 1)}
        assert by_step == expected


def test_pieces_hold_each_step_of_an_interval_exactly_once() -> None:
    rng = random.Random(3)
    for level in (0, 1, 2):
        for _ in range(40):
            covered = [coverage(1, 0, 5_000), coverage(2, rng.randrange(2_000), 2_000 + rng.randrange(2_000))]
            low, high = sorted(rng.sample(range(5_001), 2))
            intervals = cut(live_intervals(covered), low, high)

            steps = [
                (piece.stream_id, step)
                for piece in pieces(intervals, level)
                for step in range(piece.low * 32**piece.level, (piece.high + 1) * 32**piece.level)
            ]

            wanted = {(one.stream_id, step) for one in intervals for step in range(one.low, one.high + 1)}
            inside = [(stream, step) for stream, step in steps if (stream, step) in wanted]
            bounds = {one.stream_id: (one.first_step, one.last_step) for one in covered}
            assert sorted(inside) == sorted(wanted)
            for stream, step in set(steps) - wanted:
                assert not bounds[stream][0] <= step <= bounds[stream][1]

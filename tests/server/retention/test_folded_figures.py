"""Rows of an old run are folded into its pyramid, and no figure of a page says anything else.

One resumed run of 45,056 steps, with layers, a metric logged every fourth step and a gradient that falls: what every
page asks is read before and after nine tenths of its rows have gone.
"""

import math
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text

import brute_force
from app_in_process import client_of, running_app
from factories import make_batch, make_groups, make_measurements, make_run, make_stream, with_path
from noisescale_core.estimators.uncertainty import estimate
from noisescale_server.api.ingest.streams import batch_of
from noisescale_server.api.ingest.wire_schemas import BatchBody
from noisescale_server.services import retention
from noisescale_server.services.ingest import ingestion, ledger, stale_windows
from noisescale_server.services.series import series as series_service
from noisescale_server.services.series.whole_run import WholeRuns
from stored_runs import judge_all

NUM_STEPS, RESUMED_AT, FIRST_ENDED_AT = 45_056, 20_500, 25_000
ROWS_A_BATCH = 1_024
LONG_AFTER = timedelta(days=400)
AS_LONG_AS = 1e-9
"""Sums over the same rows in another order."""

OF_BUCKETS = (
    "runs/{run}",
    "runs/{run}/noise-scale?points=400",
    "runs/{run}/noise-scale?points=300&window=2000",
    "runs/{run}/noise-scale?points=50&from=8192&to=45055",
    "runs/{run}/groups?points=40",
    "runs/{run}/groups?points=30&from=8192",
    "runs/{run}/noise-scale?points=40&group=head",
    "runs/{run}/metrics?points=300",
    "runs/{run}/metrics?points=500&from=1024",
    "runs/{run}/learning-rate?points=100",
    "runs/{run}/recommendation",
    "runs/{run}/recommendation?to_step=32767",
    "runs/{run}/forecast",
    "runs/{run}/time",
    "runs/{run}/streams",
    "runs/sparklines?ids={run}&details=true",
    "runs?project=old",
    "runs/recommendations?ids={run}",
    "tradeoff?run_id={run}",
    "comparison?project=old",
)
"""What pages ask: each figure of it is made of buckets of 32 steps or more."""


def rows_of(steps: range, *, seed: int) -> dict[str, list[Any]]:
    rows = make_measurements(steps=steps, seed=seed, global_batch=64.0, log_every=4)
    rng = random.Random(seed)
    # a gradient that falls, and a batch that is doubled on the way
    rows["sum_grad_sq_norm"] = [
        y * (0.2 + math.exp(-step / 20_000)) for y, step in zip(rows["sum_grad_sq_norm"], steps, strict=True)
    ]
    rows["global_batch"] = [64.0 if step < 30_000 else 128.0 for step in steps]
    rows["lr"] = [0.1 * (1 - step / NUM_STEPS) + rng.uniform(0, 1e-4) for step in steps]
    return with_path(rows, octaves=0.3, start=steps[0], every=4)


@dataclass
class OldRun:
    id: UUID
    streams: list[UUID]
    histories: list[dict[str, list[Any]]]

    @property
    def live(self) -> list[brute_force.Row]:
        return brute_force.live_rows([brute_force.rows_of(n, rows) for n, rows in enumerate(self.histories)])


async def store_stream(app: FastAPI, run_id: UUID, stream_id: UUID, rows: dict[str, list[Any]], number: int) -> None:
    """Measurements with a metric and, every 64 steps, a record of layers; numbers follow each other."""
    seq = 1
    for start in range(0, len(rows["step"]), ROWS_A_BATCH):
        part = {name: column[start : start + ROWS_A_BATCH] for name, column in rows.items()}
        steps, begins = part["step"], seq == 1
        first = seq + begins
        part["seq"] = list(range(first, first + len(steps)))
        metrics = {
            "seq": list(range(first + len(steps), first + 2 * len(steps))),
            "step": steps,
            "wall_time": part["wall_time"],
            "name": ["train/accuracy"] * len(steps),
            "value": [math.sin(step * 12.9898 + number) for step in steps],
        }
        next_seq = first + 2 * len(steps)
        groups = [make_groups(seq=next_seq + n, step=step, num_updates=64) for n, step in enumerate(steps[15::16])]
        body = make_batch(
            run_id=run_id,
            first_seq=seq,
            run=make_run(project="old", planned_steps=NUM_STEPS),
            stream=make_stream(started_at=1e9 + number),
            measurements=part,
            metrics=metrics,
            groups=groups,
            last_seq=next_seq + len(groups) - 1,
        )
        seq = next_seq + len(groups)
        async with app.state.sessions.begin() as session:
            await ingestion.accept(session, batch_of(stream_id, BatchBody.model_validate(body, strict=False)))


@pytest.fixture(scope="module")
async def app(new_database: Any) -> AsyncIterator[FastAPI]:
    async with running_app(new_database()) as created:
        yield created


@pytest.fixture(scope="module")
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as opened:
        yield opened


@pytest.fixture(scope="module")
async def old_run(app: FastAPI) -> OldRun:
    histories = [rows_of(range(3, FIRST_ENDED_AT, 4), seed=1), rows_of(range(RESUMED_AT + 3, NUM_STEPS, 4), seed=2)]
    run = OldRun(uuid4(), [uuid4(), uuid4()], histories)
    for number, (stream_id, rows) in enumerate(zip(run.streams, histories, strict=True)):
        await store_stream(app, run.id, stream_id, rows, number)
    async with app.state.sessions.begin() as session:
        # what the run's row says of it is otherwise refreshed a second later
        await stale_windows.refresh(session, run.id)
    await judge_all(app)
    return run


async def answers(client: httpx.AsyncClient, run: OldRun) -> dict[str, Any]:
    found = {}
    for path in OF_BUCKETS:
        answer = await client.get(f"/api/v1/{path.format(run=run.id)}")
        assert answer.status_code == 200, (path, answer.text)
        found[path] = answer.json()
    return found


def forget(app: FastAPI) -> None:
    """What was computed before must not answer for what is there now."""
    from noisescale_server.services.series import layers, sparklines

    app.state.whole_runs = WholeRuns()
    layers._kept.clear()
    sparklines._kept.clear()


async def num_rows(app: FastAPI, run: OldRun) -> dict[str, int]:
    async with app.state.sessions() as session:
        return {
            table: await session.scalar(text(f"SELECT count(*) FROM {table} WHERE run_id = :id"), {"id": run.id})
            for table in ("measurement", "group_measurement", "metric", "rollup", "group_rollup")
        }


def assert_same(found: Any, before: Any, at: str) -> None:
    """Equal, but for the last digits of sums."""
    if isinstance(before, dict):
        assert found.keys() == before.keys(), at
        for name in before:
            assert_same(found[name], before[name], f"{at}.{name}")
    elif isinstance(before, list):
        assert len(found) == len(before), at
        for number, (one, other) in enumerate(zip(found, before, strict=True)):
            assert_same(one, other, f"{at}[{number}]")
    elif isinstance(before, float) and isinstance(found, float):
        assert math.isclose(found, before, rel_tol=AS_LONG_AS, abs_tol=1e-12), f"{at}: {found} was {before}"
    else:
        assert found == before, at


async def fold_everything(app: FastAPI, client: httpx.AsyncClient) -> retention.Round:
    said = await client.put("/api/v1/projects/old/retention", json={"fold_after_days": 30})
    assert said.status_code == 200, said.text
    done = retention.Round()
    while True:
        done = done.plus(await retention.work(app.state.sessions, datetime.now(UTC) + LONG_AFTER))
        if not done.has_more:
            return done


async def test_nine_tenths_of_the_rows_go_and_every_figure_stays(
    app: FastAPI, client: httpx.AsyncClient, old_run: OldRun
) -> None:
    before, rows_before = await answers(client, old_run), await num_rows(app, old_run)
    async with app.state.sessions() as session:
        would = await retention.look(app.state.sessions, datetime.now(UTC) + LONG_AFTER)
    assert would.num_rows == 0, "off by default"

    done = await fold_everything(app, client)
    forget(app)
    after, rows_after = await answers(client, old_run), await num_rows(app, old_run)

    assert rows_after["measurement"] <= 0.12 * rows_before["measurement"]
    assert rows_after["group_measurement"] <= 0.12 * rows_before["group_measurement"]
    assert done.folded.measurements == rows_before["measurement"] - rows_after["measurement"]
    assert done.folded.groups == rows_before["group_measurement"] - rows_after["group_measurement"]
    assert done.folded.metrics == rows_before["metric"] - rows_after["metric"]
    assert rows_after["rollup"] == rows_before["rollup"]
    for path in OF_BUCKETS:
        assert_same(after[path], before[path], path)
    async with app.state.sessions() as session:
        assert not (await ledger.audit(session)).wrong


@pytest.mark.slow
@pytest.mark.parametrize(
    ("low", "high", "max_points", "window"),
    [(3_000, 3_900, 500, None), (8_345, 12_765, 1_000, 100), (19_000, 27_000, 300, 300), (0, 45_055, 1_000, 8)],
)
async def test_a_chart_of_folded_steps_equals_brute_force_over_the_rows_that_were_there(
    app: FastAPI, client: httpx.AsyncClient, old_run: OldRun, low: int, high: int, max_points: int, window: int | None
) -> None:
    await fold_everything(app, client)
    async with app.state.sessions() as session:
        found = await series_service.of_run(
            session, WholeRuns(), old_run.id, low=low, high=high, max_points=max_points, window=window
        )
    assert found.how.level >= 1
    assert found.low is not None
    end = high | 31  # a bucket that the range cuts is shown whole
    expected = brute_force.windows(
        old_run.live,
        level=found.how.level,
        steps_per_point=found.how.steps_per_point,
        window_steps=found.how.window_steps,
        low=found.low,
        high=end,
    )
    assert list(found.points.point) == sorted(expected)
    for one, point in zip(found.estimates, found.points.point, strict=True):
        sums, before = expected[point]
        wanted = estimate(sums, before=before)
        assert (one.num_blocks, one.num_updates, one.state) == (wanted.num_blocks, wanted.num_updates, wanted.state)
        assert one.value is None or one.value == pytest.approx(wanted.value, rel=1e-9)


async def num_updates(app: FastAPI, run: OldRun) -> float:
    """Updates that all points of the run's chart are made of."""
    async with app.state.sessions() as session:
        found = await series_service.of_run(
            session, WholeRuns(), run.id, low=None, high=None, max_points=700, window=None
        )
    return sum(found.points.num_updates)


async def test_late_records_of_folded_steps_are_stored_once_and_counted(
    app: FastAPI, client: httpx.AsyncClient, old_run: OldRun
) -> None:
    await fold_everything(app, client)
    stream_id = old_run.streams[1]
    cursor = (await client.get(f"/api/v1/streams/{stream_id}")).json()
    first = cursor["acked_seq"] + 1
    late = make_batch(
        run_id=old_run.id,
        first_seq=first,
        measurements=make_measurements(first_seq=first, steps=range(31_000, 31_100), global_batch=128.0),
    )
    before = await num_updates(app, old_run)

    answers = [await client.post(f"/api/v1/streams/{stream_id}/batches", json=late) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 200], answers[0].text
    assert await num_updates(app, old_run) == before + 100
    async with app.state.sessions() as session:
        assert not (await ledger.audit(session)).wrong
    done = await fold_everything(app, client)
    assert done.folded.measurements == 100
    async with app.state.sessions() as session:
        assert not (await ledger.audit(session)).wrong


async def test_a_job_that_goes_on_long_after_is_shown_with_what_was_folded(
    app: FastAPI, client: httpx.AsyncClient, old_run: OldRun
) -> None:
    await fold_everything(app, client)
    async with app.state.sessions() as session:
        assert await session.scalar(text("SELECT num_folded FROM stream WHERE id = :id"), {"id": old_run.streams[1]})
    await store_stream(app, old_run.id, uuid4(), rows_of(range(40_000, 47_000, 4), seed=3), 5)
    forget(app)

    run = (await client.get(f"/api/v1/runs/{old_run.id}")).json()

    assert run["noise_scale"]["state"] == "resolved"
    # the bucket in which the new one takes over is shown of both
    assert 47_000 <= await num_updates(app, old_run) <= 47_000 + 100 + 31

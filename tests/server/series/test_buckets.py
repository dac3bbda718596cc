"""Each bucket of the pyramid holds what its rows say, in whatever batches they came."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

import brute_force
from brute_force import Row
from factories import ESTIMATE_SUMS, make_batch, make_measurements
from noisescale_server.api.ingest.streams import batch_of
from noisescale_server.api.ingest.wire_schemas import BatchBody
from noisescale_server.services.ingest import ingestion
from noisescale_server.storage.platform.row_tables import Rollup

BATCHES = [
    [5, 6, 7, 40, 1_100],  # three levels of buckets
    [6, 7],  # the same steps again: what came later counts as last
    [2, 3, 33],  # lower ones: first and minimum move, last does not
    [7, 41, 1_100, 1_099, 40_000, 1_100_000],  # steps that go back within a batch, and buckets of levels 4 and 5
]


def measurements(number: int, steps: Sequence[int]) -> dict[str, list[Any]]:
    """Rows that all differ, each with a flag of its own and a few with nulls."""
    first_seq = 2 + sum(map(len, BATCHES[:number]))
    rows = make_measurements(first_seq=first_seq, steps=steps, log_every=number + 1, seed=number)
    for i in range(len(steps)):
        place = first_seq + i
        rows["flags"][i] = 1 << place
        rows["lr"][i] = 1 / place
        rows["examples"][i] = 1_000 * place
        rows["wall_time"][i] += 100 * place
        rows["global_batch"][i] = None if place % 5 == 0 else 64.0 + 7 * (place % 3)
        if place % 4 == 0:
            rows["sum_loss"][i] = None
            rows["num_loss"][i] = place % 8
        if place % 7 == 0:
            rows["num_loss"][i] = 0
        if place % 6 == 0:
            for name in ESTIMATE_SUMS:
                rows[name][i] = None
    return rows | path_columns(first_seq, len(steps))


def path_columns(first_seq: int, count: int) -> dict[str, list[Any]]:
    """News of the path in two rows of three, some of them without a distance."""
    places = range(first_seq, first_seq + count)
    counts = [place if place % 3 else 0 for place in places]
    known = [place if place % 3 else None for place in places]
    return {
        "num_path_updates": counts,
        "sum_update_sq_norm": [place and 0.5 * place for place in known],
        "update_sq_norm_variance": [place and 0.25 * place for place in known],
        "path_sq_distance": [None if place is None or place % 4 == 0 else 1.5 * place for place in known],
        "path_start": known,
        "momentum": [place and 1 - 1 / place for place in known],
        "num_promised_updates": [2 * count for count in counts],
        "sum_promised_fall": [place and (-0.125) ** (place % 2) * place for place in known],
        "promised_fall_variance": [place and 0.75 * place for place in known],
    }


async def accept(session: AsyncSession, stream_id: UUID, **parts: Any) -> None:
    body = BatchBody.model_validate(make_batch(**parts), strict=False)
    await ingestion.accept(session, batch_of(stream_id, body))


def bucket_of(rows: Sequence[Row]) -> dict[str, Any]:
    """What a bucket of these rows has to hold."""
    known = [row for row in rows if row.values["global_batch"] is not None]
    with_loss = [row for row in rows if row.values["sum_loss"] is not None]
    lossy = [row for row in with_loss if row.values["num_loss"]]
    measured = [row for row in rows if row.has_estimate]
    last = max(rows, key=lambda row: (row.step, row.seq)).values
    batches = [row.values["global_batch"] for row in known]
    losses = [row.values["sum_loss"] / row.values["num_loss"] for row in lossy]
    traces = [row.values["sum_trace_cov"] / row.num_updates for row in measured]
    norms = [row.values["sum_grad_sq_norm"] / row.num_updates for row in measured]
    return {
        "num_rows": len(rows),
        "num_updates": sum(row.num_updates for row in rows),
        "num_estimates": sum(row.num_updates for row in measured),
        **{name: sum(row.values[name] for row in measured) for name in ESTIMATE_SUMS},
        "sum_loss": sum(row.values["sum_loss"] for row in lossy),
        "num_loss": sum(row.values["num_loss"] for row in with_loss),
        "sum_global_batch": sum(row.num_updates * row.values["global_batch"] for row in known),
        "num_global_batch": sum(row.num_updates for row in known),
        **extremes("trace_cov", traces),
        **extremes("grad_sq_norm", norms),
        **extremes("loss", losses),
        **extremes("global_batch", batches),
        "step_first": min(row.step for row in rows),
        "step_last": last["step"],
        "lr_last": last["lr"],
        "examples_last": last["examples"],
        "wall_time_last": last["wall_time"],
        "flags": brute_force.bits(row.values["flags"] for row in rows),
        **path_of(rows),
    }


def path_of(rows: Sequence[Row]) -> dict[str, Any]:
    told = [row for row in rows if row.values["path_sq_distance"] is not None]
    last = max(told, key=lambda row: (row.step, row.seq), default=None)
    ends = ("path_sq_distance", "path_start", "momentum")
    return {
        **{
            name: sum(row.values[name] or 0 for row in rows)
            for name in (
                "num_path_updates",
                "sum_update_sq_norm",
                "update_sq_norm_variance",
                "num_promised_updates",
                "sum_promised_fall",
                "promised_fall_variance",
            )
        },
        "path_step_last": None if last is None else last.step,
        **{f"{name}_last": None if last is None else last.values[name] for name in ends},
    }


def extremes(name: str, values: Sequence[float]) -> dict[str, float | None]:
    return {f"{name}_min": min(values, default=None), f"{name}_max": max(values, default=None)}


@pytest.mark.parametrize("is_one_batch", [False, True], ids=["batch after batch", "in one batch"])
async def test_buckets_of_every_level_hold_exactly_what_their_rows_say(
    session: AsyncSession, is_one_batch: bool
) -> None:
    """Last row of a step, first step, minima, maxima, flags and nulls: each column of each bucket."""
    run_id, stream_id = uuid4(), uuid4()
    batches = [measurements(number, steps) for number, steps in enumerate(BATCHES)]
    if is_one_batch:
        batches = [{name: [value for batch in batches for value in batch[name]] for name in batches[0]}]
    for rows in batches:
        first_seq = rows["seq"][0]
        await accept(session, stream_id, run_id=run_id, first_seq=first_seq - (first_seq == 2), measurements=rows)

    stored = (await session.scalars(select(Rollup).where(Rollup.run_id == run_id))).all()

    all_rows = [row for rows in batches for row in brute_force.rows_of(0, rows)]
    places = {(level, row.step // 32**level) for level in range(1, 6) for row in all_rows}
    assert sorted((one.level, one.bucket) for one in stored) == sorted(places)
    assert {(one.stream_id, one.series) for one in stored} == {(stream_id, "simple")}
    for one in stored:
        expected = bucket_of([row for row in all_rows if row.step // 32**one.level == one.bucket])
        for name, value in expected.items():
            found = getattr(one, name)
            assert found == (None if value is None else pytest.approx(value, rel=1e-12)), (one.level, one.bucket, name)

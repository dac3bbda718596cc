"""Each bucket of a layer holds what its records say, in whatever batches they came."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from factories import ESTIMATE_SUMS, make_batch, make_groups
from noisescale_server.api.ingest.streams import batch_of
from noisescale_server.api.ingest.wire_schemas import BatchBody
from noisescale_server.services.ingest import ingestion
from noisescale_server.storage.platform.row_tables import GroupRollup

NAMES = ("embedding", "head")
BATCHES = [[2_000, 2_010, 40_000], [2_010, 2_005], [1_500, 3_000_000]]
"""Steps of the records: the same bucket again, steps that go back, and a lower first step."""


def record(seq: int, step: int) -> dict[str, Any]:
    """One group record; of every third the first layer holds no estimate."""
    found = make_groups(seq=seq, step=step, names=NAMES, num_updates=5 + seq, seed=seq)
    found["wall_time"] += 1_000 * seq
    if seq % 3 == 0:
        for name in ESTIMATE_SUMS:
            found[name][0] = None
    return found


def bucket_of(records: Sequence[dict[str, Any]], layer: int) -> dict[str, Any]:
    """What a bucket of these records has to hold of a layer."""
    measured = [one for one in records if one["sum_trace_cov"][layer] is not None]
    blocks = [
        (one["num_updates"][layer], one["sum_trace_cov"][layer], one["sum_grad_sq_norm"][layer]) for one in measured
    ]
    moments = ESTIMATE_SUMS[2:]
    return {
        "num_blocks": len(blocks),
        "num_updates": sum(n for n, _, _ in blocks),
        "trace_cov": sum(x for _, x, _ in blocks),
        "grad_sq_norm": sum(y for _, _, y in blocks),
        "trace_cov_sq": sum(x * x for _, x, _ in blocks),
        "grad_sq_norm_sq": sum(y * y for _, _, y in blocks),
        "trace_cov_grad_sq_norm": sum(x * y for _, x, y in blocks),
        "weighted_trace_cov": sum(n * x for n, x, _ in blocks),
        "weighted_grad_sq_norm": sum(n * y for n, _, y in blocks),
        "num_updates_sq": sum(n * n for n, _, _ in blocks),
        **{name: sum(one[name][layer] for one in measured) for name in moments},
        "place": min([one["step"], one["seq"], layer + 1] for one in records),
        "trace_cov_min": min((x / n for n, x, _ in blocks), default=None),
        "trace_cov_max": max((x / n for n, x, _ in blocks), default=None),
        "grad_sq_norm_min": min((y / n for n, _, y in blocks), default=None),
        "grad_sq_norm_max": max((y / n for n, _, y in blocks), default=None),
        "step_last": max(one["step"] for one in records),
        "wall_time_last": max(one["wall_time"] for one in records),
    }


async def accept(session: AsyncSession, run_id: UUID, stream_id: UUID, groups: list[dict[str, Any]]) -> None:
    first_seq = groups[0]["seq"]
    parts = {"first_seq": first_seq - (first_seq == 2), "groups": groups}
    body = BatchBody.model_validate(make_batch(run_id=run_id, **parts), strict=False)
    await ingestion.accept(session, batch_of(stream_id, body))


@pytest.mark.parametrize("is_one_batch", [False, True], ids=["batch after batch", "in one batch"])
async def test_buckets_of_a_layer_hold_exactly_what_their_records_say(
    session: AsyncSession, is_one_batch: bool
) -> None:
    run_id, stream_id = uuid4(), uuid4()
    batches: list[list[dict[str, Any]]] = []
    for steps in BATCHES:
        first_seq = 2 + sum(map(len, batches))
        batches.append([record(first_seq + i, step) for i, step in enumerate(steps)])
    records = [one for batch in batches for one in batch]
    for groups in [records] if is_one_batch else batches:
        await accept(session, run_id, stream_id, groups)

    stored = (await session.scalars(select(GroupRollup).where(GroupRollup.run_id == run_id))).all()

    places = {(level, name, one["step"] // 32**level) for level in range(2, 6) for one in records for name in NAMES}
    assert sorted((one.level, one.name, one.bucket) for one in stored) == sorted(places)
    assert {one.stream_id for one in stored} == {stream_id}
    for one in stored:
        inside = [record for record in records if record["step"] // 32**one.level == one.bucket]
        for name, value in bucket_of(inside, NAMES.index(one.name)).items():
            found = getattr(one, name)
            assert found == (None if value is None else pytest.approx(value, rel=1e-12)), (one.level, one.bucket, name)

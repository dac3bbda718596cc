"""What folding and purging do to files on disk: nothing by themselves; their place is used again, or given back."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest
from fastapi import FastAPI
from sqlalchemy import make_url

from app_in_process import client_of, running_app
from factories import make_batch, make_groups, make_measurements, make_run
from noisescale_server.api.ingest.streams import batch_of
from noisescale_server.api.ingest.wire_schemas import BatchBody
from noisescale_server.embedded import EmbeddedPostgres
from noisescale_server.services import retention
from noisescale_server.services.ingest import ingestion
from noisescale_server.storage.platform.row_tables import GONE_LATER

NUM_STEPS, A_BATCH = 102_400, 1_024
LAYERS = tuple(f"blocks.{number}" for number in range(50))
MEBIBYTE = 1 << 20
WITH_PARTITIONS = """
SELECT pg_total_relation_size($1::text::regclass)
  + coalesce((SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits WHERE inhparent = $1::text::regclass), 0)
"""
SAME_PARTITION = """
SELECT bool_or(satisfies_hash_partition('measurement'::regclass, 16, part, $1::uuid)
  AND satisfies_hash_partition('measurement'::regclass, 16, part, $2::uuid)) FROM generate_series(0, 15) AS part
"""


async def store(app: FastAPI, run_id: UUID) -> None:
    """A run of 102,400 steps: a row and a metric a step, 50 layers every 128 steps."""
    stream_id, seq = uuid4(), 1
    for start in range(0, NUM_STEPS, A_BATCH):
        first, steps = seq + (start == 0), range(start, start + A_BATCH)
        measured = make_measurements(first_seq=first, steps=steps, seed=start)
        after = first + A_BATCH
        metrics = {
            "seq": list(range(after, after + A_BATCH)),
            "step": list(steps),
            "wall_time": measured["wall_time"],
            "name": ["accuracy"] * A_BATCH,
            "value": measured["sum_loss"],
        }
        after += A_BATCH
        groups = [make_groups(seq=after + n, step=start + 128 * n + 127, names=LAYERS) for n in range(A_BATCH // 128)]
        body = make_batch(
            run_id=run_id,
            first_seq=seq,
            run=make_run(project="old"),
            measurements=measured,
            metrics=metrics,
            groups=groups,
            last_seq=after + len(groups) - 1,
        )
        seq = after + len(groups)
        async with app.state.sessions.begin() as session:
            await ingestion.accept(session, batch_of(stream_id, BatchBody.model_validate(body, strict=False)))


class Files:
    """The measured tables' files, and the database's owner, who may vacuum them."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self.said: dict[str, float] = {}

    async def look(self, moment: str) -> float:
        sizes = [await self._connection.fetchval(WITH_PARTITIONS, table) for table in GONE_LATER]
        self.said[moment] = round(float(sum(sizes)) / MEBIBYTE, 1)
        return self.said[moment]

    async def beside(self, run_id: UUID) -> UUID:
        """The id of a run whose measurements are in the same partition: a partition's free place is its own.

        It comes behind the first in the indexes: where rows come in front of others pages split in halves, and those of
        a run take twice the place.
        """
        while True:
            other = uuid4()
            if other > run_id and await self._connection.fetchval(SAME_PARTITION, run_id, other):
                return other

    async def vacuum(self, how: str = "") -> None:
        await self._connection.execute(f"VACUUM {how} {', '.join(GONE_LATER)}")


async def work(app: FastAPI, now: datetime) -> retention.Round:
    done = retention.Round()
    while True:
        done = done.plus(await retention.work(app.state.sessions, now))
        if not done.has_more:
            return done


@pytest.mark.slow
async def test_files_stay_as_large_their_place_is_used_again_and_a_full_vacuum_gives_it_back(
    database_url: str, postgres: EmbeddedPostgres
) -> None:
    owner = await asyncpg.connect(postgres.url(str(make_url(database_url).database), driver="postgresql"))
    files = Files(owner)
    async with running_app(database_url, statement_timeout_seconds=60) as app, client_of(app) as client:
        first = uuid4()
        await store(app, first)
        full = await files.look("a run")
        await client.put("/api/v1/projects/old/retention", json={"fold_after_days": 30})
        done = await work(app, datetime.now(UTC) + timedelta(days=31))
        folded = await files.look("folded")
        # emptied pages of indexes are free from the vacuum after the one that finds them, once more was written
        for _ in range(2):
            await files.vacuum()
            await owner.execute("SELECT pg_current_xact_id()")
        await files.look("folded, vacuumed")
        await store(app, await files.beside(first))
        second = await files.look("a second run")
        await files.vacuum("FULL")
        small = await files.look("full vacuum: one folded, one not")
        await client.delete(f"/api/v1/runs/{first}")
        purged = await work(app, datetime.now(UTC))
        await files.vacuum("FULL")
        await files.look("full vacuum: the folded one deleted")
    await owner.close()
    print(files.said, done.sentence, purged.sentence)

    assert folded >= 0.95 * full, "Postgres gives nothing back by itself"
    # without the place of the rows that have gone it would be twice as much
    assert second <= 1.6 * full
    assert small <= 1.25 * full
    assert purged.purged_runs == 1

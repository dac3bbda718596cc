"""A million runs of fifty rows each, in minutes: some are sent as jobs send them, and the others are copies in SQL.

Every table holds of a copy what ingestion has stored of the run that it is a copy of: rows, pyramid, ledger, place. Its
row in `run` has a name, a moment, a project and a noise scale of its own. What is copied in the order of their moments
lies on disk as if it had come so; indexes of measured rows are built afterwards, so they are as tight as after REINDEX.
"""

import asyncio
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID, uuid4

import asyncpg
import httpx
from harness import AS_LOCAL_USER
from payloads import run_batch
from smoke import size
from stored_data import CONFIG, JSON, OPTIMIZERS, Job, Steps, batch_of

ROWS_OF_A_RUN: Final = 50
NUM_TEMPLATES: Final = size(120, 12)
RUNS_OF_A_SWEEP: Final = 20
NUM_PROJECTS, TASKS_OF_A_PROJECT = 20, 5
DAYS: Final = 730
"""The runs are of two years, evenly: an eighth of them is in the 90 days that the page Runs shows by itself."""
COPIED: Final = ("stream", "measurement", "rollup")
"""Tables whose rows are found by run and stream."""
WORDS: Final = ("resnet", "llama", "vit", "conformer", "dota", "unet", "mamba", "bert", "gpt", "wav2vec")


@dataclass(frozen=True, slots=True)
class Shares:
    """How many of the runs there are of what.

    Attributes:
        runs: In all.
        live: That have sent data just now and have not ended.
        trials: Of sweeps, twenty each.
    """

    runs: int
    live: int
    trials: int


async def send_templates(url: str) -> list[Job]:
    """Runs that are stored and judged as any others; the last ten have not ended."""
    jobs = [Job(uuid4(), uuid4()) for _ in range(NUM_TEMPLATES)]
    async with httpx.AsyncClient(base_url=url, headers=AS_LOCAL_USER | JSON, timeout=120) as client:
        for number, job in enumerate(jobs):
            await _send(client, job, number)
    return jobs


async def _send(client: httpx.AsyncClient, job: Job, number: int) -> None:
    batch = float(16 * 2 ** (3 * number % 8))
    steps = Steps(ROWS_OF_A_RUN, noise_scale=float(8 * 2 ** (number % 10)), batch=batch, seed=number)
    task = number % (NUM_PROJECTS * TASKS_OF_A_PROJECT)
    run = {
        "project": f"project {task % NUM_PROJECTS}",
        "task": f"task {task // NUM_PROJECTS}",
        "name": f"template {number}",
        "config": {**CONFIG, "seed": number % 5},
        "planned_steps": 4_000,
        "num_devices": 8,
        "usd_per_device_hour": 2.5,
    }
    stream = json.loads(run_batch(UUID(int=0), name=""))["run"]["stream"]
    head = {"seq": 1, "run": run, "stream": {**stream, "optimizer": OPTIMIZERS[number % len(OPTIMIZERS)]}}
    body = batch_of(job, steps, first_step=0, first_seq=1, head=head)
    (await client.post(f"/api/v1/streams/{job.stream_id}/batches", content=body)).raise_for_status()


_WAITING = "SELECT EXISTS (SELECT FROM run WHERE window_is_stale OR decision_is_stale)"


async def until_judged(database: str) -> None:
    """Return once no run waits for its window or its decision."""
    connection = await asyncpg.connect(database)
    while await connection.fetchval(_WAITING):  # noqa: ASYNC110 - a server says so in its database
        await asyncio.sleep(0.5)
    await connection.close()


_NUMBERED = """
CREATE TEMP TABLE copy ON COMMIT DROP AS
SELECT n, gen_random_uuid() AS run_id, gen_random_uuid() AS stream_id,
  template.run_id AS from_run, template.stream_id AS from_stream,
  CASE WHEN n > $2::bigint - $3::bigint THEN now() ELSE now() - make_interval(secs => (1 - n::float8 / $2) * $4) END
    AS at,
  n > $2::bigint - $3::bigint AS is_live, exp(0.5 * random_normal()) AS factor,
  CASE WHEN n % ($2::bigint / $5::bigint) = 0 THEN n / ($2::bigint / $5::bigint) / $6::bigint END AS sweep
FROM generate_series($7::bigint, $8::bigint) AS n
JOIN unnest($1::uuid[], $9::uuid[]) WITH ORDINALITY AS template(run_id, stream_id, number)
  ON template.number = 1 + n % cardinality($1::uuid[])
"""
_SWEEPS = """
INSERT INTO sweep (id, project_id, task_id, name)
SELECT md5('sweep ' || sweep)::uuid, run.project_id, run.task_id, 'sweep ' || sweep
FROM (SELECT DISTINCT ON (sweep) sweep, from_run FROM copy WHERE sweep IS NOT NULL) AS one
JOIN of_run AS run ON run.id = from_run
ON CONFLICT DO NOTHING
"""
_TRIALS = """
INSERT INTO sweep_run (run_id, sweep_id, is_stored, batch_size, lr, status)
SELECT run_id, md5('sweep ' || sweep)::uuid, true, run.latest_global_batch, 0.1, 'complete'
FROM copy JOIN of_run AS run ON run.id = from_run WHERE sweep IS NOT NULL
"""
# of a hundred runs that have ended 85 say so, ten have failed, and five have crashed; one of a hundred is archived
_OF_RUN: Final = {
    "id": "copy.run_id",
    "name": "(ARRAY[" + ", ".join(f"'{word}'" for word in WORDS) + "])[1 + n % 10] || '-b' || run.latest_global_batch"
    " || '-' || substr(md5(n::text), 1, 6) || '-s' || n % 5",
    "created_at": "copy.at - interval '1 hour'",
    "updated_at": "copy.at",
    "heard_at": "copy.at",
    "newest_stream_id": "copy.stream_id",
    "finished_at": "CASE WHEN NOT is_live AND n % 100 < 95 THEN copy.at END",
    "finish_status": "CASE WHEN is_live OR n % 100 >= 95 THEN NULL WHEN n % 100 < 85 THEN 'finished' ELSE 'failed' END",
    "archived": "NOT is_live AND n % 101 = 0",
    "noise_scale_value": "noise_scale_value * factor",
    "noise_scale_low": "noise_scale_low * factor",
    "noise_scale_high": "noise_scale_high * factor",
    "misfit": "CASE WHEN noise_scale_state = 'resolved' AND noise_scale_value > 0 AND latest_global_batch > 0"
    " THEN abs(ln(latest_global_batch / (noise_scale_value * factor))) END",
    "decision_saving": "decision_saving * least(factor, 1)",
    "trial_of": "CASE WHEN sweep IS NOT NULL THEN md5('sweep ' || sweep)::uuid END",
}


async def _columns(connection: asyncpg.Connection, table: str, changed: dict[str, str]) -> str:
    rows = await connection.fetch(
        "SELECT attname FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped"
        " ORDER BY attnum",
        table,
    )
    names = [row["attname"] for row in rows]
    chosen = ", ".join(changed.get(name, f"{table}.{name}") for name in names)
    return f"INSERT INTO {table} ({', '.join(names)}) SELECT {chosen}"


async def copy(database: str, jobs: Sequence[Job], shares: Shares, *, at_once: int = 10_000) -> None:
    """Make all runs but the templates, the oldest first; several connections share the work."""
    connection = await asyncpg.connect(database, command_timeout=None)
    dropped = await _without_indexes(connection)
    begins = iter(range(1, shares.runs - len(jobs) + 1, at_once))

    async def work() -> None:
        mine = await asyncpg.connect(database, command_timeout=None)
        await mine.execute("SET synchronous_commit = off; SET work_mem = '64MB'")
        statements = await _statements(mine, [job.run_id for job in jobs])
        for begin in begins:
            end = min(begin + at_once - 1, shares.runs - len(jobs))
            await _copy_some(mine, statements, jobs, shares, begin, end)
            if begin // at_once % 10 == 0:
                print(f"{end:,} runs", flush=True)
        await mine.close()

    await asyncio.gather(work(), work())
    await _index_again(database, dropped)
    await connection.close()


async def _statements(connection: asyncpg.Connection, templates: Sequence[UUID]) -> list[str]:
    # away from the tables that grow and have no index meanwhile
    for table in ("run", *COPIED):
        key = "id" if table == "run" else "run_id"
        await connection.execute(f"CREATE TEMP TABLE of_{table} (LIKE {table})")
        await connection.execute(f"INSERT INTO of_{table} SELECT * FROM {table} WHERE {key} = ANY ($1)", templates)
        await connection.execute(f"ANALYZE of_{table}")
    by_key = {"run_id": "copy.run_id", "stream_id": "copy.stream_id"}
    found = [
        f"{await _columns(connection, 'run', _OF_RUN)} FROM copy JOIN of_run AS run ON run.id = from_run ORDER BY n",
        "INSERT INTO stream_place (stream_id, run_id) SELECT stream_id, run_id FROM copy ORDER BY n",
        _SWEEPS,
        _TRIALS,
    ]
    for table in COPIED:
        of_stream = {"run_id": "copy.run_id", "id": "copy.stream_id"} if table == "stream" else by_key
        key = "id" if table == "stream" else "stream_id"
        found.append(
            f"{await _columns(connection, table, of_stream)} FROM copy JOIN of_{table} AS {table}"
            f" ON {table}.run_id = copy.from_run AND {table}.{key} = copy.from_stream ORDER BY n"
        )
    return found


async def _copy_some(
    connection: asyncpg.Connection, statements: Sequence[str], jobs: Sequence[Job], shares: Shares, begin: int, end: int
) -> None:
    runs, streams = [job.run_id for job in jobs], [job.stream_id for job in jobs]
    numbers: tuple[Any, ...] = (shares.runs - len(jobs), shares.live, DAYS * 86_400.0, shares.trials, RUNS_OF_A_SWEEP)
    async with connection.transaction():
        await connection.execute(_NUMBERED, runs, *numbers, begin, end, streams)
        await connection.execute("ANALYZE copy")
        for statement in statements:
            await connection.execute(statement)


async def _without_indexes(connection: asyncpg.Connection) -> list[str]:
    """Drop the indexes of measured rows; the statements that make them again."""
    again = []
    for table in ("measurement", "rollup"):
        for row in await connection.fetch(
            "SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS made, indisprimary,"
            " (SELECT conname FROM pg_constraint WHERE conindid = indexrelid) AS key FROM pg_index"
            " WHERE indrelid = $1::regclass ORDER BY 1",
            table,
        ):
            if row["indisprimary"]:
                columns = row["made"].partition("USING btree ")[2]
                again.append(f"ALTER TABLE {table} ADD CONSTRAINT {row['key']} PRIMARY KEY {columns}")
                await connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {row['key']}")
            else:
                again.append(row["made"].replace(" ON ONLY ", " ON "))
                await connection.execute(f"DROP INDEX {row['name']}")
    return again


async def _index_again(database: str, statements: Sequence[str]) -> None:
    async def make(statement: str) -> None:
        mine = await asyncpg.connect(database, command_timeout=None)
        await mine.execute("SET maintenance_work_mem = '512MB'; SET max_parallel_maintenance_workers = 1")
        await mine.execute(statement)
        await mine.close()

    # one after the other: each locks its table
    for statement in statements:
        await make(statement)


def some_names(number: int) -> list[str]:
    """What people search for: a word with a batch, some letters of one name, a word with a seed, what nobody has."""
    draw = random.Random(number)
    rare = [f"{draw.randrange(16**4):04x}" for _ in range(3)]
    return [f"{WORDS[number % 10]}-b128", *rare, "conformer-b1024.0-", "no run is called so"]

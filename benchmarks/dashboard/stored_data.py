"""What the dashboard is measured on: many runs of all kinds, sweeps, and one run of millions of steps.

The many runs come over HTTP as jobs send them, so that every column of theirs is the server's own.
"""

import asyncio
import json
import math
import random
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import httpx

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmark_comparison import add_sweep
from benchmark_series import fill as fill_long_run
from harness import AS_LOCAL_USER
from payloads import STARTED, run_batch

from noisescale_server.storage.series import group_pyramid

JSON = {"Content-Type": "application/json"}
NUM_PROJECTS, NUM_TASKS = 10, 30
NUM_SWEEPS = 12
NUM_LAYERS, STEPS_PER_GROUP_RECORD, STEPS_PER_EVALUATION = 24, 100, 1_000
"""A job of ten steps a second that runs for eleven days sends a record of its layers every ten seconds."""
OPTIMIZERS = ("SGD", "Adam", "AdamW", "Muon")
CONFIG = {f"parameter_{number}": number / 7 for number in range(40)}
OLDEST_DAYS = 120


@dataclass(frozen=True, slots=True)
class Job:
    """A run and the stream that writes it."""

    run_id: UUID
    stream_id: UUID


@dataclass(frozen=True, slots=True)
class Stored:
    """What there is.

    Attributes:
        long_run: The run of millions of steps.
        jobs: Runs that go on sending.
        sweep_ids: Sweeps over batch sizes.
        steps: Of the long run.
        steps_of_each: Of every other run.
    """

    long_run: Job
    jobs: tuple[Job, ...]
    sweep_ids: tuple[str, ...]
    steps: int
    steps_of_each: int


class Steps:
    """Rows of consecutive steps as the client sends them; what costs time to write is written once."""

    def __init__(self, num_rows: int, *, noise_scale: float, batch: float, seed: int) -> None:
        rng = random.Random(seed)
        trace = [rng.gauss(noise_scale, 0.1 * noise_scale) for _ in range(num_rows)]
        grad = [rng.gauss(1, 0.3) for _ in range(num_rows)]
        self.num_rows, self._batch = num_rows, batch
        fixed: dict[str, list[float]] = {
            "num_updates": [1] * num_rows,
            "micro_batch_size": [batch / 8] * num_rows,
            "num_micro_batches": [8] * num_rows,
            "global_batch": [batch] * num_rows,
            "sum_trace_cov": trace,
            "sum_grad_sq_norm": grad,
            "sum_trace_cov_sq": [x * x for x in trace],
            "sum_grad_sq_norm_sq": [y * y for y in grad],
            "sum_trace_cov_grad_sq_norm": [x * y for x, y in zip(trace, grad, strict=True)],
            "sum_loss": [2.5 - 0.5 * row / num_rows + rng.gauss(0, 0.05) for row in range(num_rows)],
            "num_loss": [1] * num_rows,
            "lr": [0.1] * num_rows,
            "flags": [0] * num_rows,
        }
        self._fixed = json.dumps(fixed)[1:-1]

    def measurements(self, first_step: int, first_seq: int) -> str:
        """The part `measurements` of a batch, as JSON."""
        steps = range(first_step, first_step + self.num_rows)
        moving = {
            "seq": list(range(first_seq, first_seq + self.num_rows)),
            "step": list(steps),
            "wall_time": [STARTED + 0.1 * step for step in steps],
            "examples": [round(self._batch * (step + 1)) for step in steps],
        }
        return f"{{{json.dumps(moving)[1:-1]}, {self._fixed}}}"


def batch_of(job: Job, steps: Steps, *, first_step: int, first_seq: int, head: dict[str, Any] | None = None) -> bytes:
    """A batch of steps; with a `head` it begins with the run record."""
    measurements = steps.measurements(first_step, first_seq + (head is not None))
    body = {
        "proto": 1,
        "run_id": str(job.run_id),
        "first_seq": first_seq,
        "last_seq": first_seq + steps.num_rows - 1 + (head is not None),
        "crc32": zlib.crc32(measurements.encode()),
        "sent_at": "2026-11-20T13:02:40Z",
        **({"run": head} if head else {}),
    }
    return f'{json.dumps(body)[:-1]}, "measurements": {measurements}}}'.encode()


def head_of(number: int) -> dict[str, Any]:
    """The run record of the n-th run: projects, tasks, optimizers, tags and configs of all kinds."""
    task = number % NUM_TASKS
    run = {
        "project": f"project {task % NUM_PROJECTS}",
        "task": f"task {task}",
        "name": f"run {number} of task {task}",
        "tags": ["even" if number % 2 == 0 else "odd"],
        "config": {**CONFIG, "seed": number % 5, "width": 128 << (number % 4)},
        "planned_steps": 4_000,
        "num_devices": 8,
        "usd_per_device_hour": 2.5,
    }
    stream = json.loads(run_batch(UUID(int=0), name=""))["run"]["stream"]
    return {"seq": 1, "run": run, "stream": {**stream, "optimizer": OPTIMIZERS[number % len(OPTIMIZERS)]}}


def kinds_of_runs(steps_of_each: int) -> tuple[Steps, ...]:
    """Twenty kinds: noise scales from far below to far above the batch, some too short to be resolved."""
    return tuple(
        Steps(
            steps_of_each if kind % 7 else 6,
            noise_scale=float(8 * 2 ** (kind % 10)),
            batch=float(16 * 2 ** (3 * kind % 8)),
            seed=kind,
        )
        for kind in range(20)
    )


async def send_runs(url: str, num_runs: int, steps_of_each: int) -> list[Job]:
    """The jobs, each with its steps stored."""
    kinds = kinds_of_runs(steps_of_each)
    numbers = iter(range(num_runs))
    jobs: list[Job] = [Job(uuid4(), uuid4()) for _ in range(num_runs)]

    async def send(client: httpx.AsyncClient) -> None:
        for number in numbers:
            body = batch_of(jobs[number], kinds[number % 20], first_step=0, first_seq=1, head=head_of(number))
            path = f"/api/v1/streams/{jobs[number].stream_id}/batches"
            (await client.post(path, content=body, headers=AS_LOCAL_USER | JSON)).raise_for_status()

    async with httpx.AsyncClient(base_url=url, headers=AS_LOCAL_USER, timeout=120) as client:
        await asyncio.gather(*(send(client) for _ in range(4)))
    return jobs


_AGES = """
UPDATE run SET
  updated_at = now() - make_interval(secs => power(random(), 2) * $2::int * 86400),
  finish_status = (ARRAY['finished', 'finished', 'finished', 'failed', NULL])[1 + (random() * 4)::int],
  finished_at = now(), archived = random() < 0.1
WHERE NOT id = ANY ($1::uuid[])
"""
_AN_HOUR_OLD = "UPDATE run SET created_at = now() - interval '1 hour' WHERE id = ANY ($1::uuid[])"
_LAYERS = """
INSERT INTO group_measurement (run_id, stream_id, seq, step, wall_time, names, num_updates, sum_trace_cov,
  sum_grad_sq_norm, sum_trace_cov_sq, sum_grad_sq_norm_sq, sum_trace_cov_grad_sq_norm)
SELECT $1, $2, $3::bigint + 2 + i, (i + 1) * $4::bigint - 1, 1.79e9 + i * $4::bigint * 0.1, names, n, x, y, xx, yy, xy
FROM generate_series(0, $3::bigint / $4::bigint - 1) AS i, LATERAL (
  SELECT array_agg('blocks.' || layer || '.weight' ORDER BY layer) AS names,
    array_agg(10::bigint) AS n, array_agg(x) AS x, array_agg(y) AS y, array_agg(0.11 * x * x) AS xx,
    array_agg(0.11 * y * y) AS yy, array_agg(0.1 * x * y) AS xy
  FROM (
    SELECT layer, 10 * (layer + 1) * (0.9 + 0.2 * random() + 0 * i) AS x, 0.5 * (0.8 + 0.4 * random()) AS y
    FROM generate_series(1, $5::int) AS layer
  ) AS one
) AS record
"""
_EVALUATIONS = """
INSERT INTO metric (run_id, stream_id, seq, name, step, wall_time, value)
SELECT $1, $2, $3::bigint + $3::bigint / $4::bigint + 2 + i, name, (i + 1) * $5::bigint - 1,
  1.79e9 + i * $5::bigint * 0.1, 2 + 1.0 / (i + 1) + 0.01 * random()
FROM generate_series(0, $3::bigint / $5::bigint - 1) AS i, unnest(ARRAY['eval/accuracy', 'eval/loss']) AS name
"""
_CURSOR = """
UPDATE stream SET next_seq = next_seq + $3::bigint, num_stored = num_stored + $3::bigint WHERE run_id = $1 AND id = $2
"""


async def store_long_run(url: str, database: str, steps: int) -> Job:
    """A run whose steps, layers and evaluations are made in SQL; a batch of its own then refreshes its row."""
    job = Job(uuid4(), uuid4())
    body = run_batch(job.run_id, name="ten million steps", project="project 0")
    async with httpx.AsyncClient(base_url=url, headers=AS_LOCAL_USER, timeout=120) as client:
        path = f"/api/v1/streams/{job.stream_id}/batches"
        (await client.post(path, content=body, headers=AS_LOCAL_USER | JSON)).raise_for_status()
    await fill_long_run(database, job.run_id, job.stream_id, steps)
    connection = await asyncpg.connect(database)
    keys, num_records = (job.run_id, job.stream_id), steps // STEPS_PER_GROUP_RECORD
    await connection.execute(_LAYERS, *keys, steps, STEPS_PER_GROUP_RECORD, NUM_LAYERS)
    records = "SELECT * FROM group_measurement WHERE run_id = $1"
    await connection.execute(group_pyramid.fold(records), job.run_id, timeout=600)
    await connection.execute(_EVALUATIONS, *keys, steps, STEPS_PER_GROUP_RECORD, STEPS_PER_EVALUATION)
    await connection.execute(_CURSOR, *keys, num_records + steps // STEPS_PER_EVALUATION)
    await connection.close()
    return job


def seq_after(stored_steps: int) -> int:
    """The next number in the long run's stream once so many of its steps are stored."""
    return 2 + stored_steps + stored_steps // STEPS_PER_GROUP_RECORD + stored_steps // STEPS_PER_EVALUATION


async def store_sweeps(url: str) -> tuple[str, ...]:
    """Ids of sweeps of twenty runs with three targets, each with one run that is stored."""
    rng = random.Random(1)
    async with httpx.AsyncClient(base_url=url, headers=AS_LOCAL_USER, timeout=120) as client:
        for number in range(NUM_SWEEPS):
            await add_sweep(client, f"project {number % NUM_PROJECTS}", f"task {number}", rng)
        ladder = [await _add_ladder(client, rng, seed) for seed in range(2)]
        answer = (await client.get("/api/v1/sweeps")).raise_for_status().json()
    listed = [sweep["id"] for sweep in answer["sweeps"]]
    return (*ladder, *(one for one in listed if one not in ladder))


async def _add_ladder(client: httpx.AsyncClient, rng: random.Random, seed: int) -> str:
    """A sweep as people make them: six targets, seven batch sizes, five rates, three seeds."""
    body = {"project": "project 0", "task": f"task {10 * seed}", "targets": [0.5, 0.45, 0.42, 0.4, 0.38, 0.36]}
    sweep_id: str = (await client.post("/api/v1/sweeps", json=body | {"optimizer": "AdamW"})).json()["id"]
    runs = list(_grid_of_curves(rng))
    (await client.post(f"/api/v1/sweeps/{sweep_id}/runs", json={"runs": runs})).raise_for_status()
    return sweep_id


def _grid_of_curves(rng: random.Random) -> Iterator[dict[str, Any]]:
    evaluations = sorted({round(1.1**power) for power in range(125)})
    for batch_size in (16, 32, 64, 128, 256, 512, 1024):
        for rate in (0.025, 0.05, 0.1, 0.2, 0.4):
            for seed in range(3):
                off = 1 + math.log2(rate / (0.1 * batch_size / (batch_size + 256))) ** 2 / 8
                needed = 100 * (1 + 256 / batch_size) * off * math.exp(0.03 * rng.gauss(0, 1))
                steps = [step for step in evaluations if step < 6 * needed]
                values = [0.3 + 0.2 * (step / needed) ** -0.5 for step in steps]
                yield {"batch_size": batch_size, "lr": rate, "seed": seed, "steps": steps, "values": values}


async def store(url: str, database: str, *, num_runs: int, steps_of_each: int, steps: int, num_jobs: int) -> Stored:
    """Everything; the first half of the jobs that go on began an hour ago, the others now."""
    jobs = await send_runs(url, num_runs, steps_of_each)
    going_on = tuple(job for number, job in enumerate(jobs) if number % 20 % 7)[:num_jobs]
    connection = await asyncpg.connect(database)
    await connection.execute(_AGES, [job.run_id for job in going_on], OLDEST_DAYS)
    await connection.execute(_AN_HOUR_OLD, [job.run_id for job in going_on[: num_jobs // 2]])
    await connection.close()
    long_run = await store_long_run(url, database, steps)
    sweep_ids = await store_sweeps(url)
    connection = await asyncpg.connect(database)
    await connection.execute("ANALYZE")
    await connection.close()
    return Stored(long_run, going_on, sweep_ids, steps, steps_of_each)

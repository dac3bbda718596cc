"""GET /api/v1/comparison with 10,000 runs in 100 tasks that have a sweep each: the first look, and later ones."""

import argparse
import asyncio
import math
import random
import time
from typing import Any
from uuid import uuid4

import httpx
from harness import AS_LOCAL_USER, percentile, server
from payloads import MeasurementBatches, run_batch
from results_file import Figure, write
from smoke import size

TARGET = "p50 at most 50 ms"
NUM_PROJECTS, NUM_TASKS = size((10, 100), (4, 24))
BATCH_SIZES = (16, 64, 256, 1024, 4096)
GRID = sorted({round(1.1**power) for power in range(110)})


def curve(batch_size: int, seed: int, rng: random.Random) -> dict[str, Any]:
    """A loss that meets 0.5 after the steps of theory, of a critical batch of 256."""
    needed = 100 * (1 + 256 / batch_size) * math.exp(0.03 * rng.gauss(0, 1))
    steps = [step for step in GRID if step < 1.4 * needed]
    values = [0.5 * (step / needed) ** -0.3 for step in steps]
    return {"batch_size": batch_size, "lr": 0.1, "seed": seed, "steps": steps, "values": values}


async def fill(url: str, num_runs: int) -> None:
    """Runs without rows but for one in each task, which is in the task's sweep."""
    rng = random.Random(0)
    numbers = iter(range(num_runs))

    async def create(client: httpx.AsyncClient) -> None:
        for number in numbers:
            task = number % NUM_TASKS
            body = {"project": f"project {task % NUM_PROJECTS}", "task": f"task {task}", "name": f"run {number}"}
            (await client.post("/api/v1/runs", json=body)).raise_for_status()

    async with httpx.AsyncClient(base_url=url, headers=AS_LOCAL_USER, timeout=60) as client:
        await asyncio.gather(*(create(client) for _ in range(8)))
        for task in range(NUM_TASKS):
            await add_sweep(client, f"project {task % NUM_PROJECTS}", f"task {task}", rng)


async def add_sweep(client: httpx.AsyncClient, project: str, task: str, rng: random.Random) -> None:
    """A sweep of five batch sizes with four seeds, one run of them stored with its rows."""
    run_id, stream = uuid4(), f"/api/v1/streams/{uuid4()}/batches"
    run = {"id": str(run_id), "project": project, "task": task}
    (await client.post("/api/v1/runs", json=run)).raise_for_status()
    batches = (
        run_batch(run_id, name="planted", project=project),
        MeasurementBatches(run_id, 250, rng.randrange(10**6)).body(0),
    )
    for content, encoding in zip(batches, ("identity", "gzip"), strict=True):
        headers = {"Content-Type": "application/json"} | ({"Content-Encoding": encoding} if encoding == "gzip" else {})
        (await client.post(stream, content=content, headers=headers)).raise_for_status()
    body = {"project": project, "task": task, "targets": [0.5]}
    sweep_id = (await client.post("/api/v1/sweeps", json=body)).raise_for_status().json()["id"]
    runs = [curve(batch_size, seed, rng) for batch_size in BATCH_SIZES for seed in range(4)]
    runs.append({"run_id": str(run_id), "batch_size": 256, "lr": 0.1})
    (await client.post(f"/api/v1/sweeps/{sweep_id}/runs", json={"runs": runs})).raise_for_status()


def measure(url: str, repeats: int) -> list[Figure]:
    """The first look, which fits every sweep, and p50 and p99 of later ones."""
    figures = []
    with httpx.Client(base_url=url, headers=AS_LOCAL_USER, timeout=300) as client:
        for name, query in (("one project", {"project": "project 3"}), ("all projects", {})):
            seconds = []
            for _ in range(repeats + 1):
                start = time.perf_counter()
                answer = client.get("/api/v1/comparison", params=query).raise_for_status()
                seconds.append(time.perf_counter() - start)
            assert answer.json()["statistics"] is not None, "every task has both numbers"
            figures.append(Figure(f"{name}, first look", 1000 * seconds[0], "ms"))
            figures.append(Figure(f"{name}, p50", 1000 * percentile(seconds[1:], 0.5), "ms", TARGET))
            figures.append(Figure(f"{name}, p99", 1000 * percentile(seconds[1:], 0.99), "ms"))
    return figures


def main() -> None:
    """Run it and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=size(10_000, 50))
    parser.add_argument("--repeats", type=int, default=size(50, 2))
    arguments = parser.parse_args()
    with server() as url:
        asyncio.run(fill(url, arguments.runs))
        write("comparison", measure(url, arguments.repeats))


if __name__ == "__main__":
    main()

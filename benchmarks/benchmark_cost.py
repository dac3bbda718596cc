"""The board of time and cost over 1,000 own runs: again and again, and while one of the runs logs."""

import argparse
import asyncio
import random
import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid5

import httpx
from harness import AS_LOCAL_USER, percentile, server
from payloads import STARTED
from results_file import Figure, write
from smoke import size

TARGET = "≤ 50 ms"
SPACE = UUID("6f2f0c2e-6d0e-4a6e-9a8f-0d8b6f3d2a11")
NUM_EVALUATIONS, STEPS_BETWEEN, SECONDS_BETWEEN = 50, 10, 60.0
BY_METRIC: dict[str, Any] = {"target": 0.9, "metric": "accuracy", "goal": "max"}
BY_LOSS: dict[str, Any] = {"target": 1.6}


def batch(number: int, *, seq: int = 1) -> dict[str, Any]:
    """All that a run logs in its 50 minutes; from a later record on one value more."""
    first = seq == 1
    rng, began = random.Random(number), STARTED + 3600.0 * number
    steps = [place * STEPS_BETWEEN for place in range(NUM_EVALUATIONS)] if first else [STEPS_BETWEEN * seq]
    best = rng.randrange(20, 60)
    body: dict[str, Any] = {
        "proto": 1, "run_id": str(uuid5(SPACE, f"run {number}")), "crc32": 1, "sent_at": "2026-11-20T13:02:40Z",
    }  # fmt: skip
    first_seq, seq = seq, seq + first
    rows = {
        "seq": list(range(seq, seq + len(steps))), "step": steps, "wall_time": [began + 6.0 * at for at in steps],
        "num_updates": [STEPS_BETWEEN] * len(steps), "examples": [256 * (at + 1) for at in steps],
        "micro_batch_size": [32.0] * len(steps), "num_micro_batches": [8] * len(steps),
        "global_batch": [256.0] * len(steps), "sum_trace_cov": [100.0] * len(steps),
        "sum_grad_sq_norm": [1.0] * len(steps), "sum_trace_cov_sq": [1e4] * len(steps),
        "sum_grad_sq_norm_sq": [1.0] * len(steps), "sum_trace_cov_grad_sq_norm": [100.0] * len(steps),
        "sum_loss": [STEPS_BETWEEN * rng.uniform(1, 2) for _ in steps], "num_loss": [STEPS_BETWEEN] * len(steps),
        "lr": [0.1] * len(steps), "flags": [0] * len(steps),
    }  # fmt: skip
    seq += len(steps)
    metrics: dict[str, list[Any]] = {"seq": [], "step": [], "wall_time": [], "name": [], "value": []}
    for place, at in enumerate(steps):
        for key, value in (("seq", seq + place), ("step", at), ("wall_time", began + 6.0 * at), ("name", "accuracy"),
                           ("value", min(0.99, 0.9 * at / STEPS_BETWEEN / best))):  # fmt: skip
            metrics[key].append(value)
    if first:
        about = {"project": f"project {number % 10}", "task": "digits", "name": f"run {number}", "num_devices": 8,
                 "device": "A100", "usd_per_device_hour": 2.0,
                 "config": {"bf16": True, **{f"parameter_{place}": place / 7 for place in range(40)}}}  # fmt: skip
        stream = {"estimator": "micro_batches", "kind": "simple", "unit": "examples", "units_per_example": 1,
                  "loss_reduction": "mean_over_examples", "optimizer": "SGD", "batch_size_source": "argument",
                  "rank": 0, "host": None, "client_version": "0.1.0", "started_at": began}  # fmt: skip
        body["run"] = {"seq": 1, "run": about, "stream": stream}
    return body | {
        "measurements": rows, "metrics": metrics, "first_seq": first_seq, "last_seq": seq + len(steps) - 1,
    }  # fmt: skip


async def fill(url: str, num_runs: int) -> None:
    """So many runs, each of one process."""
    numbers = iter(range(num_runs))

    async def send(client: httpx.AsyncClient, waiting: Iterator[int]) -> None:
        for number in waiting:
            path = f"/api/v1/streams/{uuid5(SPACE, f'stream {number}')}/batches"
            (await client.post(path, json=batch(number))).raise_for_status()

    async with httpx.AsyncClient(base_url=url, headers=AS_LOCAL_USER, timeout=60) as client:
        await asyncio.gather(*(send(client, numbers) for _ in range(4)))


def times(client: httpx.Client, query: dict[str, Any], repeats: int, *, logs: bool) -> list[float]:
    """Seconds of each request; where a run logs, after a batch of it."""
    seconds = []
    known = client.get(f"/api/v1/streams/{uuid5(SPACE, 'stream 0')}").raise_for_status().json()["acked_seq"] + 1
    for _ in range(repeats):
        if logs:
            path = f"/api/v1/streams/{uuid5(SPACE, 'stream 0')}/batches"
            sent = batch(0, seq=known)
            client.post(path, json=sent).raise_for_status()
            known = sent["last_seq"] + 1
        start = time.perf_counter()
        client.get("/api/v1/cost/leaderboard", params=query).raise_for_status()
        seconds.append(time.perf_counter() - start)
    return seconds


def measure(url: str, repeats: int) -> list[Figure]:
    """p50 and p99 of each board."""
    figures = []
    with httpx.Client(base_url=url, headers=AS_LOCAL_USER, timeout=60) as client:
        for name, query, logs in (
            ("by a metric", BY_METRIC, False),
            ("by the loss", BY_LOSS, False),
            ("by a metric, a run logs", BY_METRIC, True),
        ):
            times(client, query, 1, logs=False)
            seconds = times(client, query, repeats, logs=logs)
            figures.append(Figure(f"{name}, p50", 1000 * percentile(seconds, 0.5), "ms", TARGET))
            figures.append(Figure(f"{name}, p99", 1000 * percentile(seconds, 0.99), "ms"))
    return figures


def main() -> None:
    """Run it and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=size(1_000, 12))
    parser.add_argument("--repeats", type=int, default=size(100, 2))
    arguments = parser.parse_args()
    with server() as url:
        asyncio.run(fill(url, arguments.runs))
        write("cost", measure(url, arguments.repeats))


if __name__ == "__main__":
    main()

"""A recommendation over REST, among 10,000 runs: asked for the first time, again, with limits, and after new data."""

import argparse
import asyncio
import json
import os
import random
import time
from typing import Any
from uuid import UUID, uuid4

import httpx
from benchmark_run_list import create_runs
from harness import AS_LOCAL_USER, percentile, server
from payloads import STARTED
from results_file import Figure, write
from smoke import size

TARGET = "p50 at most 10 ms"
STEPS_PER_BATCH = 500
LIMITS: dict[str, Any] = {
    "max_hours": 2.0,
    "max_usd": 500.0,
    "examples_per_device": 16,
    "usd_per_hour_sooner": 20.0,
    "batch_size": [128, 512, 2048, 8192],
}


def run_batch(run_id: UUID, *, steps: int, planned_steps: int, first_step: int = 0) -> bytes:
    """A run with its first steps, or steps that follow: 256 examples each, noise scale about 1,000."""
    rng = random.Random(f"{run_id} {first_step}")
    rows = range(first_step, first_step + steps)
    trace, grad = [rng.gauss(1000, 100) for _ in rows], [rng.gauss(1, 0.3) for _ in rows]
    measurements = {
        "seq": [step + 2 for step in rows],
        "step": list(rows),
        "num_updates": [1] * steps,
        "wall_time": [STARTED + step for step in rows],
        "examples": [256 * (step + 1) for step in rows],
        "micro_batch_size": [32.0] * steps,
        "num_micro_batches": [8] * steps,
        "global_batch": [256.0] * steps,
        "sum_trace_cov": trace,
        "sum_grad_sq_norm": grad,
        "sum_trace_cov_sq": [x * x for x in trace],
        "sum_grad_sq_norm_sq": [y * y for y in grad],
        "sum_trace_cov_grad_sq_norm": [x * y for x, y in zip(trace, grad, strict=True)],
        "sum_loss": [2.0] * steps,
        "num_loss": [1] * steps,
        "lr": [0.1] * steps,
        "flags": [0] * steps,
    }
    first_seq = 1 if first_step == 0 else first_step + 2
    body: dict[str, Any] = {
        "proto": 1,
        "run_id": str(run_id),
        "first_seq": first_seq,
        "last_seq": first_step + steps + 1,
        "crc32": first_step + 1,
        "sent_at": "2026-11-20T13:02:40Z",
        "measurements": measurements,
    }
    if first_step == 0:
        run = {"project": "asked", "task": "one", "name": str(run_id), "planned_steps": planned_steps}
        stream = {
            "estimator": "micro_batches",
            "kind": "simple",
            "unit": "examples",
            "units_per_example": 1,
            "loss_reduction": "mean_over_examples",
            "optimizer": "AdamW",
            "batch_size_source": "argument",
            "rank": 0,
            "host": None,
            "client_version": "0.1.0",
            "started_at": STARTED,
        }
        price = {"num_devices": 8, "usd_per_device_hour": 2.5}
        body["run"] = {"seq": 1, "run": run | price, "stream": stream}
    return json.dumps(body).encode()


def post(client: httpx.Client, run: tuple[UUID, UUID], first_step: int, last_step: int, planned_steps: int) -> None:
    """Steps of a run, by its id and that of its stream."""
    run_id, stream_id = run
    for first in range(first_step, last_step, STEPS_PER_BATCH):
        steps = min(STEPS_PER_BATCH, last_step - first)
        body = run_batch(run_id, steps=steps, planned_steps=planned_steps, first_step=first)
        headers = {"Content-Type": "application/json"}
        client.post(f"/api/v1/streams/{stream_id}/batches", content=body, headers=headers).raise_for_status()


def ask(client: httpx.Client, run_id: UUID, query: dict[str, Any]) -> float:
    """Seconds of one question."""
    start = time.perf_counter()
    answer = client.get(f"/api/v1/runs/{run_id}/recommendation", params=query)
    seconds = time.perf_counter() - start
    assert answer.raise_for_status().json()["recommended_batch_size"], "nothing to say would be quick"
    return seconds


def ask_for_run(client: httpx.Client, run_id: UUID) -> float:
    """Seconds of the simplest question about a run: what a request costs on this machine now."""
    start = time.perf_counter()
    client.get(f"/api/v1/runs/{run_id}").raise_for_status()
    return time.perf_counter() - start


def measure(url: str, num_asked: int, steps: int) -> list[Figure]:
    """p5, p50 and p99 of each kind of question, and of the simplest request before, between and after them."""
    found: dict[str, list[float]] = {}
    runs = [(uuid4(), uuid4()) for _ in range(num_asked)]
    load = [os.getloadavg()[0]]
    with httpx.Client(base_url=url, headers=AS_LOCAL_USER, timeout=60) as client:
        for run in runs:
            post(client, run, 0, steps, 10 * steps)
        ask(client, runs[0][0], {})
        plain = [ask_for_run(client, run_id) for run_id, _ in runs]
        found["first time"] = [ask(client, run_id, {}) for run_id, _ in runs]
        found["again"] = [ask(client, run_id, {}) for run_id, _ in runs]
        found["with limits and predictions"] = [ask(client, run_id, LIMITS) for run_id, _ in runs]
        plain += [ask_for_run(client, run_id) for run_id, _ in runs]
        found["as of an earlier step"] = [ask(client, run_id, {"to_step": steps // 2}) for run_id, _ in runs]
        for run in runs:
            post(client, run, steps, steps + 50, 10 * steps)
        found["after new data"] = [ask(client, run_id, {}) for run_id, _ in runs]
        found["again, once more"] = [ask(client, run_id, {}) for run_id, _ in runs]
        plain += [ask_for_run(client, run_id) for run_id, _ in runs]
        load.append(os.getloadavg()[0])
    return [
        *figures_of(found, plain),
        Figure("load of the machine, the higher of start and end", max(load), "processes"),
    ]


def figures_of(found: dict[str, list[float]], plain: list[float]) -> list[Figure]:
    """The times in ms, and the medians relative to the simplest request of the same minutes."""
    simplest = percentile(plain, 0.5)
    figures = [
        Figure("for comparison: the run itself, p5", 1000 * percentile(plain, 0.05), "ms"),
        Figure("for comparison: the run itself, p50", 1000 * simplest, "ms"),
    ]
    for name, seconds in found.items():
        figures += [
            Figure(f"{name}, p5", 1000 * percentile(seconds, 0.05), "ms"),
            Figure(f"{name}, p50", 1000 * percentile(seconds, 0.5), "ms", TARGET),
            Figure(f"{name}, p99", 1000 * percentile(seconds, 0.99), "ms"),
            Figure(f"{name}, p50 in p50 of the run itself", percentile(seconds, 0.5) / simplest, "times"),
        ]
    return figures


def main() -> None:
    """Run it and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=size(10_000, 20))
    parser.add_argument("--asked", type=int, default=size(200, 3), help="runs with measurements, that are asked about")
    parser.add_argument("--steps", type=int, default=size(2_000, 600))
    arguments = parser.parse_args()
    with server() as url:
        asyncio.run(create_runs(url, arguments.runs - arguments.asked))
        write("recommendation", measure(url, arguments.asked, arguments.steps))


if __name__ == "__main__":
    main()

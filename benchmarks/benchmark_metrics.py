"""GET /metrics of 10,000 live runs, of which the newest 50 have figures of their own, in both formats."""

import argparse
import asyncio
import re
import time
from uuid import uuid4

import httpx
from benchmark_recommendation import run_batch
from harness import AS_LOCAL_USER, percentile, server
from results_file import Figure, write
from smoke import size

TARGET = "p50 at most 20 ms"
FORMATS = {"Prometheus' text": "text/plain", "OpenMetrics": "application/openmetrics-text; version=1.0.0"}
JSON = {"Content-Type": "application/json"}
SECONDS_TO_BE_JUDGED = 120.0
NEWEST = size(50, 3)


async def measured_runs(url: str, num_runs: int) -> None:
    """Runs with 8 steps each, the newest 50 with 200; nearly all wait to be judged, some ten a second."""
    steps = iter([8] * (num_runs - NEWEST) + [200] * NEWEST)

    async def send(client: httpx.AsyncClient) -> None:
        for num_steps in steps:
            body = run_batch(uuid4(), steps=num_steps, planned_steps=1_000)
            (await client.post(f"/api/v1/streams/{uuid4()}/batches", content=body, headers=JSON)).raise_for_status()

    async with httpx.AsyncClient(base_url=url, headers=AS_LOCAL_USER, timeout=60) as client:
        await asyncio.gather(*(send(client) for _ in range(4)))
        until = time.monotonic() + SECONDS_TO_BE_JUDGED
        while time.monotonic() < until:
            text = (await client.get("/metrics")).text
            if text.count("noisescale_run_recommendation_odds_ratio{") >= min(NEWEST, num_runs):
                return
            await asyncio.sleep(1)
        raise TimeoutError("the newest runs were not judged in time")


def measure(url: str, repeats: int) -> list[Figure]:
    """p50 and p99 of a scrape, and how large it is."""
    figures = []
    with httpx.Client(base_url=url, headers=AS_LOCAL_USER, timeout=60) as client:
        for name, media_type in FORMATS.items():
            seconds, said = [], ""
            for _ in range(repeats):
                start = time.perf_counter()
                answer = client.get("/metrics", headers={"Accept": media_type})
                seconds.append(time.perf_counter() - start)
                said += answer.raise_for_status().text
            figures.append(Figure(f"{name}, p50", 1000 * percentile(seconds, 0.5), "ms", TARGET))
            figures.append(Figure(f"{name}, p99", 1000 * percentile(seconds, 0.99), "ms"))
            took = [float(found) for found in re.findall(r"^noisescale_database_answer_seconds (\S+)", said, re.M)]
            figures.append(Figure(f"{name}: of it the database, p50", 1000 * percentile(took, 0.5), "ms"))
            samples = sum(not line.startswith("#") for line in answer.text.splitlines())
            figures.append(Figure(f"{name}: samples", samples, ""))
    return figures


def main() -> None:
    """Run it and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=size(10_000, 12))
    parser.add_argument("--repeats", type=int, default=size(200, 2))
    arguments = parser.parse_args()
    with server() as url:
        asyncio.run(measured_runs(url, arguments.runs))
        write("metrics", measure(url, arguments.repeats))


if __name__ == "__main__":
    main()

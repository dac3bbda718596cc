"""The Runs table: the first page, other sorts, filters and the second page, of 10,000 runs."""

import argparse
import asyncio
import time
from typing import Any

import httpx
from harness import AS_LOCAL_USER, percentile, server
from results_file import Figure, write
from smoke import size

TARGET = "p50 at most 15 ms"
QUERIES: dict[str, dict[str, Any]] = {
    "first page": {},
    "by name": {"sort": "name"},
    "one project": {"project": "project 3"},
    "text search": {"q": "run 99"},
    "one tag, running": {"tag": "even", "status": "running"},
    "25 runs": {"limit": 25},
}


async def create_runs(url: str, num_runs: int) -> None:
    """Runs in ten projects, each with a config of 1.5 KiB."""
    numbers = iter(range(num_runs))
    config = {f"parameter_{number}": number / 7 for number in range(40)}

    async def create(client: httpx.AsyncClient) -> None:
        for number in numbers:
            body = {
                "project": f"project {number % 10}",
                "name": f"run {number}",
                "tags": ["even" if number % 2 == 0 else "odd"],
                "config": config,
            }
            (await client.post("/api/v1/runs", json=body)).raise_for_status()

    async with httpx.AsyncClient(base_url=url, headers=AS_LOCAL_USER, timeout=60) as client:
        await asyncio.gather(*(create(client) for _ in range(8)))


def time_query(client: httpx.Client, query: dict[str, Any], repeats: int) -> list[float]:
    """Seconds of each of the requests."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        client.get("/api/v1/runs", params=query).raise_for_status()
        seconds.append(time.perf_counter() - start)
    return seconds


def measure(url: str, repeats: int) -> list[Figure]:
    """p50 and p99 of each query."""
    figures = []
    with httpx.Client(base_url=url, headers=AS_LOCAL_USER, timeout=60) as client:
        cursor = client.get("/api/v1/runs").json()["next_cursor"]
        for name, query in (QUERIES | {"second page": {"cursor": cursor}}).items():
            seconds = time_query(client, query, repeats)
            figures.append(Figure(f"{name}, p50", 1000 * percentile(seconds, 0.5), "ms", TARGET))
            figures.append(Figure(f"{name}, p99", 1000 * percentile(seconds, 0.99), "ms"))
    return figures


def main() -> None:
    """Run it and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=size(10_000, 120))
    parser.add_argument("--repeats", type=int, default=size(100, 2))
    arguments = parser.parse_args()
    with server() as url:
        asyncio.run(create_runs(url, arguments.runs))
        write("run_list", measure(url, arguments.repeats))


if __name__ == "__main__":
    main()

"""One server process and two on one durable Postgres: throughput of ingestion, and the latency of requests at idle.

Both run in turn, several times, so that a machine that gets slower or faster meanwhile does not decide.
"""

import argparse
import statistics
import time

import httpx
from benchmark_ingest import throughput
from harness import AS_LOCAL_USER, percentile, server
from results_file import Figure, write
from smoke import size

REQUESTS_AT_IDLE = size(200, 5)
SECONDS_BETWEEN = 0.02


def latencies_at_idle(url: str) -> list[float]:
    """Seconds of single requests on a kept-alive connection, with a pause before each."""
    seconds = []
    with httpx.Client(base_url=url, headers=AS_LOCAL_USER, timeout=60) as client:
        client.get("/readyz").raise_for_status()
        for _ in range(REQUESTS_AT_IDLE):
            time.sleep(SECONDS_BETWEEN)
            start = time.perf_counter()
            client.get("/readyz").raise_for_status()
            seconds.append(time.perf_counter() - start)
    return seconds


def measure(workers: int, batches: int, seed: int) -> tuple[float, list[float]]:
    """Rows a second of one server with so many processes, and its latencies at idle."""
    with server(workers=workers) as url:
        idle = latencies_at_idle(url)
        throughput(url, 2, compressed=False, seed=seed + 100)  # every process has its connections and plans afterwards
        return throughput(url, batches, compressed=False, seed=seed)[0].value, idle


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=size(60, 2))
    parser.add_argument("--rounds", type=int, default=size(4, 1))
    arguments = parser.parse_args()
    rates: dict[int, list[float]] = {1: [], 2: []}
    idle: dict[int, list[float]] = {1: [], 2: []}
    for seed in range(arguments.rounds):
        for workers in rates:
            rate, seconds = measure(workers, arguments.batches, 1000 * (seed + 1))
            rates[workers].append(rate)
            idle[workers] += seconds
    ratios = [two / one for one, two in zip(rates[1], rates[2], strict=True)]
    figures = [
        Figure(f"rows a second, {workers} processes", statistics.median(rates[workers]), "rows/s") for workers in rates
    ]
    figures.append(
        Figure("two processes against one, median of rounds", statistics.median(ratios), "", "at least 0.95")
    )
    figures.append(Figure("two processes against one, worst round", min(ratios), ""))
    for workers, seconds in idle.items():
        figures.append(Figure(f"request at idle, {workers} processes, p50", 1e3 * percentile(seconds, 0.5), "ms"))
        figures.append(Figure(f"request at idle, {workers} processes, slowest", 1e3 * max(seconds), "ms", "below 40"))
    write("workers", figures)


if __name__ == "__main__":
    main()

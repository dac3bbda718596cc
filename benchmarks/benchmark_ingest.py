"""Ingestion over HTTP into a durable Postgres, pyramid included.

1. Throughput: 4 senders, batches of 1,000 rows.
2. Latency: 1,000 streams that each send 5 rows every 5 seconds.
"""

import argparse
import asyncio
import multiprocessing
import time
from uuid import UUID, uuid4

import httpx
from harness import AS_LOCAL_USER, percentile, server
from payloads import MeasurementBatches, run_batch
from results_file import Figure, write
from smoke import size

HEADERS = {"Content-Type": "application/json"}
GZIP = HEADERS | {"Content-Encoding": "gzip"}
SENDERS = 4
ROWS = 1000


def send_all(url: str, seed: int, batches: int, compressed: bool, ready, go, results) -> None:
    """One sender process: encode everything, wait for the start, send, and report the seconds of each request."""
    run_id, stream_id = UUID(int=seed, version=4), uuid4()
    source = MeasurementBatches(run_id, ROWS, seed, compressed=compressed)
    bodies = [source.body(index * ROWS) for index in range(batches)]
    with httpx.Client(base_url=url, headers=AS_LOCAL_USER, timeout=60) as client:
        path = f"/api/v1/streams/{stream_id}/batches"
        client.post(path, content=run_batch(run_id, name=f"sender-{seed}"), headers=HEADERS).raise_for_status()
        ready.release()
        go.wait()
        seconds = []
        for body in bodies:
            start = time.perf_counter()
            client.post(path, content=body, headers=GZIP if compressed else HEADERS).raise_for_status()
            seconds.append(time.perf_counter() - start)
    results.put(seconds)


def throughput(url: str, batches: int, *, compressed: bool, seed: int) -> list[Figure]:
    """Rows per second of all senders together, and the latency of a batch."""
    context = multiprocessing.get_context("spawn")
    ready, go, results = context.Semaphore(0), context.Event(), context.Queue()
    senders = [
        context.Process(target=send_all, args=(url, seed + index, batches, compressed, ready, go, results))
        for index in range(SENDERS)
    ]
    for sender in senders:
        sender.start()
    for _ in senders:
        ready.acquire()
    start = time.perf_counter()
    go.set()
    latencies = [value for _ in senders for value in results.get()]
    seconds = time.perf_counter() - start
    for sender in senders:
        sender.join()
    kind = "gzip" if compressed else "plain"
    rate = SENDERS * batches * ROWS / seconds
    return [
        Figure(f"ingest, {SENDERS} senders, {ROWS}-row batches, {kind}", rate, "rows/s", "at least 100,000"),
        Figure(f"batch latency p50, {kind}", 1e3 * percentile(latencies, 0.5), "ms"),
        Figure(f"batch latency p99, {kind}", 1e3 * percentile(latencies, 0.99), "ms"),
    ]


class Connection:
    """One kept-alive HTTP connection: a thousand senders must not cost more than the server that they measure."""

    def __init__(self, url: str) -> None:
        self._address = httpx.URL(url)
        self._lock = asyncio.Lock()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: bytes, headers: dict[str, str]) -> float:
        """Seconds from the moment it should be sent to the end of the answer, waiting for the connection included."""
        start = time.perf_counter()
        async with self._lock:
            if self._streams is None:
                self._streams = await asyncio.open_connection(self._address.host, self._address.port)
            reader, writer = self._streams
            lines = [f"POST {path} HTTP/1.1", f"Host: {self._address.netloc.decode()}", f"Content-Length: {len(body)}"]
            lines += [f"{name}: {value}" for name, value in (AS_LOCAL_USER | headers).items()]
            writer.write("\r\n".join([*lines, "", ""]).encode() + body)
            head = await reader.readuntil(b"\r\n\r\n")
            answer = await reader.readexactly(int(head.lower().split(b"content-length:")[1].split()[0]))
        if head.split()[1] != b"200":
            raise RuntimeError(f"{path}: {answer.decode()}")
        return time.perf_counter() - start


async def many_streams(url: str, *, streams: int, rounds: int, period: float, rows: int) -> list[Figure]:
    """Latency of small batches from many streams, spread evenly over the period."""
    sources = [(uuid4(), MeasurementBatches(uuid4(), rows, seed)) for seed in range(streams)]
    # neighbours in time use different connections
    connections = [Connection(url) for _ in range(200)]
    seconds: list[float] = []

    async def post(index: int, body: bytes, headers: dict[str, str]) -> float:
        path = f"/api/v1/streams/{sources[index][0]}/batches"
        return await connections[index % len(connections)].post(path, body, headers)

    for index, (_, source) in enumerate(sources):
        await post(index, run_batch(source.run_id, name=f"stream-{index}"), HEADERS)
    bodies = [[source.body(round_ * rows) for _, source in sources] for round_ in range(rounds)]

    async def at(delay: float, index: int, body: bytes) -> None:
        await asyncio.sleep(delay)
        seconds.append(await post(index, body, GZIP))

    for round_ in range(rounds):
        begin = time.perf_counter()
        await asyncio.gather(*(at(period * index / streams, index, bodies[round_][index]) for index in range(streams)))
        await asyncio.sleep(max(0.0, period - (time.perf_counter() - begin)))
    name = f"{streams:,} streams × {rows} rows every {period:g} s"
    return [
        Figure(f"{name}, p50", 1e3 * percentile(seconds, 0.5), "ms"),
        Figure(f"{name}, p99", 1e3 * percentile(seconds, 0.99), "ms", "at most 60"),
    ]


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=size(150, 2), help="batches of each sender")
    parser.add_argument("--workers", type=int, default=1, help="server processes")
    arguments = parser.parse_args()
    with server(workers=arguments.workers) as url:
        throughput(url, size(20, 1), compressed=True, seed=1)  # warm-up
        figures = throughput(url, arguments.batches, compressed=True, seed=101)
        figures += throughput(url, arguments.batches, compressed=False, seed=201)
        figures += asyncio.run(
            many_streams(url, streams=size(1000, 20), rounds=size(6, 1), period=size(5.0, 1.0), rows=5)
        )
    write("ingest", figures)


if __name__ == "__main__":
    main()

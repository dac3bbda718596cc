"""Bombs, slow senders and readers without end: what memory and everybody else's requests notice of them.

Each attack A-B-B-A with the same readers: gzip bombs of 1 GiB, eight at a time; 200 connections that send a byte a
second of headers that never end or of a body; 300 connections that ask for forty answers each and read none of them,
again and again; eight that read as fast as they are answered; and eight that do so with a page of metrics of 50,000
values, ten times the work. They run in a process of their own, with a key in
force, as an insider's would. As many refused bodies of two bytes tell what bombs cost beyond being requests at all.
"""

import argparse
import asyncio
import gzip
import io
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import httpx
import psutil
from harness import LOCAL_TOKEN, percentile, server
from payloads import metrics_batch, run_batch
from results_file import Figure, write
from smoke import size

BOMB_BYTES = size(1 << 30, 1 << 24)
NUM_BOMBERS, PAUSE_SECONDS = 8, 0.05
NUM_SLOW = size(200, 5)
NUM_UNREAD, NUM_PIPELINED = size(300, 5), 40
UNREAD_SECONDS = 10.0
NUM_GREEDY = 8
READS_A_SECOND = 50
ATTACKS = {
    "bombs": f"{NUM_BOMBERS} senders of gzip bombs",
    "small": f"{NUM_BOMBERS} senders of two bytes that are refused, too",
    "slow": f"{NUM_SLOW} slow senders",
    "unread": f"{NUM_UNREAD} connections that ask for {NUM_PIPELINED} answers and read none",
    "greedy": f"{NUM_GREEDY} readers without end",
    "dear": f"{NUM_GREEDY} readers without end of answers that take ten times the work",
}
DEAR_RUN, DEAR_STREAM = UUID(int=1), UUID(int=2)
NUM_NAMES, NUM_STEPS = size(100, 5), 500
CHEAP = "/api/v1/published-sweeps"
DEAR = f"/api/v1/runs/{DEAR_RUN}/metrics?limit={NUM_NAMES}&points={NUM_STEPS}"
WITH_KEY_OF_THEIR_OWN = ("unread", "greedy", "dear")
KEY = {"Authorization": f"Bearer {LOCAL_TOKEN}"}


def bomb() -> bytes:
    """A gzip body of a megabyte that unpacks to 1 GiB of zeros."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb") as file:
        for _ in range(BOMB_BYTES >> 20):
            file.write(bytes(1 << 20))
    return packed.getvalue()


async def throw(url: str, token: str, body: bytes) -> None:
    """Until the process is ended; each on a connection of its own, left when the server has answered."""
    place = urlsplit(url)
    head = (
        f"POST /api/v1/streams/{uuid4()}/batches HTTP/1.1\r\nHost: {place.netloc}\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()

    async def throw_again() -> None:
        while True:
            reader, writer = await asyncio.open_connection(place.hostname, place.port)
            writer.write(head + body)
            answer = await reader.readline()
            assert answer.split()[1] in (b"413", b"422", b"429"), answer
            writer.transport.abort()
            await asyncio.sleep(PAUSE_SECONDS)

    await asyncio.gather(*(throw_again() for _ in range(NUM_BOMBERS)))


async def send_slowly(url: str, token: str) -> None:
    """Until the process is ended; whoever is cut off comes again."""
    place = urlsplit(url)
    head = (
        f"POST /api/v1/streams/{uuid4()}/batches HTTP/1.1\r\nHost: {place.netloc}\r\nAuthorization: Bearer {token}\r\n"
    )
    beginnings = (head + "X-Slow: ", head + "Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n")

    async def send(number: int) -> None:
        while True:
            _, writer = await asyncio.open_connection(place.hostname, place.port)
            try:
                writer.write(beginnings[number % 2].encode())
                while True:
                    writer.write(b"x")
                    await writer.drain()
                    await asyncio.sleep(1)
            except OSError:
                writer.close()

    await asyncio.gather(*(send(number) for number in range(NUM_SLOW)))


def asking(url: str, token: str, path: str) -> bytes:
    """A request as it goes over the wire."""
    place = urlsplit(url)
    return f"GET {path} HTTP/1.1\r\nHost: {place.netloc}\r\nAuthorization: Bearer {token}\r\n\r\n".encode()


async def read_nothing(url: str, token: str) -> None:
    """Until the process is ended: ask for large answers, leave them lying for a while, and come again."""
    place = urlsplit(url)
    ask = asking(url, token, "/openapi.json") + asking(url, token, CHEAP)

    async def ask_again() -> None:
        while True:
            # a stream at its limit takes nothing more from the system
            _, writer = await asyncio.open_connection(place.hostname, place.port, limit=1 << 12)
            writer.write(ask * (NUM_PIPELINED // 2))
            await asyncio.sleep(UNREAD_SECONDS)
            writer.transport.abort()

    await asyncio.gather(*(ask_again() for _ in range(NUM_UNREAD)))


async def read_greedily(url: str, token: str, path: str) -> None:
    """Until the process is ended: one read after the other, also right after each refusal."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as client:

        async def read_again() -> None:
            while True:
                answer = await client.get(path)
                assert answer.status_code in (200, 429, 503), answer
                await asyncio.sleep(PAUSE_SECONDS if answer.status_code != 200 else 0)

        await asyncio.gather(*(read_again() for _ in range(NUM_GREEDY)))


def store_metrics(url: str) -> None:
    """Let the server hold what the dear answer is made of."""
    batches = [run_batch(DEAR_RUN, name="dear")]
    for step in range(NUM_STEPS):
        batches.append(metrics_batch(DEAR_RUN, seq=step + 2, step=step, num_names=NUM_NAMES))
    with httpx.Client(base_url=url, headers=KEY | {"Content-Type": "application/json"}, timeout=60) as client:
        for batch in batches:
            client.post(f"/api/v1/streams/{DEAR_STREAM}/batches", content=batch).raise_for_status()


def new_key(url: str) -> str:
    """A read key of its own for who attacks: the readers have another."""
    body = {"name": "reader", "scope": "read", "projects": None, "days": 1}
    return str(httpx.post(f"{url}/api/v1/keys", json=body, headers=KEY).raise_for_status().json()["key"])


@contextmanager
def attack(name: str, url: str) -> Iterator[None]:
    """Senders in a process of their own, at work when the block begins."""
    process = subprocess.Popen(
        [sys.executable, __file__, "--attack", name, "--url", url], stdin=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    process.stdin.write(f"{new_key(url) if name in WITH_KEY_OF_THEIR_OWN else LOCAL_TOKEN}\n")
    process.stdin.flush()
    time.sleep(size(8.0, 2.0))  # the bomb is packed, and all connections stand
    assert process.poll() is None, "the senders have ended"
    try:
        yield
    finally:
        assert process.poll() is None, "the senders have ended"
        process.kill()
        process.wait()


def reads(url: str, seconds: float) -> list[float]:
    """Seconds of requests for a page of runs, at an even pace; fewer of them where answers take longer than that."""
    found = []
    with httpx.Client(base_url=url, headers=KEY, timeout=60) as client:
        begin = time.perf_counter()
        for number in range(int(seconds * READS_A_SECOND)):
            time.sleep(max(0.0, begin + number / READS_A_SECOND - time.perf_counter()))
            start = time.perf_counter()
            if start > begin + seconds:
                break
            client.get("/api/v1/runs?limit=10").raise_for_status()
            found.append(time.perf_counter() - start)
    return found


def listener(url: str) -> psutil.Process:
    """The process that listens."""
    port = urlsplit(url).port
    [pid] = {one.pid for one in psutil.net_connections("tcp") if one.status == "LISTEN" and one.laddr.port == port}
    return psutil.Process(pid)


def busy_seconds(process: psutil.Process) -> float:
    """Processor time that it has taken so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


def measure(name: str, url: str, seconds: float) -> Iterator[Figure]:
    """A-B-B-A: readers alone, twice with the attack, alone."""
    process = listener(url)
    alone = reads(url, seconds)
    before = process.memory_info().rss
    with attack(name, url):
        begin, busy = time.perf_counter(), busy_seconds(process)
        beside = reads(url, 2 * seconds)
        share = (busy_seconds(process) - busy) / (time.perf_counter() - begin)
        during = process.memory_info().rss
    time.sleep(2.0)
    alone += reads(url, seconds)
    yield from as_figures(ATTACKS[name], alone, beside)
    yield Figure(f"processor of the server, {ATTACKS[name]}", 100 * share, "%")
    yield Figure(f"memory of the server before {ATTACKS[name]}", before / 1e6, "MB")
    yield Figure(f"memory that the server takes more, {ATTACKS[name]}", (during - before) / 1e6, "MB", "bounded")


def as_figures(what: str, alone: list[float], beside: list[float]) -> Iterator[Figure]:
    """Seconds of requests, without the attack and with it."""
    for share in (0.5, 0.99):
        yield Figure(f"p{100 * share:g} of other requests, alone, around {what}", 1e3 * percentile(alone, share), "ms")
        yield Figure(f"p{100 * share:g} of other requests, {what}", 1e3 * percentile(beside, share), "ms")
    ratio = percentile(beside, 0.99) / percentile(alone, 0.99)
    yield Figure(f"p99 of other requests, {what}, against alone", ratio, "", "below 2")


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=size(10.0, 0.5), help="of each of the four parts")
    parser.add_argument("--only", choices=ATTACKS, help="one of them alone; nothing is written then")
    parser.add_argument("--attack", choices=ATTACKS, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.attack:
        url, token = arguments.url, sys.stdin.readline().strip()
        senders = {
            "bombs": lambda: throw(url, token, bomb()),
            "small": lambda: throw(url, token, gzip.compress(b"{}")),
            "slow": lambda: send_slowly(url, token),
            "unread": lambda: read_nothing(url, token),
            "greedy": lambda: read_greedily(url, token, CHEAP),
            "dear": lambda: read_greedily(url, token, DEAR),
        }
        asyncio.run(senders[arguments.attack]())
    names = [arguments.only] if arguments.only else size(list(ATTACKS), list(ATTACKS)[:1])
    with server(reads_per_minute=None) as url:
        store_metrics(url)
        reads(url, size(5.0, 0.2))
        figures = [figure for name in names for figure in measure(name, url, arguments.seconds)]
    if arguments.only:
        for figure in figures:
            print(f"{figure.name:<100} {figure.value:>12,.4g} {figure.unit}")
    else:
        write("limits", figures)


if __name__ == "__main__":
    main()

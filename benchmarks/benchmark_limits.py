"""Bombs and slow senders: what the server's memory and everybody else's requests notice of them.

Two attacks, each A-B-B-A with the same readers: gzip bombs of 1 GiB, eight at a time, and 200 connections that send a
byte a second of headers that never end or of a body. Senders run in a process of their own, with a key in force, as an
insider's would. As many refused bodies of two bytes tell what bombs cost beyond being requests at all.
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
from uuid import uuid4

import httpx
import psutil
from harness import LOCAL_TOKEN, percentile, server
from results_file import Figure, write
from smoke import size

BOMB_BYTES = size(1 << 30, 1 << 24)
NUM_BOMBERS, PAUSE_SECONDS = 8, 0.05
NUM_SLOW = size(200, 5)
READS_A_SECOND = 50
ATTACKS = {
    "bombs": f"{NUM_BOMBERS} senders of gzip bombs",
    "small": f"{NUM_BOMBERS} senders of two bytes that are refused, too",
    "slow": f"{NUM_SLOW} slow senders",
}
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


@contextmanager
def attack(name: str, url: str) -> Iterator[None]:
    """Senders in a process of their own, at work when the block begins."""
    process = subprocess.Popen(
        [sys.executable, __file__, "--attack", name, "--url", url], stdin=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    process.stdin.write(f"{LOCAL_TOKEN}\n")
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


def memory_bytes(url: str) -> int:
    """Of the process that listens."""
    port = urlsplit(url).port
    [pid] = {one.pid for one in psutil.net_connections("tcp") if one.status == "LISTEN" and one.laddr.port == port}
    return int(psutil.Process(pid).memory_info().rss)


def measure(name: str, url: str, seconds: float) -> Iterator[Figure]:
    """A-B-B-A: readers alone, twice with the attack, alone."""
    alone = reads(url, seconds)
    before = memory_bytes(url)
    with attack(name, url):
        beside = reads(url, 2 * seconds)
        during = memory_bytes(url)
    time.sleep(2.0)
    alone += reads(url, seconds)
    what = ATTACKS[name]
    for share in (0.5, 0.99):
        yield Figure(f"p{100 * share:g} of other requests, alone, around {what}", 1e3 * percentile(alone, share), "ms")
        yield Figure(f"p{100 * share:g} of other requests, {what}", 1e3 * percentile(beside, share), "ms")
    ratio = percentile(beside, 0.99) / percentile(alone, 0.99)
    yield Figure(f"p99 of other requests, {what}, against alone", ratio, "", "below 2")
    yield Figure(f"memory of the server before {what}", before / 1e6, "MB")
    yield Figure(f"memory that the server takes more, {what}", (during - before) / 1e6, "MB", "bounded")


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=size(10.0, 0.5), help="of each of the four parts")
    parser.add_argument("--attack", choices=ATTACKS, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.attack:
        url, token = arguments.url, sys.stdin.readline().strip()
        senders = {
            "bombs": lambda: throw(url, token, bomb()),
            "small": lambda: throw(url, token, gzip.compress(b"{}")),
            "slow": lambda: send_slowly(url, token),
        }
        asyncio.run(senders[arguments.attack]())
    with server() as url:
        reads(url, size(5.0, 0.2))
        write(
            "limits",
            [
                figure
                for name in size(list(ATTACKS), list(ATTACKS)[:1])
                for figure in measure(name, url, arguments.seconds)
            ],
        )


if __name__ == "__main__":
    main()

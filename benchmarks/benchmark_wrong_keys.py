"""Wrong keys from one address: what right keys from the same address notice of a thousand a second.

A-B-B-A with the same readers: wrong keys of the right form, which only the database can tell from right ones, a
thousand a second from a process of its own. Readers use one right key, which a server remembers for five seconds, or
take turns among so many that each has to be looked up again.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from harness import AS_LOCAL_USER, percentile, server
from results_file import Figure, write
from smoke import size

from noisescale_server.services.access import key_text

WRONG_A_SECOND = 1_000
NUM_CONNECTIONS = 8
NUM_WRONG = size(10_000, 200)
READS_A_SECOND = 50
NUM_KEYS = {"one key": 1, "keys that are looked up each time": size(300, 3)}
"""At 50 reads a second 300 keys come back every six seconds, when a server has forgotten them."""


async def send_wrong_keys(url: str, counts: Path) -> None:
    """Until the process is ended; the file holds how often each status was answered."""
    place = urlsplit(url)
    keys = [key_text.new("read").text for _ in range(NUM_WRONG)]
    statuses: Counter[str] = Counter()

    async def send(number: int) -> None:
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        # one after the other: eight at once would be a burst of eight
        begin, pause = time.perf_counter() + number / WRONG_A_SECOND, NUM_CONNECTIONS / WRONG_A_SECOND
        for sent in range(10**9):
            await asyncio.sleep(max(0.0, begin + sent * pause - time.perf_counter()))
            key = keys[(number + sent * NUM_CONNECTIONS) % len(keys)]
            head = f"GET /api/v1/runs HTTP/1.1\r\nHost: {place.netloc}\r\nAuthorization: Bearer {key}\r\n\r\n"
            writer.write(head.encode())
            answer = await reader.readuntil(b"\r\n\r\n")
            length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            statuses[answer.split()[1].decode()] += 1

    def report_once() -> None:
        # as a whole: who reads meanwhile reads the one before
        unfinished = counts.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(statuses))
        unfinished.replace(counts)

    async def report() -> None:
        while True:
            await asyncio.to_thread(report_once)
            await asyncio.sleep(0.1)

    await asyncio.gather(report(), *(send(number) for number in range(NUM_CONNECTIONS)))


@contextmanager
def wrong_keys(url: str) -> Iterator[Path]:
    """Senders in a process of their own, at work when the block begins; the file in which they count."""
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "counts"
        process = subprocess.Popen([sys.executable, __file__, "--attack", str(counts), "--url", url])
        try:
            while not counts.exists() and process.poll() is None:
                time.sleep(0.1)
            time.sleep(size(5.0, 1.0))
            assert process.poll() is None, "the senders have ended"
            yield counts
            assert process.poll() is None, "the senders have ended"
        finally:
            process.kill()
            process.wait()


def new_keys(url: str, number: int) -> list[str]:
    """So many right keys."""
    with httpx.Client(base_url=url, headers=AS_LOCAL_USER, timeout=60) as client:
        client.post("/api/v1/runs", json={"project": "p"}).raise_for_status()
        body = {"name": "reader", "scope": "read", "projects": ["p"]}
        return [client.post("/api/v1/keys", json=body).json()["key"] for _ in range(number)]


def reads(url: str, keys: Sequence[str], seconds: float, refused: list[int]) -> list[float]:
    """Seconds of requests for a page of runs, at an even pace; other answers than 200 are put into `refused`."""
    found = []
    with httpx.Client(base_url=url, timeout=60) as client:
        begin = time.perf_counter()
        for number in range(int(seconds * READS_A_SECOND)):
            time.sleep(max(0.0, begin + number / READS_A_SECOND - time.perf_counter()))
            start = time.perf_counter()
            if start > begin + seconds:
                break
            key = {"Authorization": f"Bearer {keys[number % len(keys)]}"}
            status = client.get("/api/v1/runs?limit=10", headers=key).status_code
            found.append(time.perf_counter() - start)
            if status != httpx.codes.OK:
                refused.append(status)
    return found


def measure(what: str, url: str, keys: Sequence[str], seconds: float) -> Iterator[Figure]:
    """Readers alone, twice beside wrong keys, alone."""
    refused: list[int] = []
    alone = reads(url, keys, seconds, refused)
    with wrong_keys(url) as counts:
        before, start = json.loads(counts.read_text()), time.perf_counter()
        beside = reads(url, keys, 2 * seconds, refused)
        after, duration = json.loads(counts.read_text()), time.perf_counter() - start
    time.sleep(size(2.0, 0.1))
    alone += reads(url, keys, seconds, refused)
    assert set(after) <= {"401", "429"}, after
    num_wrong = sum(after.values()) - sum(before.values())
    for share in (0.5, 0.99):
        yield Figure(f"p{100 * share:g} of {what}, alone", 1e3 * percentile(alone, share), "ms")
        yield Figure(f"p{100 * share:g} of {what}, beside wrong keys", 1e3 * percentile(beside, share), "ms")
    ratio = percentile(beside, 0.99) / percentile(alone, 0.99)
    yield Figure(f"p99 of {what}, beside wrong keys against alone", ratio, "", "below 2")
    yield Figure(f"wrong keys beside {what}", num_wrong / duration, "1/s", f"{WRONG_A_SECOND}")
    yield Figure(f"answers to {what} that were not 200", len(refused), "", "0")


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=size(15.0, 0.5), help="of each of the four parts")
    parser.add_argument("--attack", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.attack:
        asyncio.run(send_wrong_keys(arguments.url, arguments.attack))
    with server() as url:
        keys = new_keys(url, max(NUM_KEYS.values()))
        reads(url, keys, size(5.0, 0.2), [])
        figures = [
            figure
            for what, number in NUM_KEYS.items()
            for figure in measure(what, url, keys[:number], arguments.seconds)
        ]
    write("wrong_keys", figures)


if __name__ == "__main__":
    main()

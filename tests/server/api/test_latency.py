"""A guard against a cliff: with several workers on the asyncio loop every keep-alive request costs 44 ms."""

import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

import httpx
import pytest

SERVE = """
import argparse
from noisescale_server.commands import register_serve

parser = argparse.ArgumentParser()
register_serve(parser.add_subparsers())
arguments = parser.parse_args(["serve", "--port", "0", "--workers", "2"])
arguments.run(arguments)
"""

MAX_SECONDS = 0.030


@pytest.fixture
def url_of_two_workers(database_url: str) -> Iterator[str]:
    """The address of a server of two workers, as `noisescale serve` runs it."""
    environment = os.environ | {"NOISESCALE_DATABASE_URL": database_url}
    server = subprocess.Popen([sys.executable, "-c", SERVE], env=environment, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    said = server.stdout.readline()
    found = re.search(r"http://\S+", said)
    assert found, said
    yield found[0]
    server.send_signal(signal.SIGTERM)
    server.communicate(timeout=30)


def test_a_request_on_a_kept_connection_stays_far_below_44_ms(url_of_two_workers: str) -> None:
    seconds = []
    with httpx.Client(base_url=url_of_two_workers, timeout=60) as client:
        assert client.get("/livez").status_code == 200
        for _ in range(50):
            started = time.perf_counter()
            client.post("/api/v1/runs", content=b"{}", headers={"Content-Type": "application/json"})
            seconds.append(time.perf_counter() - started)

    assert statistics.median(seconds) < MAX_SECONDS

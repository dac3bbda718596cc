"""What benchmarks measure with: a real server on a durable embedded Postgres, and percentiles."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

LOCAL_TOKEN = os.environ.setdefault("NOISESCALE_TOKEN_OF_BENCHMARK", secrets.token_urlsafe(32))
AS_LOCAL_USER = {"Authorization": f"Bearer {LOCAL_TOKEN}"}
"""The key of the servers that benchmarks start; processes of a benchmark inherit it."""


def free_port() -> int:
    """A TCP port on loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def server(*, workers: int = 1, reads_per_minute: int | None = 1_000_000) -> Iterator[str]:
    """The address of a `noisescale up` with its own durable Postgres in a temporary folder.

    Args:
        workers: Its processes.
        reads_per_minute: How much one sender may read; None: as by default. A benchmark is one sender without end.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)  # root runs Postgres as another user
        port = free_port()
        environment = os.environ | {
            "NOISESCALE_PORT": str(port),
            "NOISESCALE_DATA_DIR": f"{folder}/data",
            "NOISESCALE_DIR": f"{folder}/state",
            "NOISESCALE_WORKERS": str(workers),
            "NOISESCALE_LOCAL_TOKEN": LOCAL_TOKEN,
        }
        if reads_per_minute is not None:
            environment["NOISESCALE_READS_PER_MINUTE"] = str(reads_per_minute)
        environment.pop("NOISESCALE_DATABASE_URL", None)
        process = subprocess.Popen([str(Path(sys.executable).with_name("noisescale")), "up"], env=environment)
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_ready(url, process)
            yield url
        finally:
            stop(process)


def wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    """Return once the server answers.

    Raises:
        RuntimeError: If it ends or does not answer in time.
    """
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(f"{url}/readyz", timeout=2).status_code == httpx.codes.OK:
                return
        except httpx.HTTPError:
            time.sleep(0.2)
    raise RuntimeError(f"no server at {url}")


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a server and wait for it."""
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=60)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least that share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

"""What every benchmark needs: a real server on a durable embedded Postgres, percentiles, and a results file."""

import csv
import os
import platform
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx

# also where this is imported as a part of the package; last, as torture.py has the name of a part of the tests
sys.path.append(str(Path(__file__).parent))
from measured_code import fingerprint
from smoke import IS_SMOKE

RESULTS = Path(__file__).parent / "results"
LOCAL_TOKEN = os.environ.setdefault("NOISESCALE_TOKEN_OF_BENCHMARK", secrets.token_urlsafe(32))
AS_LOCAL_USER = {"Authorization": f"Bearer {LOCAL_TOKEN}"}
"""The key of the servers that benchmarks start; processes of a benchmark inherit it."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number.

    Attributes:
        name: What was measured.
        value: The number.
        unit: Its unit.
        target: What the design asks for, as a sentence; empty if nothing.
    """

    name: str
    value: float
    unit: str
    target: str = ""


def free_port() -> int:
    """A TCP port on loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def server(*, workers: int = 1) -> Iterator[str]:
    """The address of a `noisescale up` with its own durable Postgres in a temporary folder."""
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


def write(what: str, figures: Sequence[Figure], *, command: str | None = None) -> None:
    """Print the figures and write them with commit, machine, load, date and command to results/<what>.csv.

    In the smoke form they are printed alone.

    Args:
        what: Name of the benchmark.
        figures: What was measured.
        command: What a reader types to measure again; None: the file `benchmark_<what>.py`.
    """
    for figure in figures:
        print(f"{figure.name:<60} {figure.value:>14,.4g} {figure.unit:<10} {figure.target}")
    if IS_SMOKE:
        return
    RESULTS.mkdir(exist_ok=True)
    about = provenance(command or f"python benchmarks/benchmark_{what}.py") | {"code": fingerprint(what)}
    with (RESULTS / f"{what}.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["figure", "value", "unit", "target", *about])
        for figure in figures:
            rows.writerow([figure.name, f"{figure.value:.6g}", figure.unit, figure.target, *about.values()])


LOAD_AT_START = os.getloadavg()[0]
"""Processes that wanted a core in the minute before the benchmark began."""


def provenance(command: str) -> dict[str, str]:
    """What stands beside every figure: which code, on which machine, beside how much other work, when and how.

    Args:
        command: What a reader types to measure again.
    """
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout
    changed = subprocess.run(["git", "status", "--short", *SOURCES], capture_output=True, text=True, check=False).stdout
    return {
        "commit": commit.strip() + ("+" if changed.strip() else ""),
        "machine": f"{os.cpu_count()} cores, {processor()}, {memory_gib():.0f} GiB, {platform.system()} "
        f"{platform.machine()}, Python {platform.python_version()}",
        "load": f"{LOAD_AT_START:.2f} before, {os.getloadavg()[0]:.2f} after",
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": command,
    }


SOURCES = ("client/src", "lab/src", "server/src", "dashboard/src", "migrations", "benchmarks/*.py")
"""Whose uncommitted changes are told by a + behind the commit."""


def processor() -> str:
    """The name of the processor, as Linux says it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or "unknown processor")


def memory_gib() -> float:
    """Memory of the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30

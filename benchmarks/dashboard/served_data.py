"""A durable Postgres of its own and one server process on it, and what both take of the machine."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))
from harness import LOCAL_TOKEN, free_port, stop, wait_until_ready

from noisescale_server.embedded import EmbeddedPostgres
from noisescale_server.process.migrating import migrate

DATABASE = "dashboard"


@dataclass(frozen=True, slots=True)
class Use:
    """What server and Postgres have taken so far, and hold now."""

    server_cpu_seconds: float
    postgres_cpu_seconds: float
    server_bytes: int
    server_connections: int
    postgres_sessions: int

    @property
    def cpu_seconds(self) -> float:
        """Of both."""
        return self.server_cpu_seconds + self.postgres_cpu_seconds


@dataclass(frozen=True, slots=True)
class Served:
    """Where it is.

    Attributes:
        url: Of the server.
        database: Address of its Postgres, for asyncpg.
        server_pid: The server process.
        postgres_pid: The postmaster.
    """

    url: str
    database: str
    server_pid: int
    postgres_pid: int

    def use(self) -> Use:
        """What both have taken by now; the time of sessions that have ended is the postmaster's."""
        server, postmaster = psutil.Process(self.server_pid), psutil.Process(self.postgres_pid)
        family = [postmaster, *postmaster.children()]
        return Use(
            server_cpu_seconds=_cpu(server),
            postgres_cpu_seconds=sum(map(_cpu, family)) + _cpu_of_ended(postmaster),
            server_bytes=server.memory_info().rss,
            server_connections=len(server.net_connections("tcp")),
            postgres_sessions=sum(f" {DATABASE} " in " ".join(_words(one)) for one in family),
        )


def _cpu(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)


def _cpu_of_ended(postmaster: psutil.Process) -> float:
    times = postmaster.cpu_times()
    return float(times.children_user + times.children_system)


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


@contextmanager
def served(folder: Path | None = None) -> Iterator[Served]:
    """Postgres with fsync and one server process, in a folder that goes afterwards unless one is given."""
    with tempfile.TemporaryDirectory(prefix="noisescale-dashboard-", ignore_cleanup_errors=True) as temporary:
        data = folder or Path(temporary)
        data.mkdir(exist_ok=True)
        Path(temporary).chmod(0o711)  # root runs Postgres as another user
        with EmbeddedPostgres(data / "data") as postgres:
            if folder is None or not (data / "stored.json").exists():
                postgres.create_database(DATABASE)
            migrate(postgres.url(DATABASE))
            port = free_port()
            environment = os.environ | {
                "NOISESCALE_DATABASE_URL": postgres.url(DATABASE),
                "NOISESCALE_PORT": str(port),
                "NOISESCALE_DIR": f"{temporary}/state",
                "NOISESCALE_LOCAL_TOKEN": LOCAL_TOKEN,
                "NOISESCALE_READS_PER_MINUTE": "1000000",
            }
            process = subprocess.Popen([str(Path(sys.executable).with_name("noisescale")), "serve"], env=environment)
            try:
                url = f"http://127.0.0.1:{port}"
                wait_until_ready(url, process)
                yield Served(url, postgres.url(DATABASE, driver="postgresql"), process.pid, postgres.pid)
            finally:
                stop(process)

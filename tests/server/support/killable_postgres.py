"""A durable Postgres of its own that a test may kill -9 and start again at the same address."""

import asyncio
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import asyncpg
import psutil

from noisescale_server.embedded import binaries, cluster, postmaster_pid, programs, socket_folder
from noisescale_server.embedded.privileges import postgres_identity
from noisescale_server.process.migrating import migrate

PORT = 5432


class KillablePostgres:
    """One cluster: unlike `EmbeddedPostgres` it keeps its socket over restarts, as a Postgres of one's own does."""

    def __init__(self, folder: Path) -> None:
        self._identity = postgres_identity()
        self._binaries = binaries.locate()
        if self._identity is not None and not binaries.runnable_by(self._binaries, self._identity):
            self._binaries = binaries.copied_to(folder, self._binaries)
        # made without fsync, which nothing here can tell from another; it runs with it
        self._cluster = cluster.ensure(folder, self._binaries, identity=self._identity, durable=False)
        self._sockets = socket_folder.create(self._identity)
        self._log = (folder / "postgres.log").open("ab")
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, driver: str = "postgresql+asyncpg", *, database: str = cluster.DATABASE) -> str:
        """Its address, the same for as long as it exists."""
        where = f"host={self._sockets}&port={PORT}"
        return f"{driver}://{cluster.SUPERUSER}@/{database}?{where}"

    def copy_database(self, name: str) -> str:
        """The address of a new database that begins as the migrated one, to which nobody may be connected."""
        asyncio.run(self._execute(f'CREATE DATABASE "{name}" TEMPLATE "{cluster.DATABASE}"'))
        return self.url(database=name)

    async def _execute(self, statement: str) -> None:
        connection = await asyncpg.connect(self.url("postgresql", database="postgres"))
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    def start(self) -> None:
        """Begin to start; `until_ready` waits."""
        arguments = cluster.postmaster_arguments(
            self._cluster, self._binaries, socket_folder=self._sockets, port=PORT, durable=True
        )
        pid_file = postmaster_pid.path_in(self._cluster)
        self._process = programs.start(
            arguments,
            identity=self._identity,
            death_signal=signal.SIGKILL,
            output=self._log.fileno(),
            stale_pid_file=pid_file if pid_file.exists() else None,
        )

    async def until_ready(self) -> None:
        """Returns when it accepts connections, recovery included."""
        assert self._process is not None
        async with asyncio.timeout(60):
            while not self._is_ready(self._process):  # noqa: ASYNC110 - another process says so in a file
                await asyncio.sleep(0.005)

    def _is_ready(self, process: subprocess.Popen[bytes]) -> bool:
        assert process.poll() is None, "Postgres ended while it was starting"
        found = postmaster_pid.read(self._cluster)
        return found is not None and found.pid == process.pid and found.status == "ready"

    def kill(self) -> None:
        """kill -9 of the postmaster and all its backends, and wait until they are gone."""
        assert self._process is not None
        # it forks no more: a session that began after the family was listed would outlive it, and keep the next one out
        self._process.send_signal(signal.SIGSTOP)
        family = self._family()
        for process in family:
            _tell(process, signal.SIGKILL)
        self._process.wait()
        psutil.wait_procs(family, timeout=30)

    def kill_one_backend(self) -> bool:
        """kill -9 of one session: Postgres then ends all others and recovers by itself; False where there is none.

        Never of the process that recovers: Postgres 18.4 does not notice, and is "in recovery mode" for good.
        """
        doing = [(child, _title(child)) for child in self._children()]
        busy = [child for child, title in doing if "INSERT" in title or "COMMIT" in title]
        sessions = [child for child, title in doing if "idle" in title]
        for child in (busy or sessions)[:1]:
            _tell(child, signal.SIGKILL)
        return bool(busy or sessions)

    def freeze(self) -> None:
        """SIGSTOP: all of it is there and none of it answers."""
        for process in self._family():
            _tell(process, signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        for process in self._family():
            _tell(process, signal.SIGCONT)

    def _family(self) -> list[psutil.Process]:
        assert self._process is not None
        return [psutil.Process(self._process.pid), *self._children()]

    def _children(self) -> list[psutil.Process]:
        assert self._process is not None
        return psutil.Process(self._process.pid).children()

    def close(self) -> None:
        """End it, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self.kill()
        socket_folder.remove(self._sockets)
        self._log.close()


def _tell(process: psutil.Process, number: signal.Signals) -> None:
    """Send a signal, unless the process has just gone."""
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)


def _title(process: psutil.Process) -> str:
    """What Postgres says that the process is doing."""
    with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
        return " ".join(process.cmdline())
    return ""


@contextmanager
def killable_postgres() -> Iterator[KillablePostgres]:
    """A migrated, running cluster in a folder of its own, gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="noisescale-test-", dir="/tmp"))
    folder.chmod(0o711)
    postgres = KillablePostgres(folder)
    try:
        postgres.start()
        asyncio.run(postgres.until_ready())
        migrate(postgres.url())
        yield postgres
    finally:
        postgres.close()
        shutil.rmtree(folder)

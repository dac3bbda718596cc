"""A coordinator and workers of Citus as processes on this machine: what the tests use in place of one Postgres.

Each node is a PostgreSQL with Citus, at a Unix socket of its own, as an unprivileged user when we are root. A database
is one on every node, under one name: copying it on each of them copies where its shards are, too.
"""

import asyncio
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import asyncpg
import psutil

from noisescale_server.embedded import programs, running, socket_folder
from noisescale_server.embedded.binaries import Binaries
from noisescale_server.embedded.cluster import DATABASE, SUPERUSER
from noisescale_server.embedded.postmaster_pid import read as read_pid_file
from noisescale_server.embedded.privileges import postgres_identity

FOLDER: Final = "NOISESCALE_CITUS_BIN"
"""Names the folder with `postgres` and `initdb` of a PostgreSQL that has Citus; `make test-citus` sets it."""
EMPTY: Final = "template_citus"
"""A database with the extension and the nodes, and nothing else."""
NUM_SHARDS: Final = 2

_SETTINGS: Final = {
    "listen_addresses": "",
    "shared_preload_libraries": "citus",
    "wal_level": "logical",
    "max_prepared_transactions": "300",
    "max_connections": "300",
    # a maintenance daemon for each database that is in use, and those that move shards
    "max_worker_processes": "48",
    "max_replication_slots": "32",
    "max_wal_senders": "32",
    "shared_buffers": "128MB",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    "logging_collector": "off",
    "timezone": "UTC",
    "jit": "off",
    # the nodes meet at sockets that nobody else can open
    "citus.node_conninfo": "sslmode=disable",
    "citus.shard_count": str(NUM_SHARDS),
    "citus.enable_statistics_collection": "off",
}
_DURABLE: Final = ("fsync", "synchronous_commit", "full_page_writes")
_FORGET_SESSIONS: Final = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}' AND pid <> pg_backend_pid()"
)


class Node:
    """One PostgreSQL with Citus in a folder of its own; it keeps its address over restarts."""

    def __init__(self, folder: Path, binaries: Binaries, *, is_durable: bool) -> None:
        self._identity = postgres_identity()
        self._binaries = binaries
        self._data = folder / "data"
        self._log = (folder / "postgres.log").open("ab")
        self._is_durable = is_durable
        self.sockets = socket_folder.create(self._identity)
        self._process: subprocess.Popen[bytes] | None = None
        if self._identity is not None:
            os.chown(folder, self._identity.uid, self._identity.gid)
        access = [f"--username={SUPERUSER}", "--auth-local=trust", "--auth-host=reject"]
        locale = ["--encoding=UTF8", "--locale=C.UTF-8"]
        made = [binaries.program("initdb"), "--no-sync", *locale, *access, "-D", str(self._data)]
        programs.run(made, identity=self._identity)

    def url(self, database: str, driver: str = "postgresql") -> str:
        """The address of a database on this node alone."""
        return running.url_of(self.sockets, database, driver=driver)

    def start(self) -> None:
        """Begin to start; `until_ready` waits."""
        settings = _SETTINGS | ({} if self._is_durable else dict.fromkeys(_DURABLE, "off"))
        # where a node that moves shards finds itself
        settings |= {"citus.local_hostname": str(self.sockets)}
        arguments = [argument for name, value in settings.items() for argument in ("-c", f"{name}={value}")]
        where = ["-D", str(self._data), "-k", str(self.sockets), "-p", str(socket_folder.PORT)]
        pid_file = self._data / "postmaster.pid"
        self._process = programs.start(
            [self._binaries.program("postgres"), *where, *arguments],
            identity=self._identity,
            death_signal=signal.SIGQUIT,
            output=self._log.fileno(),
            stale_pid_file=pid_file if pid_file.exists() else None,
        )

    async def until_ready(self) -> None:
        """Returns when it accepts connections, recovery included."""
        assert self._process is not None, "it was started"
        async with asyncio.timeout(120):
            while not self._is_ready(self._process):  # noqa: ASYNC110 - another process says so in a file
                await asyncio.sleep(0.01)

    def _is_ready(self, process: subprocess.Popen[bytes]) -> bool:
        assert process.poll() is None, f"PostgreSQL ended while it was starting; see {self._log.name}"
        found = read_pid_file(self._data)
        return found is not None and found.pid == process.pid and found.status == "ready"

    def kill(self) -> None:
        """kill -9 of the postmaster and all its sessions, and wait until they are gone."""
        assert self._process is not None, "it was started"
        # it forks no more: a session that began after the family was listed would outlive it, and keep the next one out
        self._process.send_signal(signal.SIGSTOP)
        first = psutil.Process(self._process.pid)
        family = [first, *first.children(recursive=True)]
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        self._process.wait()
        psutil.wait_procs(family, timeout=30)
        socket_folder.clear(self.sockets)

    def restart(self) -> None:
        """A fast shutdown, and a start; `until_ready` waits."""
        self.stop()
        self.start()

    def stop(self) -> None:
        """A fast shutdown; an immediate one of a node without fsync, which goes with the test."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT if self._is_durable else signal.SIGQUIT)
            self._process.wait()
        socket_folder.clear(self.sockets)

    def close(self) -> None:
        """Stop it and remove its socket."""
        self.stop()
        socket_folder.remove(self.sockets)
        self._log.close()

    async def execute(self, *statements: str, database: str = "postgres") -> None:
        """Run statements one by one, each in a transaction of its own."""
        connection = await asyncpg.connect(self.url(database))
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()


class CitusCluster:
    """A coordinator and workers; for tests it is what `EmbeddedPostgres` is: databases by name, and their addresses."""

    def __init__(self, folder: Path, *, num_workers: int = 2, is_durable: bool = False) -> None:
        self._folder = folder
        self._is_durable = is_durable
        self._databases = [EMPTY]
        self._binaries = Binaries(Path(os.environ[FOLDER]).parent)
        self.coordinator = self._new_node()
        self.workers = [self._new_node() for _ in range(num_workers)]

    @classmethod
    @contextmanager
    def throw_away(cls, *, num_workers: int = 2, is_durable: bool = False) -> Iterator["CitusCluster"]:
        """A running cluster in a folder of its own, gone afterwards."""
        folder = Path(tempfile.mkdtemp(prefix="noisescale-citus-", dir="/tmp"))
        folder.chmod(0o711)
        cluster = cls(folder, num_workers=num_workers, is_durable=is_durable)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.close()
            # some million files after a thousand databases: nobody waits for it, least of all the last test
            subprocess.run(["sh", "-c", 'rm -rf "$0" &', str(folder)], check=True, start_new_session=True)

    @property
    def nodes(self) -> list[Node]:
        """All nodes, the coordinator first."""
        return [self.coordinator, *self.workers]

    def start(self) -> None:
        """Start every node, and make the database that others are copies of."""
        for node in self.nodes:
            node.start()
        _run(self._until_ready(), _each(self.nodes, f'CREATE DATABASE "{EMPTY}"'), self._join(EMPTY))
        self.create_database(DATABASE)

    async def _until_ready(self) -> None:
        await asyncio.gather(*(node.until_ready() for node in self.nodes))

    async def _join(self, database: str) -> None:
        await asyncio.gather(*(node.execute("CREATE EXTENSION citus", database=database) for node in self.nodes))
        port = socket_folder.PORT
        await self.coordinator.execute(
            f"SELECT citus_set_coordinator_host('{self.coordinator.sockets}', {port})",
            *(f"SELECT citus_add_node('{worker.sockets}', {port})" for worker in self.workers),
            database=database,
        )

    def _new_node(self) -> Node:
        folder = Path(tempfile.mkdtemp(prefix="node-", dir=self._folder))
        return Node(folder, self._binaries, is_durable=self._is_durable)

    def url(self, database: str = DATABASE, driver: str = "postgresql+asyncpg") -> str:
        """The address of a database at the coordinator."""
        return self.coordinator.url(database, driver)

    def create_database(self, name: str, template: str = EMPTY) -> None:
        """Create a database on every node as a copy of `template`, to which nobody may be connected meanwhile."""
        # the template's maintenance daemon is a session of it; without connections to it, none is started again
        alone = (f'ALTER DATABASE "{template}" ALLOW_CONNECTIONS false', _FORGET_SESSIONS.format(name=template))
        _run(_each(self.nodes, *alone, f'CREATE DATABASE "{name}" TEMPLATE "{template}"'))
        self._databases.append(name)

    def drop_database(self, name: str) -> None:
        """Drop a database on every node and end the sessions in it."""
        _run(_each(self.nodes, f'DROP DATABASE "{name}" WITH (FORCE)'))
        self._databases.remove(name)

    def add_worker(self, database: str) -> Node:
        """One more node, which knows this database and holds no shard of it yet."""
        node = self._new_node()
        self.workers.append(node)
        node.start()
        # with the roles a node gets what the coordinator says of every database
        _run(node.until_ready(), *(node.execute(f'CREATE DATABASE "{name}"') for name in self._databases))
        _run(node.execute("CREATE EXTENSION citus", database=database))
        join = f"SELECT citus_add_node('{node.sockets}', {socket_folder.PORT})"
        _run(self.coordinator.execute(join, database=database))
        return node

    def close(self) -> None:
        """End every node, at once."""
        for node in self.nodes:
            node.close()


async def _each(nodes: Sequence[Node], *statements: str) -> None:
    await asyncio.gather(*(node.execute(*statements) for node in nodes))


def _run(*steps) -> None:  # type: ignore[no-untyped-def]
    """Wait for coroutines in turn; a loop of the tests may be there in this thread."""

    async def in_turn() -> None:
        for step in steps:
            await step

    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, in_turn()).result()

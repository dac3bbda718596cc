"""Writers, two servers and a Postgres, all of them real processes, and what may be done to them."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import asyncpg
import httpx

from killable_postgres import KillablePostgres
from noisescale.transport.spool.stream_folder import StreamFolder
from places import with_support
from served_app import free_port
from torture import oracle
from torture.doors import Door, ProxiedDoor, doors_of
from torture.nursery import Nursery

NUM_SERVERS = 2
NUM_WRITERS = 6
TOKEN = "ns_w_torture-torture-torture-torture-torture"
KEYS_OF_TABLES = ("measurement", "metric", "stream_loss")
"""The second wall against doubled rows, which the mutant without the first one must not meet."""


class Process:
    """A program of the torture that may be started again."""

    def __init__(self, arguments: Sequence[str], environment: dict[str, str], log: Path) -> None:
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *arguments], env=environment, stdout=output, stderr=output
            )

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if it lives."""
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        self.signal(signal.SIGKILL)
        self._process.wait()

    def wait(self, seconds: float) -> bool:
        """Whether it has ended by then."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True


class Server:
    """One of the servers: the same port for as long as the world is there."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.port = free_port()
        self.start()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Begin to start."""
        world = self._world
        self.process = world.nursery.fork(
            [f"--port={self.port}", f"--oracle={world.oracle}", f"--mutant={world.mutant}"]
        )

    @property
    def is_ready(self) -> bool:
        """Whether it answers."""
        try:
            return httpx.get(f"{self.url}/livez", timeout=1).status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False


class Writer:
    """One place in which a job runs after another, killed or finished."""

    def __init__(self, world: "World", door: Door) -> None:
        self._world = world
        self.door = door
        self._run_id = str(uuid4())
        self.start(is_resumed=False)

    @property
    def server(self) -> Server:
        """Where what it sends arrives."""
        return self.door.server

    def start(self, *, is_resumed: bool) -> None:
        """The next process: of the same run, as after a crash, or of a new one."""
        world = self._world
        self._run_id = self._run_id if is_resumed else str(uuid4())
        self.number = world.next_writer()
        arguments = [
            "torture.writer",
            f"--writer={self.number}",
            f"--oracle={world.oracle}",
            f"--records={world.random.randint(*world.records)}",
            f"--pause={world.pause_seconds}",
            f"--mutant={world.mutant}",
        ]
        environment = world.environment | {"NOISESCALE_URL": self.door.url, "NOISESCALE_RUN_ID": self._run_id}
        self.process = Process(arguments, environment, world.folder / "writer.log")

    def num_unacked(self) -> int:
        """Records that it knows to be accepted and of which nobody has told it that they are stored."""
        path = self._world.oracle / f"{self.number}.accepted"
        if not path.exists():
            return 0
        known = oracle.read(path)
        return max(0, known.last_seq - self._acked_seq(known.stream_id))

    def newest_file(self) -> tuple[str, Path] | None:
        """The stream that it writes and the newest file of its records; None where there is none yet."""
        path = self._world.oracle / f"{self.number}.accepted"
        stream_id = oracle.read(path).stream_id if path.exists() else ""
        folder = self._world.spool / self._run_id / stream_id
        files = StreamFolder(folder).segment_paths() if stream_id and folder.is_dir() else []
        return (stream_id, files[-1]) if files else None

    def _acked_seq(self, stream_id: str) -> int:
        try:
            return int((self._world.spool / self._run_id / stream_id / ".ack").read_text().split()[0])
        except (OSError, IndexError):
            return 0


class World:
    """Everything that takes part, in a folder of its own and a database of its own.

    Attributes:
        cut: Stream and number of the records that were cut off the files of dead jobs, as a loss of power does.
    """

    def __init__(
        self,
        folder: Path,
        postgres: KillablePostgres,
        *,
        mutant: str = "",
        seed: int = 0,
        records: tuple[int, int] = (100, 2000),
        pause_seconds: float = 0.004,
    ) -> None:
        self.folder, self.postgres, self.mutant = folder, postgres, mutant
        self.random = random.Random(seed)
        self.records, self.pause_seconds = records, pause_seconds
        self._num_started = 0
        self.oracle, self.spool = folder / "oracle", folder / "state" / "spool"
        self.oracle.mkdir()
        self.database = f"torture_{uuid4().hex[:8]}"
        self.database_url = postgres.copy_database(self.database)
        asyncio.run(self._plant_in_database())
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("NOISESCALE_")} | {
            "PYTHONPATH": with_support(),
            "OMP_NUM_THREADS": "1",
            "NOISESCALE_DATABASE_URL": self.database_url,
            "NOISESCALE_ALLOW_UNSAFE_DATABASE": "true",  # for the mutant without synchronous commits
            "NOISESCALE_DIR": str(folder / "state"),
            "NOISESCALE_LOCAL_TOKEN": TOKEN,
            "NOISESCALE_API_KEY": TOKEN,
        }
        self.nursery = Nursery(self.environment, folder / "server.log")
        self.servers = [Server(self) for _ in range(NUM_SERVERS)]
        self._proxies = ExitStack()
        self.doors = list(doors_of(self.servers, self._proxies))
        self.cut: set[tuple[str, int]] = set()
        self.until(lambda: all(server.is_ready for server in self.servers))
        self.writers: list[Writer] = []

    def start_writers(self, num_writers: int = NUM_WRITERS) -> None:
        """Jobs that log to one server or the other, half of them by a proxy."""
        self.writers = [Writer(self, self.doors[index % len(self.doors)]) for index in range(num_writers)]

    @property
    def proxies(self) -> list[ProxiedDoor]:
        """The doors that may misbehave."""
        return [door for door in self.doors if isinstance(door, ProxiedDoor)]

    def next_writer(self) -> int:
        """A number that no process has had."""
        self._num_started += 1
        return self._num_started

    async def _plant_in_database(self) -> None:
        connection = await self.connect()
        try:
            if self.mutant == "no_dedupe":
                for table in KEYS_OF_TABLES:
                    await connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT pk_{table}")
            if self.mutant == "asynchronous_commit":
                await connection.execute(f'ALTER DATABASE "{self.database}" SET synchronous_commit = off')
                # a busy machine answers so late that the WAL writer has been there: it comes each 0.2 s by default
                await connection.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
                await connection.execute("SELECT pg_reload_conf()")
        finally:
            await connection.close()

    async def connect(self) -> asyncpg.Connection:
        """A connection past the servers."""
        return await asyncpg.connect(self.postgres.url("postgresql", database=self.database))

    def until(self, is_so: Callable[[], bool], seconds: float = 60.0) -> None:
        """Returns when something has come true.

        Raises:
            TimeoutError: If that takes too long.
        """
        deadline = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > deadline:
                raise TimeoutError("the world did not come to where the torture wanted it")
            time.sleep(0.02)

    def num_acked(self) -> int:
        """Records that all jobs, dead ones too, know to be stored: grows while anything works."""
        total = 0
        for path in self.spool.glob("*/*/.ack"):
            with suppress(OSError, IndexError, ValueError):
                total += int(path.read_text().split()[0])
        return total

    def revive(self) -> None:
        """Every place has a job, every port a server."""
        for server in self.servers:
            if not server.process.is_alive:
                server.start()
        for writer in self.writers:
            if not writer.process.is_alive:
                writer.start(is_resumed=False)

    def calm_down(self) -> None:
        """No more jobs: those that are there finish as trainings do; servers and Postgres run."""
        for proxy in self.proxies:
            proxy.open()
        for writer in self.writers:
            writer.process.signal(signal.SIGCONT)
            writer.process.signal(signal.SIGTERM)
        for server in self.servers:
            server.process.signal(signal.SIGCONT)
            if not server.process.is_alive:
                server.start()
        for writer in self.writers:
            if not writer.process.wait(20):
                writer.process.kill()
        self.until(lambda: all(server.is_ready for server in self.servers))

    def sync(self, seconds: float = 300.0) -> bool:
        """Whether `noisescale sync` says that everything has arrived, by then."""
        program = str(Path(sys.executable).with_name("noisescale"))
        command = [program, "sync", str(self.folder / "state"), "--url", self.servers[0].url, f"--timeout={seconds}"]
        deadline = time.monotonic() + seconds
        with (self.folder / "sync.log").open("ab") as output:
            while time.monotonic() < deadline:
                found = subprocess.run(
                    command, env=self.environment, stdout=output, stderr=output, timeout=seconds + 60, check=False
                )
                if found.returncode == 0:
                    return True
        return False

    def close(self) -> None:
        """End every process of ours."""
        for one in (*self.writers, *self.servers):
            one.process.kill()
        self._proxies.close()
        self.nursery.close()


@contextmanager
def world(folder: Path, postgres: KillablePostgres, **settings: object) -> Iterator[World]:
    """A world for the block."""
    folder.mkdir(parents=True, exist_ok=True)
    opened = World(folder, postgres, **settings)  # type: ignore[arg-type]
    try:
        yield opened
    finally:
        opened.close()

"""EmbeddedPostgres: a Postgres that lives as long as the process that started it."""

import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO

from noisescale_server.embedded import binaries, cluster, postmaster_pid, programs, running, socket_folder
from noisescale_server.embedded.binaries import Binaries
from noisescale_server.embedded.data_lock import DataLock
from noisescale_server.embedded.errors import (
    DataFolderClosedError,
    ForeignDataFolderError,
    OldProcessesLiveError,
    PostgresFailedError,
    UnsupportedPlatformError,
    WrongThreadError,
)
from noisescale_server.embedded.privileges import closed_folder, postgres_identity

# What the embedded Postgres says, in a file.

_MAX_BYTES = 10_000_000
_NUM_LAST_LINES = 15


class ServerLog:
    """A log file that grows over starts, and one older one once it is large."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._start_of_this_run = 0

    def open(self) -> IO[bytes]:
        """The file for the server to write to, at its end."""
        if self.path.exists() and self.path.stat().st_size > _MAX_BYTES:
            self.path.replace(self.path.with_suffix(".log.1"))
        file = self.path.open("ab")
        self.path.chmod(0o600)
        self._start_of_this_run = file.tell()
        return file

    def last_lines(self) -> str:
        """The end of what was said since it was opened."""
        with self.path.open("rb") as file:
            file.seek(self._start_of_this_run)
            said = file.read().decode(errors="replace")
        return "\n".join(said.splitlines()[-_NUM_LAST_LINES:])


_logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.01
_SECONDS_BETWEEN_WORDS_OF_PATIENCE = 10
_MEMORY_IN_USE = "pre-existing shared memory block"
"""What Postgres says, in the C locale that we give it, while processes of the last postmaster live."""


class EmbeddedPostgres:
    """One Postgres server on one data folder, owned by this process.

    Start and stop it in the main thread: the kernel stops Postgres when the thread that started it ends. Nobody else
    can connect: there is only a Unix socket in a folder of mode 0700.
    """

    def __init__(self, data_dir: Path, *, durable: bool = True) -> None:
        """Remember what to start; nothing happens yet.

        Args:
            data_dir: Our own folder, made if missing; the cluster, the log and the lock are in it.
            durable: False switches fsync off: for throw-away clusters of tests only.
        """
        self._data_dir = data_dir.absolute()
        self._durable = durable
        self._identity = postgres_identity()
        self._log = ServerLog(self._data_dir / "postgres.log")
        self._lock: DataLock | None = None
        self._socket_folder: Path | None = None
        self._binaries: Binaries | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    @contextlib.contextmanager
    def throw_away(cls, parent: Path | None = None) -> Iterator["EmbeddedPostgres"]:
        """A running server without durability, on a folder of its own that goes with it. For tests.

        Args:
            parent: Where its folder is made; None: in /tmp.
        """
        # not TMPDIR, which may be nobody's but ours
        where = parent or Path("/tmp")  # noqa: S108 - the folder itself has a name that nobody can guess
        data_dir = Path(tempfile.mkdtemp(prefix="noisescale-throw-away-", dir=where))
        data_dir.chmod(0o711)  # when we are root, Postgres runs as another user and has to get through
        try:
            with cls(data_dir, durable=False) as postgres:
                yield postgres
        finally:
            shutil.rmtree(data_dir)

    @property
    def pid(self) -> int:
        """The process id of the running postmaster."""
        return self._running().pid

    def start(self) -> None:
        """Start Postgres and return when it accepts connections, however long the recovery after a crash takes.

        Raises EmbeddedPostgresError when it cannot run; each kind says the way out.
        """
        if self._process is not None:
            raise RuntimeError(f"the embedded Postgres in {self._data_dir} is already started")
        self._check_platform()
        self._make_data_dir()
        self._lock = DataLock(self._data_dir)
        try:
            self._start_locked(self._lock)
        except BaseException:
            self._clean_up()
            raise

    def _check_platform(self) -> None:
        if sys.platform == "win32":
            raise UnsupportedPlatformError("on Windows")
        if threading.current_thread() is not threading.main_thread():
            raise WrongThreadError(threading.current_thread().name)

    def _make_data_dir(self) -> None:
        """Make the folder ours alone; when we are root, others may pass through to what they know by name and own."""
        missing = [folder for folder in (self._data_dir, *self._data_dir.parents) if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir()
            folder.chmod(0o700 if self._identity is None else 0o711)  # whatever the umask
        owner = self._data_dir.stat().st_uid
        if owner != os.geteuid():
            raise ForeignDataFolderError(self._data_dir, owner, os.geteuid())
        if self._identity is not None:
            closed = closed_folder(self._data_dir, self._identity)
            if closed is not None:
                raise DataFolderClosedError(self._data_dir, closed, self._identity.name)

    def _start_locked(self, lock: DataLock) -> None:
        postmaster_pid.stop_orphan(cluster.folder_in(self._data_dir))
        if lock.previous_owner is not None and lock.previous_owner.socket_folder is not None:
            socket_folder.remove(lock.previous_owner.socket_folder)
        self._binaries = self._usable_binaries()
        folder = cluster.ensure(self._data_dir, self._binaries, identity=self._identity, durable=self._durable)
        self._socket_folder = socket_folder.create(self._identity)
        lock.sign(self._socket_folder)
        self._process = self._start_postmaster(folder, self._binaries, self._socket_folder)
        self._wait_until_ready(folder, self._process)

    def _usable_binaries(self) -> Binaries:
        found = binaries.locate()
        if self._identity is None or binaries.runnable_by(found, self._identity):
            return found
        return binaries.copied_to(self._data_dir, found)

    def _start_postmaster(self, folder: Path, installed: Binaries, sockets: Path) -> subprocess.Popen[bytes]:
        arguments = cluster.postmaster_arguments(
            folder, installed, socket_folder=sockets, port=socket_folder.PORT, durable=self._durable
        )
        pid_file = postmaster_pid.path_in(folder)
        with self._log.open() as output:
            return programs.start(
                arguments,
                identity=self._identity,
                death_signal=signal.SIGINT,  # a fast shutdown: no client is waited for, nothing committed is lost
                output=output,
                stale_pid_file=pid_file if pid_file.exists() else None,
            )

    def _wait_until_ready(
        self, folder: Path, process: subprocess.Popen[bytes], *, unless: Callable[[], bool] = lambda: False
    ) -> None:
        patience_ends = time.monotonic() + _SECONDS_BETWEEN_WORDS_OF_PATIENCE
        while not _is_ready(folder, process.pid) and not unless():
            exit_code = process.poll()
            if exit_code is not None:
                raise self._failure_of(folder, exit_code)
            if time.monotonic() > patience_ends:
                _logger.warning("Postgres is still starting, probably recovering from a crash; see %s", self._log.path)
                patience_ends += _SECONDS_BETWEEN_WORDS_OF_PATIENCE
            time.sleep(_POLL_SECONDS)

    def _failure_of(self, folder: Path, exit_code: int) -> PostgresFailedError:
        said = self._log.last_lines()
        if _MEMORY_IN_USE in said:
            return OldProcessesLiveError(exit_code, said, self._log.path, postmaster_pid.processes_in(folder))
        return PostgresFailedError("postgres", exit_code, said, self._log.path)

    def how_it_ended(self) -> str | None:
        """How Postgres ended though nobody stopped it, in words; None while it runs."""
        exit_code = self._running().poll()
        if exit_code is None:
            return None
        return f"was killed by signal {-exit_code}" if exit_code < 0 else f"ended with exit code {exit_code}"

    def last_lines(self) -> str:
        """The end of what Postgres has said since it was started."""
        return self._log.last_lines()

    def start_again(self, *, unless: Callable[[], bool]) -> None:
        """Start Postgres where it was, after it has ended by itself; return when it accepts connections.

        By a thread that lives until it is stopped: the kernel stops Postgres when the thread that started it ends.

        Args:
            unless: Whether to return at once though it is not ready yet: somebody stops it.

        Raises PostgresFailedError when it ends before it is ready, and OldProcessesLiveError, a kind of it, while
        processes of the last one keep it out.
        """
        self._running()
        assert self._binaries is not None, "they were found before the first start"
        assert self._socket_folder is not None, "it was made before the first start"
        socket_folder.clear(self._socket_folder)
        folder = cluster.folder_in(self._data_dir)
        self._process = self._start_postmaster(folder, self._binaries, self._socket_folder)
        self._wait_until_ready(folder, self._process, unless=unless)

    def stop(self) -> None:
        """Stop Postgres, wait until it is gone, and let the next owner in; nothing when it is not running."""
        self._clean_up()

    def _clean_up(self) -> None:
        if self._process is not None:
            # a throw-away cluster needs no last checkpoint
            _stop(self._process, signal.SIGINT if self._durable else signal.SIGQUIT)
            self._process = None
        if self._socket_folder is not None:
            socket_folder.remove(self._socket_folder)
            self._socket_folder = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def url(self, database: str = cluster.DATABASE, driver: str = "postgresql+asyncpg") -> str:
        """The URL of one database, through the socket; libpq and asyncpg themselves take driver="postgresql"."""
        self._running()
        assert self._socket_folder is not None, "it was made before Postgres was started"
        return running.url_of(self._socket_folder, database, driver=driver)

    def create_database(self, name: str, template: str | None = None) -> None:
        """Create a database, as a copy of `template` if given; nobody may be connected to that one meanwhile."""
        copied = [f"--template={template}", "--strategy=file_copy"] if template else []
        self._run_client("createdb", *copied, name)

    def drop_database(self, name: str) -> None:
        """Drop a database and end the sessions in it."""
        self._run_client("dropdb", "--force", name)

    def _run_client(self, program: str, *arguments: str) -> None:
        self._running()
        assert self._binaries is not None
        where = [f"--host={self._socket_folder}", f"--port={socket_folder.PORT}", f"--username={cluster.SUPERUSER}"]
        programs.run([self._binaries.program(program), *where, *arguments], identity=self._identity)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError(f"the embedded Postgres in {self._data_dir} is not running: call start() first")
        return self._process

    def __enter__(self) -> "EmbeddedPostgres":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _is_ready(folder: Path, pid: int) -> bool:
    found = postmaster_pid.read(folder)
    return found is not None and found.pid == pid and found.status == "ready"


def _stop(process: subprocess.Popen[bytes], how: signal.Signals) -> None:
    """Send the signal and wait; an impatient second Ctrl-C makes Postgres drop everything, which costs a recovery."""
    try:
        process.send_signal(how)
        process.wait()
    except KeyboardInterrupt:
        process.send_signal(signal.SIGQUIT)
        process.wait()
        raise

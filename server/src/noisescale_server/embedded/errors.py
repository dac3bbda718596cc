"""Why the embedded Postgres could not do what was asked.

EmbeddedPostgresError
├── UnsupportedPlatformError   no binaries here, or no way to give up root
├── DataFolderInUseError       another process owns the data folder
├── ForeignDataFolderError     the folder belongs to another user
├── DataFolderClosedError      the folder is closed to the user that Postgres runs as
├── WrongThreadError           started off the main thread
├── PostgresFailedError        Postgres or one of its tools ended with an error
│   └── OldProcessesLiveError  processes of the last postmaster still run, and keep the next one out
└── PostgresKeepsEndingError   it was started again and again, and ended each time
"""

from pathlib import Path

OWN_POSTGRES = "set NOISESCALE_DATABASE_URL to a Postgres of your own"


class EmbeddedPostgresError(RuntimeError):
    """Anything that keeps the embedded Postgres from running."""


class UnsupportedPlatformError(EmbeddedPostgresError):
    """There are no usable Postgres binaries on this machine."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"embedded Postgres cannot run here, {reason}: {OWN_POSTGRES}")


class DataFolderInUseError(EmbeddedPostgresError):
    """Another process holds the lock of the data folder."""

    def __init__(self, data_dir: Path, owner_pid: int | None) -> None:
        owner = "another process" if owner_pid is None else f"process {owner_pid}"
        super().__init__(
            f"the embedded Postgres in {data_dir} belongs to {owner}, which is running: "
            f"stop that process, or set NOISESCALE_DATA_DIR to another folder"
        )
        self.owner_pid = owner_pid


class ForeignDataFolderError(EmbeddedPostgresError):
    """Another user made the data folder; Postgres runs on its own files only."""

    def __init__(self, data_dir: Path, owner: int, ours: int) -> None:
        super().__init__(
            f"{data_dir} belongs to user {owner} and we are user {ours}: "
            f"run noisescale as user {owner}, or set NOISESCALE_DATA_DIR to another folder"
        )


class DataFolderClosedError(EmbeddedPostgresError):
    """Postgres runs as an unprivileged user, who cannot get to the data folder."""

    def __init__(self, data_dir: Path, closed: Path, user: str) -> None:
        super().__init__(
            f"Postgres refuses to run as root and runs as {user}, to whom {closed} is closed, so not to {data_dir}: "
            "set NOISESCALE_DATA_DIR to a folder below open ones, such as /var/lib/noisescale"
        )


class WrongThreadError(EmbeddedPostgresError):
    """The kernel would stop Postgres when the starting thread ends, not when the process ends."""

    def __init__(self, thread_name: str) -> None:
        super().__init__(
            f"embedded Postgres was started from thread {thread_name} and would stop when that thread ends: "
            "start it from the main thread"
        )


class PostgresFailedError(EmbeddedPostgresError):
    """A Postgres program ended with an error; the message carries its last lines."""

    def __init__(self, program: str, exit_code: int, last_lines: str, log: Path | None = None) -> None:
        where = f"; all of it is in {log}" if log else ""
        said = last_lines.strip() or "(it said nothing)"
        super().__init__(f"{program} ended with exit code {exit_code}{where}. Its last lines:\n{said}")
        self.exit_code = exit_code


class OldProcessesLiveError(PostgresFailedError):
    """Processes that outlived their postmaster still use its memory: Postgres does not start beside them."""

    def __init__(self, exit_code: int, last_lines: str, log: Path, pids: list[int]) -> None:
        super().__init__("postgres", exit_code, last_lines, log)
        which = f" (processes {', '.join(map(str, pids))})" if pids else ""
        self.args = (
            f"what is left of the last embedded Postgres still runs{which} and keeps the next one out: "
            f"end by hand what does not end by itself, see {log}",
        )


class PostgresKeepsEndingError(EmbeddedPostgresError):
    """It was started again and again, and ended each time."""

    def __init__(self, num_ends: int, end: str, last_lines: str) -> None:
        said = last_lines.strip() or "(it said nothing)"
        super().__init__(
            f"the embedded Postgres ended {num_ends} times in a row, the last time it {end}: noisescale ends, too. "
            "What is acknowledged is on disk, jobs keep what they log: cure what its last lines say, then start again. "
            f"They are:\n{said}"
        )

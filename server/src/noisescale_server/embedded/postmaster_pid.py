"""The file by which a running Postgres is known, `postmaster.pid`, and whether to believe it."""

import logging
import signal
from dataclasses import dataclass
from pathlib import Path

import psutil

_logger = logging.getLogger(__name__)

_STATUS_LINE = 7
_STILL_WAITING_SECONDS = 10


@dataclass(frozen=True, slots=True)
class PidFile:
    """What a postmaster wrote about itself; `status` is None while it is still opening its sockets."""

    pid: int
    status: str | None


def path_in(cluster: Path) -> Path:
    """Where Postgres keeps the file."""
    return cluster / "postmaster.pid"


def read(cluster: Path) -> PidFile | None:
    """The file's content; None without a file or while its first line is being written."""
    try:
        lines = path_in(cluster).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    if not lines or not lines[0].strip().isdigit():
        return None
    return PidFile(pid=int(lines[0]), status=lines[_STATUS_LINE].strip() if len(lines) > _STATUS_LINE else None)


def postmaster_of(cluster: Path) -> psutil.Process | None:
    """The live postmaster of this cluster; None when the file is missing or stale, or its pid reused."""
    found = read(cluster)
    if found is None:
        return None
    try:
        process = psutil.Process(found.pid)
        return process if _serves(process.cmdline(), cluster) else None
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None


def _serves(command_line: list[str], cluster: Path) -> bool:
    """Whether this is the command line of a postmaster on that cluster."""
    if not command_line or Path(command_line[0]).name != "postgres" or "-D" not in command_line[:-1]:
        return False
    return Path(command_line[command_line.index("-D") + 1]).resolve() == cluster.resolve()


def processes_in(cluster: Path) -> list[int]:
    """The processes of Postgres that work in this folder, as far as we may see them."""
    found = []
    for process in psutil.process_iter(["name"]):
        try:
            if process.info["name"] == "postgres" and Path(process.cwd()).resolve() == cluster.resolve():
                found.append(process.pid)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return sorted(found)


def stop_orphan(cluster: Path) -> None:
    """Stop a postmaster that outlived its owner, and wait until it is gone, however long its last checkpoint takes."""
    orphan = postmaster_of(cluster)
    if orphan is None:
        return
    orphan.send_signal(signal.SIGINT)
    while orphan.is_running() and orphan.status() != psutil.STATUS_ZOMBIE:
        try:
            orphan.wait(timeout=_STILL_WAITING_SECONDS)
        except psutil.TimeoutExpired:
            _logger.warning("waiting for Postgres, process %d, left by an owner that died", orphan.pid)

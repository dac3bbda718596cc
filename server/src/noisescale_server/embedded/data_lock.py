"""One owner for each data folder."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from noisescale_server.embedded.errors import DataFolderInUseError

if sys.platform != "win32":
    import fcntl

_LOCK_FILE = "owner.lock"


@dataclass(frozen=True, slots=True)
class Owner:
    """What an owner leaves in the lock file."""

    pid: int
    socket_folder: Path | None


def path_in(data_dir: Path) -> Path:
    """The file that is locked."""
    return data_dir / _LOCK_FILE


def owner_of(data_dir: Path) -> Owner | None:
    """Who holds the lock of a data folder; None when nobody does."""
    descriptor = os.open(path_in(data_dir), os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read(descriptor)
    finally:
        os.close(descriptor)
    return None


def _read(descriptor: int) -> Owner | None:
    lines = os.pread(descriptor, 4096, 0).decode().splitlines()
    if not lines or not lines[0].isdigit():
        return None
    folder = lines[1] if len(lines) > 1 else ""
    return Owner(pid=int(lines[0]), socket_folder=Path(folder) if folder else None)


class DataLock:
    """The exclusive right to a data folder, held until release or until the process ends, however it ends.

    The file stays when the lock goes: removing it would let two owners lock two files of one name.
    """

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._descriptor = os.open(path_in(data_dir), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        self.previous_owner: Owner | None = None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.previous_owner = _read(self._descriptor)
            self.sign(self.previous_owner.socket_folder if self.previous_owner else None)
        except BlockingIOError:
            owner = _read(self._descriptor)
            os.close(self._descriptor)
            raise DataFolderInUseError(data_dir, owner.pid if owner else None) from None

    def sign(self, socket_folder: Path | None) -> None:
        """Write our pid for those who are refused, and the socket's folder for whoever cleans up after a crash."""
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n{socket_folder or ''}\n".encode(), 0)

    def release(self) -> None:
        """Let the next owner in."""
        os.close(self._descriptor)

    def __enter__(self) -> "DataLock":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

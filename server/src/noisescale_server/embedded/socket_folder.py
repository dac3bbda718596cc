"""A private folder for the Unix socket: the only door to the embedded Postgres, which asks for no password there."""

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from noisescale_server.embedded.errors import UnsupportedPlatformError
from noisescale_server.embedded.privileges import SystemUser, closed_folder

PORT = 5432
_PREFIX = "noisescale-pg-"
_SOCKET = f".s.PGSQL.{PORT}"
_MAX_SOCKET_PATH_BYTES = 103  # sun_path with its NUL: 104 bytes on macOS, 108 on Linux


def create(identity: SystemUser | None) -> Path:
    """A new folder with mode 0700, owned by the user that Postgres runs as.

    Raises UnsupportedPlatformError when no folder for temporary files has a path short and open enough.
    """
    for parent in dict.fromkeys([Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]):  # noqa: S108
        if _suits(parent, identity):
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
            if identity is not None:
                os.chown(folder, identity.uid, identity.gid)
            return folder
    raise UnsupportedPlatformError(
        "no folder for temporary files has a path of at most 75 bytes that Postgres may enter"
    )


def _suits(parent: Path, identity: SystemUser | None) -> bool:
    longest = parent / f"{_PREFIX}{'x' * 8}" / _SOCKET
    # a comma separates hosts in a connection URL
    short_enough = len(os.fsencode(longest)) <= _MAX_SOCKET_PATH_BYTES and "," not in str(parent)
    is_open = identity is None or (parent.is_dir() and closed_folder(parent, identity) is None)
    return short_enough and is_open and os.access(parent, os.W_OK)


def remove(folder: Path) -> None:
    """Remove a folder that `create` made, and what a Postgres that was killed left in it; nothing else."""
    with contextlib.suppress(FileNotFoundError):
        if not folder.name.startswith(_PREFIX) or not stat.S_ISDIR(folder.lstat().st_mode):
            return
        clear(folder)
        folder.rmdir()


def clear(folder: Path) -> None:
    """Remove what a Postgres that was killed left in its folder: the next one may take its pid for alive."""
    (folder / _SOCKET).unlink(missing_ok=True)
    (folder / f"{_SOCKET}.lock").unlink(missing_ok=True)

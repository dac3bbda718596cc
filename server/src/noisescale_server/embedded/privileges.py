"""Which user Postgres runs as, and what that user can get to."""

import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from noisescale_server.embedded.errors import UnsupportedPlatformError

if sys.platform != "win32":
    import pwd


@dataclass(frozen=True, slots=True)
class SystemUser:
    """A user of the operating system, with its main group."""

    uid: int
    gid: int
    name: str


def postgres_identity() -> SystemUser | None:
    """The unprivileged user for Postgres when we are root; None when Postgres can run as ourselves.

    `nobody` exists everywhere; initdb insists on a uid that has a name, and creating users is not ours to do.
    """
    if not is_root():
        return None
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        raise UnsupportedPlatformError("we are root and there is no user 'nobody' to run Postgres as") from None
    return SystemUser(uid=nobody.pw_uid, gid=nobody.pw_gid, name=nobody.pw_name)


def is_root() -> bool:
    """Whether this process is root."""
    return sys.platform != "win32" and os.geteuid() == 0


def closed_folder(path: Path, identity: SystemUser) -> Path | None:
    """The first folder down to `path` that `identity` may not enter; None when the way is open."""
    resolved = path.resolve()
    for folder in [*reversed(resolved.parents), resolved]:
        if not _may_enter(folder.stat(), identity):
            return folder
    return None


def _may_enter(status: os.stat_result, identity: SystemUser) -> bool:
    if status.st_uid == identity.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == identity.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)

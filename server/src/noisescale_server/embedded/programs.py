"""Starting the programs of Postgres: as the right user, in a clean environment, bound to the life of this process."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

from noisescale_server.embedded import launch
from noisescale_server.embedded.errors import PostgresFailedError
from noisescale_server.embedded.privileges import SystemUser


def start(
    arguments: list[str],
    *,
    identity: SystemUser | None,
    death_signal: signal.Signals,
    output: IO[bytes] | int,
    stdin: int = subprocess.DEVNULL,
    stale_pid_file: Path | None = None,
) -> subprocess.Popen[bytes]:
    """A running program that gets `death_signal` when the calling thread ends, in a session of its own.

    Its own session keeps the terminal's Ctrl-C from Postgres, which has to outlive the web server.
    """
    orders: launch.Launch = {"owner": os.getpid(), "death_signal": int(death_signal)}
    if identity is not None:
        orders["uid"], orders["gid"] = identity.uid, identity.gid
    if stale_pid_file is not None:
        orders["stale_pid_file"] = str(stale_pid_file)
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-I", "-S", launch.__file__, json.dumps(orders), *arguments],
        stdin=stdin,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=clean_environment(),
        start_new_session=True,
    )


def run(arguments: list[str], *, identity: SystemUser | None, text: str = "") -> str:
    """What the program printed, having run to its end with `text` as its input.

    Raises PostgresFailedError when its exit code is not 0.
    """
    process = start(
        arguments, identity=identity, death_signal=signal.SIGKILL, output=subprocess.PIPE, stdin=subprocess.PIPE
    )
    printed = process.communicate(text.encode())[0].decode(errors="replace")
    if process.returncode != 0:
        raise PostgresFailedError(Path(arguments[0]).name, process.returncode, printed[-4000:])
    return printed


def clean_environment() -> dict[str, str]:
    """Our environment without PG* (a PGPORT of the user's would move our socket), in the C locale and UTC."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_"))}
    return inherited | {"LANG": "C", "LC_ALL": "C", "TZ": "UTC"}

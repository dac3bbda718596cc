"""The file in which a local server tells the same user's training jobs where it is, and the key of this start.

The client reads the same file by the same rule: `$NOISESCALE_DIR/server.json`, else `noisescale/server.json` below
`$XDG_STATE_HOME` or `~/.local/state`, on every platform.
"""

import contextlib
import json
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

LISTENING_SECONDS = 1.0
"""Longest wait for another server on this machine to take a connection."""


def state_folder(environment: Mapping[str, str]) -> Path:
    """Where a user's servers and jobs keep what outlives them."""
    own_folder = environment.get("NOISESCALE_DIR")
    if own_folder:
        return Path(own_folder)
    state = environment.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "noisescale"


def server_file(environment: Mapping[str, str]) -> Path:
    """Where the file is."""
    return state_folder(environment) / "server.json"


@contextlib.contextmanager
def announced(url: str, key: str, file: Path) -> Iterator[str | None]:
    """Say the server's address and key while the block runs; the file of another server that runs stays as it is.

    Yields:
        The address of that other server, which jobs go on to find; None where they find this one.
    """
    other = _running_server(file)
    if other is None:
        _write(file, {"url": url, "pid": os.getpid(), "key": key})
    try:
        yield other
    finally:
        if _pid_in(file) == os.getpid():
            file.unlink(missing_ok=True)


def _running_server(file: Path) -> str | None:
    """The address in the file, where the process that wrote it lives and somebody listens there."""
    pid, url = _pid_in(file), _content(file).get("url")
    if pid is None or pid == os.getpid() or not _lives(pid) or not isinstance(url, str):
        return None
    address = urlsplit(url)
    try:
        socket.create_connection((address.hostname, address.port), LISTENING_SECONDS).close()
    except (OSError, ValueError):
        return None
    return url


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _write(file: Path, content: dict[str, str | int]) -> None:
    """Replace the file as a whole, so that nobody reads half of it; mkstemp makes it 0600."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, unfinished = tempfile.mkstemp(prefix=".server-", dir=file.parent)
    with os.fdopen(descriptor, "w", encoding="utf-8") as output:
        json.dump(content, output)
    Path(unfinished).replace(file)


def _pid_in(file: Path) -> int | None:
    """The pid in the file; None when there is no file or it is not ours to understand."""
    pid = _content(file).get("pid")
    return pid if isinstance(pid, int) and pid > 0 else None


def _content(file: Path) -> dict[str, object]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
    return content if isinstance(content, dict) else {}

"""The file in which a local server tells the same user's training jobs where it is, and the key of this start.

The client reads the same file by the same rule: `$NOISESCALE_DIR/server.json`, else `noisescale/server.json` below
`$XDG_STATE_HOME` or `~/.local/state`, on every platform.
"""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path


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
def announced(url: str, key: str, file: Path) -> Iterator[None]:
    """Say the server's address and key while the block runs; a file that another server wrote meanwhile stays."""
    _write(file, {"url": url, "pid": os.getpid(), "key": key})
    try:
        yield
    finally:
        if _pid_in(file) == os.getpid():
            file.unlink(missing_ok=True)


def _write(file: Path, content: dict[str, str | int]) -> None:
    """Replace the file as a whole, so that nobody reads half of it; mkstemp makes it 0600."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, unfinished = tempfile.mkstemp(prefix=".server-", dir=file.parent)
    with os.fdopen(descriptor, "w", encoding="utf-8") as output:
        json.dump(content, output)
    Path(unfinished).replace(file)


def _pid_in(file: Path) -> int | None:
    """The pid in the file; None when there is no file or it is not ours to understand."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    pid = content.get("pid") if isinstance(content, dict) else None
    return pid if isinstance(pid, int) else None

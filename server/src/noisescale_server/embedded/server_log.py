"""What the embedded Postgres says, in a file."""

from pathlib import Path
from typing import IO

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

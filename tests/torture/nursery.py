"""Forks server processes from one that has loaded the application: who was killed is back in 0.2 s, not in 2 s."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


class Nursery:
    """Starts `torture.serving` as often as it is asked.

    Args:
        environment: Of all servers.
        log: Where they write.
    """

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "torture.serving"],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
            )

    def fork(self, arguments: list[str]) -> "Forked":
        """A server with these arguments."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(arguments) + "\n")
        self._process.stdin.flush()
        return Forked(int(self._process.stdout.readline()))

    def close(self) -> None:
        """End it; the servers live on until they are killed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


class Forked:
    """A server process, which nobody waits for but the system.

    Attributes:
        pid: Its process id.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if it lives."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        while self.is_alive:
            self.signal(signal.SIGKILL)
            time.sleep(0.005)


def serve_forks(serve: Callable[[list[str]], None]) -> None:
    """Fork for each line of the standard input, and print the process; the child serves with the line's words."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            sys.stdin.close()
            serve(line.split())
            os._exit(0)
        print(pid, flush=True)

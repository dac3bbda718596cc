"""Starts the embedded Postgres again when it has ended by itself: killed, or out of memory."""

import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Final

from noisescale_server.embedded.errors import EmbeddedPostgresError, OldProcessesLiveError, PostgresKeepsEndingError
from noisescale_server.embedded.supervisor import EmbeddedPostgres

_logger = logging.getLogger(__name__)

_POLL_SECONDS: Final = 0.1
FIRST_PAUSE_SECONDS: Final = 0.1
"""Doubled with every end in a row, and with every start that old sessions prevent."""
LONGEST_PAUSE_SECONDS: Final = 10.0
"""Between starts that old sessions prevent: they are waited out, however long they live."""
MAX_ENDS_IN_A_ROW: Final = 8
LONG_ENOUGH_SECONDS: Final = 60.0
"""What ran for so long is no crash loop: counting begins anew."""


@contextlib.contextmanager
def kept_running(postgres: EmbeddedPostgres) -> Iterator[None]:
    """Keep a started Postgres running while the block does, at the same address; the log says what happened.

    Raises:
        PostgresKeepsEndingError: When it has ended too often in a row; the block is ended by SIGTERM then.
    """
    keeper = _Keeper(postgres)
    keeper.start()
    try:
        yield
    finally:
        keeper.stop()
        if keeper.failure is not None:
            raise keeper.failure


class _Keeper(threading.Thread):
    """A thread, and not a task: the kernel stops Postgres when the thread that started it ends.

    So this one lives as long as what it has started is wanted.
    """

    def __init__(self, postgres: EmbeddedPostgres) -> None:
        super().__init__(name="keeper of the embedded Postgres", daemon=True)
        self._postgres = postgres
        self._is_over = threading.Event()
        self.failure: PostgresKeepsEndingError | None = None

    def run(self) -> None:
        """Look whether Postgres runs, and start it where it does not."""
        ends_in_a_row, started_at = 0, time.monotonic()
        while not self._is_over.wait(_POLL_SECONDS):
            end = self._postgres.how_it_ended()
            if end is None:
                continue
            ends_in_a_row = 1 if time.monotonic() - started_at > LONG_ENOUGH_SECONDS else ends_in_a_row + 1
            if ends_in_a_row == MAX_ENDS_IN_A_ROW:
                self._give_up(end)
                return
            pause = FIRST_PAUSE_SECONDS * 2 ** (ends_in_a_row - 1)
            _logger.warning("the embedded Postgres %s: starting it again in %.1f s", end, pause)
            if self._is_over.wait(pause):
                return
            started_at = time.monotonic()
            self._start_again()

    def stop(self) -> None:
        """Return when nobody starts Postgres again any more."""
        self._is_over.set()
        self.join()

    def _start_again(self) -> None:
        begin = time.monotonic()
        # what failed has ended, and is found so by the next look
        with contextlib.suppress(EmbeddedPostgresError):
            if self._started_after_old_sessions():
                _logger.warning("the embedded Postgres runs again after %.1f s", time.monotonic() - begin)

    def _started_after_old_sessions(self) -> bool:
        """Whether it runs: a start that old sessions prevent is no end, and is tried until they are gone."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                self._postgres.start_again(unless=self._is_over.is_set)
                return True
            except OldProcessesLiveError as error:
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
                _logger.warning("%s; trying again in %.1f s", error, pause)
            if self._is_over.wait(pause):
                return False

    def _give_up(self, end: str) -> None:
        self.failure = PostgresKeepsEndingError(MAX_ENDS_IN_A_ROW, end, self._postgres.last_lines())
        # the web server ends as for whoever stops it, and the block's end says why
        os.kill(os.getpid(), signal.SIGTERM)

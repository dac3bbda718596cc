"""Room for one more file of a spool: what goes where a limit is passed."""

import contextlib
import os
from collections.abc import Callable

from noisescale.transport.limits import Limits
from noisescale.transport.spool.loss_book import LossBook
from noisescale.transport.spool.segments import Segments
from noisescale.transport.spool.stream_folder import FAULTS, StreamFolder
from noisescale.transport.wire import LostRange


class NoRoom(Exception):
    """A limit is passed, and what is there is kept."""


class Room:
    """Keeps the files of a stream within the limits.

    Args:
        limits: How much there may be.
        segments: The files.
        losses: Told what is given up.
        complain: Says a sentence now and then.
    """

    def __init__(self, limits: Limits, segments: Segments, losses: LossBook, complain: Callable[[str], None]) -> None:
        self._limits = limits
        self._segments = segments
        self._losses = losses
        self._complain = complain
        self._is_disk_low = False
        self._bytes_of_others = 0

    def look_at_the_disk(self, folder: StreamFolder) -> None:
        """See how much of it is free, and what other processes of the run have on it."""
        with contextlib.suppress(*FAULTS):
            found = os.statvfs(folder.path)
            self._is_disk_low = found.f_bavail < self._limits.free_share * found.f_blocks
            self._bytes_of_others = folder.num_bytes_beside()

    def make(self, acked_seq: int) -> None:
        """Give up the oldest file where limits are passed: one that has arrived, or else a whole one that has not.

        Args:
            acked_seq: Up to where the server has an account.

        Raises:
            NoRoom: Where what comes now is to be given up instead.
        """
        limits, segments = self._limits, self._segments
        allowed = limits.run_bytes - limits.segment_bytes - self._bytes_of_others
        while segments.num_bytes > allowed or self._is_disk_low:
            oldest = segments.oldest_but_newest()
            is_kept = limits.overflow == "drop_newest"
            if oldest is None:
                if is_kept:
                    raise NoRoom
                break
            first = max(oldest.first_seq, acked_seq + 1)
            if oldest.last_seq >= first:
                if is_kept:
                    raise NoRoom
                self._losses.give_up(LostRange(first, oldest.last_seq, "spool_full"))
                self._complain(f"the spool is full: records {first} to {oldest.last_seq} are given up")
                self._is_disk_low = False  # looked at again before the next one goes
            segments.drop(oldest)
            self._losses.write_all_again()

"""The files of one stream in order: the newest takes frames, all of them can be read."""

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from noisescale.transport.limits import Limits
from noisescale.transport.spool.frames import MAGIC, Found, frames_in
from noisescale.transport.spool.loss_book import LossBook
from noisescale.transport.spool.segment import Segment
from noisescale.transport.spool.stream_folder import FAULTS, StreamFolder
from noisescale.transport.wire import LostRange

CHUNK_BYTES = 1 << 20
MAX_FAILED_READS = 20
"""In a row, with the pauses of the uploader in between: some minutes."""


class Segments:
    """An index of files; lists are replaced, never changed, so that a reader keeps the one it began with.

    Args:
        segment_bytes: At most in one file.

    Attributes:
        newest: The file that takes frames; not there before the first.
        num_drops: How often files were deleted: who reads meanwhile reads again, as the records may be elsewhere now.
    """

    newest: Segment

    def __init__(self, segment_bytes: int) -> None:
        self._segment_bytes = segment_bytes
        self._lock = threading.Lock()
        self._list: list[Segment] = []
        self._number = 0
        self.num_drops = 0
        self._retired: deque[Segment] = deque()  # closed by whoever may wait
        self._read_to: tuple[int, Segment, int] | None = None
        self._read_ends: list[tuple[int, Segment, int]] = []

    # ---- the writer

    @property
    def num_bytes(self) -> int:
        """Of all files."""
        return sum(segment.size for segment in self._list)

    def listed(self) -> Sequence[Segment]:
        """All files, the oldest first."""
        return self._list

    def with_room(self, num_bytes: int) -> Segment | None:
        """The file that a frame of so many bytes goes into; None where that is a new one."""
        newest = self._list[-1]
        is_full = newest.size + num_bytes > self._segment_bytes and newest.size > 0
        return None if is_full or newest.is_sealed else newest

    def start(self, folder: StreamFolder, head: bytes) -> None:
        """Begin a new file, with the run's own record where there is one.

        Raises:
            OSError: Where that is not possible; then all is as before.
        """
        self._number += 1
        segment = Segment(folder.path / f"{self._number:08d}.seg")
        segment.create()
        if head:
            try:
                segment.append(head, 0)
            except FAULTS:
                segment.close()
                segment.remove()
                raise
        with self._lock:
            if self._list:
                self._list[-1].seal()
            self._list = [*self._list, segment]
            self.newest = segment

    def add(self, path: Path, found: Segment) -> None:
        """A file that another process has written."""
        self._number = max(self._number, int(path.stem))
        self._list = [*self._list, found]
        self.newest = found

    def oldest_but_newest(self) -> Segment | None:
        """The oldest file, unless it is the one that takes frames."""
        return self._list[0] if len(self._list) > 1 else None

    def first_to_write_again(self, acked_seq: int) -> Segment | None:
        """The oldest file that the disk has not confirmed, or whose name somebody has deleted under a running job.

        Args:
            acked_seq: Up to where the server has an account; where that is all, no name is missed.
        """
        segments = self._list
        doubtful = next((segment for segment in segments if segment.is_doubtful), None)
        if doubtful is not None or segments[-1].last_seq <= acked_seq or segments[-1].is_in_place():
            return doubtful
        return next((segment for segment in segments if not segment.is_in_place()), None)

    def from_on(self, first: Segment) -> Sequence[Segment]:
        """A file and all after it; none where it was deleted in between."""
        return self._list[self._list.index(first) :] if first in self._list else []

    def drop(self, *segments: Segment) -> None:
        """Delete files, out of the index all at once: a reader that begins now finds all of them or none."""
        with self._lock:
            self._list = [one for one in self._list if one not in segments]
            self.newest = self._list[-1] if self._list else self.newest
            self.num_drops += 1  # before the files go: who misses one sees that it is another number now
        for segment in segments:
            segment.remove()
            self._retired.append(segment)

    def close_dropped(self) -> None:
        """Give the descriptors of deleted files back; this may wait for a disk that hangs."""
        while self._retired:
            self._retired.popleft().close()

    def drop_after(self, kept: Sequence[Segment]) -> None:
        """Delete the files after these."""
        self.drop(*(one for one in self._list if one.path > kept[-1].path))

    def seal(self, last_seq: int) -> None:
        """End the newest file, and with it the stream, at this number."""
        if self._list:
            self._list[-1].seal(last_seq)

    def close(self) -> None:
        """Give all descriptors back; the files are read by their paths from now on."""
        self.close_dropped()
        for segment in self._list:
            segment.close()

    def forget(self) -> None:
        """Give inherited descriptors back, in a forked child."""
        for segment in [*self._retired, *self._list]:
            segment.forget()

    # ---- the reader

    def first_seq(self) -> int | None:
        """The first record number in the oldest file that has one."""
        return next((segment.first_seq for segment in self._list if segment.first_seq), None)

    def records(self, segments: Sequence[Segment], after: int) -> Iterator[bytes]:
        """The records of some files after a number, in the order of the files."""
        for segment in segments:
            for found, _ in _frames_of(segment, 0):
                if found.seq > after and found.is_record:
                    yield found.frame

    def records_after(self, after: int) -> Iterator[bytes]:
        """Records after a number, from where the last reading up to there ended.

        Raises:
            OSError: Where a file cannot be read now.
        """
        segments = self._list
        known = self._read_to
        self._read_ends = []
        offset = 0
        if known is not None and known[0] <= after and known[1] in segments:
            segments, offset = segments[segments.index(known[1]) :], known[2]
        elif after:
            segments = [one for one in segments if one.last_seq > after]
        for segment in segments:
            for found, end in _frames_of(segment, offset):
                if found.is_record and found.seq > after:
                    self._read_ends.append((found.seq, segment, end))
                    yield found.frame
            offset = 0

    def trim(self, acked_seq: int, *, max_bytes: int, max_seconds: float) -> None:
        """Delete files that have arrived whole and are too old or too many."""
        ends = [end for end in self._read_ends if end[0] <= acked_seq]
        if ends:
            self._read_to = ends[-1]
        arrived = [one for one in self._list[:-1] if one.last_seq <= acked_seq]
        kept_bytes = 0
        for segment in reversed(arrived):
            segment.close()
            kept_bytes += segment.size
            if kept_bytes > max_bytes or time.time() - segment.created_at > max_seconds:
                self.drop(segment)


def _frames_of(segment: Segment, offset: int) -> Iterator[tuple[Found, int]]:
    """The frames of a file from an offset on, each with the offset of its end."""
    committed = segment.size
    length = CHUNK_BYTES
    while offset < committed:
        wanted = min(length, committed - offset)
        data = _read(segment, offset, wanted)
        used = 0
        for found in frames_in(data):
            used = found.end
            yield found, offset + found.end
        if len(data) < wanted or offset + len(data) >= committed:
            return
        used = used or max(0, data.find(MAGIC))
        if used == 0 and length < segment.size:
            length *= 2  # a frame larger than the piece, or damage that looks like one
        else:
            offset += used or len(data) - len(MAGIC)
            length = CHUNK_BYTES


def _read(segment: Segment, offset: int, length: int) -> bytes:
    """Bytes of a file; none where it has failed too often, so that one file does not hold up all others."""
    if segment.num_failed_reads >= MAX_FAILED_READS:
        return b""
    try:
        data = segment.read(offset, length)
    except FileNotFoundError:
        return b""  # deleted, by us to make room or by somebody else
    except OSError:
        segment.num_failed_reads += 1
        raise
    segment.num_failed_reads = 0
    return data


# Room for one more file of a spool: what goes where a limit is passed.


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

"""Frames in files: every record is with the kernel when `append` returns, whatever happens to the process then.

The caller writes, one system call a record. A thread does what may take long: it brings the files to the disk once a
second, and it writes in the caller's place where the disk is slow, full or gone. Until then records wait in memory.
"""

import contextlib
import logging
import math
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from noisescale.transport.limits import Durability, Limits
from noisescale.transport.spool import held_write
from noisescale.transport.spool.frames import encode_loss, encode_seal, seq_of
from noisescale.transport.spool.held_frames import WaitingFrames, first_held, held_frames
from noisescale.transport.spool.loss_book import LossBook
from noisescale.transport.spool.new_folder import first_usable, first_with_room
from noisescale.transport.spool.segment import ClosedByOthers, Segment
from noisescale.transport.spool.segments import NoRoom, Room, Segments
from noisescale.transport.spool.spool import Held
from noisescale.transport.spool.stream_folder import FAULTS, StreamFolder
from noisescale.transport.spool.write_speed import SLOW_SECONDS, WriteSpeed, is_on_a_network
from noisescale.transport.wire import LostRange

SYNC_SECONDS = 1.0
RETRY_SECONDS = 1.0
FREE_DISK_SECONDS = 10.0
COMPLAINT_SECONDS = 60.0

logger = logging.getLogger("noisescale")


class DiskSpool:
    """The spool of one stream below the first of several folders that can be written to.

    Args:
        roots: Where to try, in order; a stream lies at `<root>/<run>/<stream>`.
        meta: Facts for whoever finds the folder later, no secrets.
        limits: How much it may take.
        durability: "direct": the caller writes. "async": a thread does. "auto": the thread on file systems of a
            network, and for as long as writes are slow.

    Attributes:
        folder: Where the stream lies; None before the first record, and where no folder can be written to.
        num_failed_syncs: How often the disk did not confirm what was written.
        is_loss_unknown: What was given up could not be written down: who finds the folder does not learn of it.
        unsaid: What was given up since `take_losses` was last called.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        meta: dict[str, object] | None = None,
        *,
        limits: Limits | None = None,
        durability: Durability = "auto",
    ) -> None:
        self._roots = list(roots)
        self._meta = dict(meta or {})
        self._limits = limits or Limits()
        self._durability = durability
        self._reset()

    def _reset(self, folder: StreamFolder | None = None, segments: Segments | None = None) -> None:
        self.folder = folder
        self.num_failed_syncs = 0
        self.is_loss_unknown = False
        self._newest_seq = self._acked_seq = 0
        self._segments = segments or Segments(self._limits.segment_bytes)
        self._head = b""
        self._io = threading.Lock()  # of writing; the caller never waits for it
        self._waiting = WaitingFrames(max_bytes=self._limits.memory_bytes, max_frames=self._limits.memory_records)
        self._losses = LossBook()
        self.unsaid = self._losses.unsaid
        self._speed = WriteSpeed()
        on_a_network = self._durability == "auto" and folder is not None and is_on_a_network(folder.path)
        self._is_async = self._durability == "async" or on_a_network
        self._room = Room(self._limits, self._segments, self._losses, self._complain)
        self._fault: str | None = None
        self._not_before = 0.0
        self._complained_at = -math.inf
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._is_ending = self._is_dirty = False
        # who asks for each write to be waited for may have a disk where that takes long: others run meanwhile
        self._at_once = held_write.write if self._durability == "auto" else None
        self._see_who_writes()

    # ---- the training thread

    def begin(self, run_id: str, stream_id: str) -> str | None:
        """Make the stream's folder, below the first root where that is possible; a stream before it ends here."""
        segments = Segments(self._limits.segment_bytes)
        meta = {**self._meta, "run_id": run_id, "stream_id": stream_id}
        folder = first_usable(self._roots, meta, lambda folder: segments.start(folder, b""))
        self.end(timeout_seconds=1.0)
        self._reset(folder, segments)
        return None if folder is not None else "records waited in memory: no folder could be written to"

    def take_over(
        self, run_id: str, stream_id: str, frames: Sequence[bytes], losses: Sequence[LostRange], acked_seq: int
    ) -> bool:
        """Go on in a new folder that has all of this; False where none has room for it: then nothing has changed."""
        if self.folder is None:
            self.begin(run_id, stream_id)
            for frame in frames:
                self.append(frame)
            return True
        self.folder.note_conflict(acked_seq)
        meta = {**self._meta, "run_id": run_id, "stream_id": stream_id}
        found = first_with_room(self._roots, meta, self.folder, frames, losses, self._limits.segment_bytes)
        if found is None:
            return False
        self.end(timeout_seconds=1.0)
        self._reset(*found)
        self._head, self._newest_seq = frames[0], seq_of(frames[-1])
        self._start_thread()
        return True

    def add_written(self, folder: StreamFolder, path: Path, segment: Segment) -> None:
        """A file of a stream that another process has written, to be read from here."""
        self.folder = folder
        self._see_who_writes()
        self._segments.add(path, segment)

    def append(self, frame: bytes, seq: int = 0) -> None:
        """Take a frame: into the file at once, or into memory where the disk cannot have it now."""
        if not self._head:
            self._head = frame  # the run's own record heads every file
        self._newest_seq = seq = seq or seq_of(frame)
        if self._is_direct and self._io.acquire(False):
            try:
                if not self._waiting.frames and self._write(frame, seq, seq, self._at_once):
                    if not self._is_dirty or self._thread is None:
                        self._start_thread()
                    return
            finally:
                self._io.release()
        self._wait_in_memory(frame)

    def _see_who_writes(self) -> None:
        """Decide whether the next call writes, or leaves it to the thread."""
        can_write = self.folder is not None and self._fault is None and not self._is_async
        self._is_direct = can_write and (self._durability == "direct" or not self._speed.is_slow)

    def _wait_in_memory(self, frame: bytes) -> None:
        for seq in self._waiting.put(frame):
            if seq > 1:  # the run's own record is held by the stream
                is_disk_at_fault = self.folder is not None and self._fault is not None
                self._losses.give_up(LostRange(seq, seq, "disk_full" if is_disk_at_fault else "memory_full"))
        if self.folder is not None:
            self._start_thread()
            self._wake.set()

    def _start_thread(self) -> None:
        if self._thread is None and not self._is_ending:
            self._thread = threading.Thread(target=self._run, name="noisescale-spool", daemon=True)
            self._thread.start()
        if not self._is_dirty:
            self._is_dirty = True
            self._wake.set()

    def lose(self, lost: LostRange) -> None:
        """Have a loss written behind the records, so that whoever finds the folder knows the reason."""
        self._newest_seq = max(self._newest_seq, lost.last)
        if self.folder is not None and self._head and self._losses.remember(lost):
            self._start_thread()
            self._wake.set()

    def take_losses(self) -> Sequence[LostRange]:
        """What was given up since the last call: to make room, or because the disk could not have it."""
        return self._losses.take_unsaid()

    # ---- writing, by whoever holds the lock

    def _write(self, frame: bytes, seq: int, number: int, at_once: held_write.Write | None = None) -> bool:
        """Whether the kernel has a frame now.

        Args:
            frame: Whole.
            seq: What it is about.
            number: Its own, 0 for a loss, which has none.
            at_once: See `Segment.append`.
        """
        start = time.perf_counter()
        try:
            try:
                newest = self._segments.newest
                # as `_put` does for nearly every frame: in a file with its head, with room, and not at its end
                if 0 < newest.size <= self._limits.segment_bytes - len(frame) and not newest.is_sealed:
                    newest.append(frame, number, at_once)
                else:
                    self._put(frame, number, at_once)
            except ClosedByOthers:
                self._put(frame, number, at_once)  # into a new file
        except NoRoom:
            self._losses.give_up(LostRange(seq, seq, "spool_full"))
            self._complain(f"the spool is full: records from {seq} on are given up until there is room")
        except FAULTS as error:
            self._fail(f"{type(error).__name__}: {error}")
            return False
        seconds = time.perf_counter() - start
        if seconds > SLOW_SECONDS or self._speed.is_slow or self._fault is not None:
            self._fault = None
            self._speed.see(seconds)
            self._see_who_writes()
        return True

    def _put(self, frame: bytes, seq: int, at_once: held_write.Write | None) -> None:
        # the few bytes of a loss, which has no number of its own, have room in any file that takes frames
        newest = self._segments.with_room(len(frame) if seq else 0)
        if newest is None:
            self._next_segment()
            newest = self._segments.newest
        if newest.size == 0 and frame is not self._head:
            newest.append(self._head, 0)
        newest.append(frame, seq, at_once)

    def _next_segment(self) -> None:
        assert self.folder is not None
        self._room.make(self._acked_seq)
        try:
            self._segments.start(self.folder, self._head)
        except FileNotFoundError:
            self._remake_folder()
            self._segments.start(self.folder, self._head)

    def _remake_folder(self) -> None:
        assert self.folder is not None
        self._complain(f"{self.folder.path} was deleted while the run goes on: it is made again")
        self.folder.create({**self._meta, "run_id": self.folder.path.parent.name, "stream_id": self.folder.path.name})

    def _fail(self, fault: str) -> None:
        self._fault = fault
        self._see_who_writes()
        self._not_before = time.monotonic() + RETRY_SECONDS
        self._complain(f"the spool cannot be written to, records wait in memory: {fault}")

    def _complain(self, message: str) -> None:
        now = time.monotonic()
        if now - self._complained_at >= COMPLAINT_SECONDS:
            self._complained_at = now
            logger.warning("%s", message)

    # ---- the spool's own thread

    def _run(self) -> None:
        synced_at = looked_at = -math.inf
        while self._thread is threading.current_thread():  # a new stream or a fork has none or another one
            self._wake.wait(self._pause(synced_at))
            self._wake.clear()
            is_last = self._is_ending
            self._drain()
            now = time.monotonic()
            if now - looked_at >= FREE_DISK_SECONDS:
                looked_at = now
                assert self.folder is not None
                self._room.look_at_the_disk(self.folder)
            if now - synced_at >= SYNC_SECONDS or is_last:
                synced_at = now
                self.sync()
            if is_last:
                return

    def _pause(self, synced_at: float) -> float | None:
        """Seconds until there is something to do; None until somebody calls."""
        now = time.monotonic()
        if self._is_ending:
            return 0.0
        if self._waiting or self._losses.has_unwritten:
            return 0.0 if self._fault is None else max(0.0, self._not_before - now)
        return max(0.0, synced_at + SYNC_SECONDS - now) if self._is_dirty else None

    def _drain(self) -> None:
        """Write what waits in memory, then the losses."""
        if self._fault is not None and time.monotonic() < self._not_before and not self._is_ending:
            return
        while self._waiting:
            with self._io:
                frame = self._waiting.take()
                is_written = frame is None or self._write(frame, seq_of(frame), seq_of(frame))
                self._waiting.give_back(is_written=is_written)
                if not is_written:
                    return
        while lost := self._losses.take_unwritten():
            with self._io:
                if not self._write(encode_loss(lost), lost.first, 0):
                    self._losses.give_back(lost)
                    return

    def sync(self) -> None:
        """Bring to the disk what is not there yet; what the disk does not confirm is written once more, elsewhere."""
        folder = self.folder
        self._is_dirty = False
        for segment in self._segments.listed():
            try:
                if segment.is_dirty:
                    segment.sync()
            except FAULTS as error:
                self._complain(f"not sure to be on the disk, so written again: {error}")
                self.num_failed_syncs += 1
                segment.is_doubtful = True
        if folder is None or folder is not self.folder:
            return  # the stream is another one by now
        with contextlib.suppress(*FAULTS):
            folder.sync()
        if self._segments.first_to_write_again(self._acked_seq) is not None:
            with self._io, contextlib.suppress(*FAULTS):
                # looked for anew under the lock: of two threads that sync, the second finds what the first has left
                if again := self._segments.first_to_write_again(self._acked_seq):
                    self._is_dirty = True
                    self._write_again(again)
        self._segments.close_dropped()

    def _write_again(self, first: Segment) -> None:
        """Copy everything undelivered from a file on into a new one; a failed sync says nothing about a second one.

        Raises:
            OSError, MemoryError: Where it cannot be read now; then all is as before, and tried again.
        """
        old = self._segments.from_on(first)
        if not old:
            return  # all of it has arrived meanwhile
        frames = list(self._segments.records(old, after=self._acked_seq))
        try:
            self._next_segment()
            for frame in frames:
                if self._segments.with_room(len(frame)) is None:
                    self._next_segment()
                if seq_of(frame) > 1:
                    self._segments.newest.append(frame, seq_of(frame))
        except FAULTS as error:
            self._fail(f"{type(error).__name__}: {error}")
            self._segments.drop_after(old)
            return
        self._segments.drop(*old)

    # ---- the uploader

    def oldest(self, after: int, until: int, *, max_records: int, max_bytes: int) -> Held:
        """Frames from the files, then those that wait in memory."""
        return held_frames(self._segments, self._waiting, after, until, max_records=max_records, max_bytes=max_bytes)

    def acknowledge(self, seq: int, epoch: str | None) -> None:
        """Remember it, forget what waits in memory up to there, and delete files that are no longer kept."""
        self._acked_seq = seq
        self._losses.acknowledge(seq)
        self._waiting.drop_until(seq)
        if self.folder is not None:
            self.folder.acknowledge(seq, epoch)
            self._segments.trim(seq, max_bytes=self._limits.acked_bytes, max_seconds=self._limits.acked_seconds)

    def go_back(self, seq: int, epoch: str | None) -> None:
        """Remember that what follows is to be sent again: whoever finds the folder must not take it for arrived."""
        self._acked_seq = seq
        if self.folder is not None:
            self.folder.acknowledge(seq, epoch)

    def note_database(self, database_id: str) -> None:
        """Remember it: what is found here later is not sent to another one unasked."""
        self._meta["database_id"] = database_id  # of folders that are made from now on, too
        if self.folder is not None:
            self.folder.note_database(database_id)

    def first_held(self, seq: int) -> int:
        """The first number from this one on that a file may hold."""
        return max(seq, first_held(self._segments, self._waiting) or self._acked_seq + 1)

    def quarantine(self, frame: bytes) -> None:
        """Keep it in the folder `quarantine`, for people."""
        if self.folder is not None:
            self.folder.quarantine(seq_of(frame), frame)

    @property
    def num_in_memory(self) -> int:
        """How many frames the disk could not have yet."""
        return len(self._waiting.listed())

    # ---- the end

    def end(self, timeout_seconds: float) -> None:
        """Seal the newest file, bring it to the disk for at most so long, and let the folder go.

        What the disk cannot have even now is given up, and that is written down where room was set aside for it.
        """
        self._is_ending = True
        if self.folder is None:
            return
        if self._thread is not None:
            self._wake.set()
            self._thread.join(timeout_seconds)
            if self._thread.is_alive():
                return  # the disk hangs; what was written is with the kernel
        self._give_up_what_waits(self.folder)
        with self._io:
            self._segments.seal(self._newest_seq)
        if self._thread is not None:
            last = threading.Thread(target=self.sync, name="noisescale-spool", daemon=True)
            last.start()
            last.join(timeout_seconds)
        self._segments.close()
        self.folder.release()

    def _give_up_what_waits(self, folder: StreamFolder) -> None:
        self._drain()  # once more: a single fault costs nothing
        for seq in self._waiting.drop_all():
            if seq > max(1, self._acked_seq):  # the run's own record is held by the stream
                self._losses.give_up(LostRange(seq, seq, "disk_full"))
        self._drain()
        if self._losses.has_unwritten:
            frames = [self._head, encode_seal(self._newest_seq), *map(encode_loss, self._losses.known())]
            self.is_loss_unknown = not folder.write_given_up(frames)

    def restart_after_fork(self) -> None:
        """Give the parent's descriptors back; the child's first record makes a folder of its own."""
        self._segments.forget()
        if self.folder is not None:
            self.folder.release()
        self._reset()

"""One file of a spool: frames are appended by its writer and never changed."""

import contextlib
import errno
import os
import threading
import time
from pathlib import Path

from noisescale.transport.spool.frames import encode_seal
from noisescale.transport.spool.held_write import Write
from noisescale.transport.spool.stream_folder import FAULTS, READ_FLAGS, out_of_the_way

FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW


class ClosedByOthers(OSError):
    """The program has closed all descriptors, as daemons do, and ours with them."""


class Segment:
    """A file of frames, by path or by the descriptor that its writer keeps until all of it has arrived.

    The descriptor outlives the file's name: whoever deletes the folder of a running job takes nothing from it.

    Args:
        path: Of the file.
        size: Bytes that are known to be whole.
        first_seq: First record in it, but for the run's own that heads every file; 0 while there is none.
        last_seq: Last record in it.

    Attributes:
        is_sealed: Nothing more is appended.
        is_dirty: Something is not on the disk yet, for all we know.
        is_doubtful: The disk has not confirmed it, and will not be asked a second time.
        created_at: Unix seconds.
    """

    def __init__(self, path: Path, *, size: int = 0, first_seq: int = 0, last_seq: int = 0) -> None:
        self.path = path
        self.size = size
        self.first_seq = first_seq
        self.last_seq = last_seq
        self.is_sealed = False
        self.is_dirty = False
        self.is_doubtful = False
        self.created_at = time.time()
        self.num_failed_reads = 0
        self._descriptor: int | None = None
        self._lock = threading.Lock()  # of the descriptor, against closing while it is used; appending never takes it

    def create(self) -> None:
        """Make the file.

        Raises:
            OSError: Where that is not possible, or there is one.
        """
        self._descriptor = out_of_the_way(os.open(self.path, FLAGS, 0o600))

    def append(self, frame: bytes, seq: int, at_once: Write | None = None) -> None:
        """Write a frame in one call.

        Args:
            frame: Whole.
            seq: Its number; 0 for what is no record of its own.
            at_once: Writes while no other thread runs; None: others may run meanwhile.

        Raises:
            ClosedByOthers: Where the program has closed the descriptor; the file is sealed then.
            OSError: Where not all of it was written; the file ends as before then, or is sealed.
        """
        descriptor = self._descriptor
        if descriptor is None:
            raise self._closed_by_others()
        num_bytes = len(frame)
        num_written = -1 if at_once is None else at_once(descriptor, frame, num_bytes)
        if num_written < 0:
            try:
                num_written = os.write(descriptor, frame)  # which says why, where it fails again
            except OSError as error:
                raise self._seen(error) from error
        if num_written != num_bytes:
            self.is_sealed = True  # until it is known that the torn frame is gone
            os.ftruncate(descriptor, self.size)
            self.is_sealed = False
            raise OSError(f"wrote {num_written} of {len(frame)} bytes to {self.path}: the disk is full")
        self.is_dirty = True
        if seq:
            self.first_seq = self.first_seq or seq
            self.last_seq = seq
        self.size += num_written

    def seal(self, last_seq: int = 0) -> None:
        """End the file, as far as the disk lets us.

        Args:
            last_seq: Of the stream, where nothing comes after it: what is lost behind the last record counts, too.
        """
        if not self.is_sealed and self._descriptor is not None:
            self.is_sealed = True
            with contextlib.suppress(*FAULTS):
                frame = encode_seal(max(self.last_seq, last_seq))
                os.write(self._descriptor, frame)
                self.is_dirty = True

    def sync(self) -> None:
        """Wait until all of it is on the disk.

        Raises:
            OSError: Where that is not sure; what was written so far may or may not survive a loss of power.
        """
        with self._lock:
            self.is_dirty = False
            if self._descriptor is not None:
                try:
                    os.fdatasync(self._descriptor)
                    return
                except OSError as error:
                    if not isinstance(self._seen(error), ClosedByOthers):
                        raise
            with contextlib.suppress(FileNotFoundError):  # deleted, and nobody holds it: there is nothing to bring
                descriptor = os.open(self.path, READ_FLAGS)
                try:
                    os.fdatasync(descriptor)
                finally:
                    os.close(descriptor)

    def _seen(self, error: OSError) -> OSError:
        """The error itself, unless it says that the descriptor was closed: its number may be another file's next."""
        return self._closed_by_others() if error.errno == errno.EBADF else error

    def _closed_by_others(self) -> "ClosedByOthers":
        self.is_sealed = True
        self._descriptor = None
        return ClosedByOthers(errno.EBADF, f"the program has closed the descriptor of {self.path}")

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of the file, fewer at its end.

        Raises:
            OSError: Where the file cannot be read.
        """
        with self._lock:
            if self._descriptor is not None:
                try:
                    return os.pread(self._descriptor, length, offset)
                except OSError as error:
                    if not isinstance(self._seen(error), ClosedByOthers):
                        raise
            descriptor = os.open(self.path, READ_FLAGS)
            try:
                return os.pread(descriptor, length, offset)
            finally:
                os.close(descriptor)

    def is_in_place(self) -> bool:
        """Whether the path still leads to this file."""
        try:
            named = os.stat(self.path, follow_symlinks=False)
            with self._lock:
                return self._descriptor is None or os.path.samestat(named, os.fstat(self._descriptor))
        except FileNotFoundError:
            return False
        except FAULTS:
            return True  # nobody knows

    def close(self) -> None:
        """Give the descriptor back."""
        with self._lock:
            descriptor, self._descriptor = self._descriptor, None
            if descriptor is not None:
                with contextlib.suppress(*FAULTS):
                    os.close(descriptor)

    def forget(self) -> None:
        """Give an inherited descriptor back, in a forked child, where another thread of the parent held the lock."""
        self._lock = threading.Lock()
        self.close()

    def remove(self) -> None:
        """Take the name away; who holds the descriptor can still read."""
        with contextlib.suppress(*FAULTS):
            os.unlink(self.path)

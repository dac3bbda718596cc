"""The oldest frames of a spool, wherever they are: in files, or in memory where the disk cannot have them now."""

import threading
from collections import deque
from collections.abc import Iterator, Sequence

from noisescale.transport.spool.frames import seq_of
from noisescale.transport.spool.segments import Segments
from noisescale.transport.spool.spool import Held

# Frames in memory that the disk cannot have now; when there are too many, the oldest go.


class WaitingFrames:
    """A queue between the threads that log and the one that writes. Its lock is never held over a system call.

    Args:
        max_bytes: Of all frames.
        max_frames: How many they may be.

    Attributes:
        frames: In order; to be looked at, not changed.
    """

    def __init__(self, *, max_bytes: int, max_frames: int) -> None:
        self._max_bytes = max_bytes
        self._max_frames = max_frames
        self._lock = threading.Lock()
        self.frames: deque[bytes] = deque()
        self._bytes = 0
        self._in_flight: bytes | None = None

    def __len__(self) -> int:
        return len(self.frames)

    def put(self, frame: bytes) -> list[int]:
        """Take a frame; the numbers of those that had to go for it."""
        gone = []
        with self._lock:
            self.frames.append(frame)
            self._bytes += len(frame)
            while self._bytes > self._max_bytes or len(self.frames) > self._max_frames:
                gone.append(self._drop_oldest())
        return gone

    def take(self) -> bytes | None:
        """The oldest frame, which counts as waiting until it is given back."""
        with self._lock:
            if not self.frames:
                return None
            self._in_flight = self.frames.popleft()
            self._bytes -= len(self._in_flight)
            return self._in_flight

    def give_back(self, *, is_written: bool) -> None:
        """What was taken is written, or waits again."""
        with self._lock:
            frame, self._in_flight = self._in_flight, None
            if frame is not None and not is_written:
                self.frames.appendleft(frame)
                self._bytes += len(frame)

    def listed(self) -> list[bytes]:
        """All of them, in order."""
        with self._lock:
            return [*([] if self._in_flight is None else [self._in_flight]), *self.frames]

    def drop_all(self) -> list[int]:
        """Forget all frames; their numbers."""
        with self._lock:
            return [self._drop_oldest() for _ in range(len(self.frames))]

    def drop_until(self, seq: int) -> None:
        """Forget frames up to and including this number: the server has them."""
        with self._lock:
            while self.frames and seq_of(self.frames[0]) <= seq:
                self._drop_oldest()

    def _drop_oldest(self) -> int:
        frame = self.frames.popleft()
        self._bytes -= len(frame)
        return seq_of(frame)


def held_frames(
    segments: Segments, waiting: WaitingFrames, after: int, until: int, *, max_records: int, max_bytes: int
) -> Held:
    """Frames after one number and up to another, the oldest first; read again where files went meanwhile.

    Args:
        segments: Files, read before what waits.
        waiting: What they do not have yet.
        after: The number before the first.
        until: The last number that is asked for.
        max_records: At most so many.
        max_bytes: At most so much, but one frame where any is held.

    Raises:
        OSError: Where a file cannot be read now.
    """
    while True:
        num_drops = segments.num_drops
        held = _read(segments, waiting, after, until, max_records=max_records, max_bytes=max_bytes)
        if segments.num_drops == num_drops:
            return held


def first_held(segments: Segments, waiting: WaitingFrames) -> int | None:
    """The first number that is held; None where nothing is."""
    in_memory = waiting.listed()
    return segments.first_seq() or (seq_of(in_memory[0]) if in_memory else None)


def _read(
    segments: Segments, waiting: WaitingFrames, after: int, until: int, *, max_records: int, max_bytes: int
) -> Held:
    # before the files: what is written in between is found twice, never not at all
    in_memory = waiting.listed()
    frames: list[bytes] = []
    size = 0
    for frame in _in_order(segments, in_memory, after, until):
        size += len(frame)
        if frames and (len(frames) >= max_records or size > max_bytes):
            return Held(frames, is_all=False)
        frames.append(frame)
    return Held(frames, is_all=True)


def _in_order(segments: Segments, waiting: Sequence[bytes], after: int, until: int) -> Iterator[bytes]:
    last = after
    for frames in (segments.records_after(after), iter(waiting)):
        for frame in frames:
            if last < seq_of(frame) <= until:
                last = seq_of(frame)
                yield frame

"""Frames in memory that the disk cannot have now; when there are too many, the oldest go."""

import threading
from collections import deque

from noisescale.transport.spool.frames import seq_of


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

"""Where records wait until the server has them."""

from collections import deque
from collections.abc import Sequence
from typing import Protocol

from noisescale.transport.frames import seq_of

MAX_RECORDS = 100_000
MAX_BYTES = 16 << 20


class Spool(Protocol):
    """An ordered queue of frames with limits."""

    @property
    def num_records(self) -> int:
        """Frames that wait."""

    def append(self, frame: bytes) -> bool:
        """Take a frame; False when there is no room, and then the caller declares it lost."""

    def oldest(self, *, max_records: int, max_bytes: int) -> Sequence[bytes]:
        """The oldest frames, in order: at least one where any waits."""

    def drop_until(self, seq: int) -> None:
        """Forget frames up to and including this number."""

    def clear(self) -> None:
        """Forget every frame."""


class MemorySpool:
    """Frames in memory: quick, and gone with the process. When full, what comes next is refused."""

    def __init__(self, *, max_records: int = MAX_RECORDS, max_bytes: int = MAX_BYTES) -> None:
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._frames: deque[bytes] = deque()
        self._bytes = 0

    @property
    def num_records(self) -> int:
        """Frames that wait."""
        return len(self._frames)

    def append(self, frame: bytes) -> bool:
        """Take a frame, unless that would pass a limit."""
        if len(self._frames) >= self._max_records or self._bytes + len(frame) > self._max_bytes:
            return False
        self._frames.append(frame)
        self._bytes += len(frame)
        return True

    def oldest(self, *, max_records: int, max_bytes: int) -> Sequence[bytes]:
        """The oldest frames within the limits, at least one where any waits."""
        frames: list[bytes] = []
        size = 0
        for frame in self._frames:
            size += len(frame)
            if frames and (len(frames) >= max_records or size > max_bytes):
                break
            frames.append(frame)
        return frames

    def drop_until(self, seq: int) -> None:
        """Forget frames up to and including this number."""
        while self._frames and seq_of(self._frames[0]) <= seq:
            self._bytes -= len(self._frames.popleft())

    def clear(self) -> None:
        """Forget every frame."""
        self._frames.clear()
        self._bytes = 0

"""Where records wait until the server has them."""

import threading
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from noisescale.transport.spool.frames import seq_of
from noisescale.transport.wire import LostRange

MAX_RECORDS = 100_000
MAX_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Held:
    """Frames that were found.

    Attributes:
        frames: In the order of their numbers, which may have gaps.
        is_all: Nothing more is held up to the number that was asked for.
    """

    frames: Sequence[bytes]
    is_all: bool


class Spool(Protocol):
    """Numbered frames of one stream, with limits. One thread appends, another one reads and acknowledges."""

    @property
    def unsaid(self) -> Collection[LostRange]:
        """What was given up since `take_losses` was last called."""

    def begin(self, run_id: str, stream_id: str) -> str | None:
        """Start a new, empty stream; a sentence where its records are less safe than they should be."""

    def take_over(
        self, run_id: str, stream_id: str, frames: Sequence[bytes], losses: Sequence[LostRange], acked_seq: int
    ) -> bool:
        """Go on in a new stream that begins with these frames and losses; False: not now, and nothing has changed.

        The server has an account of the stream before up to `acked_seq`.
        """

    def append(self, frame: bytes, seq: int = 0) -> None:
        """Take a frame. What has to be given up for it is in `take_losses`.

        Args:
            frame: Whole.
            seq: Its number; 0 where the caller does not know it.
        """

    def take_losses(self) -> Sequence[LostRange]:
        """What was given up since the last call, and why."""

    def lose(self, lost: LostRange) -> None:
        """Remember that these records will never come."""

    def oldest(self, after: int, until: int, *, max_records: int, max_bytes: int) -> Held:
        """Frames after one number and up to another: at least one where any is held."""

    def acknowledge(self, seq: int, epoch: str | None) -> None:
        """The server has an account of everything up to here, in this life of its data."""

    def go_back(self, seq: int, epoch: str | None) -> None:
        """The server has an account up to here only, and no longer of what it had acknowledged after it."""

    def note_database(self, database_id: str) -> None:
        """Remember which database has taken records of the stream."""

    def first_held(self, seq: int) -> int:
        """The first number from this one on from which on frames are held, also acknowledged ones."""

    @property
    def num_in_memory(self) -> int:
        """How many frames are nowhere else, and gone with this process."""

    def quarantine(self, frame: bytes) -> None:
        """Put a frame aside that the server refused."""

    def end(self, timeout_seconds: float) -> None:
        """Append no more; what is held stays readable."""

    def restart_after_fork(self) -> None:
        """Leave everything to the parent."""


class MemorySpool:
    """Frames in memory: quick, and gone with the process. When full, what comes next is refused."""

    def __init__(self, *, max_records: int = MAX_RECORDS, max_bytes: int = MAX_BYTES) -> None:
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._clear()

    def _clear(self) -> None:
        self._frames: deque[bytes] = deque()
        self._bytes = 0
        self._acked_seq = 0
        self.unsaid: list[LostRange] = []
        self._lock = threading.Lock()

    def begin(self, run_id: str, stream_id: str) -> str | None:
        """Forget every frame."""
        self._clear()
        return None

    def take_over(
        self, run_id: str, stream_id: str, frames: Sequence[bytes], losses: Sequence[LostRange], acked_seq: int
    ) -> bool:
        """There is room for what was here before."""
        self._clear()
        for frame in frames:
            self.append(frame)
        return True

    def append(self, frame: bytes, seq: int = 0) -> None:
        """Take a frame, unless that would pass a limit; the run's own record, the first, is held by the stream."""
        if seq_of(frame) == 1:
            return
        with self._lock:
            if len(self._frames) >= self._max_records or self._bytes + len(frame) > self._max_bytes:
                self.unsaid.append(LostRange(seq_of(frame), seq_of(frame), "memory_full"))
                return
            self._frames.append(frame)
            self._bytes += len(frame)

    def take_losses(self) -> Sequence[LostRange]:
        """What was refused since the last call."""
        losses, self.unsaid = self.unsaid, []
        return losses

    def lose(self, lost: LostRange) -> None:
        """Nobody else will read this memory."""

    def oldest(self, after: int, until: int, *, max_records: int, max_bytes: int) -> Held:
        """The oldest frames within the limits, at least one where any waits."""
        frames: list[bytes] = []
        size = 0
        with self._lock:
            for frame in self._frames:
                if not after < seq_of(frame) <= until:
                    continue
                size += len(frame)
                if frames and (len(frames) >= max_records or size > max_bytes):
                    return Held(frames, is_all=False)
                frames.append(frame)
        return Held(frames, is_all=True)

    def acknowledge(self, seq: int, epoch: str | None) -> None:
        """Forget frames up to and including this number."""
        with self._lock:
            self._acked_seq = max(seq, self._acked_seq)
            while self._frames and seq_of(self._frames[0]) <= seq:
                self._bytes -= len(self._frames.popleft())

    def go_back(self, seq: int, epoch: str | None) -> None:
        """What was acknowledged is not held."""

    def note_database(self, database_id: str) -> None:
        """Do nothing: what is here ends with the process."""

    def first_held(self, seq: int) -> int:
        """What was acknowledged is not held."""
        return max(seq, self._acked_seq + 1)

    @property
    def num_in_memory(self) -> int:
        """All of them."""
        return len(self._frames)

    def quarantine(self, frame: bytes) -> None:
        """There is no place for it."""

    def end(self, timeout_seconds: float) -> None:
        """There is no file to close."""

    def restart_after_fork(self) -> None:
        """Forget every frame, and the lock that another thread of the parent may have held."""
        self._clear()

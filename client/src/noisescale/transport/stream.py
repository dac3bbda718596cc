"""One process incarnation writing to one run: numbers its records and keeps the ledger true."""

import datetime
import threading
import uuid
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from noisescale.transport.frames import decode, encode, is_run, seq_of
from noisescale.transport.spool import Spool
from noisescale.transport.wire import Batch, LostRange, Record, RunRecord


@dataclass(frozen=True, slots=True)
class Delivery:
    """Where a stream stands: `num_logged` = `num_acked` + what still waits or is declared lost.

    Attributes:
        num_logged: Records handed over, the run record included.
        num_acked: Records the server has an account of, stored or declared lost.
        num_lost: Records declared lost, for whatever reason.
    """

    num_logged: int
    num_acked: int
    num_lost: int

    @property
    def num_waiting(self) -> int:
        """Records the server has no account of yet."""
        return self.num_logged - self.num_acked


class Stream:
    """Numbered records of one run, from the training thread to the uploader.

    The id is minted at the first record and never reused: not after a fork, not after a conflict. The first record is
    always the run itself, so that a stream can create what it writes to.

    Args:
        run_id: The run to write to.
        spool: Where the frames wait.
        describe: Gives the run record when the first record is logged.
    """

    def __init__(self, run_id: str, spool: Spool, describe: Callable[[], RunRecord]) -> None:
        self.run_id = run_id
        self._spool = spool
        self._describe = describe
        self._start()

    def _start(self) -> None:
        # Re-entrant: a signal handler or a destructor may log while this thread is logging.
        self._lock = threading.RLock()
        self._is_appending = False
        self._deferred: list[Record] = []
        self._id: str | None = None
        self._run_frame = b""
        self._last_seq = 0
        self._acked_seq = 0
        self._num_lost = 0
        self._lost: list[LostRange] = []

    def restart_after_fork(self) -> None:
        """Forget what belongs to the parent; the child's first record starts a stream of its own."""
        self._spool.clear()
        self._start()

    @property
    def stream_id(self) -> str | None:
        """None before the first record."""
        return self._id

    def delivery(self) -> Delivery:
        """How much was logged, acknowledged and lost."""
        return Delivery(self._last_seq, self._acked_seq, self._num_lost)

    # ---- the training thread

    def append(self, record: Record) -> int:
        """Hand a record over; answers how many wait. A record that finds no room is declared lost.

        Raises:
            ValueError, TypeError, OverflowError: For a record no frame can hold; it is declared lost, too.
        """
        with self._lock:
            if self._is_appending:
                self._deferred.append(record)
                return self._spool.num_records
            self._is_appending = True
            try:
                if self._id is None:
                    self._open()
                self._number(record)
                while self._deferred:
                    self._number(self._deferred.pop(0))
            finally:
                self._is_appending = False
            return self._spool.num_records

    def _open(self) -> None:
        self._id = str(uuid.uuid4())
        self._run_frame = encode(1, self._describe())
        self._last_seq = 1
        self._spool.append(self._run_frame)

    def _number(self, record: Record) -> None:
        self._last_seq += 1
        reason = "not_encodable"
        try:
            reason = "" if self._spool.append(encode(self._last_seq, record)) else "memory_full"
        finally:
            if reason:
                self._declare_lost(LostRange(self._last_seq, self._last_seq, reason))

    def _declare_lost(self, lost: LostRange) -> None:
        self._num_lost += lost.last - lost.first + 1
        self._lost.append(lost)
        self._lost.sort(key=lambda one: one.first)
        merged: list[LostRange] = []
        for one in self._lost:
            if merged and merged[-1].last + 1 == one.first and merged[-1].reason == one.reason:
                merged[-1] = LostRange(merged[-1].first, one.last, one.reason)
            else:
                merged.append(one)
        self._lost = merged

    # ---- the uploader

    def next_batch(self, *, max_records: int, max_bytes: int) -> Batch | None:
        """The oldest records and losses without an acknowledgement; None where there are none."""
        with self._lock:
            frames = list(self._spool.oldest(max_records=max_records, max_bytes=max_bytes))
            if self._acked_seq == 0 and self._run_frame and (not frames or seq_of(frames[0]) != 1):
                frames.insert(0, self._run_frame)
            frames = list(up_to_second_run(frames))
            last_seq = seq_of(frames[-1]) if frames else self._acked_seq
            for lost in self._lost:
                if lost.first == last_seq + 1:
                    last_seq = lost.last
            lost_here = [lost for lost in self._lost if lost.first <= last_seq]
            first_seq = self._acked_seq + 1
        if last_seq < first_seq:
            return None
        crc32 = 0
        for frame in frames:
            crc32 = zlib.crc32(frame, crc32)
        return Batch(self.run_id, first_seq, last_seq, crc32, _now(), [decode(frame) for frame in frames], lost_here)

    def acknowledge(self, seq: int) -> None:
        """The server has an account of every record up to this one."""
        with self._lock:
            self._acked_seq = min(seq, self._last_seq)
            self._spool.drop_until(self._acked_seq)
            self._lost = [
                LostRange(max(lost.first, self._acked_seq + 1), lost.last, lost.reason)
                for lost in self._lost
                if lost.last > self._acked_seq
            ]

    def rewind(self, expected_seq: int) -> bool:
        """Go to the record that the server expects; what is no longer held is declared lost, reason "trimmed".

        Returns:
            False where the server is ahead of everything logged: then this stream is not its own.
        """
        with self._lock:
            if expected_seq > self._last_seq + 1 or expected_seq < 1:
                return False
            if expected_seq > self._acked_seq:
                self.acknowledge(expected_seq - 1)
                return True
            first_trimmed = 2 if expected_seq == 1 else expected_seq  # the run record is always held
            if first_trimmed <= self._acked_seq:
                self._declare_lost(LostRange(first_trimmed, self._acked_seq, "trimmed"))
            self._acked_seq = expected_seq - 1
            return True

    def reject(self, seq: int) -> None:
        """Declare a record lost that the server refused."""
        with self._lock:
            self._spool.drop_until(seq)
            self._declare_lost(LostRange(seq, seq, "rejected"))

    def start_anew(self) -> None:
        """Take what the server has no account of over into a new stream, after a conflict."""
        with self._lock:
            frames = list(self._spool.oldest(max_records=self._spool.num_records, max_bytes=1 << 62))
            shift = max(0, self._acked_seq - 1)  # the run record comes first again
            lost = [LostRange(one.first - shift, one.last - shift, one.reason) for one in self._lost]
            self._spool.clear()
            self._id = str(uuid.uuid4())
            self._last_seq -= shift
            self._acked_seq = 0
            self._lost = lost
            for frame in frames:
                seq, record = decode(frame)
                self._spool.append(encode(seq - shift, record))


def up_to_second_run(frames: Sequence[bytes]) -> Iterator[bytes]:
    """The first frames with at most one `run` record among them: a later one says anew how the stream measures."""
    num_runs = 0
    for frame in frames:
        num_runs += is_run(frame)
        if num_runs > 1:
            return
        yield frame


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

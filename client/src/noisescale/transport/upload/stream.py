"""One process incarnation writing to one run: numbers its records and keeps the ledger true."""

import dataclasses
import datetime
import struct
import threading
import uuid
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

from noisescale.transport.accounts import Account, LeftStream, Sending, StreamAccount
from noisescale.transport.spool.frames import decode, encode, is_run, seq_of
from noisescale.transport.spool.loss_book import clipped, is_in, merged, without
from noisescale.transport.spool.spool import Spool
from noisescale.transport.wire import Batch, LostRange, Record, RunRecord

MAX_FRAME_BYTES = 512 << 10
"""Of one record; a batch of the wire format takes more."""


class Stream:
    """Numbered records of one run, from the training thread to the uploader.

    The id is minted at the first record and never reused: not after a fork, not after a conflict. The first record is
    always the run itself, so that a stream can create what it writes to.

    Args:
        run_id: The run to write to.
        spool: Where the frames wait.
        describe: Gives the run record when the first record is logged.

    Attributes:
        epoch: Which life of its data the server was in when it last answered; kept with what it had an account of.
        database_id: Which database has taken records of it; None where none has, or none says which it is.
        is_left_behind: Another process has written it, and others may send it, too.
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
        self._lost: list[LostRange] = []
        self._unanswered: Sending | None = None
        self._set_aside: set[int] = set()
        self.database_id: str | None = None
        self.epoch: str | None = None
        self.is_left_behind = False

    @classmethod
    def left_behind(cls, found: LeftStream, spool: Spool) -> "Stream":
        """The stream that another process has written, to be delivered from here.

        Args:
            found: What its folder says.
            spool: Its frames.
        """

        def describe() -> RunRecord:
            raise AssertionError("nothing is logged to a stream of another process")

        stream = cls(found.run_id, spool, describe)
        stream.is_left_behind = True
        stream._id, stream._run_frame, stream._last_seq = found.stream_id, found.run_frame, found.last_seq
        stream._acked_seq = min(found.acked_seq, found.last_seq)
        for lost in found.lost:
            stream._declare_lost(lost)
        return stream

    def restart_after_fork(self) -> None:
        """Forget what belongs to the parent; the child's first record starts a stream of its own."""
        self._spool.restart_after_fork()
        self._start()

    @property
    def stream_id(self) -> str | None:
        """None before the first record."""
        return self._id

    def delivery(self) -> StreamAccount:
        """How much was logged, acknowledged and lost."""
        return StreamAccount(self._last_seq, self._acked_seq, sum(one.last - one.first + 1 for one in self._lost))

    def num_stored(self, first: int, last: int) -> int:
        """Records of these numbers, acknowledged by now, that are no losses."""
        last = min(last, self._acked_seq)
        return max(0, last - first + 1) - sum(one.last - one.first + 1 for one in clipped(self._lost, first, last))

    def account(self) -> Account:
        """What became of all records."""
        lost, set_aside = Counter[str](), len(self._set_aside)
        for one in self._lost:
            lost[one.reason] += one.last - one.first + 1
        acked, last = self._acked_seq, self._last_seq
        num_lost_before = sum(one.last - one.first + 1 for one in clipped(self._lost, 1, acked))
        num_kept = last - acked - (lost.total() - num_lost_before)
        return Account(last, acked - num_lost_before - set_aside, set_aside, num_kept, lost)

    def end(self, timeout_seconds: float) -> None:
        """Log no more; what waits stays in the spool, and what that cannot keep is declared lost."""
        self._spool.end(timeout_seconds)
        with self._lock:
            self._unanswered = None  # nobody waits for that answer any more
            self._take_losses()

    # ---- the training thread

    def append(self, record: Record) -> int:
        """Hand a record over; answers how many wait. A record that finds no room is declared lost.

        Raises:
            ValueError, TypeError, OverflowError: For a record no frame can hold; it is declared lost, too.
        """
        with self._lock:
            if self._is_appending:
                self._deferred.append(record)
                return self._last_seq - self._acked_seq
            self._is_appending = True
            try:
                if self._id is None:
                    self._open(str(uuid.uuid4()))
                self._number(record)
                while self._deferred:
                    self._number(self._deferred.pop(0))
            finally:
                self._is_appending = False
            if self._deferred:  # by a signal between the two lines above
                return self.append(self._deferred.pop(0))
            return self._last_seq - self._acked_seq

    def _open(self, stream_id: str) -> None:
        note = self._spool.begin(self.run_id, stream_id)
        if not self._run_frame:
            self._run_frame = encode(1, noted(self._describe(), note))
        self._id = stream_id
        self._last_seq = 1
        self._spool.append(self._run_frame, 1)

    def _number(self, record: Record) -> None:
        self._last_seq = seq = self._last_seq + 1
        reason = "not_encodable"
        try:
            frame = encode(seq, record)
            reason = "too_large"
            if len(frame) <= MAX_FRAME_BYTES:
                reason = "not_stored"
                self._spool.append(frame, seq)
                reason = ""
        finally:
            if reason:
                self._declare_lost(LostRange(seq, seq, reason))
            if self._spool.unsaid:
                self._take_losses()

    def _take_losses(self) -> None:
        for lost in self._spool.take_losses():
            self._declare_lost(lost)

    def _declare_lost(self, lost: LostRange) -> None:
        """Add what is new about a loss: each number is lost once, and not while it is on its way to the server.

        The run's own record is never lost, as it heads every file, unless it was damaged in all of them.
        """
        known = [(one.first, one.last) for one in self._lost]
        if self._unanswered is not None:
            known.append((self._unanswered.batch.first_seq, self._unanswered.batch.last_seq))
        for first, last in without(max(lost.first, 2 if self._run_frame else 1), lost.last, known):
            self._lost = merged([*self._lost, LostRange(first, last, lost.reason)])
            self._spool.lose(LostRange(first, last, lost.reason))

    # ---- the uploader

    def note_database(self, database_id: str | None) -> None:
        """Remember beside the records which database has taken some of them; None says nothing."""
        if database_id is not None and database_id != self.database_id:
            self.database_id = database_id
            self._spool.note_database(database_id)

    def next_batch(self, *, max_records: int, max_bytes: int) -> Batch | None:
        """The oldest records and losses without an acknowledgement; None where there are none.

        A batch without an answer comes again as it was: the server may have stored it.
        """
        with self._lock:
            sending, after, until = self._unanswered, self._acked_seq, self._last_seq
            self._take_losses()
        if sending is not None and len(sending.frames) <= max_records:
            return dataclasses.replace(sending.batch, sent_at=_now())
        if until <= after:
            return None
        held = self._spool.oldest(after, until, max_records=max_records, max_bytes=max_bytes)
        with self._lock:
            self._unanswered = None
            self._take_losses()
            frames = [frame for frame in held.frames if not is_in(self._lost, seq_of(frame))]
            if after == 0 and self._run_frame and (not frames or seq_of(frames[0]) != 1):
                frames.insert(0, self._run_frame)
            sent = list(up_to_second_run(frames))[:max_records]
            if len(sent) < len(frames):
                until = seq_of(sent[-1])
            elif not held.is_all:
                until = seq_of(held.frames[-1])
            self._unanswered = self._sending(after, until, sent)
            return self._unanswered.batch

    def _sending(self, after: int, until: int, frames: Sequence[bytes]) -> Sending:
        """A batch of these frames; what is neither held nor known to be lost was damaged on the disk."""
        records, kept = [], []
        for frame in frames:
            try:
                records.append(decode(frame))
                kept.append(frame)
            except (ValueError, TypeError, KeyError, struct.error):
                self._spool.quarantine(frame)
        accounted = [(seq, seq) for seq, _ in records] + [(one.first, one.last) for one in self._lost]
        for first, last in without(after + 1, until, accounted):
            self._declare_lost(LostRange(first, last, "spool_corrupt"))
        crc32 = 0
        for frame in kept:
            crc32 = zlib.crc32(frame, crc32)
        lost = clipped(self._lost, after + 1, until)
        return Sending(Batch(self.run_id, after + 1, until, crc32, _now(), records, lost), kept)

    def acknowledge(self, seq: int) -> None:
        """The server has an account of every record up to this one."""
        with self._lock:
            self._unanswered = None
            self._acked_seq = min(seq, self._last_seq)
        self._spool.acknowledge(self._acked_seq, self.epoch)

    def rewind(self, expected_seq: int) -> bool:
        """Go to the record that the server expects; what is no longer held is declared lost, reason "trimmed".

        Returns:
            False where the server is ahead of everything logged: then this stream is not its own.
        """
        if expected_seq > self._last_seq + 1 or expected_seq < 1:
            return False
        if expected_seq > self._acked_seq:
            self.acknowledge(expected_seq - 1)
            return True
        first_held = min(self._spool.first_held(expected_seq), self._acked_seq + 1)
        with self._lock:
            self._unanswered = None
            # none where all is held; the run record always is
            self._declare_lost(LostRange(2 if expected_seq == 1 else expected_seq, first_held - 1, "trimmed"))
            self._acked_seq = expected_seq - 1
        self._spool.go_back(self._acked_seq, self.epoch)
        return True

    def reject(self, seq: int) -> None:
        """Declare a record lost that the server refused, and put it aside."""
        list(self._quarantine([seq]))
        with self._lock:
            self._unanswered = None
            self._declare_lost(LostRange(seq, seq, "rejected"))

    def put_aside(self, numbers: Collection[int]) -> None:
        """Keep records of the batch on its way that the server will not store, for people to look at."""
        self._set_aside.update(self._quarantine(numbers))

    def _quarantine(self, numbers: Collection[int]) -> Iterator[int]:
        for frame in self._unanswered.frames if self._unanswered is not None else ():
            if seq_of(frame) in numbers:
                self._spool.quarantine(frame)
                yield seq_of(frame)

    def split(self) -> None:
        """The server has refused the batch as a whole: it need not come again as it was."""
        with self._lock:
            self._unanswered = None

    def start_anew(self) -> bool:
        """Take what the server has no account of over into a new stream, after a conflict.

        Returns:
            False where the spool has no room for it now: then all is as before, and the same batch comes again.
        """
        with self._lock:
            sending, self._unanswered = self._unanswered, None
            acked, last, stream_id = self._acked_seq, self._last_seq, str(uuid.uuid4())
            held = self._spool.oldest(acked, last, max_records=last, max_bytes=1 << 62)
            self._take_losses()
            shift = max(0, acked - 1)  # the run record comes first again
            lost = [
                LostRange(one.first - shift, one.last - shift, one.reason)
                for one in clipped(self._lost, acked + 1, last)
            ]
            frames = [self._run_frame, *self._renumbered(held.frames, shift, lost)]
            if not self._run_frame or not self._spool.take_over(self.run_id, stream_id, frames, lost, acked):
                self._unanswered = sending
                return False
            self._id, self._last_seq, self._acked_seq, self._lost = stream_id, last - shift, 0, []
            for one in lost:
                self._declare_lost(one)
            self._take_losses()
            return True

    def _renumbered(self, frames: Sequence[bytes], shift: int, lost: Sequence[LostRange]) -> Iterator[bytes]:
        """The records under lower numbers, without those that are lost under these, and what nobody can read."""
        for frame in frames:
            if seq_of(frame) > 1 and not is_in(lost, seq_of(frame) - shift):
                try:
                    seq, record = decode(frame)
                except (ValueError, TypeError, KeyError, struct.error):
                    self._spool.quarantine(frame)
                    continue
                yield encode(seq - shift, record)


def noted(record: RunRecord, note: str | None) -> RunRecord:
    """The run record with one more fact about its stream."""
    if note is None:
        return record
    notes = record.stream.get("notes")
    return RunRecord(record.run, {**record.stream, "notes": [*(notes if isinstance(notes, list) else []), note][-16:]})


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

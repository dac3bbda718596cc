"""The thread that delivers a stream: batch, retry, flush(timeout), survive fork.

One of the client's three `except Exception` is here: whatever goes wrong while delivering, the thread goes on.
"""

import logging
import math
import os
import random
import threading
import time
import weakref
from collections.abc import Callable
from typing import Protocol

from noisescale.transport.upload.answers import (
    REFUSED_RETRY_SECONDS,
    Action,
    Answer,
    NextAction,
    decide,
    epoch_in,
    standing_in,
)
from noisescale.transport.upload.pace import MAX_RECORDS, BatchSize, Heartbeat
from noisescale.transport.upload.stream import Stream
from noisescale.transport.wire import Batch, to_json
from noisescale_core.errors import TransportError

MAX_BYTES = 1 << 20
INTERVAL_SECONDS = 0.5
FIRST_BACKOFF_SECONDS = 0.5
LAST_BACKOFF_SECONDS = 60.0
COMPLAINT_SECONDS = 60.0
UNREACHED_SECONDS = 2.0
"""How long a flush waits for a server that never answered."""

logger = logging.getLogger("noisescale")


class Server(Protocol):
    """What the uploader needs of `http.HttpServer`."""

    url: str

    def post_batch(self, stream_id: str, body: bytes) -> Answer:
        """The answer to a batch; TransportError without one."""

    def post_heartbeat(self, stream_id: str) -> Answer:
        """Where the server stands with a stream; TransportError without an answer."""

    def close(self) -> None:
        """Give the connection back."""

    def forget(self) -> None:
        """Leave an inherited connection alone."""


class Uploader:
    """Delivers one stream from a daemon thread, started by the first record.

    Args:
        stream: What to deliver.
        server: Where to.
        on_fault: Told about our own faults.
        interval_seconds: Longest time that a record waits for company.
        first_backoff_seconds: Upper end of the first pause after a failure; doubles up to a minute.
        on_epoch: Called by the thread when the server has taken the first batch, and again when it was restored: with
            the epoch of its data, or None where it does not say.
        keeps_connection: The server is somebody else's to close: one that sends many streams in turn.

    Attributes:
        has_reached_server: Something has answered, if only a proxy.
        stop_reason: Why nothing more is sent: the server has deleted the run. Nothing else ends the delivery.
        trouble: Why records wait, since the last one that arrived.
        lacks_the_run: They wait for the run, which another stream of it would have to bring: this one cannot.
        num_failures: How often something went wrong.
    """

    def __init__(
        self,
        stream: Stream,
        server: Server,
        on_fault: Callable[[Exception], None],
        *,
        interval_seconds: float = INTERVAL_SECONDS,
        first_backoff_seconds: float = FIRST_BACKOFF_SECONDS,
        on_epoch: Callable[[str | None], None] | None = None,
        keeps_connection: bool = False,
    ) -> None:
        self._stream = stream
        self._server = server
        self._on_fault = on_fault
        self._interval_seconds = interval_seconds
        self._first_backoff_seconds = first_backoff_seconds
        self._on_epoch = on_epoch
        self._keeps_connection = keeps_connection
        self._start()
        _live.add(self)

    def _start(self) -> None:
        self._thread: threading.Thread | None = None
        self._start_once = threading.Lock()  # never given back: a signal handler may log while the thread is started
        self._changed = threading.Condition()
        self._is_urgent = False
        self._num_flushing = 0
        self._is_closing = False
        self._is_told_to_wait = False
        self._not_before = 0.0
        self.num_failures = 0
        self._num_failures_in_a_row = 0
        self._last_complaint = -math.inf
        self._size = BatchSize()
        self._heartbeat = Heartbeat()
        self._must_ask = False
        self._has_delivered = False
        self.has_reached_server = False
        self.stop_reason: str | None = None
        self.trouble: str | None = None
        self.lacks_the_run = False

    def restart_after_fork(self) -> None:
        """Forget the parent's thread, locks, connection and records."""
        self._server.forget()
        self._stream.restart_after_fork()
        self._start()

    def notify(self, num_waiting: int) -> None:
        """Records were appended; the thread starts with the first and hurries when a batch is full."""
        if self._thread is None and not self._is_closing and self._start_once.acquire(blocking=False):
            self._thread = threading.Thread(target=self._run, name="noisescale-uploader", daemon=True)
            self._thread.start()
        if num_waiting == MAX_RECORDS:
            with self._changed:
                self._changed.notify_all()

    def flush(self, timeout_seconds: float) -> bool:
        """Whether the server has an account of every record; waits until then, or for so long.

        Where no server was ever reached it waits for one attempt only: nobody is there to wait for. Nor does it wait
        where the server has said that it takes nothing before then.
        """
        start = time.monotonic()
        failures_before = self.num_failures
        with self._changed:
            self._is_urgent = True
            self._num_flushing += 1
            self._changed.notify_all()
            while self._stream.delivery().num_waiting and not self.stop_reason and self._thread is not None:
                waited = time.monotonic() - start
                has_failed = self.num_failures > failures_before or waited > UNREACHED_SECONDS
                if waited >= timeout_seconds or (not self.has_reached_server and has_failed):
                    break
                if self._is_told_to_wait and self._not_before > start + timeout_seconds:
                    break
                self._changed.wait(min(0.05, timeout_seconds - waited))
            self._num_flushing -= 1
        return self._stream.delivery().num_waiting == 0

    def wait(self, seconds: float) -> None:
        """Return when a batch was answered, or something went wrong; after so long at the latest."""
        with self._changed:
            self._changed.wait(seconds)

    def close(self) -> None:
        """Let the thread end; a request on its way is not waited for."""
        self._is_closing = True
        with self._changed:
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout=0.5)

    def ask_where_it_stands(self, epoch: str) -> None:
        """The server was restored, as another stream has heard: it may lack what it had acknowledged of this one."""
        if self._stream.epoch not in (None, epoch):
            self._must_ask = True

    def _run(self) -> None:
        while not self._is_closing and self.stop_reason is None:
            self._pause()
            try:
                self._ask()
                self._deliver()
            except Exception as fault:  # noqa: BLE001  # the uploader's loop: one of the client's three
                self._on_fault(fault)
                self._back_off()
        if not self._keeps_connection:
            self._server.close()

    def _pause(self) -> None:
        with self._changed:
            num_waiting = self._stream.delivery().num_waiting
            is_hurried = num_waiting >= MAX_RECORDS or (num_waiting > 0 and self._num_flushing > 0)
            if not (self._is_closing or is_hurried):
                self._changed.wait(self._interval_seconds)
            while not self._is_closing and (seconds := self._not_before - time.monotonic()) > 0:
                # A flush cuts our own backoff short, once; not the time that the server asked for.
                if self._is_urgent and not self._is_told_to_wait:
                    break
                self._changed.wait(seconds)
            self._is_urgent = False

    def _ask(self) -> None:
        """Go to where the server stands: when it was restored, and, as a heartbeat, after a while without records."""
        stream_id, delivery = self._stream.stream_id, self._stream.delivery()
        is_due = self._heartbeat.is_due(delivery.num_logged) and not delivery.num_waiting
        if stream_id is None or not delivery.num_acked or not (is_due or self._must_ask):
            return
        try:
            answer = self._server.post_heartbeat(stream_id)
        except TransportError:
            self._back_off()
            return
        if answer.status == 429 or answer.status >= 500:
            self._back_off()
            return
        self._heartbeat.was_heard()
        acked_seq = standing_in(answer)
        if acked_seq is not None:
            self._hear(answer)
            self._must_ask = False
            self._stream.rewind(acked_seq + 1)
        elif self._must_ask:
            self._back_off(f"{self._server.url} {answer}")

    def _deliver(self) -> None:
        """Post batches while there is reason to hurry."""
        is_behind = True
        while is_behind and not self._is_closing:
            batch = self._stream.next_batch(max_records=self._size.num_records, max_bytes=MAX_BYTES)
            stream_id = self._stream.stream_id
            if batch is None or stream_id is None:
                return
            try:
                answer = self._server.post_batch(stream_id, to_json(batch))
            except TransportError as error:
                self._back_off(str(error))
                return
            decision = self._believed(batch, answer)
            self.has_reached_server = True
            if answer.problem is not None or decision.action is not Action.BACK_OFF:
                self._hear(answer)
            is_behind = self._act(batch, answer, decision)
            with self._changed:
                self._changed.notify_all()

    def _believed(self, batch: Batch, answer: Answer) -> NextAction:
        """What to do about an answer; an account of more than was sent, or of less, needs proof."""
        decision = decide(answer)
        if decision.action is not Action.ADVANCE or decision.seq == batch.last_seq:
            return decision
        epoch, num_logged = epoch_in(answer), self._stream.delivery().num_logged
        is_whole = epoch is not None and isinstance(answer.body.get("rejected"), list)
        if not is_whole or decision.seq < batch.last_seq:
            return NextAction(Action.BACK_OFF)
        if decision.seq <= num_logged or self._stream.is_left_behind:
            return decision  # somebody else sends the same folder, and has read further
        return NextAction(Action.NEW_STREAM if epoch == self._stream.epoch else Action.BACK_OFF)

    def _hear(self, answer: Answer) -> None:
        """A server of ours answers; another epoch than before says that a backup has taken the place of its data."""
        self._heartbeat.was_heard()
        known, said = self._stream.epoch, epoch_in(answer)
        is_another = said is not None and said != known
        if said is not None and known is not None and is_another:
            is_same = answer.database_id in (None, self._stream.database_id)
            why = "was restored from a backup" if is_same else "has another database now than the job began with"
            logger.warning("%s %s: what it lacks is sent again", self._server.url, why)
            for other in list(_live):
                if other is not self and other._server.url == self._server.url:
                    other.ask_where_it_stands(said)
        self._stream.epoch = said or known
        has_taken = answer.acked_seq is not None
        if has_taken:
            self._stream.note_database(answer.database_id)
        if self._on_epoch is not None and (is_another or (has_taken and not self._has_delivered)):
            self._on_epoch(said)
        self._has_delivered = self._has_delivered or has_taken

    def _act(self, batch: Batch, answer: Answer, decision: NextAction) -> bool:
        """Whether to post the next batch at once."""
        told = f"{self._server.url} {answer}"
        match decision.action:
            case Action.ADVANCE:
                self._put_aside(answer)
                self._advance(decision.seq)
                return self._stream.delivery().num_waiting >= self._size.num_records
            case Action.RESEND_RUN if batch.first_seq > 1:
                return self._stream.rewind(1)
            case Action.RESEND_RUN if not any(seq == 1 for seq, _ in batch.records):
                self._wait_for_the_run(f"{told}: the run's own record was damaged on the disk")
            case Action.REWIND if 0 < decision.seq < batch.first_seq and self._stream.rewind(decision.seq):
                return True
            case Action.NEW_STREAM:
                if not self._stream.start_anew():
                    self._back_off(f"{told}: this stream is not ours, and there is no room for a new one now")
                    return False
                self._complain(f"{told}: this stream belongs to another process, a new one takes over")
                is_first = self._num_failures_in_a_row == 0
                self._back_off(is_soon=is_first)
                self._num_failures_in_a_row += is_first
            case Action.SPLIT:
                return self._split(batch, told)
            case Action.SHRINK:
                self._shrink(batch, told)
            case Action.STOP:
                self._stop(f"{told}: the run was deleted")
            case Action.WAIT:
                self._wait_for_people(told, decision.wait_seconds)
            case _:
                self._back_off(told, least_seconds=decision.wait_seconds)
        return False

    def _advance(self, seq: int) -> None:
        self._stream.acknowledge(seq)
        self._num_failures_in_a_row = 0
        self.trouble, self.lacks_the_run = None, False
        self._size.take()

    def _put_aside(self, answer: Answer) -> None:
        """Keep what the server has taken note of and not stored."""
        listed = answer.body.get("rejected")
        refused = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        if refused:
            first = refused[0]
            self._complain(
                f"{self._server.url} refused {len(refused)} records, record {first.get('seq')} first: {first}"
            )
            self._stream.put_aside([seq for one in refused if isinstance(seq := one.get("seq"), int)])

    def _split(self, batch: Batch, told: str) -> bool:
        """The server itself refuses a batch: find the record that it cannot take, and go on without it."""
        if len(batch.records) > 1:
            self._stream.split()
            self._size.refuse(len(batch.records))
            return True
        if not batch.records or batch.first_seq == 1:
            self._wait_for_the_run(f"{told}: nothing can be stored without the run's first record")
            return False
        [(seq, _)] = batch.records
        logger.warning("%s: record %d is declared lost", told, seq)
        self._stream.reject(seq)
        return True

    def _shrink(self, batch: Batch, told: str) -> None:
        """Something on the way takes no batch of this size, or takes none at all now: nobody knows.

        Smaller ones are tried soon, down to a single record; then all of it again, after the pause of any failure. No
        record is to blame.
        """
        self._stream.split()
        self._size.refuse(len(batch.records))
        self._back_off(told, is_soon=len(batch.records) > 1)

    def _stop(self, reason: str) -> None:
        logger.warning("nothing more is sent: %s", reason)
        self.stop_reason = reason

    def _wait_for_the_run(self, reason: str) -> None:
        self.lacks_the_run = True
        self._wait_for_people(reason, REFUSED_RETRY_SECONDS)

    def _wait_for_people(self, reason: str, seconds: float) -> None:
        """The server says that it will not take this now: another key, another release or its own time is needed."""
        self.trouble = reason
        self._complain(f"{reason}: trying again in {seconds:.0f} s, training goes on")
        self._wait(seconds, is_told=True)

    def _back_off(self, reason: str | None = None, *, least_seconds: float = 0.0, is_soon: bool = False) -> None:
        """Wait a random part of a time that doubles: a thousand jobs must not come back at the same moment."""
        if reason is not None:
            self.trouble = reason
            self._complain(f"{reason}: records wait, training goes on")
        longest = min(LAST_BACKOFF_SECONDS, self._first_backoff_seconds * 2 ** min(self._num_failures_in_a_row, 20))
        if is_soon:
            longest = self._first_backoff_seconds
        else:
            self._num_failures_in_a_row += 1
        self._wait(least_seconds + random.uniform(0, longest), is_told=False)  # noqa: S311  # no secret, only spread

    def _wait(self, seconds: float, *, is_told: bool) -> None:
        with self._changed:
            self.num_failures += 1
            self._is_told_to_wait = is_told
            self._not_before = time.monotonic() + seconds
            self._changed.notify_all()

    def _complain(self, message: str) -> None:
        now = time.monotonic()
        if now - self._last_complaint >= COMPLAINT_SECONDS:
            self._last_complaint = now
            logger.warning("%s", message)


_live: weakref.WeakSet[Uploader] = weakref.WeakSet()


def _restart_after_fork() -> None:
    for uploader in list(_live):
        uploader.restart_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_restart_after_fork)

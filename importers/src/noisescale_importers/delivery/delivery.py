"""A run's items to the server: what it has is compared, what is new is sent, and nothing is there twice."""

import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from noisescale.transport.wire import Batch, FinishRecord, LostRange, Measurement, MetricRecord, Record, RunRecord
from noisescale.version import __version__
from noisescale_importers import source
from noisescale_importers.delivery.assembly import Item, Logged, Measured, StepsBack
from noisescale_importers.delivery.connection import Connection, NotImported
from noisescale_importers.source import Damage, shown

MAX_RECORDS = 500
MAX_VALUES = 10_000
"""Of one batch. Where batches end follows from the records alone, or another import would have other checksums."""

DAMAGED = "spool_corrupt"
"""Why a damaged row is lost, in the words of the protocol."""


# One stream of an imported run: its records have the same numbers and the same batches at each import.
#
# The checksum of a batch is over everything from the first record on, so the server tells at the newest batch whether a
# source still begins with what was imported: no memory of earlier imports is needed on this machine.


class Part:
    """The records of one stream, numbered, and the batch that is being filled.

    Args:
        run_id: Of the run.
        stream_id: Of the stream.
        first: The stream's first record.
        start_time: Unix seconds of rows whose time the source does not say.
        num_acked: Records that the server has.
        is_finished: Whether the last of them ends the stream.
    """

    def __init__(
        self, run_id: str, stream_id: str, first: RunRecord, start_time: float, num_acked: int, *, is_finished: bool
    ) -> None:
        self.run_id = run_id
        self.stream_id = stream_id
        self.num_acked = num_acked
        self.is_finished = is_finished
        self.seq = 0
        self.num_damaged = 0
        self.last_time = start_time
        self.places: dict[int, str] = {}
        self._start_time = start_time
        self._crc = 0
        self._held: list[tuple[int, Record]] = []
        self._lost: list[LostRange] = []
        self._num_values = 0
        self._first_seq = 1
        self._append(first, 1)

    @property
    def num_there(self) -> int:
        """Records before the stream's end that the server has, the run's own among them."""
        return self.num_acked - self.is_finished

    @property
    def is_all_there(self) -> bool:
        """Whether the server has an ended stream up to here: what follows belongs into another one."""
        return self.is_finished and self.seq == self.num_there

    @property
    def has_unsent(self) -> bool:
        """Whether there are records that the server does not have."""
        return self.seq > self.num_acked

    def is_full_for(self, item: Measured | Logged | Damage) -> bool:
        """Whether the batch must end before this item."""
        num_values = len(item.values) if isinstance(item, Logged) else 0
        num_records = self.seq - self._first_seq + 1
        return num_records >= MAX_RECORDS or (num_records > 0 and self._num_values + num_values > MAX_VALUES)

    def is_full_for_the_end(self) -> bool:
        """Whether the batch must end before the record that ends the stream."""
        return self.seq - self._first_seq + 1 >= MAX_RECORDS

    def begin_batch(self) -> None:
        """The batch is done with; the next record begins another one."""
        self._held, self._lost, self._num_values = [], [], 0
        self._first_seq = self.seq + 1
        self.places = {}

    def add(self, item: Measured | Logged | Damage) -> None:
        """Number one more item; a damaged row is declared lost."""
        content = ("lost",) if isinstance(item, Damage) else item[:-1]
        self._crc = zlib.crc32(repr(content).encode("utf-8", "backslashreplace"), self._crc)
        match item:
            case Damage():
                self.seq += 1
                self.num_damaged += 1
                self._lost.append(LostRange(self.seq, self.seq, DAMAGED))
            case Measured():
                self._append(self._measurement(item), self.seq + 1)
            case Logged():
                self._num_values += len(item.values)
                self._append(
                    MetricRecord(item.step, self._time(item.time, item.elapsed), dict(item.values)), self.seq + 1
                )
        self.places[self.seq] = item.place

    def finish(self, status: str) -> None:
        """Number the record that ends the stream; the checksum does not depend on how it ended."""
        self._append(FinishRecord(status, self.last_time), self.seq + 1)

    def batch(self) -> Batch:
        """The batch as it is filled now."""
        return Batch(
            run_id=self.run_id,
            first_seq=self._first_seq,
            last_seq=self.seq,
            crc32=self._crc,
            sent_at=datetime.now(UTC).isoformat(),
            records=list(self._held),
            lost=list(self._lost),
        )

    def _append(self, record: Record, seq: int) -> None:
        self.seq = seq
        self._held.append((seq, record))

    def _time(self, time: float | None, elapsed: float | None) -> float:
        found = time if time is not None else self._start_time + (elapsed or 0.0)
        self.last_time = max(self.last_time, found)
        return found

    def _measurement(self, item: Measured) -> Measurement:
        return Measurement(
            step=item.step,
            num_updates=item.num_updates,
            wall_time=self._time(item.time, item.elapsed),
            examples=item.examples,
            micro_batch_size=None,
            num_micro_batches=0,
            global_batch=item.batch,
            sum_trace_cov=None,
            sum_grad_sq_norm=None,
            sum_trace_cov_sq=None,
            sum_grad_sq_norm_sq=None,
            sum_trace_cov_grad_sq_norm=None,
            sum_loss=item.loss,
            num_loss=0 if item.loss is None else 1,
            lr=item.lr,
            flags=item.flags,
        )


@dataclass
class Outcome:
    """What became of one run.

    Attributes:
        num_new: Records that the server has now and had not before.
        num_known: Records that it had.
        damages: Parts of the source that cannot be read.
        refused: Records that the server did not take, in words.
        problem: Why the rest is not there; None where all is.
    """

    num_new: int = 0
    num_known: int = 0
    damages: list[Damage] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    problem: str | None = None


class Delivery:
    """Sends one run.

    Args:
        connection: To the server.
        run_id: Of the run.
        run: The run as the protocol describes it.
        started_at: Unix seconds; None: not known.
        on_progress: Told of every item.
    """

    def __init__(
        self,
        connection: Connection,
        run_id: str,
        run: Mapping[str, object],
        *,
        started_at: float | None,
        on_progress: Callable[[int], None] = lambda num_items: None,
    ) -> None:
        self._connection = connection
        self._run_id = run_id
        self._run = run
        self._started_at = started_at
        self._on_progress = on_progress
        self._start_time = started_at if started_at is not None else time.time()
        self._stream_started_at: float | None = None
        self.outcome = Outcome()

    def send(self, items: Iterable[Item], end: Callable[[], str | None]) -> Outcome:
        """What became of the run; a trouble with the source ends this run alone.

        Args:
            items: Of the run, from the first.
            end: Asked after the last: "finished" or "failed", or None where the source may grow.

        Raises:
            TransportError: Without a server.
            ConfigError: Where the key may not.
        """
        try:
            self._send(items, end)
        except NotImported as error:
            self.outcome.problem = str(error)
        return self.outcome

    def _send(self, items: Iterable[Item], end: Callable[[], str | None]) -> None:
        number = 0
        part = self._open(number)
        for count, item in enumerate(items):
            self._on_progress(count)
            if isinstance(item, Damage):
                self.outcome.damages.append(item)
                if not item.is_a_row:
                    continue
            if isinstance(item, StepsBack) or part.is_all_there:
                self._close(part, None)
                number += 1
                part = self._open(number, part)
            if isinstance(item, StepsBack):
                continue
            if part.is_full_for(item):
                self._post_new(part)
                part.begin_batch()
            part.add(item)
            if part.seq == part.num_acked:
                self._post(part)
        self._close(part, end())

    def _open(self, number: int, before: Part | None = None) -> Part:
        stream_id = source.stream_id(self._run_id, number)
        cursor = self._connection.cursor(stream_id)
        if cursor.started_at is not None:
            started_at = cursor.started_at
        else:
            # of two streams the later one is shown: each part begins after the one before it
            earliest = self._start_time if self._stream_started_at is None else self._stream_started_at + 1e-3
            started_at = max(earliest, self._start_time)
        if number == 0 and self._started_at is None:
            self._start_time = started_at  # rows without a time keep that of the first import
        self._stream_started_at = started_at
        stream = {
            "estimator": "none",
            "unit": self._run["unit"],
            "units_per_example": self._run["units_per_example"],
            "notes": ["imported: nothing was measured inside the training"],
            "started_at": started_at,
            "client_version": __version__,
        }
        part = Part(
            self._run_id,
            stream_id,
            RunRecord(self._run, stream),
            self._start_time,
            cursor.num_acked,
            is_finished=cursor.is_finished,
        )
        if before is not None:
            part.last_time = before.last_time
        if part.num_acked == 1:
            self._post(part)
        return part

    def _close(self, part: Part, status: str | None) -> None:
        if part.seq < part.num_there:
            raise NotImported(
                f"it has fewer rows than were imported before, {part.seq - 1} of {part.num_there - 1}: what is on the "
                "server stays; import the source under another name with --as"
            )
        if part.is_finished or (status is not None and part.seq > 1):
            if part.is_full_for_the_end():
                self._post_new(part)
                part.begin_batch()
            part.finish(status or "finished")
        if part.has_unsent or part.is_finished:
            self._post(part)
        self.outcome.num_known += part.num_acked
        self.outcome.num_new += max(0, part.seq - part.num_acked)

    def _post_new(self, part: Part) -> None:
        if part.has_unsent:
            self._post(part)

    def _post(self, part: Part) -> None:
        for one in self._connection.post(part.stream_id, part.batch()):
            seq = one.get("seq")
            place = part.places.get(seq, f"record {seq}") if isinstance(seq, int) else "a record"
            text = f"{shown(place)}: the server refuses {one.get('field')}: {one.get('message')}"
            if text not in self.outcome.refused:
                self.outcome.refused.append(text)

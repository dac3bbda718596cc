"""One stream of an imported run: its records have the same numbers and the same batches at each import.

The checksum of a batch is over everything from the first record on, so the server tells at the newest batch whether a
source still begins with what was imported: no memory of earlier imports is needed on this machine.
"""

import zlib
from datetime import UTC, datetime

from noisescale.transport.wire import Batch, FinishRecord, LostRange, Measurement, MetricRecord, Record, RunRecord
from noisescale_importers.delivery.assembly import Logged, Measured
from noisescale_importers.source import Damage

MAX_RECORDS = 500
MAX_VALUES = 10_000
"""Of one batch. Where batches end follows from the records alone, or another import would have other checksums."""

DAMAGED = "spool_corrupt"
"""Why a damaged row is lost, in the words of the protocol."""


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

"""A run's items to the server: what it has is compared, what is new is sent, and nothing is there twice."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from noisescale.transport.wire import RunRecord
from noisescale.version import __version__
from noisescale_importers import identity
from noisescale_importers.delivery.assembly import Item, StepsBack
from noisescale_importers.delivery.connection import Connection, NotImported
from noisescale_importers.delivery.parts import Part
from noisescale_importers.source import Damage
from noisescale_importers.text import shown


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
        stream_id = identity.stream_id(self._run_id, number)
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

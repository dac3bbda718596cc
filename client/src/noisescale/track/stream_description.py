"""How a stream measures: the second half of its `run` record (`docs/wire.md`)."""

import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from noisescale.description import RunDescription
from noisescale.transport.wire import RunRecord
from noisescale.version import __version__

if TYPE_CHECKING:
    from noisescale.capture.watch import Watch
    from noisescale.capture.watch_options import WatchOptions

MAX_NOTES = 16
MAX_NOTE = 300


@dataclass(slots=True)
class StreamDescription:
    """Facts about the measurement, as far as they are known; `changed` tells whether they were sent.

    Attributes:
        estimator: Where the small batches come from, in the words of the wire format.
        loss_reduction: How the loss is reduced over examples.
        optimizer: Class of the optimizer.
        batch_size_source: Where the batch size comes from.
        measure_every: Every so many steps are measured; None before it is known.
        num_ranks: Data-parallel ranks whose small batches are in the sums.
        notes: Facts in words.
        sent: What the last record said.
        covered: Elements that are measured ÷ all.
    """

    estimator: str = "none"
    loss_reduction: str = "mean_over_examples"
    optimizer: str | None = None
    batch_size_source: str | None = None
    measure_every: int | None = None
    num_ranks: int | None = None
    notes: list[str] = field(default_factory=list)
    sent: dict[str, object] | None = None
    covered: float = 1.0

    def start_watch(self, watch: "Watch[Any]", options: "WatchOptions") -> None:
        """From here on this watch measures, with these options."""
        self.estimator, self.optimizer = watch.estimator, watch.optimizer_name
        self.loss_reduction = options.loss_reduction
        self.num_ranks = watch.job.num_ranks
        self.measure_every = None if options.overhead is not None else options.every

    def add_note(self, note: str) -> bool:
        """Add a fact in words, cut to what the wire format takes; whether it is new."""
        short = note if len(note) <= MAX_NOTE else note[: MAX_NOTE - 1] + "…"
        if short in self.notes or len(self.notes) >= MAX_NOTES:
            return False
        self.notes.append(short)
        return True

    def renew_note(self, beginning: str, note: str) -> None:
        """Put a note in the place of one that begins alike."""
        self.notes = [old for old in self.notes if not old.startswith(beginning)]
        self.add_note(note)

    def facts(self) -> dict[str, object]:
        """What may change while the stream runs."""
        return {
            "estimator": self.estimator,
            "loss_reduction": self.loss_reduction,
            "optimizer": self.optimizer,
            "batch_size_source": self.batch_size_source,
            "measure_every": self.measure_every,
            "num_ranks": self.num_ranks,
            "notes": list(self.notes),
        }

    def has_changed(self) -> bool:
        """Whether something has changed since it was sent."""
        return self.sent is not None and self.sent != self.facts()

    def record(self, kind: str, described: RunDescription, *, rank: int, started_at: float) -> RunRecord:
        """The `run` record of the stream of a kind of noise scale.

        Args:
            kind: Of noise scale.
            described: What the run is called and made of.
            rank: Of this process.
            started_at: Unix seconds.
        """
        if kind == "simple":
            self.sent = self.facts()
        stream = {
            **self.facts(),
            "kind": kind,
            "unit": described.unit,
            "units_per_example": float(described.units_per_example),
            "rank": rank,
            "host": socket.gethostname() or None,
            "client_version": __version__,
            "started_at": started_at,
        }
        if kind == "hessian":  # measured by itself, now and then
            stream |= {"estimator": "micro_batches", "measure_every": None}
        return RunRecord(described.to_json(), stream)

"""How a stream measures: the second half of its `run` record (`docs/wire.md`)."""

import socket
from dataclasses import dataclass, field

from noisescale.version import __version__

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

    def to_json(
        self, *, kind: str, unit: str, units_per_example: float, rank: int, started_at: float
    ) -> dict[str, object]:
        """The `stream` part of a `run` record.

        Args:
            kind: Of noise scale.
            unit: What it is shown in.
            units_per_example: Units in one example.
            rank: Of this process.
            started_at: Unix seconds.
        """
        if kind == "simple":
            self.sent = self.facts()
        return {
            **self.facts(),
            "kind": kind,
            "unit": unit,
            "units_per_example": units_per_example,
            "rank": rank,
            "host": socket.gethostname() or None,
            "client_version": __version__,
            "started_at": started_at,
        }

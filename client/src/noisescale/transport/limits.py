"""How much of a disk and of the memory a spool may take."""

from dataclasses import dataclass
from typing import Literal

Overflow = Literal["drop_oldest", "drop_newest"]
"""Which records are given up where a limit is passed."""

Durability = Literal["auto", "direct", "async"]
"""Who writes to the disk: the thread that logs, another one, or whichever is better."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a spool may take; the defaults are those of `docs/delivery.md`.

    Attributes:
        segment_bytes: Of one file.
        run_bytes: Of all files of a run, of whichever process; every process gives up its own.
        overflow: "drop_oldest": the oldest undelivered file goes. "drop_newest": what is logged from then on.
        free_share: Of the disk that stays free.
        memory_bytes: Of records that wait for the disk.
        memory_records: How many they may be.
        acked_bytes: Of files that are kept although all has arrived, in case the server goes back.
        acked_seconds: How long they are kept.
    """

    segment_bytes: int = 8 << 20
    run_bytes: int = 1 << 30
    overflow: Overflow = "drop_oldest"
    free_share: float = 0.05
    memory_bytes: int = 16 << 20
    memory_records: int = 10_000
    acked_bytes: int = 256 << 20
    acked_seconds: float = 86_400.0

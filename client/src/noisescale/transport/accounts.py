"""What is said of a stream: where it stands, what became of its records, and what its folder holds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from noisescale.transport.wire import Batch, LostRange


@dataclass(frozen=True, slots=True)
class StreamAccount:
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


@dataclass(frozen=True, slots=True)
class Account:
    """What became of the records of a stream, when nothing more is logged or sent from here.

    Attributes:
        num_logged: Records handed over, the run record included.
        num_stored: Of which the server has.
        num_set_aside: Of which the server has taken note without storing them.
        num_kept: Of which wait to be delivered.
        num_lost_by_reason: Of which will never come.
    """

    num_logged: int
    num_stored: int
    num_set_aside: int
    num_kept: int
    num_lost_by_reason: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Sending:
    """A batch on its way, and the frames that are in it."""

    batch: Batch
    frames: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class LeftStream:
    """What the folder of a stream says.

    Attributes:
        run_id: The run it writes to.
        stream_id: Its own id.
        run_frame: The run's own record; empty where it was damaged everywhere.
        last_seq: The last record in it.
        acked_seq: Up to where the server had an account, for all the folder knows.
        lost: What its writer gave up.
    """

    run_id: str
    stream_id: str
    run_frame: bytes
    last_seq: int
    acked_seq: int
    lost: Sequence[LostRange]

"""What lies on disk of this user's jobs and no server has, in lines for `status` and `doctor`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from noisescale.config import Config
from noisescale.outbox import SPOOL
from noisescale.transport.given_up_book import book_of, written_down
from noisescale.transport.late_delivery import has_arrived, num_waiting_in
from noisescale.transport.left_behind import stream_folders
from noisescale.transport.stream_folder import StreamFolder

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Waiting:
    """Streams that no server has whole.

    Attributes:
        root: The folder `spool` that they are in.
        running: Of jobs that live.
        others: Of jobs that are gone; nobody has tried to send them, or nobody says why that failed.
        stuck: Of jobs that are gone, and the last attempt to send them has failed.
        refused: Of runs that a server has deleted.
        num_set_aside: Records in quarantine, in these and in all other streams.
    """

    root: Path
    running: Sequence[StreamFolder]
    others: Sequence[StreamFolder]
    stuck: Sequence[StreamFolder]
    refused: Sequence[StreamFolder]
    num_set_aside: int

    @property
    def is_bad(self) -> bool:
        """Whether somebody has to look at it."""
        return bool(self.stuck or self.refused)

    def lines(self) -> Iterator[str]:
        """Sentences with the way out; none where all has arrived."""
        gone = len(self.others) + len(self.stuck) + len(self.refused)
        if self.running or gone:
            yield f"on disk  {self.root}: {len(self.running)} streams of running jobs, {gone} others"
        yield from _listed("stuck", self.stuck, "noisescale sync")
        yield from _listed(
            "refused", self.refused, "deleted a week after a job has said so; to try again: noisescale sync"
        )
        if self.num_set_aside:
            yield f"refused  {self.num_set_aside} records, one by one: they lie in quarantine/ below {self.root}"
        lost = list(written_down(self.root))
        if lost:
            total = sum(one.num_records for one in lost)
            yield f"lost     {total} records of {len(lost)} streams were deleted unsent: listed in {book_of(self.root)}"
        if self.others or self.stuck:
            yield f"to do    noisescale sync {self.root.parent}"


def _listed(name: str, folders: Sequence[StreamFolder], way_out: str) -> Iterator[str]:
    for folder in folders[:SHOWN]:
        yield (
            f"{name:<8} {num_waiting_in(folder)} records of run {folder.path.parent.name}: {folder.left_because()}; "
            f"{way_out} {folder.path}"
        )
    if len(folders) > SHOWN:
        yield f"{name:<8} {len(folders) - SHOWN} streams more"


def waiting(config: Config) -> list[Waiting]:
    """What waits in each folder where this user's jobs write."""
    return [_waiting_below(folder / SPOOL) for folder in config.folders]


def _waiting_below(root: Path) -> Waiting:
    folders = [folder for folder in stream_folders(root) if not folder.has_moved]
    left = [folder for folder in folders if not _has_arrived(folder)]
    running = [folder for folder in left if not folder.is_free()]
    refused = [folder for folder in left if folder not in running and folder.is_refused]
    stuck = [folder for folder in left if folder not in (*running, *refused) and folder.left_because()]
    others = [folder for folder in left if folder not in (*running, *refused, *stuck)]
    return Waiting(root, running, others, stuck, refused, sum(folder.num_quarantined() for folder in folders))


def _has_arrived(folder: StreamFolder) -> bool:
    try:
        return has_arrived(folder)
    except OSError:
        return False

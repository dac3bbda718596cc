"""`noisescale status`: which server this machine would send to, whether it answers, and what waits on disk."""

import argparse
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from noisescale.config import Config
from noisescale.outbox import REASONS, SPOOL, end_of_a_killed_job
from noisescale.transport.spool.stream_folder import StreamFolder
from noisescale.transport.upload.http import HttpServer
from noisescale.transport.upload.late_delivery import has_arrived, num_waiting_in
from noisescale.transport.upload.left_behind import (
    book_of,
    given_up_account,
    is_cut_off,
    num_damaged_at_the_end,
    open_stream,
    stream_folders,
    written_down,
)
from noisescale.version import __version__
from noisescale_core.errors import TransportError

SHOWN = 5


# What lies on disk of this user's jobs and no server has, in lines for `status` and `doctor`.


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
        incomplete: Of jobs that are gone, these streams and all others: what was given up, or cannot be known.
    """

    root: Path
    running: Sequence[StreamFolder]
    others: Sequence[StreamFolder]
    stuck: Sequence[StreamFolder]
    refused: Sequence[StreamFolder]
    num_set_aside: int
    incomplete: Sequence["Incomplete"] = ()

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
        yield from _first_ones("lost", [line for one in self.incomplete for line in one.losses()])
        yield from _first_ones("cut off", [line for one in self.incomplete for line in one.ends()])
        if self.others or self.stuck:
            yield "to do    noisescale sync"


@dataclass(frozen=True, slots=True)
class Incomplete:
    """A stream of a job that is gone, and that has not all that was logged.

    Attributes:
        folder: Where it lies.
        num_records: That are known of it, lost ones included.
        num_lost_by_reason: Of which were given up, or are damaged.
        is_cut_off: Its job was killed.
        num_bytes_damaged: At its end.
    """

    folder: StreamFolder
    num_records: int
    num_lost_by_reason: Mapping[str, int]
    is_cut_off: bool
    num_bytes_damaged: int

    @property
    def name(self) -> str:
        """Run and stream."""
        return f"run {self.folder.path.parent.name} stream {self.folder.path.name[:8]}"

    def losses(self) -> Iterator[str]:
        """A sentence for each reason."""
        for reason, number in self.num_lost_by_reason.items():
            yield f"{number} of {self.num_records} records of {self.name}: {REASONS.get(reason, reason)}"

    def ends(self) -> Iterator[str]:
        """What cannot be known."""
        if self.is_cut_off:
            yield f"{self.name}: {end_of_a_killed_job(self.num_records, self.num_bytes_damaged)}"


def _first_ones(name: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines[:SHOWN]:
        yield f"{name:<8} {line}"
    if len(lines) > SHOWN:
        yield f"{name:<8} {len(lines) - SHOWN} more like these"


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
    num_set_aside = sum(folder.num_quarantined() for folder in folders)
    gone = [folder for folder in folders if folder not in running]
    # to read what waits may take a while, and the server says the same of what has arrived
    looked_into = [folder for folder in gone if folder in left][:SHOWN]
    incomplete = [one for folder in gone for one in _incomplete(folder, is_read=folder in looked_into)]
    return Waiting(root, running, others, stuck, refused, num_set_aside, incomplete)


def _incomplete(folder: StreamFolder, *, is_read: bool) -> Iterator[Incomplete]:
    """What is to be said of the end of a stream; nothing of one that is whole, or cannot be read."""
    with contextlib.suppress(OSError):
        account = open_stream(folder)[0].account() if is_read else given_up_account(folder)
        is_cut = is_cut_off(folder)
        if account.num_lost_by_reason or is_cut:
            num_damaged = num_damaged_at_the_end(folder)
            yield Incomplete(folder, account.num_logged, account.num_lost_by_reason, is_cut, num_damaged)


def _has_arrived(folder: StreamFolder) -> bool:
    try:
        return has_arrived(folder)
    except OSError:
        return False


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = subparsers.add_parser("status", help="which server runs are sent to, and whether it answers")
    parser.add_argument("--url", help="ask this server instead of the configured one")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """0 when the server is ready, takes the key, and no records are stuck; 1 when not; 2 for wrong settings."""
    config = Config.from_env(url=arguments.url)
    print(f"server   {config.url}")
    print(f"project  {config.project}")
    found = waiting(config)
    for line in (line for one in found for line in one.lines()):
        print(line)
    server = HttpServer(config.url, config.api_key, f"noisescale/{__version__}")
    try:
        is_ready = server.is_ready()
        is_refused = is_ready and server.refuses_key()
    except TransportError as error:
        print(f"state    not reachable: {error}")
        print("to do    start one with `noisescale up`, or set NOISESCALE_URL to one that runs")
        return 1
    finally:
        server.close()
    if not is_ready:
        print("state    answers, but is not ready: its database may be starting; look at its log")
        return 1
    if is_refused:
        print(f"state    the server is ready at {config.url}, but refuses this key")
        print("to do    make a key on its page Settings, and set NOISESCALE_API_KEY")
        return 1
    if any(one.is_bad for one in found):
        print(f"state    the server is ready at {config.url}, but records have not reached it: see above")
        return 1
    if any(one.others for one in found):
        print(f"state    the server is ready at {config.url}; what waits on disk was not sent to it yet: see above")
        return 0
    print(f"state    ready; runs appear at {config.url}")
    return 0

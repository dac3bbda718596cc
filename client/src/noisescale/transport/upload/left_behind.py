"""Streams on disk that another process has written: what is in their folders, and who may deliver it."""

import datetime
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from noisescale.transport.accounts import Account, LeftStream
from noisescale.transport.spool.disk_spool import DiskSpool
from noisescale.transport.spool.frames import SEAL, SEAL_BYTES, Found, decode_loss, frames_in, is_cut_short, is_run
from noisescale.transport.spool.segment import Segment
from noisescale.transport.spool.stream_folder import READ_FLAGS, StreamFolder
from noisescale.transport.upload.stream import Stream
from noisescale.transport.wire import LostRange

FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW


# A list, beside the streams of a state folder, of records that were deleted before any server had them.


@dataclass(frozen=True, slots=True)
class GivenUp:
    """One stream whose folder is gone.

    Attributes:
        at: When, ISO 8601.
        run_id: The run it wrote to.
        stream_id: Its own id.
        num_records: That no server had.
        reason: Why.
    """

    at: str
    run_id: str
    stream_id: str
    num_records: int
    reason: str


def book_of(root: Path) -> Path:
    """The file for the streams below a folder `spool`."""
    return root / "given-up.jsonl"


def write_down(root: Path, run_id: str, stream_id: str, num_records: int, reason: str) -> None:
    """Add a line, on the disk before anything is deleted.

    Raises:
        OSError: Where that is not possible.
    """
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    line = json.dumps(asdict(GivenUp(now, run_id, stream_id, num_records, reason))) + "\n"
    descriptor = os.open(book_of(root), FLAGS, 0o600)
    try:
        num_written = os.write(descriptor, line.encode())
        os.fdatasync(descriptor)
    finally:
        os.close(descriptor)
    if num_written != len(line.encode()):
        raise OSError(f"wrote {num_written} of {len(line)} bytes to {book_of(root)}")


def written_down(root: Path) -> Iterator[GivenUp]:
    """All lines that can be read, the oldest first."""
    try:
        lines = book_of(root).read_text().splitlines()
    except OSError:
        return
    for line in lines:
        try:
            yield GivenUp(**json.loads(line))
        except (ValueError, TypeError):
            continue  # cut off when the disk was full


def stream_folders(root: Path) -> Iterator[StreamFolder]:
    """The streams below a folder, or at it: of a whole state folder, of one run, or a single one; ours only.

    Without those whose records another one of them holds still: their writer died while it copied them.

    Args:
        root: A state folder, its `spool`, the folder of a run, or that of a stream.
    """
    for depth in ("", "*", "*/*", "spool/*/*"):
        for path in sorted(root.glob(depth) if depth else [root]):
            folder = StreamFolder(path)
            is_one = (path / "lock").is_file() and path.stat().st_uid == os.geteuid()
            if is_one and not folder.is_unfinished:
                yield folder


def open_stream(folder: StreamFolder, acked_seq: int | None = None) -> tuple[Stream, DiskSpool]:
    """A stream as far as it is written, ready to be delivered, and its spool.

    A record that is cut off at the very end was still being written: nobody was told that it is safe.

    Args:
        folder: Where it lies.
        acked_seq: What the server has an account of; None: what the folder says.

    Raises:
        OSError: Where the folder cannot be read.
    """
    # where it goes on in another folder, that one is meant for the same server
    spool = DiskSpool([folder.path.parent.parent], {"url": folder.meta().get("url")})
    noted = _Noted(folder.given_up())
    run_frame, last_seq, lost = b"", noted.last_seq, []
    for path in folder.segment_paths():
        try:
            found = _Contents(path)
        except FileNotFoundError:
            continue  # a writer that still lives has deleted it, delivered or with its loss declared further on
        spool.add_written(folder, path, found.segment)
        run_frame = run_frame or found.run_frame
        last_seq = max(last_seq, found.last_seq)
        lost += found.lost
    run_frame = run_frame or noted.run_frame
    lost += noted.lost
    last_seq = max([last_seq, *(one.last for one in lost)])
    acked = folder.acked_seq() if acked_seq is None else acked_seq
    left = LeftStream(folder.path.parent.name, folder.path.name, run_frame, last_seq, acked, lost)
    return Stream.left_behind(left, spool), spool


def ended_at(folder: StreamFolder) -> int | None:
    """The last record of a stream that has ended; None where its last file has no seal, and nobody saw its writer dead.

    Raises:
        OSError: Where the folder cannot be read.
    """
    settled_at = folder.settled_at()
    paths = folder.segment_paths()
    if settled_at is not None or not paths:
        return settled_at
    noted = _Noted(folder.given_up())
    return max(noted.last_seq, sealed_at(paths[-1])) or None


def sealed_at(path: Path) -> int:
    """The last record of a stream by the seal that ends a file of it; 0 where it has none.

    Raises:
        OSError: Where the file cannot be read.
    """
    descriptor = os.open(path, READ_FLAGS)
    with os.fdopen(descriptor, "rb") as file:
        file.seek(max(0, os.fstat(descriptor).st_size - SEAL_BYTES))
        found = list(frames_in(file.read()))
    return found[-1].seq if found and found[-1].kind == SEAL else 0


def is_cut_off(folder: StreamFolder) -> bool:
    """Whether a dead writer has not ended its stream: what it held that is not in the folder cannot be known.

    Raises:
        OSError: Where the folder cannot be read.
    """
    paths = folder.segment_paths()
    return bool(paths) and not sealed_at(paths[-1]) and not _Noted(folder.given_up()).last_seq


def given_up_account(folder: StreamFolder) -> Account:
    """What became of a stream's records by what is noted beside them alone: quick, but silent about losses in files."""
    noted = _Noted(folder.given_up())
    last_seq = max([noted.last_seq, folder.settled_at() or 0, folder.acked_seq(), *(one.last for one in noted.lost)])
    run_id, stream_id = folder.path.parent.name, folder.path.name
    left = LeftStream(run_id, stream_id, noted.run_frame, last_seq, folder.acked_seq(), noted.lost)
    return Stream.left_behind(left, DiskSpool([folder.path.parent.parent])).account()


def num_damaged_at_the_end(folder: StreamFolder) -> int:
    """How many bytes at the end of a stream hold records that nobody can read, count or declare; 0 for one that ended.

    A record that is cut off at the very end does not count: nobody was told that it is safe.

    Raises:
        OSError: Where the folder cannot be read.
    """
    num_bytes = 0
    for path in reversed(folder.segment_paths() if is_cut_off(folder) else []):
        data = _content(path)
        end = max((found.end for found in frames_in(data)), default=0)
        if num_bytes or not is_cut_short(data[end:]):
            num_bytes += len(data) - end
        if end:
            break
    return num_bytes


def _content(path: Path) -> bytes:
    descriptor = os.open(path, READ_FLAGS)
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


class _Noted:
    """What frames say beside records: the run's own one, where the stream ended, and losses."""

    def __init__(self, data: bytes) -> None:
        self.run_frame = b""
        self.last_seq = 0
        self.lost: list[LostRange] = []
        for found in frames_in(data):
            self.see(found)

    def see(self, found: Found) -> bool:
        """Take what is no record but the run's own; whether it was that."""
        if found.kind == SEAL:
            self.last_seq = max(self.last_seq, found.seq)
        elif not found.is_record:
            self.lost.append(decode_loss(found.frame))
        elif found.seq == 1 and is_run(found.frame):
            self.run_frame = found.frame
        else:
            return False
        return True


class _Contents(_Noted):
    """What a file holds: its range of records as well."""

    def __init__(self, path: Path) -> None:
        super().__init__(b"")
        self.segment = Segment(path)
        descriptor = os.open(path, READ_FLAGS)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read()
            self.segment.created_at = os.fstat(descriptor).st_mtime
        numbers = [found.seq for found in frames_in(data) if not self.see(found)]
        own = numbers or ([1] if self.run_frame else [])
        self.segment.size = len(data)
        if own:
            self.segment.first_seq, self.segment.last_seq = min(own), max(own)
        self.last_seq = max(self.last_seq, self.segment.last_seq)

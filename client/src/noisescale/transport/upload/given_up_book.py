"""A list, beside the streams of a state folder, of records that were deleted before any server had them."""

import datetime
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW


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

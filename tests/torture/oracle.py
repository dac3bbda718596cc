"""What a job knows to be accepted: a line in a file of its own, written after the call has returned.

And what it saw that must not be: a server, not restored, that has forgotten what it had acknowledged.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from noisescale.transport.upload import late_delivery
from noisescale.transport.upload.stream import Stream

APPENDING = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


class Oracle:
    """The lines of one process: its stream, then the index and the record number of each accepted call."""

    def __init__(self, folder: Path, writer: int) -> None:
        self._file = os.open(folder / f"{writer}.accepted", APPENDING, 0o600)
        self._stream_id = ""

    def accepted(self, index: int, stream_id: str, seq: int) -> None:
        """A call has returned."""
        head = "" if stream_id == self._stream_id else f"stream {stream_id}\n"
        self._stream_id = stream_id
        os.write(self._file, f"{head}{index} {seq}\n".encode())


@dataclass(frozen=True, slots=True)
class Accepted:
    """What one process knew to be accepted.

    Attributes:
        writer: Number of the process.
        stream_id: Its stream; empty before the first record.
        places: Stream and record number of each call that returned, by its index.
        last_seq: The newest record number.
        num_streams: How many streams it wrote; more than one is a conflict.
    """

    writer: int
    stream_id: str
    places: dict[int, tuple[str, int]]
    last_seq: int
    num_streams: int


def read(path: Path) -> Accepted:
    """The lines of one process; one that was cut off says nothing."""
    stream_ids, places, seq = [""], dict[int, tuple[str, int]](), 0
    for line in path.read_bytes().split(b"\n")[:-1]:
        first, _, second = line.decode().partition(" ")
        if first == "stream":
            stream_ids.append(second)
        else:
            seq = int(second)
            places[int(first)] = (stream_ids[-1], seq)
    return Accepted(int(path.stem), stream_ids[-1], places, seq, len(stream_ids) - 1)


def read_all(folder: Path) -> Iterator[Accepted]:
    """Those of all processes."""
    for path in sorted(folder.glob("*.accepted"), key=lambda path: int(path.stem)):
        yield read(path)


def watch_for_forgetting(folder: Path) -> None:
    """Write down whenever the server stands before what it has acknowledged, as a job or a late sender sees it."""
    file = os.open(folder / "forgotten", APPENDING, 0o600)

    def note(stream_id: object, acked: int, standing: int) -> None:
        if standing < acked:
            os.write(file, f"{stream_id} {standing + 1} {acked}\n".encode())

    rewind: Callable[..., bool] = Stream.rewind

    def noted_rewind(stream: Stream, expected_seq: int) -> bool:
        note(stream.stream_id, stream.delivery().num_acked, expected_seq - 1)
        return rewind(stream, expected_seq)

    cursor: Callable[..., tuple[int, str | None]] = late_delivery.server_cursor

    def noted_cursor(server: Any, stream_id: str) -> tuple[int, str | None]:
        paths = list((Path(os.environ["NOISESCALE_DIR"]) / "spool").glob(f"*/{stream_id}/.ack"))
        acked = int(paths[0].read_text().split()[0]) if paths else 0
        found = cursor(server, stream_id)
        note(stream_id, acked, found[0])
        return found

    Stream.rewind = noted_rewind  # type: ignore[method-assign]
    late_delivery.server_cursor = noted_cursor


def num_forgotten(folder: Path) -> int:
    """Records that a server had acknowledged and did not have when it was asked."""
    path = folder / "forgotten"
    lines = path.read_text().splitlines() if path.exists() else []
    found = {seq for line in lines for seq in _numbers(line)}
    return len(found)


def _numbers(line: str) -> Iterator[tuple[str, int]]:
    stream_id, first, last = line.split()
    return ((stream_id, seq) for seq in range(int(first), int(last) + 1))

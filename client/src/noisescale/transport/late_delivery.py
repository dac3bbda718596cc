"""Sends what other processes have left on disk: jobs that were killed, or that no server answered."""

import contextlib
import logging
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from noisescale.transport.answers import acked_in, epoch_in
from noisescale.transport.http import HttpServer
from noisescale.transport.left_behind import ended_at, open_stream, stream_folders
from noisescale.transport.stream import Stream
from noisescale.transport.stream_folder import StreamFolder
from noisescale.transport.uploader import Uploader
from noisescale_core.errors import TransportError

KEPT_SECONDS = 86_400.0
KEPT_BYTES = 256 << 20
KEPT_STREAMS = 1000
"""How long streams that have arrived whole are kept, and how many, in case the server goes back."""

REFUSED_SECONDS = 7 * 86_400.0
"""How long the streams of deleted runs are kept, in case that was a mistake."""

STREAM_SECONDS = 3600.0
END_SECONDS = 0.1
POLL_SECONDS = 0.01

logger = logging.getLogger("noisescale")

OnProgress = Callable[[int, int], None]
"""Told how many records of how many have an account."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one stream.

    Attributes:
        run_id: The run it writes to.
        stream_id: Its own id.
        num_records: In its folder, lost ones included.
        num_delivered: Of which the server had no account before.
        num_lost: Of which it knows now that they will never come.
        num_left: Without an account still.
        reason: Why, where any are left.
    """

    run_id: str
    stream_id: str
    num_records: int
    num_delivered: int
    num_lost: int
    num_left: int
    reason: str = ""


def deliver(folder: StreamFolder, server: HttpServer, on_progress: OnProgress, timeout_seconds: float) -> Outcome:
    """Send what the server lacks of one stream, as far as it is written.

    Args:
        folder: Where it lies; locked where nobody writes to it any more.
        server: Where to.
        on_progress: Told about the progress now and then.
        timeout_seconds: Longest wait for all of it.

    Raises:
        TransportError: Where the server cannot say what it has.
        OSError: Where the folder cannot be read.
    """
    acked_before, epoch = server_cursor(server, folder.path.name)
    stream, _ = open_stream(folder, acked_before)
    stream.epoch = epoch
    folder.acknowledge(stream.delivery().num_acked, epoch)
    faults: list[Exception] = []
    uploader = Uploader(stream, server, faults.append, interval_seconds=POLL_SECONDS, keeps_connection=True)
    deadline = time.monotonic() + timeout_seconds
    if stream.delivery().num_waiting:
        uploader.notify(1)
    while stream.delivery().num_waiting and time.monotonic() < deadline and not uploader.stop_reason and not faults:
        time.sleep(POLL_SECONDS)
        on_progress(stream.delivery().num_acked, stream.delivery().num_logged)
    uploader.close()
    if uploader.stop_reason is not None:
        folder.refuse(uploader.stop_reason)
    elif folder.is_ours and not stream.delivery().num_waiting:
        folder.settle(stream.delivery().num_logged)
    stream.end(END_SECONDS)
    return _outcome(stream, folder, acked_before, uploader.stop_reason or "".join(map(str, faults)))


def _outcome(stream: Stream, folder: StreamFolder, acked_before: int, reason: str) -> Outcome:
    found = stream.delivery()
    if found.num_waiting and not reason:
        reason = "the server did not take them in time"
    return Outcome(
        run_id=folder.path.parent.name,
        stream_id=folder.path.name,
        num_records=found.num_logged,
        num_delivered=max(0, found.num_acked - acked_before),
        num_lost=found.num_lost,
        num_left=found.num_waiting,
        reason=reason if found.num_waiting else "",
    )


def server_cursor(server: HttpServer, stream_id: str) -> tuple[int, str | None]:
    """Up to which record the server has an account of a stream, 0 where it knows none of that id, and its epoch.

    Raises:
        TransportError: Without an answer that says so.
    """
    answer = server.request("GET", f"/api/v1/streams/{stream_id}")
    acked_seq = acked_in(answer)
    if acked_seq is None:
        raise TransportError(f"{server.url} answered {answer.status} {answer.body.get('detail', '')}".strip())
    return acked_seq, epoch_in(answer)


def adopt(root: Path, server: HttpServer, epoch: str | None) -> Iterator[Outcome]:
    """Send what dead processes of this user have left for this server, and delete what has arrived long ago.

    Args:
        root: The folder `spool` of a state folder.
        server: Only what was meant for it is sent.
        epoch: Of its data: what has arrived in another one is asked for again. None: it does not say.
    """
    for folder in _meant_for(server, root):
        try:
            if folder.is_refused:
                continue
            if not has_arrived(folder) or epoch not in (None, folder.epoch()):
                yield deliver(folder, server, lambda acked, logged: None, STREAM_SECONDS)
        except (OSError, TransportError) as error:
            logger.info("records of an earlier process stay in %s: %s", folder.path, error)
    for folder in beyond_the_window(_meant_for(server, root)):
        shutil.rmtree(folder.path, ignore_errors=True)
        with contextlib.suppress(OSError):
            folder.path.parent.rmdir()  # of a run without other streams


def _meant_for(server: HttpServer, root: Path) -> Iterator[StreamFolder]:
    """The streams of dead processes that go to a server, each locked while it is looked at."""
    for folder in stream_folders(root):
        try:
            if not folder.has_moved and folder.meta().get("url") == server.url and folder.try_lock():
                yield folder
        except OSError as error:
            logger.info("cannot look at %s: %s", folder.path, error)
        finally:
            folder.release()


def beyond_the_window(folders: Iterable[StreamFolder]) -> list[StreamFolder]:
    """The streams that nobody needs any more: refused long ago, or arrived and too old, too large or too many.

    Raises:
        OSError: Where a folder cannot be read.
    """
    now = time.time()
    arrived, gone = [], []
    for folder in folders:
        age = now - folder.newest_change()
        if folder.is_refused:
            gone += [folder] * (age > REFUSED_SECONDS)
        elif has_arrived(folder):
            arrived.append((age, folder.num_bytes(), folder))
    num_bytes = 0
    for place, (age, size, folder) in enumerate(sorted(arrived, key=lambda one: one[0])):
        num_bytes += size
        gone += [folder] * (age > KEPT_SECONDS or num_bytes > KEPT_BYTES or place >= KEPT_STREAMS)
    return gone


def has_arrived(folder: StreamFolder) -> bool:
    """Whether a stream has ended and the server had an account of all of it.

    Raises:
        OSError: Where the folder cannot be read.
    """
    last_seq = ended_at(folder)
    return last_seq is not None and folder.acked_seq() >= last_seq

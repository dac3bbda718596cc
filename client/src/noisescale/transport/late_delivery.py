"""Sends what other processes have left on disk: jobs that were killed, or that no server answered."""

import logging
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from noisescale.errors import TransportError
from noisescale.transport.http import HttpServer
from noisescale.transport.left_behind import open_stream, sealed_at, stream_folders
from noisescale.transport.stream import Stream
from noisescale.transport.stream_folder import StreamFolder
from noisescale.transport.uploader import Uploader

KEPT_SECONDS = 86_400.0
"""How long a stream that has arrived whole is kept, in case the server goes back."""

STREAM_SECONDS = 3600.0
POLL_SECONDS = 0.1

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
        folder: Where it lies.
        server: Where to.
        on_progress: Told about the progress now and then.
        timeout_seconds: Longest wait for all of it.

    Raises:
        TransportError: Where the server cannot say what it has.
        OSError: Where the folder cannot be read.
    """
    acked_before = server_cursor(server, folder.path.name)
    stream, _ = open_stream(folder, acked_before)
    faults: list[Exception] = []
    uploader = Uploader(stream, server, faults.append)
    deadline = time.monotonic() + timeout_seconds
    uploader.notify(1)
    while stream.delivery().num_waiting and time.monotonic() < deadline and not uploader.stop_reason and not faults:
        time.sleep(POLL_SECONDS)
        on_progress(stream.delivery().num_acked, stream.delivery().num_logged)
    uploader.close()
    stream.end(POLL_SECONDS)
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


def server_cursor(server: HttpServer, stream_id: str) -> int:
    """Up to which record the server has an account of a stream; 0 where it knows none of that id.

    Raises:
        TransportError: Without an answer that says so.
    """
    answer = server.request("GET", f"/api/v1/streams/{stream_id}")
    if answer.status == 404:
        return 0
    acked = answer.body.get("acked_seq")
    if answer.status != 200 or not isinstance(acked, int):
        raise TransportError(f"{server.url} answered {answer.status} {answer.body.get('detail', '')}".strip())
    return acked


def adopt(root: Path, server: HttpServer) -> Iterator[Outcome]:
    """Send what dead processes of this user have left for this server, and delete what has arrived long ago.

    Args:
        root: The folder `spool` of a state folder.
        server: Only what was meant for it is sent.
    """
    for folder in stream_folders(root):
        if folder.has_moved or folder.meta().get("url") != server.url or not folder.try_lock():
            continue
        try:
            if not has_arrived(folder):
                yield deliver(folder, server, lambda acked, logged: None, STREAM_SECONDS)
            elif time.time() - folder.newest_change() > KEPT_SECONDS:
                shutil.rmtree(folder.path, ignore_errors=True)
        except (OSError, TransportError) as error:
            logger.info("records of an earlier process stay in %s: %s", folder.path, error)
        finally:
            folder.release()


def has_arrived(folder: StreamFolder) -> bool:
    """Whether a stream has ended and the server had an account of all of it.

    Raises:
        OSError: Where the folder cannot be read.
    """
    last_seq = sealed_at(folder)
    return last_seq is not None and folder.acked_seq() >= last_seq

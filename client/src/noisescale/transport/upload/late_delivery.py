"""Sends what other processes have left on disk: jobs that were killed, or that no server answered."""

import contextlib
import dataclasses
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from noisescale.transport.spool.stream_folder import StreamFolder
from noisescale.transport.upload.answers import cursor_in, epoch_in
from noisescale.transport.upload.database_behind import DatabaseBehind
from noisescale.transport.upload.http import HttpServer
from noisescale.transport.upload.left_behind import (
    book_of,
    ended_at,
    is_cut_off,
    num_damaged_at_the_end,
    open_stream,
    stream_folders,
    write_down,
)
from noisescale.transport.upload.stream import Stream
from noisescale.transport.upload.uploader import Uploader
from noisescale_core.errors import TransportError

KEPT_SECONDS = 86_400.0
KEPT_BYTES = 256 << 20
KEPT_STREAMS = 1000
"""How long streams that have arrived whole are kept, and how many, in case the server goes back."""

REFUSED_SECONDS = 7 * 86_400.0
"""How long the streams of deleted runs are kept after a person was told, in case that was a mistake."""

STREAM_SECONDS = 3600.0
PATIENCE_SECONDS = 60.0
"""How long nothing arrives of a stream before the next one has its turn."""

END_SECONDS = 0.1
WATCH_SECONDS = 0.1
INTERVAL_SECONDS = 0.01

logger = logging.getLogger("noisescale")

BUSY = (429, 503)
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 16.0
"""Between two questions where a proxy has answered the first."""

OnProgress = Callable[[int, int], None]
"""Told how many records of how many have an account."""


class NotNowError(TransportError):
    """Something on the way answered in the server's place, or the server is busy."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one stream.

    Attributes:
        run_id: The run it writes to.
        stream_id: Its own id.
        num_records: In its folder, lost ones included.
        num_there: Of which it had stored before.
        num_delivered: Of which it has stored now.
        num_lost: Of which it knows now that they will never come.
        num_left: Without an account still.
        reason: Why, where any are left.
        is_cut_off: Its writer died without ending it: whether it had more than that, nobody can know.
        num_bytes_damaged: At its end, of records that nobody can count.
        is_of_another_database: They stay until a person says where to send them.
    """

    run_id: str
    stream_id: str
    num_records: int
    num_there: int
    num_delivered: int
    num_lost: int
    num_left: int
    reason: str = ""
    is_cut_off: bool = False
    num_bytes_damaged: int = 0
    is_of_another_database: bool = False


def deliver(
    folder: StreamFolder,
    server: HttpServer,
    on_progress: OnProgress,
    timeout_seconds: float,
    patience_seconds: float | None = None,
) -> Outcome:
    """Send what the server lacks of one stream, as far as it is written.

    Args:
        folder: Where it lies; locked where nobody writes to it any more.
        server: Where to.
        on_progress: Told about the progress now and then.
        timeout_seconds: Longest wait for all of it.
        patience_seconds: Longest wait for anything of it; None: a minute.

    Raises:
        TransportError: Where the server cannot say what it has.
        OSError: Where the folder cannot be read.
    """
    patience = PATIENCE_SECONDS if patience_seconds is None else patience_seconds
    stream, acked_before = _as_the_server_knows_it(folder, server, min(timeout_seconds, patience))
    faults: list[Exception] = []
    uploader = Uploader(stream, server, faults.append, interval_seconds=INTERVAL_SECONDS, keeps_connection=True)
    if num_waiting := stream.delivery().num_waiting:
        uploader.notify(num_waiting)
    _watch(stream, uploader, faults, on_progress, timeout_seconds, patience)
    uploader.close()
    outcome = _outcome(stream, folder, acked_before, uploader.trouble or "".join(map(str, faults)))
    if uploader.stop_reason is not None:
        folder.refuse(uploader.stop_reason)
        outcome = dataclasses.replace(outcome, reason=uploader.stop_reason)
    elif folder.is_ours:
        folder.leave(outcome.reason)
        if not outcome.num_left:
            folder.settle(stream.delivery().num_logged)
    stream.end(END_SECONDS)
    return outcome


def _as_the_server_knows_it(folder: StreamFolder, server: HttpServer, patience_seconds: float) -> tuple[Stream, int]:
    """The stream, ready to be sent, and up to which record the server had an account of it before.

    Raises:
        TransportError: Where the server cannot say what it has, or a new stream is needed and there is no room for it.
        OSError: Where the folder cannot be read.
    """
    conflict_at = folder.conflict_at()
    if conflict_at is not None:
        # of this id the server has somebody else's records
        stream, _ = open_stream(folder, conflict_at)
        if not stream.start_anew():
            why = "its process is still running" if folder.is_others else "there is no room for a new one now"
            raise TransportError(f"others write under the id of this stream, and {why}")
        return stream, 0
    acked_before, epoch = _patient_cursor(server, folder.path.name, patience_seconds)
    stream, _ = open_stream(folder, acked_before)
    stream.epoch = epoch
    folder.acknowledge(stream.delivery().num_acked, epoch)
    return stream, acked_before


def _watch(
    stream: Stream,
    uploader: Uploader,
    faults: Sequence[Exception],
    on_progress: OnProgress,
    timeout_seconds: float,
    patience_seconds: float,
) -> None:
    """Return when nothing waits, the sender has ended or cannot go on, or its time or our patience is over."""
    acked, now = stream.delivery().num_acked, time.monotonic()
    deadline, moved_at = now + timeout_seconds, now
    while (
        stream.delivery().num_waiting
        and not (uploader.stop_reason or uploader.lacks_the_run or faults)
        and now < min(deadline, moved_at + patience_seconds)
    ):
        uploader.wait(WATCH_SECONDS)
        now, delivery = time.monotonic(), stream.delivery()
        if delivery.num_acked != acked:
            acked, moved_at = delivery.num_acked, now
        on_progress(delivery.num_acked, delivery.num_logged)


def _outcome(stream: Stream, folder: StreamFolder, acked_before: int, trouble: str) -> Outcome:
    found = stream.delivery()
    return Outcome(
        run_id=folder.path.parent.name,
        stream_id=folder.path.name,
        num_records=found.num_logged,
        num_there=stream.num_stored(1, acked_before),
        num_delivered=stream.num_stored(acked_before + 1, found.num_acked),
        num_lost=found.num_lost,
        num_left=found.num_waiting,
        reason=(trouble or "the server did not take them in time") if found.num_waiting else "",
        is_cut_off=folder.is_ours and is_cut_off(folder),
        num_bytes_damaged=num_damaged_at_the_end(folder) if folder.is_ours else 0,
    )


def _patient_cursor(server: HttpServer, stream_id: str, patience_seconds: float) -> tuple[int, str | None]:
    """The same where something on the way answers in the server's place for a while, or the server is busy.

    Raises:
        TransportError: Where it goes on so, or nobody answers, or the server itself refuses.
    """
    deadline, pause = time.monotonic() + patience_seconds, FIRST_PAUSE_SECONDS
    while True:
        try:
            return server_cursor(server, stream_id)
        except NotNowError:
            if time.monotonic() + pause > deadline:
                raise
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def server_cursor(server: HttpServer, stream_id: str) -> tuple[int, str | None]:
    """Up to which record the server has an account of a stream, 0 where it knows none of that id, and its epoch.

    Raises:
        TransportError: Without an answer that says so.
    """
    answer = server.request("GET", f"/api/v1/streams/{stream_id}")
    acked_seq = cursor_in(answer, stream_id)
    if acked_seq is None:
        is_final = answer.is_ours and answer.status not in BUSY
        raise (TransportError if is_final else NotNowError)(f"{server.url} {answer}")
    return acked_seq, epoch_in(answer)


def adopt(root: Path, server: HttpServer, epoch: str | None) -> Iterator[Outcome]:
    """Send what dead processes of this user have left for this server, and delete what has arrived long ago.

    Args:
        root: The folder `spool` of a state folder.
        server: Only what was meant for it is sent.
        epoch: Of its data: what has arrived in another one is asked for again. None: it does not say.
    """
    behind = DatabaseBehind(server)
    for folder in _meant_for(server, root):
        try:
            if _tell_if_refused(folder):
                continue
            if behind.is_another(folder):
                if not has_arrived(folder):
                    yield _of_another_database(folder, server)
            elif not _has_arrived_in(folder, epoch):
                yield deliver(folder, server, lambda acked, logged: None, STREAM_SECONDS)
                _tell_if_refused(folder)
        except TransportError as error:
            yield _unsent(folder, str(error))
        except OSError as error:
            logger.warning("records of an earlier process stay in %s: %s", folder.path, error)
    for folder in beyond_the_window(_meant_for(server, root, or_moved=True), epoch, behind):
        _delete(folder)


def _tell_if_refused(folder: StreamFolder) -> bool:
    """Say at each start what will be deleted unsent, so that it is never age alone; whether that is so."""
    if not folder.is_refused:
        return False
    folder.tell()
    until = (folder.told_at() or time.time()) + REFUSED_SECONDS
    if until >= time.time():
        logger.warning(
            "%d records of run %s were never stored: %s. They stay until %s; to try again: noisescale sync %s",
            num_waiting_in(folder),
            folder.path.parent.name,
            folder.left_because(),
            time.strftime("%Y-%m-%d %H:%M", time.localtime(until)),
            folder.path,
        )
    return True


def _unsent(folder: StreamFolder, reason: str) -> Outcome:
    """A stream of which the server did not even say what it has."""
    folder.leave(reason)
    num_waiting = num_waiting_in(folder)
    return Outcome(folder.path.parent.name, folder.path.name, num_waiting, 0, 0, 0, num_waiting, reason)


def _of_another_database(folder: StreamFolder, server: HttpServer) -> Outcome:
    """A stream whose first records are elsewhere: nobody has asked for the others to be here."""
    reason = (
        f"another database is behind {server.url} now than the one that has their first records; "
        f"to send them there all the same: noisescale sync {folder.path}"
    )
    return dataclasses.replace(_unsent(folder, reason), is_of_another_database=True)


def _delete(folder: StreamFolder) -> None:
    """Take a stream away; what no server has of it is written down and said first."""
    if folder.is_refused:
        num_records, reason = num_waiting_in(folder), folder.left_because()
        run_id, root = folder.path.parent.name, folder.path.parent.parent
        try:
            write_down(root, run_id, folder.path.name, num_records, reason)
        except OSError as error:
            logger.warning("%s is kept, because its end could not be reported: %s", folder.path, error)
            return
        logger.warning(
            "%d records of run %s are lost, and their folder is deleted: %s. Listed in %s",
            num_records,
            run_id,
            reason,
            book_of(root),
        )
    folder.remove()
    with contextlib.suppress(OSError):
        folder.path.parent.rmdir()  # of a run without other streams


def _meant_for(server: HttpServer, root: Path, *, or_moved: bool = False) -> Iterator[StreamFolder]:
    """The streams of dead processes that go to a server, each locked while it is looked at."""
    for folder in stream_folders(root):
        try:
            if (or_moved or not folder.has_moved) and folder.meta().get("url") == server.url and folder.try_lock():
                yield folder
        except OSError as error:
            logger.debug("cannot look at %s: %s", folder.path, error)
        finally:
            folder.release()


def beyond_the_window(
    folders: Iterable[StreamFolder], epoch: str | None = None, behind: DatabaseBehind | None = None
) -> list[StreamFolder]:
    """The streams that nobody needs any more: refused and told of long ago, or arrived and too old, large or many.

    Args:
        folders: To look at.
        epoch: Of the server's data: what has arrived in another one has not arrived. None: it does not say.
        behind: The server's database: what has arrived in another one has arrived. None: it does not say.

    Raises:
        OSError: Where a folder cannot be read.
    """
    now = time.time()
    arrived, gone = [], []
    for folder in folders:
        try:
            if folder.has_moved:
                goes_on_in = folder.goes_on_in
                if not goes_on_in.path.is_dir() or has_arrived(goes_on_in):
                    arrived.append((now - folder.newest_change(), folder.num_bytes(), folder))
            elif folder.is_refused:
                told_at = folder.told_at()
                gone += [folder] * (told_at is not None and told_at + REFUSED_SECONDS < now)
            elif _has_arrived_in(folder, None if _is_elsewhere(folder, behind) else epoch):
                arrived.append((now - folder.newest_change(), folder.num_bytes(), folder))
        except OSError as error:  # it stays; the others are looked at all the same
            logger.warning("cannot look at %s: %s", folder.path, error)
    num_bytes = 0
    for place, (age, size, folder) in enumerate(sorted(arrived, key=lambda one: one[0])):
        num_bytes += size
        gone += [folder] * (age > KEPT_SECONDS or num_bytes > KEPT_BYTES or place >= KEPT_STREAMS)
    return gone


def _is_elsewhere(folder: StreamFolder, behind: DatabaseBehind | None) -> bool:
    try:
        return behind is not None and behind.is_another(folder)
    except TransportError:  # then it stays for now
        return False


def _has_arrived_in(folder: StreamFolder, epoch: str | None) -> bool:
    """Whether a server, in this life of its data, had an account of all of a stream."""
    return has_arrived(folder) and epoch in (None, folder.epoch())


def has_arrived(folder: StreamFolder) -> bool:
    """Whether a stream has ended and the server had an account of all of it.

    Raises:
        OSError: Where the folder cannot be read.
    """
    last_seq = ended_at(folder)
    return last_seq is not None and folder.acked_seq() >= last_seq


def num_waiting_in(folder: StreamFolder) -> int:
    """How many records of a stream no server had an account of, for all its folder says; 0 where it is unreadable."""
    try:
        return open_stream(folder)[0].delivery().num_waiting
    except OSError:
        return 0

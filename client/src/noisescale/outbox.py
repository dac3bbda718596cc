"""Hands a run's records to the transport, and says at the end what did not arrive."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, repeat
from pathlib import Path

from noisescale import transport
from noisescale.config import Config, without_password
from noisescale.guard import logger
from noisescale.transport.accounts import Account
from noisescale.transport.limits import Limits
from noisescale.transport.wire import Record, RunRecord
from noisescale.version import __version__

REASONS = {
    "rejected": "refused by the server one by one, and kept in quarantine/",
    "spool_full": "given up because the folder of the records was full",
    "disk_full": "in memory only when the disk could not be written to",
    "memory_full": "in memory only, which was full",
    "spool_corrupt": "damaged on the disk",
    "too_large": "larger than a record may be",
    "not_encodable": "of values that cannot be encoded",
    "not_stored": "hit by an error of noisescale",
    "trimmed": "no longer held when the server went back",
}

SPOOL = "spool"
"""Folder of the records below a state folder."""

ADOPTION_PAUSES = (60.0, 300.0, 900.0, 3600.0)
"""Seconds between attempts to send what earlier processes have left; the last one again and again."""


# What became of a run's records, in sentences for the end of a job: only what is so.


def last_words(
    run_id: str, url: str, account: Account, *, why: str, folder: Path | None, num_in_memory: int, is_loss_unknown: bool
) -> Iterator[str]:
    """Sentences where anything is amiss; none where every record is stored.

    Args:
        run_id: Of the run.
        url: Of the server.
        account: Of its stream.
        why: Why records wait, where any do.
        folder: Where they wait; None: in memory only.
        num_in_memory: How many of those that wait are nowhere else.
        is_loss_unknown: What was given up could not be written down.
    """
    num_kept = account.num_kept - num_in_memory
    if account.num_kept:
        yield (
            f"{account.num_kept} of {account.num_logged} records of run {run_id} were not delivered to {url}: {why}"
            f"{_where(num_kept, folder)}"
        )
    if num_in_memory:
        yield f"{num_in_memory} records of run {run_id} are in memory only, and are lost when this process ends"
    for reason, num_lost in account.num_lost_by_reason.items():
        yield f"{num_lost} of {account.num_logged} records of run {run_id} are lost: {REASONS.get(reason, reason)}"
    if is_loss_unknown:
        yield f"which records of run {run_id} are lost could not even be written down: {folder} does not say so"
    if account.num_set_aside:
        yield f"{account.num_set_aside} records of run {run_id} were refused by {url}, and are kept in quarantine/"


def end_of_a_killed_job(num_records: int, num_bytes_damaged: int) -> str:
    """What is so of a stream that its writer has not ended.

    Args:
        num_records: That are known of it.
        num_bytes_damaged: At its end.
    """
    damaged = f"{num_bytes_damaged:,} bytes at its end are damaged, with records in them that are lost uncounted; "
    return (
        f"its job was killed: {damaged if num_bytes_damaged else ''}"
        f"whether it had more than the {num_records} records that are known cannot be known"
    )


def _where(num_kept: int, folder: Path | None) -> str:
    return "" if folder is None or not num_kept else f". {_they(num_kept)} kept: noisescale sync {folder}"


def _they(num_kept: int) -> str:
    return "It is" if num_kept == 1 else f"{num_kept} are"


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where the records of a finished run are.

    Attributes:
        run_id: Of the run.
        page: On a server that has all of them; None where none has.
        folder: Where they were left on purpose; None elsewhere.
    """

    run_id: str
    page: str | None
    folder: Path | None

    def __str__(self) -> str:
        if self.folder is None:
            return self.page or ""
        return f"run {self.run_id} is on disk; to send it: noisescale sync {self.folder}"


class Outbox:
    """The stream of one run from this process.

    Args:
        run_id: The run to write to.
        config: Where to, and as whom.
        describe: Gives the run record when the first record is sent.
        on_fault: Told about our own faults while delivering.
    """

    def __init__(
        self, run_id: str, config: Config, describe: Callable[[], RunRecord], on_fault: Callable[[Exception], None]
    ) -> None:
        self._run_id = run_id
        self._url = config.url
        self._pid = os.getpid()
        self._disk = None if not config.folders else _disk_spool(config)
        self._spool: transport.Spool = self._disk or transport.MemorySpool()
        self._stream = transport.Stream(run_id, self._spool, describe)
        server = _server(config)
        self._uploader: transport.Uploader | None = None
        if config.mode == "online":
            adopting = None if self._disk is None else partial(_adopt_in_background, config)
            self._uploader = transport.Uploader(self._stream, server, on_fault, on_epoch=adopting)

    @property
    def is_inherited(self) -> bool:
        """Whether this is a forked child that has logged nothing: it leaves nothing behind."""
        return os.getpid() != self._pid and self._stream.stream_id is None

    def send(self, record: Record) -> None:
        """Hand a record over; returns at once."""
        num_waiting = self._stream.append(record)
        if self._uploader is not None:
            self._uploader.notify(num_waiting)

    def flush(self, timeout_seconds: float) -> bool:
        """Whether everything has arrived; waits for at most so long."""
        return self._uploader is not None and self._uploader.flush(timeout_seconds)

    def close(self, timeout_seconds: float) -> Whereabouts | None:
        """Deliver what is left for at most so long, and say what did not arrive.

        Returns:
            Where the records are now; None where there are none to speak of.
        """
        start = time.monotonic()
        self.flush(timeout_seconds)
        if self._uploader is not None:
            self._uploader.close()
        self._stream.end(max(0.5, timeout_seconds - (time.monotonic() - start)))
        left_in = self._folder if self._uploader is None else None
        if self._uploader is not None and self._stream.account().num_kept:
            self._leave_note()
        for sentence in self._last_words(is_on_purpose=left_in is not None):
            logger.warning("%s", sentence)
        return Whereabouts(self._run_id, self._page, left_in)

    @property
    def _page(self) -> str | None:
        """Of the run, on a server that has all of it."""
        up = self._uploader
        if up is None or up.stop_reason is not None or not up.has_reached_server or self._stream.account().num_kept:
            return None
        return f"{without_password(self._url)}/runs/{self._run_id}"

    def _leave_note(self) -> None:
        """Have `noisescale status` say why records wait."""
        if self._disk is not None and self._disk.folder is not None:
            self._disk.folder.leave(self._why())

    @property
    def _folder(self) -> Path | None:
        """Where the records are on disk; None where they are in memory only."""
        return None if self._disk is None or self._disk.folder is None else self._disk.folder.path

    def _last_words(self, *, is_on_purpose: bool) -> Iterator[str]:
        """What became of the records, where that has to be said; that an offline run waits was said."""
        account = self._stream.account()
        if is_on_purpose:
            account = replace(account, num_kept=self._spool.num_in_memory)
        return last_words(
            self._run_id,
            self._url,
            account,
            why=self._why(),
            folder=self._folder,
            num_in_memory=self._spool.num_in_memory if account.num_kept else 0,
            is_loss_unknown=self._disk is not None and self._disk.is_loss_unknown,
        )

    def _why(self) -> str:
        if self._uploader is None:
            return "mode 'offline', and no folder could be written to"
        if self._uploader.stop_reason is not None:
            return self._uploader.stop_reason
        if self._uploader.has_reached_server:
            return self._uploader.trouble or "the server did not take them in time"
        return "no server answered; start one with `noisescale up`, or set NOISESCALE_URL"


def _server(config: Config) -> "transport.HttpServer":
    return transport.HttpServer(config.url, config.api_key, f"noisescale/{__version__}")


def _adopt_in_background(config: Config, epoch: str | None) -> None:
    """Send what earlier processes of this user have left, once a process and epoch, beside the run's own records."""
    with _adopting:
        if (config.url, epoch) in _adopted:
            return
        _adopted.add((config.url, epoch))
    threading.Thread(target=_adopt, args=(config, epoch), name="noisescale-adopting", daemon=True).start()


def _adopt(config: Config, epoch: str | None) -> None:
    """Again and again until all is sent, or the process ends: a server or a proxy may be away for a while."""
    server = _server(config)
    for pause_seconds in chain(ADOPTION_PAUSES, repeat(ADOPTION_PAUSES[-1])):
        left = [
            one for folder in config.folders for one in transport.adopt(folder / SPOOL, server, epoch) if _is_left(one)
        ]
        if not left:
            break
        time.sleep(pause_seconds)
    server.close()


def _is_left(outcome: "transport.Outcome") -> bool:
    """Whether to try again; says what became of a stream."""
    if outcome.num_left:
        logger.warning(
            "%d records that an earlier process of run %s has left still wait: %s; noisescale status says where",
            outcome.num_left,
            outcome.run_id,
            outcome.reason,
        )
    else:
        logger.info("sent %d records that an earlier process of run %s had left", outcome.num_delivered, outcome.run_id)
        if outcome.num_lost:
            logger.warning("%d of its %d records are declared lost", outcome.num_lost, outcome.num_records)
        if outcome.is_cut_off:
            end = end_of_a_killed_job(outcome.num_records, outcome.num_bytes_damaged)
            logger.warning("run %s: %s", outcome.run_id, end)
    return outcome.num_left > 0 and not outcome.is_of_another_database


_adopted: set[tuple[str, str | None]] = set()
_adopting = threading.Lock()


def _disk_spool(config: Config) -> "transport.DiskSpool":
    """The meta file names the server, without what may be a password in its address."""
    folders = [folder / SPOOL for folder in config.folders]
    meta: dict[str, object] = {"url": without_password(config.url)}
    limits = Limits(overflow=config.overflow)
    return transport.DiskSpool(folders, meta, limits=limits, durability=config.durability)

"""Hands a run's records to the transport, and says at the end what did not arrive."""

import os
import threading
import time
from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

from noisescale import transport
from noisescale.config import Config
from noisescale.guard import announce, logger
from noisescale.transport.limits import Limits
from noisescale.transport.wire import Record, RunRecord
from noisescale.version import __version__

SPOOL = "spool"
"""Folder of the records below a state folder."""


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
        self._stream = transport.Stream(run_id, self._disk or transport.MemorySpool(), describe)
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

    def close(self, timeout_seconds: float) -> None:
        """Deliver what is left for at most so long, and say what did not arrive."""
        start = time.monotonic()
        has_arrived = self.flush(timeout_seconds)
        if self._uploader is not None:
            self._uploader.close()
        self._stream.end(max(0.5, timeout_seconds - (time.monotonic() - start)))
        delivery = self._stream.delivery()
        if self._uploader is None and self._disk is not None and self._disk.folder is not None:
            announce(f"run {self._run_id} is on disk; to send it: noisescale sync {self._disk.folder.path}")
        elif not has_arrived and delivery.num_waiting:
            logger.warning(
                "%d of %d records of run %s were not delivered to %s: %s%s",
                delivery.num_waiting,
                delivery.num_logged,
                self._run_id,
                self._url,
                self._why(),
                self._how_to_deliver(),
            )

    def _why(self) -> str:
        if self._uploader is None:
            return "mode 'offline', and no folder could be written to"
        if self._uploader.stop_reason is not None:
            return self._uploader.stop_reason
        if self._uploader.has_reached_server:
            return "the server did not take them in time"
        return "no server answered; start one with `noisescale up`, or set NOISESCALE_URL"

    def _how_to_deliver(self) -> str:
        """What brings them there later; nothing where they were in memory only."""
        if self._disk is None or self._disk.folder is None:
            return ""
        return f". They are kept: noisescale sync {self._disk.folder.path}"


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
    server = _server(config)
    for folder in config.folders:
        for outcome in transport.adopt(folder / SPOOL, server, epoch):
            logger.info(
                "sent %d records that an earlier process of run %s had left, %d are left",
                outcome.num_delivered,
                outcome.run_id,
                outcome.num_left,
            )
    server.close()


_adopted: set[tuple[str, str | None]] = set()
_adopting = threading.Lock()


def _disk_spool(config: Config) -> "transport.DiskSpool":
    """The meta file names the server, without what may be a password in its address."""
    folders = [folder / SPOOL for folder in config.folders]
    address = urlsplit(config.url)
    url = address._replace(netloc=address.netloc.rpartition("@")[2]).geturl().rstrip("/")
    limits = Limits(overflow=config.overflow)
    return transport.DiskSpool(folders, {"url": url}, limits=limits, durability=config.durability)

"""What this server counts while it works: requests, records, errors, connections. Several processes count together."""

import contextlib
import logging
import os
import re
import time
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Final

import psutil
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SHARED_FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"
"""Where processes of one server put what each has counted; `serving.prepare` sets it where there are several."""

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0)
_LIVE_FILE: Final = re.compile(r"gauge_live\w+_(\d+)\.db")

Sent = tuple[str, str]
"""Kind of a request, and status of its answer."""


class ProcessMetrics:
    """The counters of one application.

    Attributes:
        records: By what became of them: accepted (a batch that comes again is counted again), rejected, lost.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.records = Counter(
            "noisescale_records", "Records of accepted batches, repeats included", ["outcome"], registry=self._registry
        )
        self._requests = Counter(
            "noisescale_requests", "Answers by kind of request and status", ["kind", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "noisescale_request_seconds",
            "Until the answer was sent",
            ["kind"],
            registry=self._registry,
            buckets=SECONDS,
        )
        self._errors = Counter(
            "noisescale_logged_errors", "Errors in the server's own log", ["logger"], registry=self._registry
        )
        self._connections = Gauge(
            "noisescale_database_connections_in_use",
            "Connections to the database that somebody holds",
            registry=self._registry,
            multiprocess_mode="livesum",
        )
        self._kept_house = Counter(
            "noisescale_retention_rows", "Rows folded or taken away", ["work"], registry=self._registry
        )
        self._known: dict[Sent, Counter] = {}
        for work in ("fold", "purge"):
            self._kept_house.labels(work)
        for outcome in ("accepted", "rejected", "lost"):
            self.records.labels(outcome)
        if SHARED_FOLDER not in os.environ:
            ProcessCollector(registry=self._registry)

    def collect(self) -> Iterable[Metric]:
        """What has been counted so far, by every process of this server."""
        shared = os.environ.get(SHARED_FOLDER)
        if shared is None:
            yield from self._registry.collect()
        else:
            forget_the_dead(Path(shared))
            yield from MultiProcessCollector(None, shared).collect()  # type: ignore[no-untyped-call]

    async def counted(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request by the application, and count the answer; one that never came is a 500."""
        status, began = "500", time.perf_counter()

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        try:
            await app(scope, receive, noting)
        finally:
            kind = kind_of(scope["path"])
            self._counter(kind, status).inc()
            self._seconds.labels(kind).observe(time.perf_counter() - began)

    def count_batch(self, *, num_records: int, num_lost: int, num_rejected: int) -> None:
        """Count the records of a batch that was accepted; those that are lost or rejected are no part of the others."""
        for outcome, number in (("accepted", num_records), ("lost", num_lost), ("rejected", num_rejected)):
            if number:
                self.records.labels(outcome).inc(number)

    def count_round(self, *, folded: int, purged: int) -> None:
        """Count rows of old runs that were folded, and of deleted runs that went."""
        self._kept_house.labels("fold").inc(folded)
        self._kept_house.labels("purge").inc(purged)

    def watch_connections(self, engine: AsyncEngine) -> None:
        """Count how many connections of this engine are in use."""
        event.listen(engine.sync_engine.pool, "checkout", lambda *_: self._connections.inc())
        event.listen(engine.sync_engine.pool, "checkin", lambda *_: self._connections.dec())

    @contextlib.contextmanager
    def watching_the_log(self) -> Iterator[None]:
        """For the block, count every error that is logged."""
        root = logging.getLogger()
        handlers: list[logging.Handler] = [_Counting(self._errors)]
        if not root.handlers and logging.lastResort is not None:
            # which writes warnings to stderr only as long as nobody else handles them
            handlers.append(logging.lastResort)
        for handler in handlers:
            root.addHandler(handler)
        try:
            yield
        finally:
            for handler in handlers:
                root.removeHandler(handler)

    def _counter(self, kind: str, status: str) -> Counter:
        # a look-up by labels takes as long as the rest of a small request's bookkeeping
        found = self._known.get((kind, status))
        if found is None:
            found = self._known[kind, status] = self._requests.labels(kind, status)
        return found


class _Counting(logging.Handler):
    """Counts errors by the module that logs them; all that is not ours is one."""

    def __init__(self, errors: Counter) -> None:
        super().__init__(logging.ERROR)
        self._errors = errors

    def emit(self, record: logging.LogRecord) -> None:
        """Count the error."""
        is_ours = record.name.startswith("noisescale_")
        self._errors.labels(record.name if is_ours else "other").inc()


def kind_of(path: str) -> str:
    """What sort of request this is: ingest, api, metrics or page."""
    if path.startswith("/api/v1/streams/"):
        return "ingest"
    if path.startswith("/api/"):
        return "api"
    return "metrics" if path == "/metrics" else "page"


def forget_the_dead(folder: Path) -> None:
    """Remove what processes that have ended said of the present; what they have counted stays."""
    for file in folder.iterdir():
        found = _LIVE_FILE.fullmatch(file.name)
        if found is not None and not psutil.pid_exists(int(found[1])):
            file.unlink(missing_ok=True)


def build_info() -> dict[str, str]:
    """What is running."""
    return {"version": version("noisescale-server")}

"""The figures of /metrics sent to an OpenTelemetry collector: the extra `otlp`, loaded where an endpoint is set.

Of several processes on one machine the one that holds the lock sends, for all of them.
"""

import asyncio
import contextlib
import fcntl
import logging
import os
import platform
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import IO

from fastapi import FastAPI
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import Metric as Family
from prometheus_client.samples import Sample

from noisescale_server.api.telemetry.families import Scrape
from noisescale_server.api.telemetry.routes import scraped
from noisescale_server.process.own_metrics import SHARED_FOLDER, build_info

log = logging.getLogger(__name__)

UNITS = {"seconds": "s", "examples": "{example}", "ratio": "1"}
"""By the end of a name, as the Unified Code for Units of Measure has it."""

MILLISECONDS_TO_SEND = 10_000


@contextlib.asynccontextmanager
async def exported(app: FastAPI, *, endpoint: str, seconds: float) -> AsyncIterator[None]:
    """For the block, send the figures of every project to the collector every so many seconds.

    Args:
        app: Of this process.
        endpoint: Whole address, `https://collector:4318/v1/metrics`.
        seconds: Between two reports.
    """
    task = asyncio.create_task(_export_for_ever(app, OTLPMetricExporter(endpoint=endpoint), seconds))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _export_for_ever(app: FastAPI, exporter: OTLPMetricExporter, seconds: float) -> None:
    began, lock = time.time_ns(), _Lock()
    while True:
        if lock.is_held():
            try:
                data = metrics_data(await scraped(app, None, datetime.now(UTC)), began=began, now=time.time_ns())
                sent = await asyncio.to_thread(exporter.export, data, MILLISECONDS_TO_SEND)
                if sent is not MetricExportResult.SUCCESS:
                    log.warning("the OpenTelemetry collector did not take the metrics: the next report says them again")
            except Exception:
                # a collector that is wrong or away must not end the reports, nor the server
                log.warning("metrics could not be sent to the OpenTelemetry collector", exc_info=True)
        await asyncio.sleep(seconds)


class _Lock:
    """Held by one process of this server; free again when it ends. A server of one process needs none."""

    def __init__(self) -> None:
        folder = os.environ.get(SHARED_FOLDER)
        self._file: IO[bytes] | None = None if folder is None else (Path(folder) / "otlp.lock").open("ab")

    def is_held(self) -> bool:
        """Whether this process reports."""
        if self._file is None:
            return True
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def metrics_data(scrape: Scrape, *, began: int, now: int) -> MetricsData:
    """A scrape in OpenTelemetry's words.

    Args:
        scrape: What /metrics says.
        began: Nanoseconds since 1970 at which counting began.
        now: Of this report.
    """
    metrics = [_metric(family, began, now) for family in scrape.collect() if family.samples]
    about = {"service.name": "noisescale", "service.version": build_info()["version"]}
    resource = Resource.create({**about, "service.instance.id": platform.node()})
    scope = ScopeMetrics(InstrumentationScope("noisescale"), metrics, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _metric(family: Family, began: int, now: int) -> Metric:
    unit = UNITS.get(family.name.rpartition("_")[2], "1")
    data: Sum | Gauge | Histogram
    if family.type == "histogram":
        data = Histogram(list(_histograms(family.samples, began, now)), AggregationTemporality.CUMULATIVE)
    else:
        is_counter = family.type == "counter"
        samples = [one for one in family.samples if not one.name.endswith("_created")]
        points = [NumberDataPoint(one.labels, began if is_counter else now, now, one.value) for one in samples]
        data = Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True) if is_counter else Gauge(points)
    return Metric(family.name, family.documentation, unit, data)


def _histograms(samples: Sequence[Sample], began: int, now: int) -> Iterator[HistogramDataPoint]:
    """One point for each set of labels; Prometheus counts up to each bound, OpenTelemetry between two."""
    parts: dict[frozenset[tuple[str, str]], dict[str, float]] = {}
    for one in samples:
        labels = frozenset((name, value) for name, value in one.labels.items() if name != "le")
        key = one.labels["le"] if one.name.endswith("_bucket") else one.name.rpartition("_")[2]
        parts.setdefault(labels, {})[key] = one.value
    for labels, found in parts.items():
        bounds = sorted((key for key in found if key not in ("sum", "count", "created")), key=float)
        counts = [found[bound] for bound in bounds]
        between = [int(after - before) for before, after in pairwise([0.0, *counts])]
        yield HistogramDataPoint(
            attributes=dict(labels),
            start_time_unix_nano=began,
            time_unix_nano=now,
            count=int(found["count"]),
            sum=found["sum"],
            bucket_counts=between,
            explicit_bounds=[float(bound) for bound in bounds[:-1]],
            # neither is known of all that came since the server began
            min=float("inf"),
            max=float("-inf"),
        )

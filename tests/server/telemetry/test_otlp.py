"""The same figures, sent to an OpenTelemetry collector by the extra `otlp`."""

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from app_in_process import client_of, running_app
from noisescale_server.api.telemetry import reporting
from noisescale_server.api.telemetry.reporting import ExtraMissing
from stored_runs import resolved, store_run


class Collector:
    """Takes reports, after it has refused some."""

    def __init__(self, refuses: int = 0) -> None:
        self.reports: list[ExportMetricsServiceRequest] = []
        outer, self.left = self, refuses

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = 200
                if outer.left:
                    outer.left, status = outer.left - 1, 400
                else:
                    outer.reports.append(ExportMetricsServiceRequest.FromString(body))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                return

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1/metrics"

    async def report(self) -> dict[str, Any]:
        """Name → metric of the first report."""
        for _ in range(200):
            if self.reports:
                (resource,) = self.reports[0].resource_metrics
                return {metric.name: metric for metric in resource.scope_metrics[0].metrics}
            await asyncio.sleep(0.05)
        raise AssertionError("nothing was sent")


@pytest.fixture
def collector(request: pytest.FixtureRequest) -> Iterator[Collector]:
    opened = Collector(getattr(request, "param", 0))
    thread = threading.Thread(target=opened.server.serve_forever, daemon=True)
    thread.start()
    yield opened
    opened.server.shutdown()
    opened.server.server_close()
    thread.join()


async def test_a_collector_is_sent_what_a_scrape_says(new_database: Callable[[], str], collector: Collector) -> None:
    database = new_database()
    async with running_app(database) as app:
        run_id = await store_run(app, **resolved())

    async with running_app(database, otlp_endpoint=collector.url) as app, client_of(app) as client:
        sent = await collector.report()
        text = (await client.get("/metrics")).text

    (point,) = sent["noisescale_run_noise_scale_examples"].gauge.data_points
    assert point.as_double == 500.0
    assert {one.key: one.value.string_value for one in point.attributes} == {"run": str(run_id)}
    assert sent["noisescale_run_noise_scale_examples"].unit == "{example}"
    assert sent["noisescale_records"].sum.is_monotonic
    scraped = {family.name for family in text_string_to_metric_families(text) if family.samples}
    assert {name for name in sent if name.startswith("noisescale_run")} <= scraped | {"noisescale_run"}
    resource = {one.key: one.value.string_value for one in collector.reports[0].resource_metrics[0].resource.attributes}
    assert resource["service.name"] == "noisescale"


async def test_a_histogram_is_counted_between_its_bounds(new_database: Callable[[], str], collector: Collector) -> None:
    async with (
        running_app(new_database(), otlp_endpoint=collector.url, otlp_seconds=1) as app,
        client_of(app) as client,
    ):
        for _ in range(3):
            await client.get("/api/v1/projects")
        await asyncio.sleep(1.5)
        reports = len(collector.reports)
        assert reports >= 2
        collector.reports[:1] = []
        sent = await collector.report()

    points = sent["noisescale_request_seconds"].histogram.data_points
    (api,) = [one for one in points if one.attributes[0].value.string_value == "api"]
    assert sum(api.bucket_counts) == api.count == 3
    assert len(api.bucket_counts) == len(api.explicit_bounds) + 1
    assert 0 < api.sum < 10


@pytest.mark.parametrize("collector", [1], indirect=True)
async def test_a_collector_that_refuses_is_asked_again_with_the_next_report(
    new_database: Callable[[], str], collector: Collector
) -> None:
    async with running_app(new_database(), otlp_endpoint=collector.url, otlp_seconds=1):
        assert "noisescale_live_runs" in await collector.report()


def test_an_endpoint_without_the_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "noisescale_server.api.telemetry.otlp", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.metric_exporter", None)

    with pytest.raises(ExtraMissing, match=r"pip install './server\[otlp\]'"):
        reporting.sender()

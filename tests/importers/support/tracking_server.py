"""Answers of an MLflow tracking server, as its REST API documents them, over a real socket."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

LOSSES = [(k, 3.0 / (1 + k)) for k in range(30)]
RUN = {
    "info": {
        "run_id": "a" * 32, "run_uuid": "a" * 32, "run_name": "remote", "experiment_id": "7", "status": "FINISHED",
        "start_time": 1_700_000_000_000, "end_time": 1_700_000_100_000, "lifecycle_stage": "active",
    },
    "data": {
        "metrics": [{"key": "loss", "value": LOSSES[-1][1], "timestamp": 1_700_000_000_000, "step": 29}],
        "params": [{"key": "batch_size", "value": "48"}],
    },
}  # fmt: skip


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if address.path.endswith("/metrics/get-history"):
            assert parse_qs(address.query)["metric_key"] == ["loss"]
            values = [{"key": "loss", "value": v, "timestamp": 1_700_000_000_000 + k, "step": k} for k, v in LOSSES]
            return self._say({"metrics": values})
        return self._say({})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.endswith("/experiments/search"):
            return self._say({"experiments": [{"experiment_id": "7", "name": "digits", "lifecycle_stage": "active"}]})
        return self._say({"runs": [RUN]})

    def _say(self, body: object) -> None:
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def tracking_server() -> Iterator[str]:
    """The address of a server with one run."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

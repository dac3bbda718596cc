"""What jobs send to a server, recorded on its way, and joined into as few requests as the protocol takes."""

import gzip
import json
import threading
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import httpx

DIGITS = 9
"""Significant digits of the numbers that are kept: the 17 of a double do not compress."""

MAX_RECORDS = 1_500
Request = dict[str, Any]


class Recorder(ThreadingHTTPServer):
    """Passes requests on to a server, and keeps what changed something there.

    Args:
        url: The server.
    """

    daemon_threads = True

    def __init__(self, url: str) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.behind = httpx.Client(base_url=url, timeout=120)
        self.kept: list[Request] = []
        self.lock = threading.Lock()

    def keep(self, method: str, path: str, body: bytes) -> None:
        """Keep a request that was answered with success, heartbeats and questions left out."""
        if method == "GET" or path.endswith(("/heartbeat", "/dry-run")):
            return
        with self.lock:
            self.kept.append({"method": method, "path": path, "body": json.loads(body)})


class _Passing(BaseHTTPRequestHandler):
    """One connection of a job."""

    protocol_version = "HTTP/1.1"
    server: Recorder

    def do_GET(self) -> None:  # http.server finds it by this name
        """Pass a request on, its answer back, and have it kept."""
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
        answer = self.server.behind.request(self.command, self.path, content=sent, headers=headers)
        is_packed = self.headers.get("Content-Encoding") == "gzip"
        if answer.is_success:
            self.server.keep(self.command, self.path, gzip.decompress(sent) if is_packed else sent)
        self.send_response(answer.status_code)
        for name in ("Content-Type", "Retry-After"):
            if name in answer.headers:
                self.send_header(name, answer.headers[name])
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    do_POST = do_PUT = do_PATCH = do_GET  # noqa: N815

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing of each request."""


@contextmanager
def recording() -> Iterator[tuple[Recorder, str]]:
    """A recorder before an empty server, and the server's key."""
    from noisescale_server.cli.throw_away import throw_away_server  # noqa: PLC0415  # the trainings do without

    with throw_away_server("the demo's trainings") as (url, key):
        recorder = Recorder(url)
        threading.Thread(target=recorder.serve_forever, daemon=True).start()
        try:
            yield recorder, key
        finally:
            recorder.shutdown()


def joined(requests: list[Request]) -> list[Request]:
    """Streams first, each in as few batches as the protocol takes, then the rest in its order.

    The stream that came first is the last one, and its run the newest: the demo's own runs say most.
    """
    streams: dict[str, list[Request]] = {}
    others: list[Request] = []
    attached: dict[str, Request] = {}
    for request in requests:
        if request["path"].endswith("/batches"):
            streams.setdefault(request["path"], []).append(request["body"])
        elif request["path"].endswith("/runs") and request["path"] in attached:
            # fitted once when all are there, not anew with each trial
            attached[request["path"]]["body"]["runs"] += request["body"]["runs"]
        elif request not in others:
            others.append(request)
            attached[request["path"]] = request
    batches = [
        {"method": "POST", "path": path, "body": shortened(batch)}
        for path, bodies in reversed(streams.items())
        for batch in merged(bodies)
    ]
    return [*batches, *(one | {"body": shortened(named(one))} for one in others)]


def without_tasks(requests: list[Request], tasks: Collection[str]) -> list[Request]:
    """The requests but for the runs and sweeps of some tasks."""
    bodies = [request["body"] for request in requests]
    runs = {body["run_id"] for body in bodies if body.get("run") and body["run"]["run"].get("task") in tasks}
    sweeps = {body["id"] for body in bodies if body.get("task") in tasks}
    return [
        request
        for request in requests
        if request["body"].get("run_id") not in runs
        and request["body"].get("id") not in sweeps
        and not sweeps & set(request["path"].split("/"))
    ]


def named(request: Request) -> Request:
    """The body; curves without an id get one, so that a second time replaces them, as the last of equal ids does."""
    body = request["body"]
    if "runs" not in body:
        return body
    for number, curve in enumerate(body["runs"]):
        if curve.get("run_id") is None and curve.get("id") is None:
            curve["id"] = str(uuid5(NAMESPACE_URL, f"{request['path']} {number}"))
    return {"runs": list({curve.get("run_id") or curve["id"]: curve for curve in body["runs"]}.values())}


def merged(bodies: list[Request]) -> Iterator[Request]:
    """The batches of one stream, joined; what was sent twice is there once, and no host is named."""
    held: Request | None = None
    for body in sorted(with_path_columns(bodies), key=lambda one: one["first_seq"]):
        body = {name: value for name, value in body.items() if name != "sent_at"}
        if body.get("run"):
            body["run"]["stream"].pop("host", None)
        if held is not None and body["last_seq"] <= held["last_seq"]:
            continue
        fits = held is not None and body["last_seq"] - held["first_seq"] < MAX_RECORDS
        fits = fits and body["first_seq"] == held["last_seq"] + 1
        if held is None or not fits or body.get("run"):
            if held is not None:
                yield held
            held = body
        else:
            held = together(held, body)
    if held is not None:
        yield held


def with_path_columns(bodies: list[Request]) -> list[Request]:
    """The batches of a stream with equal columns: those of the path may be left out where nothing is known of it."""
    names = dict.fromkeys(name for body in bodies for name, one in (body.get("measurements") or {}).items() if one)
    for body in bodies:
        rows = body.get("measurements") or {"seq": []}
        for name in names:
            if rows["seq"] and rows.get(name) is None:
                rows[name] = [0 if name == "num_path_updates" else None] * len(rows["seq"])
    return bodies


def together(first: Request, second: Request) -> Request:
    """Two batches that follow each other as one."""
    found = first | {"last_seq": second["last_seq"], "finish": second.get("finish")}
    found["groups"] = [*(first.get("groups") or []), *(second.get("groups") or [])]
    found["lost"] = [*(first.get("lost") or []), *(second.get("lost") or [])]
    for part in ("measurements", "metrics"):
        one, other = first.get(part), second.get(part)
        if one and other:
            found[part] = {name: values + other[name] for name, values in one.items() if values is not None}
        else:
            found[part] = one or other
    found["crc32"] = zlib.crc32(f"{first['crc32']} {second['crc32']}".encode())
    return found


def shortened(value: Any, name: str = "") -> Any:
    """The same with its floats to nine digits, times to a millisecond."""
    if isinstance(value, Mapping):
        return {key: shortened(one, key) for key, one in value.items() if one is not None or key != "finish"}
    if isinstance(value, list):
        return [shortened(one, name) for one in value]
    if name == "source" and isinstance(value, str):
        return value.rpartition("/")[2]  # of an imported file: its folder is one of this machine's
    if isinstance(value, float):
        return round(value, 3) if name in ("wall_time", "started_at") else float(f"{value:.{DIGITS}g}")
    return value

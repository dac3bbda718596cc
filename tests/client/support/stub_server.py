"""A server of the wire format in one file: keeps a true ledger, and misbehaves when told to."""

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from noisescale.transport.upload.answers import Answer
from noisescale_core.errors import TransportError


class Ledger:
    """What a correct server would store; refuses a batch whose numbers do not add up."""

    def __init__(self) -> None:
        self.acked: dict[str, int] = {}
        self.stored: dict[str, dict[int, tuple[str, Any]]] = {}
        self.lost: dict[str, dict[int, str]] = {}
        self.crc32: dict[str, tuple[int, int, int]] = {}
        self.epoch = "first"
        self.database_id: str | None = None
        """None: a server of a release that does not say."""

    def accept(self, stream_id: str, body: dict[str, Any]) -> Answer:
        records = records_of(body)
        lost = {seq: one["reason"] for one in body.get("lost", []) for seq in range(one["from"], one["to"] + 1)}
        first, last = body["first_seq"], body["last_seq"]
        assert sorted([*records, *lost]) == list(range(first, last + 1)), "each number exactly once"
        acked = self.acked.setdefault(stream_id, 0)
        if acked == 0 and first == 1:
            assert 1 in lost or records[1][0] == "run", "the first record is the run"
        if first > acked + 1:
            gap = {"type": "/errors/stream-gap", "expected_seq": acked + 1, "epoch": self.epoch}
            return Answer(409, {**gap, **self.identity})
        numbers = (first, last, body["crc32"])
        known = self.crc32.get(stream_id)
        if known is not None and known[:2] == numbers[:2] and known != numbers:
            return Answer(409, {"type": "/errors/stream-conflict"})
        self.crc32[stream_id] = numbers
        stored = self.stored.setdefault(stream_id, {})
        stored.update({seq: record for seq, record in records.items() if seq > acked})
        self.lost.setdefault(stream_id, {}).update({seq: reason for seq, reason in lost.items() if seq > acked})
        self.acked[stream_id] = max(acked, last)
        return self.standing(stream_id)

    def standing(self, stream_id: str) -> Answer:
        """The cursor of a stream."""
        if stream_id not in self.acked:
            return Answer(404, {"type": "/errors/stream-not-found"})
        acked_seq = self.acked[stream_id]
        said = {"stream_id": stream_id, "acked_seq": acked_seq, "rejected": [], "epoch": self.epoch}
        return Answer(200, {**said, **self.identity})

    @property
    def identity(self) -> dict[str, str]:
        """What answers say of the database."""
        return {} if self.database_id is None else {"database_id": self.database_id}

    def restored(self, acked: dict[str, int]) -> "Ledger":
        """What a backup holds that was made when these were acknowledged: another ledger, of another epoch."""
        old = Ledger()
        old.epoch, old.database_id = self.epoch + "'", self.database_id
        old.acked = dict(acked)
        for kept, found in ((old.stored, self.stored), (old.lost, self.lost)):
            for stream_id, last in acked.items():
                kept[stream_id] = {seq: one for seq, one in found.get(stream_id, {}).items() if seq <= last}
        return old

    def check(self) -> None:
        """acked = stored + lost, in every stream."""
        for stream_id, acked in self.acked.items():
            assert acked == len(self.stored.get(stream_id, {})) + len(self.lost.get(stream_id, {}))

    def kinds(self) -> list[str]:
        """Kinds of everything stored, in order, over all streams."""
        return [kind for stored in self.stored.values() for _, (kind, _) in sorted(stored.items())]

    def steps(self) -> list[int]:
        """Steps of all rows, in order of arrival."""
        rows = [stored[seq] for stored in self.stored.values() for seq in sorted(stored)]
        return [row["step"] for kind, row in rows if kind == "measurements"]


def records_of(body: dict[str, Any]) -> dict[int, tuple[str, Any]]:
    """seq -> (kind, content) of a batch."""
    records: dict[int, tuple[str, Any]] = {}
    for kind in ("run", "finish"):
        if kind in body:
            records[body[kind]["seq"]] = (kind, body[kind])
    for group in body.get("groups", []):
        records[group["seq"]] = ("groups", group)
    for kind in ("measurements", "metrics"):
        columns = body.get(kind, {"seq": []})
        for row, seq in enumerate(columns["seq"]):
            records[seq] = (kind, {name: column[row] for name, column in columns.items()})
    return records


Fault = Callable[[Ledger, str, dict[str, Any]], Answer]


class FakeServer:
    """Stands in for `HttpServer`; `faults` are used up first, one a request."""

    url = "http://fake"

    def __init__(self, *faults: Fault) -> None:
        self.ledger = Ledger()
        self.faults = list(faults)
        self.bodies: list[dict[str, Any]] = []
        self.heartbeats: list[str] = []
        self.is_closed = False
        self.was_forgotten = False

    def post_batch(self, stream_id: str, body: bytes) -> Answer:
        batch = json.loads(body)
        self.bodies.append(batch)
        if self.faults:
            return self.faults.pop(0)(self.ledger, stream_id, batch)
        return self.ledger.accept(stream_id, batch)

    def post_heartbeat(self, stream_id: str) -> Answer:
        self.heartbeats.append(stream_id)
        return self.ledger.standing(stream_id)

    def close(self) -> None:
        self.is_closed = True

    def forget(self) -> None:
        self.was_forgotten = True


def answering(status: int, body: dict[str, Any] | None = None, retry_after: str | None = None) -> Fault:
    """A fault: this answer, nothing stored."""
    return lambda ledger, stream_id, batch: Answer(status, body or {}, retry_after)


def no_answer(ledger: Ledger, stream_id: str, batch: dict[str, Any]) -> Answer:
    """A fault: nobody is there."""
    raise TransportError("no answer from http://fake: connection refused")


def reply_lost(ledger: Ledger, stream_id: str, batch: dict[str, Any]) -> Answer:
    """A fault: stored, but the answer never arrives."""
    ledger.accept(stream_id, batch)
    raise TransportError("no answer from http://fake: read timed out")


@dataclass
class HttpStub:
    """A stub server on loopback: `answers` are used up first, one a request."""

    ledger: Ledger = field(default_factory=Ledger)
    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    seconds: float = 0.0
    url: str = ""


@contextmanager
def http_stub() -> Iterator[HttpStub]:
    """A running `HttpStub`."""
    stub = HttpStub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path.endswith("/heartbeat"):
                self.do_GET()
                return
            stub.requests.append((self.path, dict(self.headers)))
            time.sleep(stub.seconds)
            if stub.answers:
                self.answer(*stub.answers.pop(0))
                return
            if self.headers.get("Content-Encoding") == "gzip":
                content = gzip.decompress(content)
            answer = stub.ledger.accept(self.path.split("/")[4], json.loads(content))
            self.answer(answer.status, {}, json.dumps(answer.body).encode())

        def do_GET(self) -> None:
            if stub.answers:
                self.answer(*stub.answers.pop(0))
            elif self.path.startswith("/api/v1/streams/"):
                standing = stub.ledger.standing(self.path.split("/")[4])
                self.answer(standing.status, {}, json.dumps(standing.body).encode())
            else:
                self.answer(200, {}, json.dumps({"status": "ok", **stub.ledger.identity}).encode())

        def answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    stub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

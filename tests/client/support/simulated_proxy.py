"""A correct server behind a proxy that answers in its place: every status, with every kind of body, for a while."""

import gzip
import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from simulated_time import SimulatedTime
from stub_server import Ledger

KINDS = ("empty", "html", "json", "ours")
STATUSES = range(200, 600)
HTML = b"<html><head><title>413 Request Entity Too Large</title></head><body>nginx/1.25</body></html>"
RETRY_AFTER = (
    None, None, "0", "1", "30", "120", "99999", "-1", "soon", "1e99", "1e999", "inf", "nan", "9" * 400, "0x10", "1, 2",
    "Fri, 31 Dec 2100 23:59:59 GMT", "Fri, 31 Dec 99999 23:59:59 GMT", "Mon, 31 Feb 2026 00:00:00 +9999", "\xe7a va",
)  # fmt: skip
HOSTILE_HEADERS: Sequence[tuple[str, str]] = (
    ("Set-Cookie", "lang=fran\xe7ais"),
    ("Set-Cookie", "id=" + "x" * 5000 + "; Path=/; Max-Age=99999999999999999999"),
    ("Set-Cookie", "id=1; Expires=Fri, 31 Dec 99999 23:59:59 GMT; Domain=.com"),
    ("Content-Encoding", "gzip"),
    ("Content-Encoding", "deflate"),
    ("Content-Encoding", "br, zstd, gzip, gzip"),
    ("Content-Encoding", "no such thing"),
    ("Content-Type", "application/json; charset=utf-99"),
    ("Content-Type", "\xff/\xff; charset=\xff"),
    ("Location", "http://elsewhere.example/api/v1"),
    ("Location", "ht!tp://[::1"),
    ("X-Padding", "y" * 60_000),
    ("X-Many", "z" * 300),
    ("Connection", "close"),
    ("Connection", "upgrade"),
    ("WWW-Authenticate", "Negotiate " + "a" * 3000),
    ("Alt-Svc", 'h3=":443"; ma=99999999999999999999'),
    ("Strict-Transport-Security", "max-age=-1"),
    ("Date", "never"),
)
"""What is in an answer beside its body; bodies are not what `Content-Encoding` says."""
WRONG_LENGTHS = (-20, -1, 7, 10_000)
"""By how much `Content-Length` is more than the body, where a real connection has one."""

FOREIGN_JSON: Sequence[object] = (
    {"error": "bad gateway"},
    {"status": "ok"},
    {"type": "about:blank", "title": "Gone", "status": 410},
    {"type": "https://proxy.example/errors/stream-gap", "expected_seq": 1},
    {"type": "https://proxy.example/errors/run-deleted", "detail": "the run was deleted"},
    {"type": "/errors/run-deleted/"},
    {"type": 7, "detail": ["a list"]},
    {"type": "/errors/stream-conflict", "status": "409"},
    {"acked_seq": 10**12},
    {"acked_seq": -1},
    {"acked_seq": True},
    {"acked_seq": "all", "epoch": "another"},
    {"acked_seq": 0, "epoch": 7},
    {"acked_seq": 1.5},
    {"acked_seq": None},
    {"epoch": "another"},
    {"detail": "x" * 3000},
    [],
    [{"acked_seq": 5}],
    "acked_seq",
    7,
    None,
)

OURS: Mapping[int, Sequence[str]] = {
    401: ("not-authenticated",),
    403: ("not-allowed",),
    404: ("run-not-found", "stream-not-found", "project-not-found"),
    409: ("stream-gap", "stream-conflict", "run-id-taken"),
    410: ("run-deleted",),
    413: ("body-too-large",),
    415: ("media-type-not-supported",),
    422: ("invalid-input",),
    426: ("version-not-supported",),
    429: ("too-many-batches", "too-many-attempts"),
    502: ("login-failed",),
    503: ("database-unreachable", "database-not-durable", "schema-outdated"),
}
"""Problems of the server by status; any other status has the name of that status."""

LIKE_GAPS = {"expected_seq": 1}


@dataclass(frozen=True, slots=True)
class Canned:
    """What the proxy says.

    Attributes:
        status: HTTP status.
        kind: One of `KINDS`.
        content: The body.
        retry_after: The header; None: without.
        is_forwarded: The request reaches the server all the same, and only the answer is the proxy's.
        headers: More of them.
        wrong_length: How much too long its `Content-Length` is.
    """

    status: int
    kind: str
    content: bytes
    retry_after: str | None = None
    is_forwarded: bool = False
    headers: tuple[tuple[str, str], ...] = ()
    wrong_length: int = 0

    @property
    def all_headers(self) -> list[tuple[bytes, bytes]]:
        """As they go over the wire, but for the length."""
        headers = [*self.headers, *([] if self.retry_after is None else [("Retry-After", self.retry_after)])]
        return [(name.encode(), value.encode("latin-1")) for name, value in headers]

    def response(self) -> httpx.Response:
        """It, as HTTP."""
        return httpx.Response(self.status, headers=self.all_headers, content=self.content)


def canned(status: int, kind: str, dice: random.Random) -> Canned:
    """An answer of a kind."""
    retry_after = dice.choice(RETRY_AFTER)
    is_forwarded = kind != "ours" and dice.random() < 0.25
    content = _content(status, kind, dice)
    if kind == "ours":  # those of the server itself are in order
        return Canned(status, kind, content, retry_after, is_forwarded)
    headers = tuple(dice.sample(HOSTILE_HEADERS, dice.choice((0, 0, 1, 3))))
    wrong_length = dice.choice(WRONG_LENGTHS) if dice.random() < 0.1 else 0
    return Canned(status, kind, content, retry_after, is_forwarded, headers, wrong_length)


def _content(status: int, kind: str, dice: random.Random) -> bytes:
    if kind == "empty":
        return b""
    if kind == "html":
        return HTML
    if kind == "json":
        return json.dumps(dice.choice(FOREIGN_JSON)).encode()
    slug = dice.choice(OURS.get(status, ("internal-server-error",)))
    members = LIKE_GAPS if slug == "stream-gap" else {}
    errors = [{"field": "measurements.step", "message": "must be smaller", "value": "7"}]
    body = {"type": f"/errors/{slug}", "title": "as told", "status": status, "detail": "as told", "errors": errors}
    return json.dumps(body | members).encode()


@dataclass
class Window:
    """When the proxy answers.

    Attributes:
        answer: What it says.
        after_seconds: Since its phase began.
        after_requests: Since its phase began; the later of the two counts.
        seconds: How long.
    """

    answer: Canned
    after_seconds: float
    after_requests: int
    seconds: float
    began_at: float | None = None
    num_answers: int = 0


@dataclass
class Proxy:
    """What stands between a job and its server, by whichever clock.

    Attributes:
        now: Seconds.
        windows: When it answers in the server's place.
        body_limit: Longer bodies get a page of its own; None: none does.
        num_too_large: How many did.
        has_deleted: It has said, as the server would, that a run was deleted.
    """

    now: Callable[[], float]
    windows: list[Window] = field(default_factory=list)
    body_limit: int | None = None
    began_at: float = 0.0
    num_requests: int = 0
    num_too_large: int = 0
    has_deleted: bool = False

    def begin(self, windows: Sequence[Window] = ()) -> None:
        """Another phase."""
        self.windows, self.began_at, self.num_requests = list(windows), self.now(), 0

    def answer(self, content: bytes, serve: Callable[[], httpx.Response]) -> httpx.Response:
        """Its own answer to a request with this body, or the server's."""
        said = self.own_answer(content)
        if said is None:
            return serve()
        if said.is_forwarded:
            serve()
        return said.response()

    def own_answer(self, content: bytes) -> Canned | None:
        """What it says to a request with this body in the server's place; None: it hands it on."""
        self.num_requests += 1
        if self.body_limit is not None and len(content) > self.body_limit:
            self.num_too_large += 1
            return Canned(413, "html", HTML)
        window = self._open_window()
        if window is None:
            return None
        window.num_answers += 1
        self.has_deleted = self.has_deleted or (window.answer.status, window.answer.kind) == (410, "ours")
        return window.answer

    def _open_window(self) -> Window | None:
        now, since = self.now(), self.now() - self.began_at
        for window in self.windows:
            if window.began_at is None and since >= window.after_seconds and self.num_requests > window.after_requests:
                window.began_at = now
            if window.began_at is not None and now < window.began_at + window.seconds:
                return window
        return None


class SimulatedServer:
    """A ledger that is true, behind a proxy.

    Args:
        clock: The time.
        dice: For how long an answer takes.
    """

    def __init__(self, clock: SimulatedTime, dice: random.Random) -> None:
        self._clock, self._dice = clock, dice
        self.ledger = Ledger()
        self.ledger.database_id = "the one"
        self.proxy = Proxy(lambda: clock.now)

    def handle(self, request: httpx.Request) -> httpx.Response:
        """The answer to a request, after a moment."""
        self._clock.sleep(self._dice.uniform(0.001, 0.02))
        return self.proxy.answer(request.content, lambda: self._served(request))

    def _served(self, request: httpx.Request) -> httpx.Response:
        found = re.fullmatch(r"/api/v1/streams/([^/]+)(/batches|/heartbeat|)", request.url.path)
        if found is None:
            return httpx.Response(200, json={"status": "ok", **self.ledger.identity})
        if found[2] == "/batches":
            body: dict[str, Any] = json.loads(gzip.decompress(request.content))
            answer = self.ledger.accept(found[1], body)
        else:
            answer = self.ledger.standing(found[1])
        return httpx.Response(answer.status, json=dict(answer.body))

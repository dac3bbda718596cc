"""What pages load, scripts and styles and fonts: packed once and kept in memory.

A page that a browser has never seen asks for some eighty files of 5 MB. Finding each behind all routes and packing it
anew took the server longer than what is in the page. No library does it for files that come from several packages'
folders and from Dash: those for static files want them in folders of their own, and packed before.
"""

import asyncio
import gzip
import re
from collections.abc import Iterable, Sequence
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

FROM_BYTES: Final = 500

LEVEL: Final = 6
"""Of zlib: packed once, so that the best ratio for its time counts, and not its time alone."""

BY_TIME_OF_FILE: Final = "?m="
"""In Dash's addresses: a file that changes gets another one."""

FOR_GOOD: Final = "public, max-age=31536000, immutable"
OK: Final = 200
NOT_MODIFIED: Final = 304

NAMED = re.compile(r'(?:src|href)="(/[^"]+)"')

Answer = tuple[list[tuple[bytes, bytes]], bytes]
"""Headers, and the packed body."""


def named_in(html: str) -> list[str]:
    """The addresses on this server that a page names.

    Args:
        html: Of the page, or of parts of it.
    """
    return NAMED.findall(html)


class PackedAssets:
    """Middleware around the dashboard; it answers plain requests for assets once it has seen the answer.

    Nothing is kept of an address that no page of this process names: anybody can think of others without end, and in an
    upgrade the page of a newer process may ask an older one for a file by the newer one's time. Requests for a part or
    for what has changed since pass, and so do clients that take nothing packed.

    Args:
        app: The application within.
        addresses: Path and query of each asset, as pages name it.
    """

    def __init__(self, app: ASGIApp, *, addresses: Iterable[str]) -> None:
        self.app = app
        self._addresses = frozenset(addresses)
        self._kept: dict[str, Answer] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer from memory, or pass the request on and keep what comes back."""
        address = _address(scope)
        if address not in self._addresses:
            await self.app(scope, receive, send)
            return
        is_for_good = BY_TIME_OF_FILE in address

        async def send_on(message: Message) -> None:
            if is_for_good and message["type"] == "http.response.start" and message["status"] in (OK, NOT_MODIFIED):
                MutableHeaders(scope=message).setdefault("Cache-Control", FOR_GOOD)
            await send(message)

        if not _is_plain(scope):
            await self.app(scope, receive, send_on)
            return
        answer = self._kept.get(address)
        if answer is None:
            answer = await self._ask(scope, receive, send_on)
            if answer is None:
                return
            self._kept[address] = answer
        headers, body = answer
        await send_on({"type": "http.response.start", "status": OK, "headers": list(headers)})
        await send_on({"type": "http.response.body", "body": body})

    async def _ask(self, scope: Scope, receive: Receive, send: Send) -> Answer | None:
        """The answer of the application within, packed; None where it has gone out as it was."""
        sent: list[Message] = []

        async def collect(message: Message) -> None:
            sent.append(message)

        await self.app(_unpacked(scope), receive, collect)
        body = _whole_body(sent)
        if body is not None:
            return await asyncio.to_thread(_packed, sent[0], body)
        for message in sent:
            await send(message)
        return None


def _address(scope: Scope) -> str:
    """Path and query; empty where nothing is asked for by GET or HEAD."""
    if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
        return ""
    query = scope["query_string"].decode("latin-1")
    return f"{scope['path']}?{query}" if query else scope["path"]


def _is_plain(scope: Scope) -> bool:
    """Whether it asks for a whole asset, packed."""
    headers = Headers(scope=scope)
    is_whole = not any(name in headers for name in ("range", "if-none-match", "if-modified-since"))
    return scope["method"] == "GET" and is_whole and _takes_gzip(headers.get("accept-encoding", ""))


def _takes_gzip(accepted: str) -> bool:
    codings = [part.replace(" ", "").partition(";") for part in accepted.lower().split(",")]
    return any(name == "gzip" and not re.fullmatch(r"q=0(\.0*)?", quality) for name, _, quality in codings)


def _unpacked(scope: Scope) -> Scope:
    """The same request by a client that takes nothing packed, on a server that sends no file by its path."""
    headers = [(name, value) for name, value in scope["headers"] if name != b"accept-encoding"]
    return {**scope, "headers": headers, "extensions": {}}


def _whole_body(sent: Sequence[Message]) -> bytes | None:
    """The body of an answer that may be kept: all of it has come, unpacked, and nothing went wrong."""
    if not sent or sent[0]["type"] != "http.response.start" or sent[0]["status"] != OK:
        return None
    headers = Headers(raw=sent[0]["headers"])
    body = b"".join(message.get("body", b"") for message in sent[1:])
    is_over = len(sent) > 1 and not sent[-1].get("more_body", False)
    is_whole = is_over and headers.get("content-length", str(len(body))) == str(len(body))
    return body if is_whole and "content-encoding" not in headers else None


def _packed(start: Message, body: bytes) -> Answer:
    headers = MutableHeaders(raw=list(start["headers"]))
    packed = gzip.compress(body, LEVEL, mtime=0) if len(body) >= FROM_BYTES else body
    if len(packed) < len(body):
        body = packed
        headers["Content-Encoding"] = "gzip"
        # a part of the unpacked bytes may be asked for by the strong tag
        if (tag := headers.get("etag", "")).startswith('"'):
            headers["ETag"] = f"W/{tag}"
    if "accept-encoding" not in headers.get("vary", "").lower():
        headers.add_vary_header("Accept-Encoding")
    headers["Content-Length"] = str(len(body))
    return headers.raw, body

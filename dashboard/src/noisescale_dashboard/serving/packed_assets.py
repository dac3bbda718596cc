"""Scripts, styles and fonts of the pages, packed once and kept in memory.

A page that a browser has never seen asks for some eighty files of 5 MB. Finding each behind all routes and packing it
anew took the server longer than what is in the page. No library does it for files that come from several packages'
folders and from Dash: those for static files want them in folders of their own, and packed before.
"""

import asyncio
import gzip
from collections.abc import Iterable
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BELOW: Final = ("/assets/", "/_dash-component-suites/")
"""What is read without a key and is the same for everybody for as long as the process lives."""

FROM_BYTES: Final = 500
MOST_BYTES: Final = 32 << 20
"""Of all that is kept: six times what there is, for addresses that nobody has thought of."""

LEVEL: Final = 6
"""Of zlib: packed once, so that the best ratio for its time counts, and not its time alone."""

BY_TIME_OF_FILE: Final = b"m="
"""In Dash's addresses: another file has another one."""

FOR_GOOD: Final = "public, max-age=31536000, immutable"
OK: Final = 200

Answer = tuple[list[tuple[bytes, bytes]], bytes]
"""Headers, and the packed body."""


class PackedAssets:
    """Middleware around everything else; it answers plain requests for assets once it has seen the answer.

    Requests for a part or for what has changed since pass, and so do clients that take nothing packed.

    Args:
        app: The application within.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._kept: dict[tuple[str, bool], Answer] = {}
        self._num_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer from memory, or pass the request on and keep what comes back."""
        if scope["type"] != "http" or not _is_plain(scope):
            await self.app(scope, receive, send)
            return
        address = scope["path"], scope["query_string"].startswith(BY_TIME_OF_FILE)
        answer = self._kept.get(address) or await self._ask(address, scope, receive, send)
        if answer is not None:
            headers, body = answer
            await send({"type": "http.response.start", "status": OK, "headers": headers})
            await send({"type": "http.response.body", "body": body})

    async def _ask(self, address: tuple[str, bool], scope: Scope, receive: Receive, send: Send) -> Answer | None:
        """The answer of the application within, packed and kept; None where it has gone out as it was."""
        start: Message | None = None
        parts: list[bytes] = []
        is_kept = False

        async def collect(message: Message) -> None:
            nonlocal start, is_kept
            if message["type"] == "http.response.start":
                start, is_kept = message, _may_keep(message)
            if not is_kept:
                await send(message)
            elif message["type"] == "http.response.body":
                parts.append(message.get("body", b""))

        await self.app(_unpacked(scope), receive, collect)
        if start is None or not is_kept:
            return None
        answer = await asyncio.to_thread(_packed, start, parts, is_by_time=address[1])
        size = len(answer[1])
        if self._num_bytes + size <= MOST_BYTES and address not in self._kept:
            self._num_bytes += size
            self._kept[address] = answer
        return answer


def _is_plain(scope: Scope) -> bool:
    """Whether it asks for a whole asset, packed."""
    if scope["method"] != "GET" or not scope["path"].startswith(BELOW):
        return False
    headers = Headers(scope=scope)
    takes = headers.get("accept-encoding", "")
    return "gzip" in takes and not any(name in headers for name in ("range", "if-none-match", "if-modified-since"))


def _unpacked(scope: Scope) -> Scope:
    """The same request by a client that takes nothing packed, on a server that sends no file by its path."""
    headers = [(name, value) for name, value in scope["headers"] if name != b"accept-encoding"]
    return {**scope, "headers": headers, "extensions": {}}


def _may_keep(start: Message) -> bool:
    return start["status"] == OK and "content-encoding" not in Headers(raw=start["headers"])


def _packed(start: Message, parts: Iterable[bytes], *, is_by_time: bool) -> Answer:
    body = b"".join(parts)
    headers = MutableHeaders(raw=list(start["headers"]))
    if len(body) >= FROM_BYTES:
        packed = gzip.compress(body, LEVEL, mtime=0)
        if len(packed) < len(body):
            body = packed
            headers["Content-Encoding"] = "gzip"
    headers.add_vary_header("Accept-Encoding")
    headers["Content-Length"] = str(len(body))
    if is_by_time and "cache-control" not in headers:
        headers["Cache-Control"] = FOR_GOOD
    return headers.raw, body

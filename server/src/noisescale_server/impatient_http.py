"""uvicorn's HTTP for senders who take their time: a connection that brings no request is not kept open for it."""

import asyncio
from typing import ClassVar, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEADER_BYTES: Final = 64 * 1024
TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-type: text/plain\r\n"
    b"content-length: 31\r\n\r\nheaders are at most 65536 bytes"
)


class ImpatientProtocol(HttpToolsProtocol):
    """A connection that ends when a request does not come in time, or its headers without end.

    uvicorn limits the time between two requests only: headers that never end, or a body a byte a minute, would hold a
    connection each, and the first ones its memory too.

    Attributes:
        headers_seconds: From the connection, or from a request's first byte, to the end of the headers.
        body_seconds: From there to the end of the body; 5 MiB need 0.7 Mbit/s.
    """

    headers_seconds: ClassVar[float] = 20.0
    body_seconds: ClassVar[float] = 60.0

    _deadline: asyncio.TimerHandle | None = None
    _header_bytes = 0
    _is_in_headers = True
    _has_ended_headers = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Nothing; the first request is waited for."""
        super().connection_made(transport)
        self._wait(self.headers_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing; nobody is waited for."""
        self._wait(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Nothing; headers without end are answered and cut off."""
        # a piece may hold the end of a request, or all of it: what follows is counted from the next piece on
        begins_in_headers, self._has_ended_headers = self._is_in_headers, False
        super().data_received(data)
        if begins_in_headers and not self._has_ended_headers and not self.transport.is_closing():
            self._header_bytes += len(data)
            if self._header_bytes > MAX_HEADER_BYTES:
                self.transport.write(TOO_LARGE)
                self.transport.close()

    def on_message_begin(self) -> None:
        """Nothing; the headers are waited for."""
        super().on_message_begin()
        self._wait(self.headers_seconds)

    def on_headers_complete(self) -> None:
        """Nothing; the body is waited for."""
        self._is_in_headers, self._has_ended_headers = False, True
        self._wait(self.body_seconds)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Nothing; the next request may take its time to begin."""
        super().on_message_complete()
        self._is_in_headers = True
        self._header_bytes = 0
        self._wait(None)

    def _wait(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self.transport.close)

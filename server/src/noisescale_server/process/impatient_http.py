"""uvicorn's HTTP for senders who take their time: a connection that brings no request is not kept open for it.

Nor is one that takes no answer: while answers lie unread no further request of it is worked on, and when it takes none
of them for a while it ends.
"""

import asyncio
from collections import Counter
from typing import ClassVar, Final

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from noisescale_server.process.client_address import counted_as

# What clients that do not read may leave lying in this process: little of each address, and not for long.

MAX_BYTES: Final = 32 << 20
"""Of all connections of one address together; a proxy in front of the server reads what it is given."""
LEAST_PROGRESS_BYTES: Final = 16 << 10
"""A reader that takes less than this in `ImpatientProtocol.unread_seconds` has gone away, or pretends to read."""


class Unread:
    """Bytes that lie unread, by the address of the reader."""

    def __init__(self) -> None:
        self._bytes: Counter[str] = Counter()

    def change(self, address: str, num_bytes: int) -> None:
        """Count so many bytes more, or fewer."""
        self._bytes[address] += num_bytes
        if not self._bytes[address]:
            del self._bytes[address]

    def has_room(self, address: str, num_bytes: int) -> bool:
        """Whether the address may leave so many more lying."""
        return self._bytes[address] + num_bytes <= MAX_BYTES


MAX_WAITING: Final = 8
"""Requests on one connection that may wait for the one before them; browsers and clients send the next one later."""
MAX_HEADER_BYTES: Final = 64 * 1024
TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-type: text/plain\r\n"
    b"content-length: 31\r\n\r\nheaders are at most 65536 bytes"
)


class TooManyWaiting(Exception):
    """A connection that sends requests without end; the parser stops at it."""


class ImpatientProtocol(HttpToolsProtocol):
    """A connection that ends when a request does not come in time, or its headers without end.

    uvicorn limits the time between two requests only: headers that never end, or a body a byte a minute, would hold a
    connection each, and the first ones its memory too.

    Attributes:
        headers_seconds: From the connection, or from a request's first byte, to the end of the headers.
        body_seconds: From there to the end of the body; 5 MiB need 0.7 Mbit/s.
        unread_seconds: In which a reader has to take some of what lies unread.
    """

    headers_seconds: ClassVar[float] = 20.0
    body_seconds: ClassVar[float] = 60.0
    unread_seconds: ClassVar[float] = 20.0
    unread: ClassVar[Unread] = Unread()

    _deadline: asyncio.TimerHandle | None = None
    _header_bytes = 0
    _is_in_headers = True
    _has_ended_headers = False
    _num_unread = 0
    _look: asyncio.TimerHandle | None = None
    _running: RequestResponseCycle | None = None
    _put_off: tuple[RequestResponseCycle, ASGI3Application] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait(self.headers_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nobody any more."""
        self._wait(None)
        self._put_off = None
        self._note_unread(0)
        self._tell_the_running_one()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Answer and cut off headers without end."""
        # a piece may hold the end of a request, or all of it: what follows is counted from the next piece on
        begins_in_headers, self._has_ended_headers = self._is_in_headers, False
        super().data_received(data)
        if begins_in_headers and not self._has_ended_headers and not self.transport.is_closing():
            self._header_bytes += len(data)
            if self._header_bytes > MAX_HEADER_BYTES:
                self.transport.write(TOO_LARGE)
                self.transport.close()

    def on_message_begin(self) -> None:
        """Wait for the headers.

        Raises:
            TooManyWaiting: When too many requests have come before this one.
        """
        if len(self.pipeline) >= MAX_WAITING:
            raise TooManyWaiting
        super().on_message_begin()
        self._wait(self.headers_seconds)

    def on_headers_complete(self) -> None:
        """Wait for the body."""
        self._is_in_headers, self._has_ended_headers = False, True
        self._wait(self.body_seconds)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Let the next request take its time to begin."""
        super().on_message_complete()
        self._is_in_headers = True
        self._header_bytes = 0
        self._wait(None)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP; with requests before it the answer would be taken for theirs."""
        if self.pipeline:
            self._abort()
        else:
            super().send_400_response(msg)

    def timeout_keep_alive_handler(self) -> None:
        """End a connection that brings nothing more; to close one that reads nothing would wait for it without end."""
        if self.transport.get_write_buffer_size():
            self._abort()
        else:
            super().timeout_keep_alive_handler()

    def pause_writing(self) -> None:
        """Answers lie unread: look later whether somebody takes them."""
        super().pause_writing()
        num_bytes = self.transport.get_write_buffer_size()
        if self.unread.has_room(self._address, num_bytes):
            self._note_unread(num_bytes)
            self._look_later()
        else:
            self._abort()

    def resume_writing(self) -> None:
        """They have been read: go on with the request that came meanwhile."""
        self._note_unread(0)
        super().resume_writing()
        if self._put_off is not None:
            put_off, self._put_off = self._put_off, None
            self._start(*put_off)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        if self.flow.write_paused:
            self._put_off = cycle, app
        else:
            self._start(cycle, app)

    def _start(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _abort(self) -> None:
        self._tell_the_running_one()
        self.transport.abort()

    def _tell_the_running_one(self) -> None:
        # uvicorn tells the newest request alone, which may still wait for this one
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()

    @property
    def _address(self) -> str:
        return counted_as(self.client[0]) if self.client else ""

    def _look_later(self) -> None:
        self._look = self.loop.call_later(self.unread_seconds, self._end_unless_read)

    def _end_unless_read(self) -> None:
        still_unread = self.transport.get_write_buffer_size()
        if self._num_unread - still_unread < LEAST_PROGRESS_BYTES:
            self._abort()
            return
        self._note_unread(still_unread)
        self._look_later()

    def _note_unread(self, num_bytes: int) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None
        self.unread.change(self._address, num_bytes - self._num_unread)
        self._num_unread = num_bytes

    def _wait(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self.transport.close)

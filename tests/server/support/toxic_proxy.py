"""A TCP proxy that does to a connection what networks do: delays, cuts, swallows, repeats and damages it.

The poisons are toxiproxy's, and two that hurt exactly-once delivery most: an answer that is dropped after the server
has committed, and a request that arrives when the client has sent it again long since.
"""

import asyncio
import random
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

PIECE_BYTES = 65_536
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close means RST
END_OF_HEAD = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Link:
    """A connection of a client, and ours to the server for it."""

    from_client: asyncio.StreamReader
    to_client: asyncio.StreamWriter
    from_server: asyncio.StreamReader
    to_server: asyncio.StreamWriter
    dial: Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


Poison = Callable[[Link, int], Awaitable[None]]
"""What happens to a connection; the number is where in it."""


async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter, limit: int | None = None) -> None:
    """Hand bytes on until the source ends, or for so many."""
    left = PIECE_BYTES if limit is None else limit
    while left and (piece := await source.read(min(left, PIECE_BYTES))):
        sink.write(piece)
        await sink.drain()
        if limit is not None:
            left -= len(piece)


async def clean(link: Link, _: int = 0) -> None:
    """As if nothing were in between."""
    upwards = asyncio.ensure_future(pump(link.from_client, link.to_server))
    await pump(link.from_server, link.to_client)
    upwards.cancel()


async def request_of(link: Link) -> bytes:
    """A whole request: its head, and as much as that says will come."""
    head = await link.from_client.readuntil(END_OF_HEAD)
    [length] = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
    return head + await link.from_client.readexactly(length)


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection as a crash or a firewall does."""
    connected: socket.socket | None = writer.get_extra_info("socket")
    if connected is not None:
        with suppress(OSError):
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()


async def delayed(link: Link, seed: int) -> None:
    """Latency with jitter, in both directions."""
    spread = random.Random(seed)
    request = await request_of(link)
    await asyncio.sleep(spread.uniform(0, 0.1))
    link.to_server.write(request)
    answer = await link.from_server.read(PIECE_BYTES)
    await asyncio.sleep(spread.uniform(0, 0.1))
    link.to_client.write(answer)
    await clean(link)


async def narrow(link: Link, _: int) -> None:
    """Sixteen bytes at a time."""
    request = await request_of(link)
    for at in range(0, len(request), 16):
        link.to_server.write(request[at : at + 16])
        await link.to_server.drain()
        await asyncio.sleep(0)
    await clean(link)


async def request_reset(link: Link, after: int) -> None:
    """RST after so many bytes of the request."""
    await pump(link.from_client, link.to_server, after)
    reset(link.to_server)
    reset(link.to_client)


async def request_swallowed(link: Link, after: int) -> None:
    """After so many bytes nothing comes through any more, and nobody is told."""
    await pump(link.from_client, link.to_server, after)
    while await link.from_client.read(PIECE_BYTES):  # until the client gives up
        pass


async def request_half_closed(link: Link, after: int) -> None:
    """FIN towards the server after so many bytes; its answer comes through."""
    await pump(link.from_client, link.to_server, after)
    link.to_server.write_eof()
    await pump(link.from_server, link.to_client)


async def request_flipped(link: Link, at: int) -> None:
    """One bit of the body is another one."""
    request = bytearray(await request_of(link))
    body_at = request.index(END_OF_HEAD) + len(END_OF_HEAD)
    request[body_at + at % (len(request) - body_at)] ^= 4
    link.to_server.write(request)
    await clean(link)


async def request_twice(link: Link, _: int) -> None:
    """The request arrives a second time on another connection, at the same moment."""
    request = await request_of(link)
    reader, writer = await link.dial()
    writer.write(request)
    link.to_server.write(request)
    await reader.read(PIECE_BYTES)
    writer.close()
    await clean(link)


async def request_late(link: Link, _: int) -> None:
    """The request arrives when the client has given up on it, and has sent it again."""
    request = await request_of(link)
    while await link.from_client.read(PIECE_BYTES):
        pass
    await asyncio.sleep(0.1)
    link.to_server.write(request)
    await link.from_server.read(PIECE_BYTES)


async def answer_dropped(link: Link, _: int) -> None:
    """The server has committed and answered; the client meets the end of the connection."""
    link.to_server.write(await request_of(link))
    await link.from_server.read(PIECE_BYTES)


async def answer_reset(link: Link, after: int) -> None:
    """RST after so many bytes of the answer."""
    link.to_server.write(await request_of(link))
    await pump(link.from_server, link.to_client, after)
    reset(link.to_client)


async def closed_late(link: Link, _: int) -> None:
    """The answer comes through, the connection is then dead and says so much later."""
    link.to_server.write(await request_of(link))
    link.to_client.write(await link.from_server.read(PIECE_BYTES))
    link.to_server.close()
    await asyncio.sleep(0.2)


@dataclass
class ToxicProxy:
    """Poisons the next connection, and lets the others through.

    Attributes:
        url: Where clients connect to.
        num_requests_bytes: Of the newest connection, from the client.
        num_poisoned: Connections that were poisoned.
    """

    upstream: str
    url: str = ""
    num_poisoned: int = 0
    _next: tuple[Poison, int] | None = None
    _busy: set["asyncio.Task[None]"] = field(default_factory=set)

    def poison(self, poison: Poison, number: int) -> None:
        """What the next connection meets."""
        self._next = (poison, number)

    async def handle(self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        """One connection."""
        task = asyncio.current_task()
        assert task is not None
        self._busy.add(task)  # the loop itself would let it be collected
        poison, number = self._next or (clean, 0)
        self.num_poisoned += self._next is not None
        self._next = None
        from_server, to_server = await self._dial()
        link = Link(from_client, to_client, from_server, to_server, self._dial)
        try:
            # cancelled at the end of the test
            with suppress(OSError, EOFError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await poison(link, number)
        finally:
            to_server.close()
            to_client.close()
            self._busy.discard(task)

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        address = urlsplit(self.upstream)
        return await asyncio.open_connection(address.hostname, address.port)


@contextmanager
def toxic_proxy(upstream: str) -> Iterator[ToxicProxy]:
    """A proxy in front of a server, in a thread of its own."""
    proxy = ToxicProxy(upstream)
    loop = asyncio.new_event_loop()

    async def open_port() -> asyncio.Server:
        return await asyncio.start_server(proxy.handle, "127.0.0.1", 0)

    server = loop.run_until_complete(open_port())
    proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end(server: asyncio.Server) -> None:
    server.close()
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)

"""A TCP proxy that does to a connection what networks do: delays, cuts, swallows, repeats and damages it.

The poisons are toxiproxy's, and two that hurt exactly-once delivery most: an answer that is dropped after the server
has committed, and a request that arrives when the client has sent it again long since.
"""

import asyncio
import random
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from served_in_thread import Connections, Ends, served_connections

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
    dial: Callable[[], Awaitable[Ends]]


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
    try:
        await pump(link.from_server, link.to_client)
    finally:
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
    try:
        writer.write(request)
        link.to_server.write(request)
        await reader.read(PIECE_BYTES)
    finally:
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


class ToxicProxy:
    """Poisons the next connection, and lets the others through.

    Attributes:
        url: Where clients connect to.
        num_poisoned: Connections that were poisoned.
    """

    def __init__(self, upstream: str) -> None:
        self.url = ""
        self.num_poisoned = 0
        self.connections = Connections(self._handle)
        address = urlsplit(upstream)
        self._upstream = (str(address.hostname), address.port or 80)
        self._next: tuple[Poison, int] | None = None

    def poison(self, poison: Poison, number: int) -> None:
        """What the next connection meets."""
        self._next = (poison, number)

    async def _handle(self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        poison, number = self._next or (clean, 0)
        self.num_poisoned += self._next is not None
        self._next = None
        try:
            from_server, to_server = await self._dial()
            try:
                await poison(Link(from_client, to_client, from_server, to_server, self._dial), number)
            finally:
                to_server.close()
        finally:
            to_client.close()

    async def _dial(self) -> Ends:
        return await self.connections.dial(*self._upstream)


@contextmanager
def toxic_proxy(upstream: str) -> Iterator[ToxicProxy]:
    """A proxy in front of a server, in a thread of its own."""
    proxy = ToxicProxy(upstream)
    with served_connections(proxy.connections) as port:
        proxy.url = f"http://127.0.0.1:{port}"
        yield proxy

"""A server in a thread of the test's process that leaves nothing open: no task, no connection, no event loop.

What a closed loop leaves open is found by the next collection of garbage, and then fails whatever test runs there.
"""

import asyncio
import gc
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import uvicorn

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]
START_SECONDS, END_SECONDS = 30.0, 30.0


class Connections:
    """Those that a server has taken, and those that it has dialed for them.

    Args:
        serve: One connection that was taken, until it is over.
    """

    def __init__(self, serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> None:
        self._serve = serve
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection; no coroutine, so that one cancelled before its first step is known all the same."""
        self._writers.append(writer)
        task = asyncio.ensure_future(self._served(reader, writer))
        self._tasks.add(task)  # the loop itself would let it be collected
        task.add_done_callback(self._tasks.discard)

    async def _served(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # peers come and go as the test wants it; cancelled at the end of the test
        with suppress(OSError, EOFError, asyncio.CancelledError):
            await self._serve(reader, writer)

    async def dial(self, host: str, port: int) -> Ends:
        """A connection that goes with the server."""
        reader, writer = await asyncio.open_connection(host, port)
        self._writers.append(writer)
        return reader, writer

    async def end(self) -> None:
        """Cut every connection, and wait until each is gone."""
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            # only ours are cancelled: a task of asyncio that is just accepting a connection would lose the socket
            for task in self._tasks:
                task.cancel()
            for writer in self._writers:
                writer.transport.abort()
            await asyncio.wait(others, timeout=0.01)
        for writer in self._writers:
            writer.transport.abort()
        for writer in self._writers:
            with suppress(OSError):
                await writer.wait_closed()


@contextmanager
def served_connections(connections: Connections) -> Iterator[int]:
    """The port of a TCP server on loopback."""
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(connections.take, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def end() -> None:
        # not closed yet: asyncio drops the socket of a connection that it is just accepting for a closed server
        for listening in server.sockets:
            loop.remove_reader(listening)
        await connections.end()
        server.close()

    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result(END_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        gc.collect()  # a leak fails the test that made it


@contextmanager
def served_by(server: "uvicorn.Server") -> Iterator[int]:
    """The port of a uvicorn server that is ready.

    Args:
        server: Not yet started.
    """

    async def serve() -> None:
        await server.serve()
        # where an answer lies unread, uvicorn gives up waiting and leaves the connection to a loop that then closes
        for connection in list(server.server_state.connections):
            connection.transport.abort()  # type: ignore[union-attr]
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    deadline = time.monotonic() + START_SECONDS
    while not server.started:
        thread.join(0.01)
        assert time.monotonic() < deadline, f"the server is not ready on port {server.config.port}"
        assert thread.is_alive(), f"the server ended before it was ready on port {server.config.port}"
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(END_SECONDS)
        assert not thread.is_alive()

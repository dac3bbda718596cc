"""Messages over real sockets: receivers that fail, hang, redirect, answer twice, and talk without end."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from noisescale_server.services.alerts import delivering
from noisescale_server.services.alerts.delivering import AttemptOutcome

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
ANSWERS = {
    "/ok": OK,
    "/twice": OK + b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n",
    "/fails": b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n",
    "/later": b"HTTP/1.1 503 Busy\r\nRetry-After: 90\r\nContent-Length: 0\r\n\r\n",
    "/nonsense": b"no HTTP at all\r\n\r\n",
    "/gone": b"",
}


class Place:
    """A receiver on the loopback: what it was asked for, by path."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.port = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
        self.asked.append(path)
        try:
            if path == "/hangs":
                await reader.read()
            elif path == "/endless":
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
                while True:
                    writer.write(b"x" * 65_536)
                    await writer.drain()
            elif path == "/redirects":
                there = f"http://127.0.0.1:{self.port}/inside".encode()
                writer.write(b"HTTP/1.1 302 Found\r\nLocation: " + there + b"\r\nContent-Length: 0\r\n\r\n")
            else:
                writer.write(ANSWERS[path])
        except ConnectionError:
            pass
        finally:
            writer.close()


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    opened = Place()
    server = await asyncio.start_server(opened.answer, "127.0.0.1", 0)
    opened.port = server.sockets[0].getsockname()[1]
    async with server:
        yield opened


async def sent(place: Place, path: str) -> AttemptOutcome:
    send = delivering.sender(("127.0.0.1",), seconds=1.0)
    return await send(f"http://127.0.0.1:{place.port}{path}", b"{}", {"webhook-id": "1"})


@pytest.mark.parametrize(
    ("path", "status", "is_taken"),
    [
        ("/ok", 200, True),
        ("/twice", 200, True),
        ("/endless", 200, True),
        ("/fails", 500, False),
        ("/later", 503, False),
        ("/redirects", 302, False),
        ("/nonsense", None, False),
        ("/gone", None, False),
        ("/hangs", None, False),
    ],
)
async def test_one_message_is_one_request_and_one_outcome(
    place: Place, path: str, status: int | None, is_taken: bool
) -> None:
    began = time.monotonic()

    outcome = await sent(place, path)

    assert (outcome.status, outcome.is_taken, outcome.is_final) == (status, is_taken, False)
    assert place.asked == [path], "no redirect is followed, nothing is asked again"
    assert time.monotonic() - began < 3


async def test_when_to_come_again_is_read(place: Place) -> None:
    assert (await sent(place, "/later")).retry_after == 90


async def test_where_nobody_listens_there_is_no_answer() -> None:
    outcome = await delivering.sender(("127.0.0.1",))("http://127.0.0.1:9/", b"{}", {})

    assert (outcome.status, outcome.is_final) == (None, False)
    assert outcome.said.startswith("no answer: ConnectError")


async def test_a_proxy_of_the_environment_is_not_asked(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    assert (await sent(place, "/ok")).is_taken

"""Clients that ask and do not read: little lies in the server for them, not for long, and others are answered."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator

import httpx
import pytest
from fastapi import FastAPI
from starlette.responses import Response

from noisescale_server.process import impatient_http
from noisescale_server.process.impatient_http import MAX_WAITING, ImpatientProtocol
from served_app import TOKEN, served_app

pytestmark = pytest.mark.processes

HEADERS = {"Authorization": f"Bearer {TOKEN}"}
SIZE = 8 << 20
"""More than the system keeps between two sockets."""
BIG = f"GET /big HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
NUM_ASKED: list[str] = []


async def answer_big() -> Response:
    NUM_ASKED.append("big")
    return Response(b"x" * SIZE)


def with_big_answers(app: FastAPI) -> None:
    app.add_api_route("/big", answer_big)


@pytest.fixture(scope="module")
def address(new_database: Callable[[], str]) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ImpatientProtocol, "unread_seconds", 0.5)
        with served_app(new_database(), extend=with_big_answers) as url:
            yield url


async def connect(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = address.removeprefix("http://").split(":")
    return await asyncio.open_connection(host, int(port))


async def rest_of(reader: asyncio.StreamReader) -> int:
    """How many bytes come until the server hangs up."""
    found = 0
    async with asyncio.timeout(30):
        try:
            while piece := await reader.read(1 << 16):
                found += len(piece)
        except ConnectionResetError:
            pass
    return found


async def until_something_lies_unread(seconds: float) -> int:
    """How many bytes."""
    deadline = time.monotonic() + seconds
    while not (lies := ImpatientProtocol.unread._bytes["127.0.0.1"]):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    return lies


async def until_nothing_lies_unread(seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while ImpatientProtocol.unread._bytes:
        assert time.monotonic() < deadline, ImpatientProtocol.unread._bytes
        await asyncio.sleep(0.02)


async def test_who_reads_nothing_is_cut_off(address: str) -> None:
    reader, writer = await connect(address)
    writer.write(BIG)
    lies = await until_something_lies_unread(10)

    # before a connection that is not used any more would be closed
    await until_nothing_lies_unread(3)

    assert lies <= SIZE + 1_000
    assert await rest_of(reader) < SIZE
    writer.close()


@pytest.mark.slow
async def test_who_reads_slowly_gets_all_of_it(address: str) -> None:
    reader, writer = await connect(address)
    writer.write(BIG)
    found, begin = 0, time.monotonic()
    while found < SIZE:
        found += len(await reader.readexactly(1 << 15))
        await asyncio.sleep(0.005)

    assert time.monotonic() - begin > 2 * ImpatientProtocol.unread_seconds
    writer.close()


async def test_no_further_request_is_worked_on_while_answers_lie_unread(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ImpatientProtocol, "unread_seconds", 20.0)
    reader, writer = await connect(address)
    NUM_ASKED.clear()
    writer.write(5 * BIG)
    await until_something_lies_unread(10)
    await asyncio.sleep(0.3)
    asked_unread = len(NUM_ASKED)

    found = 0
    while found < 5 * SIZE:
        found += len(await reader.read(1 << 20))

    assert asked_unread == 1
    assert len(NUM_ASKED) == 5
    writer.close()


async def test_a_connection_that_asks_without_end_ends_and_leaves_no_error_in_the_log(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    reader, writer = await connect(address)
    NUM_ASKED.clear()
    writer.write((MAX_WAITING + 10) * BIG)

    assert await rest_of(reader) < (MAX_WAITING + 1) * SIZE
    assert len(NUM_ASKED) <= MAX_WAITING
    assert [one for one in caplog.records if one.levelno >= logging.ERROR] == []
    writer.close()


@pytest.mark.slow
async def test_an_address_leaves_no_more_lying_than_it_may(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(impatient_http, "MAX_BYTES", 2 * SIZE)
    monkeypatch.setattr(ImpatientProtocol, "unread_seconds", 5.0)
    open_ones = [await connect(address) for _ in range(12)]
    most = 0
    for _, writer in open_ones:
        writer.write(BIG)
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        most = max(most, ImpatientProtocol.unread._bytes["127.0.0.1"])
        await asyncio.sleep(0.005)
    for _, writer in open_ones:
        writer.transport.abort()

    assert SIZE < most <= 2 * SIZE
    await until_nothing_lies_unread(10)


@pytest.mark.slow
async def test_others_are_answered_beside_three_hundred_connections_that_ask_for_forty_answers_and_read_none(
    address: str,
) -> None:
    open_ones = [await connect(address) for _ in range(300)]
    for _, writer in open_ones:
        writer.write(40 * BIG)
    async with httpx.AsyncClient(base_url=address, headers=HEADERS, timeout=10) as client:
        answers = [await client.get("/api/v1/runs") for _ in range(20)]
    for _, writer in open_ones:
        writer.transport.abort()

    assert {answer.status_code for answer in answers} == {200}

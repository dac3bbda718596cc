"""What one sender can take from the others: so much memory, so much time, and no more."""

import asyncio
import gzip
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from app_in_process import client_of, running_app
from noisescale_dashboard.app import mount
from noisescale_server.api.access.credentials import MAX_REMEMBERED
from noisescale_server.process import impatient_http
from noisescale_server.process.impatient_http import MAX_HEADER_BYTES, ImpatientProtocol
from noisescale_server.services.access.access import LOCAL
from problems import assert_problem
from served_app import TOKEN, served_app

pytestmark = pytest.mark.processes

HEAD = f"POST /api/v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
JSON = b"Content-Type: application/json\r\n"
JSON_HEADERS = {"Content-Type": "application/json"}
LIMIT, INFLATED = 20_000, 50_000


@pytest.fixture(scope="module")
def address(new_database: Callable[[], str]) -> Iterator[str]:
    """A server with small limits, which waits for nobody."""
    kept: list[FastAPI] = []

    def extend(app: FastAPI) -> None:
        mount(app)
        kept.append(app)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ImpatientProtocol, "headers_seconds", 0.5)
        patch.setattr(ImpatientProtocol, "body_seconds", 1.0)
        limits = {"max_body_bytes": LIMIT, "max_inflated_body_bytes": INFLATED}
        with served_app(new_database(), extend=extend, **limits) as url:
            yield url


@pytest.fixture
async def client(address: str) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(base_url=address, headers=headers, timeout=60) as opened:
        yield opened


async def connect(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = address.removeprefix("http://").split(":")
    return await asyncio.open_connection(host, int(port))


async def said_until_closed(reader: asyncio.StreamReader) -> bytes:
    """What the server says before it hangs up; the test fails where it does not."""
    async with asyncio.timeout(30):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


class TestSlowSenders:
    @pytest.mark.parametrize(
        "begun",
        [
            pytest.param(b"", id="nothing"),
            pytest.param(HEAD, id="headers without end"),
            pytest.param(HEAD + JSON + b"Content-Length: 100\r\n\r\n{", id="half a body"),
            pytest.param(HEAD + JSON + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", id="a chunk"),
            pytest.param(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n", id="a body unasked"),
        ],
    )
    async def test_who_does_not_go_on_is_cut_off(self, address: str, begun: bytes) -> None:
        reader, writer = await connect(address)
        writer.write(begun)

        await said_until_closed(reader)
        writer.close()

    async def test_a_byte_now_and_then_does_not_help(self, address: str) -> None:
        reader, writer = await connect(address)
        said = asyncio.create_task(said_until_closed(reader))
        for byte in HEAD + b"X-A: " + b"a" * 10_000:
            if said.done():
                break
            writer.write(bytes([byte]))
            await asyncio.sleep(0.05)

        assert said.done()
        writer.close()

    async def test_a_connection_that_is_used_again_waits_for_its_next_request(self, address: str) -> None:
        reader, writer = await connect(address)
        ask = b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        for _ in range(2):
            writer.write(ask)
            await reader.readuntil(b'{"status":"ok"}')
            await asyncio.sleep(1.5)
        writer.close()

    async def test_others_are_answered_while_hundreds_hold_theirs(
        self, address: str, client: httpx.AsyncClient
    ) -> None:
        open_ones = [await connect(address) for _ in range(200)]
        for _, writer in open_ones:
            writer.write(HEAD)

        answers = [await client.get("/api/v1/runs") for _ in range(5)]
        for _, writer in open_ones:
            writer.close()

        assert {answer.status_code for answer in answers} == {200}


class TestLargeSenders:
    async def test_headers_without_end_are_431(self, address: str) -> None:
        reader, writer = await connect(address)
        writer.write(HEAD + b"X-A: " + b"a" * (MAX_HEADER_BYTES - 2_000))
        await writer.drain()
        await asyncio.sleep(0.1)
        # the last piece is read whole: bytes behind it would make the system throw the answer away
        writer.write(b"a" * 3_000)

        said = await said_until_closed(reader)

        assert said.startswith(b"HTTP/1.1 431 ")
        writer.close()

    @pytest.mark.parametrize("num_beside_headers", [0, 100, 5_000])
    async def test_a_body_does_not_count_as_headers_whatever_its_pieces(
        self, address: str, monkeypatch: pytest.MonkeyPatch, num_beside_headers: int
    ) -> None:
        monkeypatch.setattr(impatient_http, "MAX_HEADER_BYTES", 1_000)
        reader, writer = await connect(address)
        writer.write(HEAD + JSON + b"Connection: close\r\nContent-Length: 5000\r\n\r\n" + b" " * num_beside_headers)
        await writer.drain()
        await asyncio.sleep(0.1)
        writer.write(b" " * (5_000 - num_beside_headers))

        said = await said_until_closed(reader)

        assert said.startswith(b"HTTP/1.1 422 ")
        writer.close()

    async def test_headers_of_many_cookies_are_read(self, client: httpx.AsyncClient) -> None:
        answer = await client.get("/api/v1/runs", headers={"Cookie": "a=" + "b" * 30_000})

        assert answer.status_code == 200

    async def test_chunks_without_end_are_413_long_before_they_end(self, address: str) -> None:
        reader, writer = await connect(address)
        writer.write(HEAD + JSON + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(2 * LIMIT // 1_000):
            writer.write(b"3e8\r\n" + b" " * 1_000 + b"\r\n")

        said = await said_until_closed(reader)

        assert said.startswith(b"HTTP/1.1 413 ")
        writer.close()

    @pytest.mark.parametrize(
        ("headers", "content", "status", "slug"),
        [
            ({"Content-Encoding": "gzip"}, gzip.compress(b" " * 10_000_000), 413, "body-too-large"),
            ({"Content-Encoding": "gzip"}, gzip.compress(b"{") + gzip.compress(b"}"), 422, "invalid-input"),
            ({"Content-Encoding": "gzip, gzip"}, gzip.compress(gzip.compress(b"{}")), 415, "media-type-not-supported"),
            ({}, b'{"config":' + b'{"a":' * 3_000 + b"1" + b"}" * 3_001, 422, "invalid-input"),
        ],
        ids=["bomb", "two members", "gzip in gzip", "depth"],
    )
    async def test_bombs_are_refused(
        self, client: httpx.AsyncClient, headers: dict[str, str], content: bytes, status: int, slug: str
    ) -> None:
        given = JSON_HEADERS | headers
        answer = await client.post("/api/v1/runs", content=content, headers=given)

        assert_problem(answer, status, slug)

    async def test_the_dashboards_callbacks_have_the_same_limit(self, client: httpx.AsyncClient) -> None:
        answer = await client.post("/_dash-update-component", json={"a": "b" * LIMIT})

        assert_problem(answer, 413, "body-too-large")

    async def test_a_callbacks_body_says_how_long_it_is(self, client: httpx.AsyncClient) -> None:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"{}"

        answer = await client.post("/_dash-update-component", content=pieces(), headers=JSON_HEADERS)

        assert_problem(answer, 422, "invalid-input", field="Content-Length")


async def test_ten_thousand_wrong_keys_end_in_429_and_are_not_remembered(new_database: Callable[[], str]) -> None:
    async with running_app(new_database()) as app, client_of(app, {}) as client:
        answers = [
            (await client.get("/api/v1/me", headers={"Authorization": f"Bearer ns_r_{i}"})).status_code
            for i in range(200)
        ]
        for i in range(MAX_REMEMBERED + 100):
            app.state.credentials._remember(f"{i}", LOCAL)

        remembered = len(app.state.credentials._remembered)

    assert remembered == MAX_REMEMBERED
    assert set(answers[:60]) == {401}
    assert set(answers[-100:]) == {429}


def unbounded(description: dict[str, Any]) -> list[str]:
    """Parameters by which a query could ask for any amount: numbers of rows, lists and texts without a largest one."""
    found = []
    for path, methods in description["paths"].items():
        for operation in methods.values():
            for parameter in operation.get("parameters", []):
                bounds = json.dumps(parameter["schema"])
                is_count = parameter["name"] in ("limit", "points")
                if is_count and "maximum" not in bounds:
                    found.append(f"{path} {parameter['name']}")
                if '"array"' in bounds and "maxItems" not in bounds:
                    found.append(f"{path} {parameter['name']}")
                if re.search(r'"type": "string"(?!, "format": "(uuid|date-time)")', bounds) and not re.search(
                    r'"(maxLength|enum|const|format)"', bounds
                ):
                    found.append(f"{path} {parameter['name']}")
    return found


@pytest.mark.slow
async def test_no_query_can_ask_for_any_amount(client: httpx.AsyncClient) -> None:
    description = (await client.get("/openapi.json")).json()

    assert unbounded(description) == []


def test_a_query_that_could_is_noticed() -> None:
    parameters = [
        {"name": "limit", "schema": {"type": "integer"}},
        {"name": "ids", "schema": {"type": "array", "items": {"type": "string", "format": "uuid"}}},
        {"name": "q", "schema": {"type": "string"}},
        {"name": "run_id", "schema": {"type": "string", "format": "uuid"}},
    ]

    found = unbounded({"paths": {"/runs": {"get": {"parameters": parameters}}}})

    assert found == ["/runs limit", "/runs ids", "/runs q"]

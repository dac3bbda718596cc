"""Bodies are bounded, inflated and parsed; whatever is wrong names the field and is never a 500."""

import gzip
import json
import zlib
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI, Request
from pydantic import BaseModel, ConfigDict, Field

from noisescale_server.api.platform.body import parse, read_body
from noisescale_server.api.platform.errors import register_error_handlers
from noisescale_server.api.platform.refusals import BodyTooLarge
from noisescale_server.process.settings import Settings
from noisescale_server.services.platform.errors import InvalidInput
from problems import assert_problem

JSON = {"Content-Type": "application/json"}
GZIP = {**JSON, "Content-Encoding": "gzip"}


def request_with_length(app: FastAPI, length: bytes) -> Request:
    headers = [(b"content-type", b"application/json"), (b"content-length", length)]
    return Request({"type": "http", "method": "POST", "headers": headers, "app": app})


class Columns(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    step: list[int] = []


class Measured(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    measurements: Columns = Columns()
    value: float | None = None
    count: int = Field(0, le=2**63 - 1)
    text: str = ""


@pytest.fixture
def app() -> FastAPI:
    app = FastAPI()
    app.state.settings = Settings(max_body_bytes=10_000, max_inflated_body_bytes=50_000)
    register_error_handlers(app)

    @app.post("/length")
    async def length(request: Request) -> int:
        return len(await read_body(request))

    @app.post("/parsed")
    async def parsed(request: Request) -> str:
        return parse(Measured, await read_body(request)).text

    return app


@pytest.fixture
async def http(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as http:
        yield http


class TestReading:
    async def test_a_plain_body_comes_through_whole(self, http: httpx.AsyncClient) -> None:
        answer = await http.post("/length", content=b"x" * 10_000, headers=JSON)

        assert answer.json() == 10_000

    async def test_a_gzip_body_is_inflated(self, http: httpx.AsyncClient) -> None:
        answer = await http.post("/length", content=gzip.compress(b"x" * 50_000), headers=GZIP)

        assert answer.json() == 50_000

    async def test_an_announced_length_over_the_limit_is_413_and_names_the_limit(self, http: httpx.AsyncClient) -> None:
        answer = await http.post("/length", content=b"x" * 10_001, headers=JSON)

        assert_problem(answer, 413, "body-too-large")
        assert "10000" in answer.json()["detail"]

    async def test_a_streamed_body_over_the_limit_is_413_without_a_length(self, http: httpx.AsyncClient) -> None:
        async def chunks() -> AsyncIterator[bytes]:
            for _ in range(11):
                yield b"x" * 1_000

        answer = await http.post("/length", content=chunks(), headers=JSON)

        assert_problem(answer, 413, "body-too-large")

    @pytest.mark.parametrize("size", [50_001, 5_000_000])
    async def test_a_bomb_is_413_and_names_the_inflated_limit(self, http: httpx.AsyncClient, size: int) -> None:
        answer = await http.post("/length", content=gzip.compress(b"x" * size), headers=GZIP)

        assert_problem(answer, 413, "body-too-large")
        assert "50000" in answer.json()["detail"]

    async def test_a_bomb_is_refused_long_before_the_limit(self, http: httpx.AsyncClient, app: FastAPI) -> None:
        app.state.settings = Settings()
        answer = await http.post("/length", content=gzip.compress(b"x" * 8_000_000), headers=GZIP)

        assert_problem(answer, 413, "body-too-large")
        assert "524288 bytes: send smaller batches, or without gzip" in answer.json()["detail"]

    @pytest.mark.slow
    @pytest.mark.thorough
    async def test_numbers_that_pack_well_are_inflated_up_to_the_limit(
        self, http: httpx.AsyncClient, app: FastAPI
    ) -> None:
        app.state.settings = Settings()
        numbers = json.dumps([0.001 * number for number in range(900_000)]).encode()[: 16 << 20]

        answer = await http.post("/length", content=gzip.compress(numbers), headers=GZIP)

        assert answer.json() == len(numbers) > 8 << 20

    @pytest.mark.parametrize(
        "packed",
        [
            pytest.param(gzip.compress(b"a") + gzip.compress(b"b"), id="two members"),
            pytest.param(gzip.compress(b"a") + b"\0" * 8, id="padded"),
            pytest.param(gzip.compress(b"a" * 100)[:-4], id="cut short"),
            pytest.param(gzip.compress(b"a")[:-8] + b"\1" * 8, id="wrong checksum"),
            pytest.param(zlib.compress(b"a"), id="zlib, not gzip"),
            pytest.param(b"", id="empty"),
            pytest.param(b"\x1f\x8b", id="two bytes"),
        ],
    )
    async def test_damaged_gzip_is_422(self, http: httpx.AsyncClient, packed: bytes) -> None:
        answer = await http.post("/length", content=packed, headers=GZIP)

        assert_problem(answer, 422, "invalid-input", field="body")

    async def test_a_second_member_in_a_later_chunk_is_422(self, http: httpx.AsyncClient) -> None:
        async def chunks() -> AsyncIterator[bytes]:
            yield gzip.compress(b"a")
            yield gzip.compress(b"b")

        answer = await http.post("/length", content=chunks(), headers=GZIP)

        assert_problem(answer, 422, "invalid-input", field="body")

    @pytest.mark.parametrize("encoding", ["gzip, gzip", "br", "deflate", "zstd", "gzip,identity", "x-gzip"])
    async def test_other_encodings_are_415(self, http: httpx.AsyncClient, encoding: str) -> None:
        answer = await http.post("/length", content=b"{}", headers={**JSON, "Content-Encoding": encoding})

        assert_problem(answer, 415, "media-type-not-supported")
        assert encoding in answer.json()["detail"]

    @pytest.mark.parametrize(
        "content_type", ["text/plain", "application/x-www-form-urlencoded", "", "application/jsonl"]
    )
    async def test_other_content_types_are_415(self, http: httpx.AsyncClient, content_type: str) -> None:
        answer = await http.post("/length", content=b"{}", headers={"Content-Type": content_type})

        assert_problem(answer, 415, "media-type-not-supported")

    @pytest.mark.parametrize("length", [b"-1", b"abc", b"\xd9\xa3", b"1_0"])
    async def test_a_length_that_is_no_number_is_refused(self, app: FastAPI, length: bytes) -> None:
        request = request_with_length(app, length)

        with pytest.raises(InvalidInput, match="Content-Length"):
            await read_body(request)

    async def test_an_endless_length_is_too_large(self, app: FastAPI) -> None:
        request = request_with_length(app, b"1" * 5_000)

        with pytest.raises(BodyTooLarge, match="10000"):
            await read_body(request)


class TestParsing:
    @pytest.mark.parametrize(
        ("raw", "field"),
        [
            pytest.param(b'{"measurements": {"step": [0, 1, 2, "x"]}}', "measurements.step[3]", id="text for a number"),
            pytest.param(b'{"measurements": {"step": [true]}}', "measurements.step[0]", id="boolean for a number"),
            pytest.param(b'{"measurements": {"step": [1.5]}}', "measurements.step[0]", id="fraction for an integer"),
            pytest.param(b'{"measurements": {"step": [NaN]}}', "measurements.step[0]", id="NaN for an integer"),
            pytest.param(b'{"measurements": {"stepp": []}}', "measurements.stepp", id="unknown field"),
            pytest.param(b'{"value": NaN}', "value", id="NaN token"),
            pytest.param(b'{"value": -Infinity}', "value", id="infinity token"),
            pytest.param(b'{"value": 1e999}', "value", id="number that overflows to infinity"),
            pytest.param(b'{"count": 9223372036854775808}', "count", id="int64 overflow"),
            pytest.param(b'{"count": 1' + b"0" * 5_000 + b"}", "body", id="integer of 5000 digits"),
            pytest.param(b'{"text": "\\ud800"}', "body", id="lone surrogate"),
            pytest.param(b'{"text": "\xff"}', "body", id="invalid UTF-8"),
            pytest.param(b'{"text": ' + b"[" * 4_000 + b"]" * 4_000 + b"}", "body", id="deep nesting"),
            pytest.param(b'{"\\u0000": 1}', "'\\x00'", id="NUL in a field name"),
            pytest.param(b'{"' + b"k" * 5_000 + b'": 1}', None, id="very long field name"),
            pytest.param(b"", "body", id="nothing"),
            pytest.param(b"[]", "body", id="a list"),
            pytest.param(b"null", "body", id="null"),
            pytest.param(b'{"text": "a"} {"text": "b"}', "body", id="two documents"),
            pytest.param(b'\xef\xbb\xbf{"text": "a"}', "body", id="byte order mark"),
        ],
    )
    async def test_bad_json_names_the_field(self, http: httpx.AsyncClient, raw: bytes, field: str | None) -> None:
        answer = await http.post("/parsed", content=raw, headers=JSON)

        assert_problem(answer, 422, "invalid-input", field=field)

    async def test_the_last_of_duplicate_keys_counts(self, http: httpx.AsyncClient) -> None:
        answer = await http.post("/parsed", content=b'{"text": "a", "text": "b"}', headers=JSON)

        assert answer.json() == "b"

    async def test_the_refused_value_is_shown_printable_and_short(self, http: httpx.AsyncClient) -> None:
        answer = await http.post("/parsed", content=b'{"count": "\\u0000\\u202e' + b"x" * 5_000 + b'"}', headers=JSON)

        value = answer.json()["errors"][0]["value"]
        assert value.isprintable()
        assert len(value) <= 80

    async def test_at_most_twenty_problems_are_named_and_all_are_counted(self, http: httpx.AsyncClient) -> None:
        columns = ",".join(["true"] * 500)

        answer = await http.post("/parsed", content=f'{{"measurements": {{"step": [{columns}]}}}}', headers=JSON)

        assert len(answer.json()["errors"]) == 20
        assert "499 more" in answer.json()["detail"]

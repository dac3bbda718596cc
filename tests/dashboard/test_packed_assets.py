"""What pages load is found and packed once, and otherwise answered as it would be without that."""

import random
import re

import httpx
import pytest
from fastapi import FastAPI
from starlette.responses import Response, StreamingResponse

from noisescale_dashboard.serving.packed_assets import PackedAssets

SCRIPT, STYLES = "/assets/a.js", "/assets/a.css?m=17.5"
PACKED = {"accept-encoding": "gzip"}
CONTENT = b"one; " * 200
FOR_GOOD = "public, max-age=31536000, immutable"


class Within:
    """An application that counts what reaches it."""

    def __init__(self, answer: Response | None = None) -> None:
        self.asked: list[str] = []
        self.answer = answer or Response(CONTENT, headers={"etag": '"1"'}, media_type="text/javascript")

    async def __call__(self, scope, receive, send):
        self.asked.append(scope["path"])
        await self.answer(scope, receive, send)


def client_of(within: Within) -> httpx.AsyncClient:
    app = PackedAssets(within, addresses=[SCRIPT, STYLES])
    return httpx.AsyncClient(base_url="http://dashboard", transport=httpx.ASGITransport(app=app), headers=PACKED)


async def test_an_asset_is_asked_for_and_packed_once():
    within = Within()
    client = client_of(within)

    first, second = await client.get(SCRIPT), await client.get(SCRIPT)

    assert within.asked == [SCRIPT]
    assert first.content == second.content == CONTENT
    assert first.headers == second.headers
    assert first.headers["content-encoding"] == "gzip"
    assert first.headers.get_list("vary") == ["Accept-Encoding"]
    assert int(first.headers["content-length"]) < 100


async def test_packed_bytes_are_not_told_apart_from_others_by_a_strong_tag():
    client = client_of(Within())

    packed = await client.get(SCRIPT)
    plain = await client.get(SCRIPT, headers={"accept-encoding": "identity"})

    assert (packed.headers["etag"], plain.headers["etag"]) == ('W/"1"', '"1"')


@pytest.mark.parametrize(
    ("method", "address", "headers"),
    [
        ("HEAD", SCRIPT, {}),
        ("POST", SCRIPT, {}),
        ("GET", SCRIPT, {"accept-encoding": "identity"}),
        ("GET", SCRIPT, {"accept-encoding": "br, gzip;q=0"}),
        ("GET", SCRIPT, {"range": "bytes=0-9"}),
        ("GET", SCRIPT, {"if-none-match": '"a"'}),
        ("GET", SCRIPT, {"if-modified-since": "Mon, 23 Nov 2026 10:00:00 GMT"}),
        ("GET", "/api/v1/runs", {}),
        ("GET", "/assets/b.js", {}),
        ("GET", f"{SCRIPT}?m=17.5", {}),
        ("GET", "/assets/a.css", {}),
    ],
)
async def test_other_requests_pass_each_time(method, address, headers):
    within = Within()
    client = client_of(within)

    for _ in range(2):
        answer = await client.request(method, address, headers=headers)

    assert within.asked == [address.partition("?")[0]] * 2
    assert "content-encoding" not in answer.headers
    assert "cache-control" not in answer.headers


async def test_a_file_by_its_time_is_kept_for_good_by_a_browser_and_by_the_time_of_another_process_not():
    client = client_of(Within())

    own, changed, newer = [
        await client.get(address, headers=headers)
        for address, headers in ((STYLES, {}), (STYLES, {"accept-encoding": "identity"}), ("/assets/a.css?m=18.5", {}))
    ]

    assert (own.headers["cache-control"], changed.headers["cache-control"]) == (FOR_GOOD, FOR_GOOD)
    assert "cache-control" not in newer.headers


@pytest.mark.parametrize(
    "answer",
    [
        Response(CONTENT, status_code=404),
        Response(CONTENT, headers={"content-encoding": "compress"}),
        Response(CONTENT, headers={"content-length": "2000"}),
    ],
    ids=["missing", "packed already", "cut short"],
)
async def test_what_is_no_whole_plain_asset_goes_out_as_it_is_and_is_not_kept(answer):
    within = Within(answer)
    client = client_of(within)

    for _ in range(2):
        found = await client.get(SCRIPT, headers={"accept-encoding": "gzip, br"})

    assert within.asked == [SCRIPT, SCRIPT]
    assert (found.status_code, found.headers["content-length"]) == (
        answer.status_code, answer.headers["content-length"],
    )  # fmt: skip


async def test_an_answer_that_breaks_off_is_not_kept():
    async def broken():
        yield CONTENT
        raise OSError("the disk is gone")

    within = Within(StreamingResponse(broken()))
    client = client_of(within)

    with pytest.raises(OSError, match="the disk is gone"):
        await client.get(SCRIPT)
    within.answer = Response(CONTENT)

    assert (await client.get(SCRIPT)).content == CONTENT


async def test_a_font_that_packing_makes_no_smaller_goes_out_as_it_is():
    font = random.Random(1).randbytes(2000)
    client = client_of(Within(Response(font)))

    answer = await client.get(SCRIPT)

    assert answer.content == font
    assert "content-encoding" not in answer.headers


async def test_every_file_that_a_page_names_is_kept(client: httpx.AsyncClient, dashboard: FastAPI):
    named = re.findall(r'(?:src|href)="(/[^"]+\.(?:js|css|woff2|svg)[^"]*)"', (await client.get("/runs")).text)
    packed = dashboard.middleware_stack
    while not isinstance(packed, PackedAssets):
        packed = packed.app

    answers = {address: await client.get(address, headers=PACKED) for address in named}

    assert len(named) > 50
    assert {address for address, answer in answers.items() if answer.status_code != 200} == set()
    assert set(named) <= set(packed._kept)
    scripts = [answer for address, answer in answers.items() if len(answer.content) > 1000 and ".js" in address]
    assert {answer.headers["content-encoding"] for answer in scripts} == {"gzip"}
    assert {", ".join(answer.headers.get_list("vary")) for answer in answers.values()} == {"Accept-Encoding"}


async def test_the_pages_own_styles_are_the_same_packed_and_unpacked(client: httpx.AsyncClient):
    named = re.search(r'href="(/assets/10-base.css[^"]*)"', (await client.get("/runs")).text)
    assert named

    packed = await client.get(named[1], headers=PACKED)
    plain = await client.get(named[1], headers={"accept-encoding": "identity"})
    unchanged = await client.get(named[1], headers=PACKED | {"if-none-match": packed.headers["etag"]})

    assert packed.content == plain.content
    assert packed.headers["etag"] == f"W/{plain.headers['etag']}"
    assert unchanged.status_code == 304
    assert {answer.headers["cache-control"] for answer in (packed, plain, unchanged)} == {FOR_GOOD}

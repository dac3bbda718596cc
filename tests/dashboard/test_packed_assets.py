"""Scripts and styles of the pages: found and packed once, and otherwise answered as they would be without that."""

import random

import httpx
import pytest
from starlette.responses import Response

from noisescale_dashboard.serving import packed_assets
from noisescale_dashboard.serving.packed_assets import PackedAssets

STYLES = "/assets/10-base.css"
SCRIPT = "/assets/a.js"
PACKED = {"accept-encoding": "gzip"}


class Within:
    """An application that counts what reaches it."""

    def __init__(self, content: bytes = b"one; " * 200, status: int = 200, **headers: str) -> None:
        self.asked: list[str] = []
        self.answer = Response(content, status, headers, "text/javascript")

    async def __call__(self, scope, receive, send):
        self.asked.append(scope["path"])
        await self.answer(scope, receive, send)


def client_of(within: Within) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=PackedAssets(within))
    return httpx.AsyncClient(base_url="http://dashboard", transport=transport, headers=PACKED)


async def test_an_asset_is_asked_for_and_packed_once():
    within = Within()
    client = client_of(within)

    first, second = await client.get(SCRIPT), await client.get(SCRIPT)

    assert within.asked == [SCRIPT]
    assert first.content == second.content == b"one; " * 200
    assert first.headers == second.headers
    assert first.headers["content-encoding"] == "gzip"
    assert first.headers["vary"] == "Accept-Encoding"
    assert int(first.headers["content-length"]) < 100


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("HEAD", SCRIPT, {}),
        ("GET", SCRIPT, {"accept-encoding": "identity"}),
        ("GET", SCRIPT, {"range": "bytes=0-9"}),
        ("GET", SCRIPT, {"if-none-match": '"a"'}),
        ("GET", SCRIPT, {"if-modified-since": "Mon, 23 Nov 2026 10:00:00 GMT"}),
        ("GET", "/api/v1/runs", {}),
        ("GET", "/_dash-layout", {}),
    ],
)
async def test_other_requests_pass_each_time(method, path, headers):
    within = Within()
    client = client_of(within)

    for _ in range(2):
        answer = await client.request(method, path, headers=headers)

    assert within.asked == [path, path]
    assert "content-encoding" not in answer.headers


@pytest.mark.parametrize("within", [Within(status=404), Within(**{"content-encoding": "br"})])
async def test_what_is_missing_or_packed_already_is_not_kept(within):
    client = client_of(within)

    for _ in range(2):
        answer = await client.get(SCRIPT, headers={"accept-encoding": "gzip, br"})

    assert within.asked == [SCRIPT, SCRIPT]
    assert answer.status_code == within.answer.status_code


async def test_a_font_that_packing_makes_no_smaller_goes_out_as_it_is():
    font = random.Random(1).randbytes(2000)
    client = client_of(Within(font))

    answer = await client.get("/assets/fonts/a.woff2")

    assert answer.content == font
    assert "content-encoding" not in answer.headers


async def test_an_address_with_the_time_of_its_file_may_be_kept_for_good_by_a_browser_and_no_other():
    client = client_of(Within())

    answers = [await client.get(f"{SCRIPT}{query}") for query in ("?m=17.5", "", "?m=18.5", "?n=1")]

    assert [answer.headers.get("cache-control") for answer in answers] == [
        "public, max-age=31536000, immutable", None, "public, max-age=31536000, immutable", None,
    ]  # fmt: skip


async def test_addresses_that_nobody_has_thought_of_do_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(packed_assets, "MOST_BYTES", 100)
    within = Within()
    client = client_of(within)

    for _ in range(2):
        for index in range(5):
            await client.get(f"/assets/{index}.js")

    assert 5 < len(within.asked) < 10


async def test_the_pages_own_styles_come_packed_and_the_same_as_unpacked(client: httpx.AsyncClient):
    packed = [await client.get(STYLES, headers=PACKED) for _ in range(2)]
    plain = await client.get(STYLES, headers={"accept-encoding": "identity"})

    assert [one.headers["content-encoding"] for one in packed] == ["gzip", "gzip"]
    assert packed[0].content == packed[1].content == plain.content
    assert packed[0].headers["etag"] == plain.headers["etag"]

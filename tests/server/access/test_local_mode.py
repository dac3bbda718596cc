"""A server for one user: the token that it printed, its cookie, and who else is kept out."""

import hashlib
import os
import re
from collections.abc import AsyncIterator, Callable
from urllib.parse import quote

import httpx
import pytest
from fastapi import FastAPI

from app_in_process import AS_LOCAL_USER, LOCAL_TOKEN, client_of, running_app
from noisescale_server.process import local_access
from noisescale_server.process.settings import Settings
from problems import assert_problem


@pytest.fixture(scope="module")
async def app(new_database: Callable[[], str]) -> AsyncIterator[FastAPI]:
    async with running_app(new_database()) as created:
        yield created


@pytest.fixture
async def stranger(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody who brings nothing."""
    async with client_of(app, {}) as opened:
        yield opened


@pytest.fixture
async def browser(stranger: httpx.AsyncClient) -> httpx.AsyncClient:
    """Somebody whose browser has opened the printed link."""
    answer = await stranger.get("/login", params={"token": LOCAL_TOKEN})
    assert answer.status_code == 303
    return stranger


SAME_PAGE = {"Origin": "http://127.0.0.1"}


class TestTheLink:
    async def test_it_becomes_a_cookie_that_scripts_and_other_sites_cannot_use(
        self, stranger: httpx.AsyncClient
    ) -> None:
        answer = await stranger.get("/login", params={"token": LOCAL_TOKEN, "next": "/runs?q=a"})

        cookie = answer.headers["set-cookie"]
        assert answer.headers["location"] == "/runs?q=a"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert cookie.startswith("ns_8321=")
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert "Secure" not in cookie
        assert LOCAL_TOKEN not in cookie
        assert (await stranger.get("/api/v1/runs")).status_code == 200

    async def test_one_of_an_earlier_start_lets_nobody_in_and_says_so(self, stranger: httpx.AsyncClient) -> None:
        answer = await stranger.get("/login", params={"token": "ns_a_of_yesterday"})

        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers
        assert "earlier start" in answer.text

    async def test_without_it_there_is_no_form_to_fill_in(self, stranger: httpx.AsyncClient) -> None:
        page = await stranger.get("/login")

        assert page.status_code == 200
        assert not re.search("<form|<input|password", page.text)
        assert "noisescale up" in page.text

    @pytest.mark.parametrize(
        "onwards",
        ["//elsewhere.example", "https://elsewhere.example/", "/\\elsewhere", "\t//x", "javascript:alert(1)", "runs"],
    )
    async def test_it_leads_to_pages_of_this_server_only(self, stranger: httpx.AsyncClient, onwards: str) -> None:
        answer = await stranger.get("/login", params={"token": LOCAL_TOKEN, "next": onwards})

        assert answer.headers["location"] == "/"


async def test_a_page_asked_for_without_login_leads_to_it_and_back(stranger: httpx.AsyncClient) -> None:
    answer = await stranger.get("/docs?a=1", headers={"Accept": "text/html,*/*"})

    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=" + quote("/docs?a=1")


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "https://evil.example"},
    ],
    ids=str,
)
async def test_another_sites_page_changes_nothing_though_the_cookie_comes_along(
    browser: httpx.AsyncClient, method: str, headers: dict[str, str]
) -> None:
    answer = await browser.request(method, "/api/v1/runs", json={"project": "p"}, headers=headers)

    assert_problem(answer, 403, "not-allowed")


@pytest.mark.parametrize("headers", [SAME_PAGE, {"Sec-Fetch-Site": "same-origin"}], ids=str)
async def test_a_page_of_this_server_may(browser: httpx.AsyncClient, headers: dict[str, str]) -> None:
    answer = await browser.post("/api/v1/runs", json={"project": "p"}, headers=headers)

    assert answer.status_code == 201


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
async def test_what_a_form_can_send_is_not_taken_with_a_cookie(browser: httpx.AsyncClient, media_type: str) -> None:
    answer = await browser.post(
        "/_dash-update-component", content=b'{"a":1}', headers={**SAME_PAGE, "Content-Type": media_type}
    )

    assert_problem(answer, 403, "not-allowed")


async def test_a_key_needs_no_origin(stranger: httpx.AsyncClient) -> None:
    answer = await stranger.post("/api/v1/runs", json={"project": "p"}, headers=AS_LOCAL_USER)

    assert answer.status_code == 201


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8321", "0.0.0.0", "127.0.0.2", "[::]", ""],
)
async def test_another_hosts_name_is_refused_also_with_the_key(stranger: httpx.AsyncClient, host: str) -> None:
    """A name that was pointed here makes a browser send this server's cookie along with a foreign page's request."""
    answer = await stranger.get("/api/v1/runs", headers={**AS_LOCAL_USER, "Host": host})

    assert_problem(answer, 403, "not-allowed")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "LOCALHOST:8321", "127.0.0.1:9000"])
async def test_names_of_this_machine_are_taken_with_any_port(stranger: httpx.AsyncClient, host: str) -> None:
    """Another port is another end of an ssh tunnel."""
    answer = await stranger.get("/api/v1/runs", headers={**AS_LOCAL_USER, "Host": host})

    assert answer.status_code == 200


@pytest.mark.parametrize("header", ["X-Forwarded-For", "X-Forwarded-Proto", "x-forwarded-host", "Forwarded"])
async def test_what_a_proxy_passes_on_is_refused(stranger: httpx.AsyncClient, header: str) -> None:
    answer = await stranger.get("/api/v1/runs", headers={**AS_LOCAL_USER, header: "for=1.2.3.4"})

    assert_problem(answer, 403, "not-allowed")
    assert "NOISESCALE_AUTH=required" in answer.json()["detail"]


async def test_logging_out_ends_it_in_this_browser(browser: httpx.AsyncClient) -> None:
    await browser.post("/logout", headers=SAME_PAGE)

    assert (await browser.get("/api/v1/runs")).status_code == 401


@pytest.mark.slow
async def test_every_answer_keeps_browsers_from_guessing_framing_and_storing(stranger: httpx.AsyncClient) -> None:
    for path in ("/api/v1/runs", "/livez", "/login", "/nothing", "/openapi"):
        headers = (await stranger.get(path, headers=AS_LOCAL_USER)).headers

        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers
    assert (await stranger.get("/api/v1/runs", headers=AS_LOCAL_USER)).headers["cache-control"] == "no-store"


async def test_without_a_token_nobody_is_let_in(new_database: Callable[[], str]) -> None:
    async with running_app(new_database(), local_token=None) as app, client_of(app, {}) as client:
        empty = hashlib.sha256(b"").hexdigest()
        answers = [
            await client.get("/api/v1/runs"),
            await client.get("/api/v1/runs", headers={"Authorization": "Bearer "}),
            await client.get("/api/v1/runs", headers={"Cookie": f"ns_8321={empty}"}),
            await client.get("/api/v1/runs", headers={"Cookie": "ns_8321="}),
        ]

    assert {answer.status_code for answer in answers} == {401}


class TestSecretFile:
    def test_it_is_made_once_for_this_user_only(self, tmp_path) -> None:
        environment = {"NOISESCALE_DIR": str(tmp_path / "state")}

        first = local_access.complete(Settings(), environment)
        second = local_access.complete(Settings(), environment)

        file = tmp_path / "state" / "secret"
        assert first.secret_key == second.secret_key
        assert first.local_token != second.local_token
        assert os.stat(file).st_mode & 0o777 == 0o600
        assert len(first.secret_key.get_secret_value()) >= 32

    def test_a_teams_settings_are_left_alone(self, tmp_path) -> None:
        settings = Settings(auth="required")

        assert local_access.complete(settings, {"NOISESCALE_DIR": str(tmp_path)}) is settings
        assert list(tmp_path.iterdir()) == []

"""The gate and what it knows of visitors: what is answered without a name, where browsers are sent, what is noted."""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import select, update

from keys_of_tests import bearer
from noisescale_server.api.access.gate import Gate
from noisescale_server.storage.access.tables import ApiKey
from principals import OURS, PUBLIC_URL, Team, new_key, running_team
from problems import assert_problem

HTML = {"Accept": "text/html,application/xhtml+xml"}


@pytest.fixture(scope="module")
async def team(new_database: Callable[[], str]) -> AsyncIterator[Team]:
    async with running_team(new_database()) as opened:
        yield opened


def visitor(app: FastAPI, headers: dict[str, str] | None = None) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False, client=("192.0.2.7", 1))
    return httpx.AsyncClient(transport=transport, base_url=PUBLIC_URL, headers=headers or {})


class TestWithoutAName:
    @pytest.mark.parametrize("path", ["/livez", "/readyz", "/login", "/assets/mark.svg"])
    async def test_what_is_public_is_answered(self, team: Team, path: str) -> None:
        async with visitor(team.app) as browser:
            assert (await browser.get(path)).status_code == 200

    @pytest.mark.parametrize(
        "path", ["/livez/", "/logins", "/assets", "/_dash-layout", "/api/v1/me", "/docs", "/docs/", "/openapi"]
    )
    async def test_nothing_else_is(self, team: Team, path: str) -> None:
        async with visitor(team.app) as browser:
            assert_problem(await browser.get(path), 401, "not-authenticated")

    @pytest.mark.parametrize("method", ["GET", "HEAD"])
    async def test_a_person_who_waits_for_a_page_is_sent_to_the_login_and_comes_back(
        self, team: Team, method: str
    ) -> None:
        async with visitor(team.app, HTML) as browser:
            page = await browser.request(method, "/runs")
            asked = await browser.request(method, "/runs?q=a%20b&sort=name")

        assert (page.status_code, page.headers["location"]) == (303, "/login?next=/runs")
        assert asked.headers["location"] == "/login?next=/runs%3Fq%3Da%2520b%26sort%3Dname"

    @pytest.mark.parametrize(
        ("method", "path"),
        [("POST", "/runs"), ("GET", "/api/v1/runs"), ("GET", "/_dash-layout"), ("DELETE", "/runs")],
    )
    async def test_a_program_is_told_that_it_is_not_known(self, team: Team, method: str, path: str) -> None:
        async with visitor(team.app, HTML) as browser:
            answer = await browser.request(method, path)

        assert answer.status_code == 401

    async def test_a_socket_is_closed_before_it_opens(self, team: Team) -> None:
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "websocket.connect"}

        async def send(message: Any) -> None:
            sent.append(message)

        gate = Gate(team.app, team.app.state)
        await gate({"type": "websocket", "path": "/_dash-ws-callback", "headers": []}, receive, send)

        assert sent == [{"type": "websocket.close", "code": 1008}]


class TestHeadersOfAnswers:
    @pytest.mark.parametrize("path", ["/livez", "/api/v1/runs", "/runs", "/login"])
    async def test_browsers_are_kept_from_guessing_framing_and_telling(self, team: Team, path: str) -> None:
        async with visitor(team.app) as browser:
            headers = (await browser.get(path)).headers

        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["referrer-policy"] in ("same-origin", "no-referrer")

    async def test_answers_of_the_api_are_not_stored(self, team: Team) -> None:
        async with team.client("read key") as client:
            api = await client.get("/api/v1/me")
            public = await client.get("/livez")

        assert api.headers["cache-control"] == "no-store"
        assert public.headers.get("cache-control") != "no-store"


class TestAKey:
    @pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
    async def test_it_is_read_in_any_case_and_with_spaces(self, team: Team, scheme: str) -> None:
        key = await new_key(team.app, "read", OURS)
        async with visitor(team.app, {"Authorization": f"{scheme}  {key} "}) as client:
            assert (await client.get("/api/v1/runs")).status_code == 200

    async def test_it_counts_before_a_cookie(self, team: Team) -> None:
        """A wrong key with a right cookie is nobody: which of the two was meant cannot be known."""
        async with team.client("administrator") as client:
            wrong = await client.get("/api/v1/runs", headers=bearer("ns_r_wrong"))
            basic = await client.get("/api/v1/runs", headers={"Authorization": "Basic dTpw"})

        assert (wrong.status_code, basic.status_code) == (401, 401)

    @pytest.mark.parametrize(("seconds", "is_noted"), [(50, False), (70, True)])
    async def test_its_use_is_noted_once_a_minute_with_the_address(
        self, team: Team, seconds: int, is_noted: bool
    ) -> None:
        key = await new_key(team.app, "read", OURS)
        mine = ApiKey.id == key.split("_")[2]
        earlier = datetime.now(UTC) - timedelta(seconds=seconds)
        async with team.app.state.sessions.begin() as session:
            await session.execute(update(ApiKey).where(mine).values(last_used_at=earlier, last_used_from="before"))

        async with visitor(team.app, bearer(key)) as client:
            await client.get("/api/v1/runs")

        async with team.app.state.sessions() as session:
            row = (await session.execute(select(ApiKey.last_used_at, ApiKey.last_used_from).where(mine))).one()
        assert (row.last_used_from, row.last_used_at > earlier) == (
            ("192.0.2.7", True) if is_noted else ("before", False)
        )

    async def test_its_first_use_is_noted(self, team: Team) -> None:
        key = await new_key(team.app, "read", OURS)
        async with visitor(team.app, bearer(key)) as client:
            await client.get("/api/v1/runs")

        async with team.app.state.sessions() as session:
            noted = await session.scalar(select(ApiKey.last_used_at).where(ApiKey.id == key.split("_")[2]))
        assert noted is not None
        assert abs(datetime.now(UTC) - noted) < timedelta(minutes=1)


class TestACookie:
    async def test_a_change_comes_from_a_page_of_this_server(self, team: Team) -> None:
        async with team.client("admin") as admin:
            cookie = {"Cookie": admin.headers["Cookie"]}
        async with visitor(team.app, cookie) as browser:
            read = await browser.get("/api/v1/me")
            other = await browser.post("/api/v1/keys", json={}, headers={"Origin": "https://evil.example"})
            none = await browser.post("/api/v1/keys", json={})

        assert read.status_code == 200
        assert_problem(other, 403, "not-allowed")
        assert_problem(none, 403, "not-allowed")

    async def test_a_wrong_one_is_nobodys(self, team: Team) -> None:
        for cookie in ("x", "", "a" * 43):
            async with visitor(team.app, {"Cookie": f"__Host-noisescale={cookie}"}) as browser:
                assert (await browser.get("/api/v1/me")).status_code == 401


async def test_a_write_key_sees_no_page(team: Team) -> None:
    async with team.client("write key") as client:
        assert_problem(await client.get("/runs"), 403, "not-allowed")
        assert (await client.get("/api/v1/me")).status_code == 200


async def test_a_body_to_a_page_says_how_long_it_is(team: Team) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"{}"

    async with team.client("administrator") as client:
        answer = await client.post("/_dash-update-component", content=pieces())

    assert_problem(answer, 422, "invalid-input", field="Content-Length")

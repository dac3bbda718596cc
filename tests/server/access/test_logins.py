"""People's logins: one-time links, a trusted proxy's header, and a real OpenID Connect provider, run as a process."""

import re
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import select, text, update

from app_in_process import running_app
from noisescale_server.services.access import sessions
from noisescale_server.services.access.access import LOCAL
from noisescale_server.storage.access.tables import WebSession
from principals import COOKIE, OURS, PUBLIC_URL, SECRET, Team, as_browser, log_in, new_person, new_session, running_team
from problems import assert_problem

pytestmark = pytest.mark.processes

OWN_PAGE = {"Origin": PUBLIC_URL}
VIEWING = ["identity", "read", "cursor"]


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    """The issuer of an OpenID Connect provider with one known user."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = str(Path(sys.executable).with_name("oidc-provider-mock"))
    claims = '{"sub": "ada", "name": "Ada Lovelace", "email": "ada@example.com"}'
    process = subprocess.Popen(
        [program, "--port", str(port), "--require-nonce", "true", "--user-claims", claims],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    issuer = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 60
    while not is_up(issuer):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    yield issuer
    process.terminate()
    process.wait(timeout=20)


def is_up(issuer: str) -> bool:
    try:
        return httpx.get(f"{issuer}/.well-known/openid-configuration", timeout=5).is_success
    except httpx.HTTPError:
        return False


@pytest.fixture(scope="module")
async def team(new_database: Callable[[], str], provider: str) -> AsyncIterator[Team]:
    async with httpx.AsyncClient() as outside:
        issuer = (await outside.get(f"{provider}/.well-known/openid-configuration")).json()["issuer"]
    settings = {
        "oidc_issuer": issuer,
        "oidc_client_id": "noisescale",
        "oidc_client_secret": "between us",
        "proxy_user_header": "X-Remote-User",
        "trusted_proxies": ["10.1.0.0/16"],
    }
    async with running_team(new_database(), **settings) as opened:
        yield opened


def visitor(app: FastAPI, address: str = "192.0.2.7") -> httpx.AsyncClient:
    """A browser that nobody knows, at this address."""
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False, client=(address, 1))
    return httpx.AsyncClient(transport=transport, base_url=PUBLIC_URL)


class TestLinks:
    async def test_a_link_logs_in_once_and_by_a_button(self, team: Team) -> None:
        person_id = await new_person(team.app, "Grace", {OURS: "viewer"})
        async with team.client("administrator") as admin:
            url = (await admin.post(f"/api/v1/people/{person_id}/login-links")).json()["url"]
        async with visitor(team.app) as browser:
            page = await browser.get(url)
            secret = parse_qs(urlsplit(url).query)["link"][0]
            first = await browser.post("/login", data={"link": secret, "next": "/runs"}, headers=OWN_PAGE)
            me = (await browser.get("/api/v1/me")).json()
            second = await browser.post("/login", data={"link": secret}, headers=OWN_PAGE)

        assert page.status_code == 200
        assert "set-cookie" not in page.headers
        assert secret in page.text
        assert (first.status_code, first.headers["location"]) == (303, "/runs")
        assert (me["name"], me["projects"]) == ("Grace", [{"project": OURS, "rights": VIEWING}])
        assert second.status_code == 403
        assert "Ask for another one" in second.text

    async def test_a_link_is_over_after_its_hour(self, team: Team) -> None:
        person_id = await new_person(team.app, "Late", {})
        async with team.app.state.sessions.begin() as session:
            link = await sessions.new_link(session, LOCAL, person_id, now=datetime.now(UTC) - timedelta(minutes=61))
        async with visitor(team.app) as browser:
            answer = await browser.post("/login", data={"link": link.text}, headers=OWN_PAGE)

        assert answer.status_code == 403

    async def test_another_sites_form_logs_nobody_in(self, team: Team) -> None:
        """Else somebody could be made to work in another's account."""
        async with visitor(team.app) as browser:
            answer = await browser.post("/login", data={"link": "x"}, headers={"Origin": "https://evil.example"})

        assert_problem(answer, 403, "not-allowed")

    async def test_a_project_admin_makes_no_link_for_others(self, team: Team) -> None:
        person_id = await new_person(team.app, "Powerful", {}, is_administrator=True)
        async with team.client("admin") as admin:
            answer = await admin.post(f"/api/v1/people/{person_id}/login-links")

        assert_problem(answer, 403, "not-allowed")


class TestProxyHeader:
    async def test_a_trusted_proxy_says_who_it_is(self, team: Team) -> None:
        async with visitor(team.app, "10.1.2.3") as browser:
            entered = await browser.get("/login?next=/sweeps", headers={"X-Remote-User": "lin@example.com"})
            me = (await browser.get("/api/v1/me")).json()

        assert (entered.status_code, entered.headers["location"]) == (303, "/sweeps")
        assert (me["name"], me["projects"], me["everywhere"]) == ("lin@example.com", [], [])

    @pytest.mark.parametrize("address", ["10.2.0.1", "127.0.0.1", "192.0.2.7"])
    async def test_nobody_else_is_believed(self, team: Team, address: str) -> None:
        headers = {"X-Remote-User": "root", "X-Forwarded-For": "10.1.2.3"}
        async with visitor(team.app, address) as browser:
            answer = await browser.get("/login", headers=headers)
            direct = await browser.get("/api/v1/runs", headers=headers)

        assert answer.status_code == 200
        assert "set-cookie" not in answer.headers
        assert direct.status_code == 401

    async def test_who_is_disabled_is_not_let_in_by_it(self, team: Team) -> None:
        headers = {"X-Remote-User": "leaver@example.com"}
        async with visitor(team.app, "10.1.2.3") as browser, team.client("administrator") as admin:
            first = await browser.get("/login", headers=headers)
            person_id = (await browser.get("/api/v1/me")).json()["person_id"]
            await admin.patch(f"/api/v1/people/{person_id}", json={"is_disabled": True})
            again = await browser.get("/login", headers=headers)

        assert (first.status_code, again.status_code) == (303, 403)
        assert "Your access to this server was removed" in again.text
        assert "set-cookie" not in again.headers

    async def test_an_address_that_a_proxy_writes_down_is_no_proxy(self, team: Team) -> None:
        """X-Forwarded-For tells whose wrong keys to count, never who vouches for a person."""
        headers = {"X-Remote-User": "lin@example.com", "X-Forwarded-For": "10.1.2.3"}
        async with visitor(team.app) as browser:
            answer = await browser.get("/login", headers=headers)

        assert "set-cookie" not in answer.headers

    async def test_a_header_given_twice_is_nobody(self, team: Team) -> None:
        twice = [("X-Remote-User", "lin"), ("X-Remote-User", "root")]
        async with visitor(team.app, "10.1.2.3") as browser:
            answer = await browser.get("/login", headers=twice)

        assert "set-cookie" not in answer.headers

    async def test_the_header_alone_opens_nothing_but_the_login(self, team: Team) -> None:
        async with visitor(team.app, "10.1.2.3") as browser:
            answer = await browser.get("/api/v1/runs", headers={"X-Remote-User": "lin@example.com"})

        assert answer.status_code == 401


class TestOpenIdConnect:
    async def log_in(self, browser: httpx.AsyncClient, subject: str = "ada") -> httpx.Response:
        """The answer to a browser that came back from the provider."""
        return await browser.get(await self.way_back(browser, subject))

    async def way_back(self, browser: httpx.AsyncClient, subject: str) -> str:
        start = await browser.get("/login/start?next=/runs")
        assert start.status_code == 303, start.text
        async with httpx.AsyncClient() as outside:
            approved = await outside.post(start.headers["location"], data={"sub": subject})
        assert approved.status_code == 302, approved.text
        return approved.headers["location"]

    async def test_the_organisations_login_opens_what_an_admin_has_given(self, team: Team) -> None:
        async with visitor(team.app) as browser:
            first = await self.log_in(browser)
            empty = (await browser.get("/api/v1/me")).json()
            async with team.client("admin") as admin:
                await admin.put(f"/api/v1/projects/{OURS}/members/{empty['person_id']}", json={"role": "viewer"})
            me = (await browser.get("/api/v1/me")).json()
            again = await self.log_in(browser)
            still = (await browser.get("/api/v1/me")).json()

        assert (first.status_code, first.headers["location"]) == (303, "/runs")
        assert re.match(rf"{COOKIE}=[^;]+; HttpOnly; Max-Age=604800; Path=/; SameSite=lax; Secure", cookie_of(first))
        assert (empty["name"], empty["projects"]) == ("Ada Lovelace", [])
        assert me["projects"] == still["projects"] == [{"project": OURS, "rights": VIEWING}]
        assert again.status_code == 303

    async def test_a_code_from_another_browser_logs_nobody_in(self, team: Team) -> None:
        async with visitor(team.app) as attacker, visitor(team.app) as victim:
            answer = await victim.get(await self.way_back(attacker, "mallory"))

        assert answer.status_code == 403
        assert COOKIE + "=" not in answer.headers.get("set-cookie", "")

    async def test_a_way_back_is_used_once(self, team: Team) -> None:
        async with visitor(team.app) as browser:
            address = await self.way_back(browser, "ada")
            first = await browser.get(address)
            state = parse_qs(urlsplit(address).query)["state"][0]
            cookie = {"Cookie": f"__Host-noisescale-login={state}"}
            second = await browser.get(address, headers=cookie)

        assert (first.status_code, second.status_code) == (303, 403)

    async def test_a_token_for_another_login_is_refused(self, team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
        """The nonce ties the provider's token to this browser's login."""
        async with visitor(team.app) as browser:
            address = await self.way_back(browser, "ada")
            async with team.app.state.sessions.begin() as session:
                await session.execute(text("UPDATE login_attempt SET nonce = 'another' WHERE nonce IS NOT NULL"))
            answer = await browser.get(address)

        assert_problem(answer, 502, "login-failed")

    async def test_the_providers_no_is_said(self, team: Team) -> None:
        async with visitor(team.app) as browser:
            start = await browser.get("/login/start")
            state = parse_qs(urlsplit(start.headers["location"]).query)["state"][0]
            answer = await browser.get(f"/login/back?error=access_denied&state={state}")

        assert answer.status_code == 403
        assert "was not completed." in answer.text

    async def test_the_page_offers_it(self, team: Team) -> None:
        async with visitor(team.app) as browser:
            page = await browser.get("/login?next=/runs%3Fq%3Da")

        assert 'href="/login/start?next=%2Fruns%3Fq%3Da"' in page.text
        assert not re.search("<script|https?://|password", page.text)


def cookie_of(answer: httpx.Response) -> str:
    return next(value for value in answer.headers.get_list("set-cookie") if value.startswith(COOKIE + "="))


class TestSessions:
    async def test_the_database_holds_a_digest_of_the_cookie_only(self, team: Team) -> None:
        cookie = await new_session(team.app, "x", {})
        async with team.app.state.sessions() as session:
            rows = (await session.execute(text("SELECT web_session::text FROM web_session"))).scalars().all()

        assert cookie not in "".join(rows)

    async def test_each_login_has_a_cookie_of_its_own(self, team: Team) -> None:
        person_id = await new_person(team.app, "x", {})
        async with team.app.state.sessions.begin() as session:
            cookies = {await sessions.log_in(session, person_id, now=datetime.now(UTC), how="t") for _ in "ab"}

        assert len(cookies) == 2

    @pytest.mark.parametrize(
        "aged",
        [{"last_seen_at": timedelta(hours=12)}, {"expires_at": timedelta(seconds=1)}],
        ids=["12 hours without a look", "after 7 days"],
    )
    async def test_it_ends(self, team: Team, aged: dict[str, timedelta]) -> None:
        cookie = await new_session(team.app, "x", {OURS: "viewer"})
        past = {name: datetime.now(UTC) - ago for name, ago in aged.items()}
        async with team.app.state.sessions.begin() as session:
            mine = WebSession.id_hash == sessions.Secret(cookie).digest
            await session.execute(update(WebSession).where(mine).values(past))
        async with visitor(team.app) as browser:
            answer = await browser.get("/api/v1/runs", headers=as_browser(cookie))

        assert answer.status_code == 401

    async def test_seven_days_are_the_longest(self, team: Team) -> None:
        cookie = await new_session(team.app, "x", {})
        async with team.app.state.sessions() as session:
            mine = WebSession.id_hash == sessions.Secret(cookie).digest
            row = (await session.scalars(select(WebSession).where(mine))).one()

        assert row.expires_at - row.created_at == timedelta(days=7)

    async def test_logging_out_ends_it_on_the_server(self, team: Team) -> None:
        cookie = await new_session(team.app, "x", {OURS: "viewer"})
        async with visitor(team.app) as browser:
            out = await browser.post("/logout", headers=as_browser(cookie))
            answer = await browser.get("/api/v1/runs", headers=as_browser(cookie))

        assert (out.status_code, answer.status_code) == (303, 401)

    async def test_logging_out_ends_it_at_once_in_every_server_process(self, new_database: Callable[[], str]) -> None:
        url = new_database()
        settings = {"auth": "required", "secret_key": SECRET, "public_url": PUBLIC_URL, "local_token": None}
        async with running_team(url) as one, running_app(url, **settings) as other:
            cookie = as_browser(await new_session(one.app, "x", {OURS: "viewer"}))
            async with visitor(one.app) as here, visitor(other) as there:
                before = await there.get("/api/v1/runs", headers=cookie)
                await here.post("/logout", headers=cookie)
                after = await there.get("/api/v1/runs", headers=cookie)

        assert (before.status_code, after.status_code) == (200, 401)

    async def test_an_admin_logs_somebody_out_of_every_browser(self, team: Team) -> None:
        person_id = await new_person(team.app, "x", {OURS: "viewer"})
        cookie = await log_in(team.app, person_id)
        async with team.client("administrator") as admin, visitor(team.app) as browser:
            before = await browser.get("/api/v1/runs", headers=as_browser(cookie))
            await admin.delete(f"/api/v1/people/{person_id}/sessions")
            after = await browser.get("/api/v1/runs", headers=as_browser(cookie))

        assert (before.status_code, after.status_code) == (200, 401)

    async def test_a_person_without_a_role_is_told_whom_to_ask(self, team: Team) -> None:
        cookie = await new_session(team.app, "new", {})
        async with visitor(team.app) as browser:
            answer = await browser.get("/runs", headers=as_browser(cookie))

        assert answer.status_code == 403
        assert "ask an admin for a role" in answer.text


async def test_somebody_removed_from_a_project_sees_it_no_more(team: Team) -> None:
    person_id = await new_person(team.app, "leaving", {OURS: "member"})
    cookie = await log_in(team.app, person_id)
    async with team.client("admin") as admin, visitor(team.app) as browser:
        before = (await browser.get("/api/v1/projects", headers=as_browser(cookie))).json()
        await admin.delete(f"/api/v1/projects/{OURS}/members/{person_id}")
        after = await browser.get("/api/v1/projects", headers=as_browser(cookie))

    assert [one["name"] for one in before["projects"]] == [OURS]
    assert after.status_code == 403

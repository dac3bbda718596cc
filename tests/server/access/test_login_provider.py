"""Logging in with the organisation's provider: what is sent there, and which of its tokens are believed."""

import base64
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from sqlalchemy import text

import oidc_stub
from noisescale_server.api.access.login_provider import Provider
from noisescale_server.api.platform.refusals import ProviderFailed
from oidc_stub import CLIENT_ID, CLIENT_SECRET, CODE, OTHER_KEY, SHARED_KEY, Stub, challenge_of
from principals import PUBLIC_URL, running_team
from problems import assert_problem

RETURN_ADDRESS = "https://noisescale.test/login/back"


@pytest.fixture
def stub() -> Iterator[Stub]:
    with oidc_stub.oidc_stub() as running:
        yield running


def provider_of(stub: Stub) -> Provider:
    return Provider(issuer=stub.issuer, client_id=CLIENT_ID, client_secret=CLIENT_SECRET, return_address=RETURN_ADDRESS)


def fields_of(address: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}


def test_the_challenge_of_these_tests_is_that_of_the_standard() -> None:
    """RFC 7636, appendix B."""
    assert challenge_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk") == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


class TestDeparture:
    async def test_a_browser_leaves_with_the_challenge_of_a_verifier_that_stays_here(self, stub: Stub) -> None:
        departure = await provider_of(stub).departure("the state")

        sent = fields_of(departure.address)
        assert departure.address.startswith(f"{stub.issuer}/authorize?")
        assert sent["code_challenge"] == challenge_of(departure.verifier)
        assert sent["code_challenge_method"] == "S256"
        assert departure.verifier not in departure.address
        assert (sent["state"], sent["nonce"]) == ("the state", departure.nonce)
        assert (sent["response_type"], sent["client_id"], sent["redirect_uri"]) == ("code", CLIENT_ID, RETURN_ADDRESS)
        assert "openid" in sent["scope"].split()

    async def test_each_has_a_verifier_and_a_nonce_that_nobody_guesses(self, stub: Stub) -> None:
        provider = provider_of(stub)

        departures = [await provider.departure("s") for _ in range(3)]

        assert len({one.verifier for one in departures}) == len({one.nonce for one in departures}) == 3
        # RFC 7636, section 4.1
        assert all(43 <= len(one.verifier) <= 128 and len(one.nonce) >= 32 for one in departures)

    async def test_the_description_is_read_once(self, stub: Stub) -> None:
        provider = provider_of(stub)

        await provider.departure("a")
        await provider.departure("b")

        assert stub.num_descriptions == 1


async def test_a_provider_that_is_gone_when_the_code_comes_back_has_failed_and_nothing_breaks(stub: Stub) -> None:
    provider = provider_of(stub)
    departure = await provider.departure("s")
    stub.description["token_endpoint"] = "http://127.0.0.1:9/token"
    gone = provider_of(stub)

    with pytest.raises(ProviderFailed, match="ConnectError"):
        await gone.identity(code=CODE, nonce=departure.nonce, verifier=departure.verifier)


class TestDescription:
    @pytest.mark.parametrize(
        ("name", "value"), [("issuer", None), ("authorization_endpoint", 7), ("token_endpoint", None), ("jwks_uri", 7)]
    )
    async def test_one_that_lacks_something_is_none(self, stub: Stub, name: str, value: Any) -> None:
        stub.description[name] = value

        with pytest.raises(ProviderFailed, match="does not describe"):
            await provider_of(stub).departure("s")

    async def test_one_of_another_issuer_is_refused(self, stub: Stub) -> None:
        stub.description["issuer"] = "https://elsewhere.example"

        with pytest.raises(ProviderFailed, match="another issuer"):
            await provider_of(stub).departure("s")

    async def test_one_that_cannot_be_read_is_a_failed_login(self) -> None:
        provider = Provider(issuer="http://127.0.0.1:9", client_id="x", client_secret="y", return_address="z")

        with pytest.raises(ProviderFailed, match="cannot be read"):
            await provider.departure("s")


class TestIdentity:
    async def test_the_code_is_handed_in_with_the_verifier_of_the_same_browser(self, stub: Stub) -> None:
        provider = provider_of(stub)
        departure = await provider.departure("s")
        stub.challenge = fields_of(departure.address)["code_challenge"]
        stub.claims["nonce"] = departure.nonce

        found = await provider.identity(code=CODE, nonce=departure.nonce, verifier=departure.verifier)

        [sent] = stub.tokens
        assert (sent["code"], sent["code_verifier"], sent["grant_type"]) == (
            CODE,
            departure.verifier,
            "authorization_code",
        )
        assert sent["redirect_uri"] == RETURN_ADDRESS
        secret = base64.b64decode(sent["authorization"].removeprefix("Basic ")).decode()
        assert secret.partition(":")[0] == CLIENT_ID
        assert found.subject == f"{stub.issuer}|ada"

    async def test_a_code_that_was_stolen_is_worth_nothing_without_its_verifier(self, stub: Stub) -> None:
        provider = provider_of(stub)
        mine, another = await provider.departure("mine"), await provider.departure("another")
        stub.challenge = fields_of(mine.address)["code_challenge"]

        with pytest.raises(ProviderFailed, match="not accepted"):
            await provider.identity(code=CODE, nonce="n", verifier=another.verifier)

    @pytest.mark.parametrize(
        "claims",
        [
            {"nonce": "of another login"},
            {"iss": "https://elsewhere.example"},
            {"aud": "another client"},
            {"exp": int(time.time()) - 120},
        ],
        ids=["nonce", "issuer", "audience", "expired"],
    )
    async def test_a_token_that_is_not_for_this_login_is_refused(self, stub: Stub, claims: dict[str, Any]) -> None:
        stub.claims |= claims

        with pytest.raises(ProviderFailed):
            await provider_of(stub).identity(code=CODE, nonce="n", verifier="v" * 43)

    @pytest.mark.parametrize("name", ["nonce", "iss", "aud", "exp", "sub"])
    async def test_a_token_that_lacks_a_claim_is_refused(self, stub: Stub, name: str) -> None:
        stub.without = (name,)

        with pytest.raises(ProviderFailed):
            await provider_of(stub).identity(code=CODE, nonce="n", verifier="v" * 43)

    @pytest.mark.parametrize(
        ("key", "algorithm"), [(OTHER_KEY, "RS256"), (SHARED_KEY, "HS256")], ids=["another key", "the client's secret"]
    )
    async def test_a_token_that_another_has_signed_is_refused(self, stub: Stub, key: Any, algorithm: str) -> None:
        stub.key, stub.algorithm = key, algorithm

        with pytest.raises(ProviderFailed):
            await provider_of(stub).identity(code=CODE, nonce="n", verifier="v" * 43)

    async def test_clocks_may_differ_by_a_minute(self, stub: Stub) -> None:
        stub.claims["exp"] = int(time.time()) - 30

        assert (await provider_of(stub).identity(code=CODE, nonce="n", verifier="v" * 43)).subject.endswith("|ada")

    @pytest.mark.parametrize(
        ("claims", "name", "email"),
        [
            ({"name": "Ada", "preferred_username": "al", "email": "a@b.example"}, "Ada", "a@b.example"),
            ({"preferred_username": "al", "email": "a@b.example"}, "al", "a@b.example"),
            ({"email": "a@b.example"}, "a@b.example", "a@b.example"),
            ({}, "ada", None),
            ({"name": "x" * 300, "email": "y" * 300}, "x" * 200, "y" * 200),
        ],
    )
    async def test_people_are_called_what_the_provider_calls_them(
        self, stub: Stub, claims: dict[str, Any], name: str, email: str | None
    ) -> None:
        stub.claims |= claims

        found = await provider_of(stub).identity(code=CODE, nonce="n", verifier="v" * 43)

        assert (found.name, found.email) == (name, email)


class TestThroughTheServer:
    @pytest.fixture
    async def browser(self, new_database: Callable[[], str], stub: Stub) -> AsyncIterator[httpx.AsyncClient]:
        settings = {"oidc_issuer": stub.issuer, "oidc_client_id": CLIENT_ID, "oidc_client_secret": CLIENT_SECRET}
        async with running_team(new_database(), **settings) as team:
            self.sessions = team.app.state.sessions
            transport = httpx.ASGITransport(app=team.app, raise_app_exceptions=False, client=("192.0.2.7", 1))
            async with httpx.AsyncClient(transport=transport, base_url=PUBLIC_URL) as opened:
                yield opened

    async def test_the_verifier_of_a_login_waits_here_and_goes_with_its_code_alone(
        self, browser: httpx.AsyncClient, stub: Stub
    ) -> None:
        start = await browser.get("/login/start?next=/runs")
        sent = fields_of(start.headers["location"])
        stub.challenge, stub.claims["nonce"] = sent["code_challenge"], sent["nonce"]

        back = await browser.get("/login/back", params={"code": CODE, "state": sent["state"]})

        assert (back.status_code, back.headers["location"]) == (303, "/runs")
        assert "code_verifier" in stub.tokens[0]
        assert stub.tokens[0]["code_verifier"] not in str(start.headers)

    async def test_a_code_of_another_login_logs_nobody_in(self, browser: httpx.AsyncClient, stub: Stub) -> None:
        sent = fields_of((await browser.get("/login/start")).headers["location"])
        stub.challenge, stub.claims["nonce"] = challenge_of("of another login " * 4), sent["nonce"]

        answer = await browser.get("/login/back", params={"code": CODE, "state": sent["state"]})

        assert_problem(answer, 502, "login-failed")
        assert (await browser.get("/api/v1/me")).status_code == 401

    @pytest.mark.parametrize(("minutes", "status"), [(1, 303), (-1, 403)], ids=["after 9 minutes", "after 11"])
    async def test_a_login_may_take_ten_minutes(
        self, browser: httpx.AsyncClient, stub: Stub, minutes: int, status: int
    ) -> None:
        sent = fields_of((await browser.get("/login/start")).headers["location"])
        stub.claims["nonce"] = sent["nonce"]
        async with self.sessions.begin() as session:
            earlier = f"UPDATE login_attempt SET expires_at = expires_at + interval '{minutes - 10} minutes'"
            await session.execute(text(earlier))

        answer = await browser.get("/login/back", params={"code": CODE, "state": sent["state"]})

        assert answer.status_code == status

"""A right key is recognized first, whatever else comes from its address: only wrong ones are counted and refused."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping

import httpx
import pytest
from fastapi import FastAPI
from starlette.datastructures import Headers

from app_in_process import AS_LOCAL_USER, client_of, running_app
from keys_of_tests import bearer, new_key
from noisescale_server.api.access import credentials as auth_credentials
from noisescale_server.api.access.credentials import WRONG_KEYS_PER_MINUTE, WrongKeys
from noisescale_server.process.client_address import client_address, counted_as
from noisescale_server.process.settings import Settings
from noisescale_server.services.access import key_text
from noisescale_server.services.access.gathered_lookups import GatheredLookups
from principals import COOKIE, OURS, PUBLIC_URL, SECRET, as_browser, new_session
from problems import assert_problem

MOST = 4
PROXY, ADDRESS = "10.1.2.3", "192.0.2.7"
TEAM = {"auth": "required", "secret_key": SECRET, "public_url": PUBLIC_URL, "local_token": None}


@pytest.fixture(scope="module")
async def behind_a_proxy(new_database: Callable[[], str]) -> AsyncIterator[FastAPI]:
    async with running_app(new_database(), **TEAM, trusted_proxies=["10.1.0.0/16"]) as created:
        yield created


@pytest.fixture
def app(behind_a_proxy: FastAPI) -> FastAPI:
    """A team's server behind a proxy, where nobody has sent a wrong key yet, and few are too many."""
    credentials = behind_a_proxy.state.credentials
    credentials.forget()
    credentials._wrong = WrongKeys(MOST)
    credentials._now = time.monotonic
    return behind_a_proxy


def visitor(app: FastAPI, address: str = ADDRESS, **headers: str) -> httpx.AsyncClient:
    """A client at this address."""
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False, client=(address, 1))
    return httpx.AsyncClient(transport=transport, base_url=PUBLIC_URL, headers=headers)


def behind_proxy(app: FastAPI, *addresses: str) -> httpx.AsyncClient:
    """A client whom the proxy has written down as the last of these addresses."""
    return visitor(app, PROXY, **{"X-Forwarded-For": ", ".join(addresses)})


def wrong_key() -> dict[str, str]:
    """Of the right form, so that only the database knows."""
    return bearer(key_text.new("read").text)


def wrong_cookie() -> dict[str, str]:
    return as_browser(secrets.token_urlsafe(32))


async def right_key(app: FastAPI) -> dict[str, str]:
    browser = as_browser(await new_session(app, "owner", {}, is_administrator=True))
    async with visitor(app, "198.51.100.1", **browser) as client:
        return bearer(await new_key(client, "read", OURS))


async def ask(client: httpx.AsyncClient, headers: Mapping[str, str]) -> int:
    return (await client.get("/api/v1/runs", headers=headers)).status_code


async def use_up(
    client: httpx.AsyncClient, wrong: Callable[[], dict[str, str]] = wrong_key, most: int = MOST
) -> list[int]:
    return [await ask(client, wrong()) for _ in range(most + 1)]


async def test_right_keys_are_let_in_beside_wrong_ones_from_the_same_address(app: FastAPI) -> None:
    remembered, fresh = await right_key(app), await right_key(app)
    async with visitor(app) as client:
        await ask(client, remembered)
        wrong = await use_up(client)
        right = [await ask(client, headers) for headers in (remembered, fresh)]
        app.state.credentials.forget()
        right += [await ask(client, headers) for headers in (remembered, fresh)]

    assert wrong == [401] * MOST + [429]
    assert right == [200] * 4


@pytest.mark.parametrize("wrong", [wrong_key, wrong_cookie], ids=["keys", "cookies"])
async def test_wrong_ones_without_end_are_429(app: FastAPI, wrong: Callable[[], dict[str, str]]) -> None:
    right = as_browser(await new_session(app, "reader", {}, is_administrator=True))
    async with visitor(app) as client:
        statuses = await use_up(client, wrong)
        answer = await client.get("/api/v1/runs", headers=wrong())
        elsewhere = visitor(app, "192.0.2.8")
        others = await ask(elsewhere, wrong())
        right_one = await ask(client, right)

    assert statuses == [401] * MOST + [429]
    assert_problem(answer, 429, "too-many-attempts")
    assert answer.headers["retry-after"] == "60"
    assert (others, right_one) == (401, 200)


async def test_right_ones_are_never_counted(app: FastAPI) -> None:
    key = await right_key(app)
    async with visitor(app) as client:
        for _ in range(MOST + 1):
            app.state.credentials.forget()
            assert await ask(client, key) == 200

        assert await ask(client, wrong_key()) == 401


async def test_a_browser_whose_login_is_over_finds_the_login_beside_wrong_ones(app: FastAPI) -> None:
    async with visitor(app) as client:
        await use_up(client, wrong_cookie)
        page = await client.get("/runs?q=a", headers={**wrong_cookie(), "Accept": "text/html"})

    assert (page.status_code, page.headers["location"]) == (303, "/login?next=/runs%3Fq%3Da")


async def test_a_cookie_of_another_form_asks_the_database_nothing(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the database was asked")

    monkeypatch.setattr(auth_credentials.sessions, "principals_of", refuse)
    async with visitor(app) as client:
        statuses = [
            await ask(client, {"Cookie": f"{COOKIE}={text}"}) for text in ("x", "a" * 44, "." * 43, "a" * 9_000)
        ]

    assert statuses == [401] * 4


async def test_sixty_wrong_tokens_a_minute_are_too_many_and_the_right_one_is_not_counted(
    new_database: Callable[[], str],
) -> None:
    async with running_app(new_database()) as app, client_of(app, {}) as client:
        wrong = await use_up(client, most=WRONG_KEYS_PER_MINUTE)
        cookies = await ask(client, {"Cookie": f"ns_{app.state.settings.port}=x"})
        right = await ask(client, AS_LOCAL_USER)

    assert wrong == [401] * 60 + [429]
    assert (cookies, right) == (429, 200)


async def test_a_key_that_ends_between_its_look_and_its_answer_is_not_remembered(app: FastAPI) -> None:
    key, credentials = await right_key(app), app.state.credentials
    look = credentials._look_at_keys

    async def look_before_the_end(texts: Collection[key_text.KeyText]) -> object:
        found = await look(texts)
        # another request has ended the key, and has committed
        credentials.forget()
        return found

    async with visitor(app) as client:
        credentials._keys = GatheredLookups(look_before_the_end)
        during = await ask(client, key)
        remembered = dict(credentials._remembered)
        credentials._keys = GatheredLookups(look)
        await ask(client, key)

    assert (during, remembered) == (200, {})
    assert len(credentials._remembered) == 1


async def test_a_minute_later_wrong_ones_are_401_again(app: FastAPI) -> None:
    clock = [0.0]
    app.state.credentials._now = lambda: clock[0]
    async with visitor(app) as client:
        await use_up(client)
        clock[0] = 59.9
        before = await ask(client, wrong_key())
        clock[0] = 60.0

        assert (before, await ask(client, wrong_key())) == (429, 401)


class TestAddresses:
    async def test_behind_the_proxy_each_client_has_its_own_count(self, app: FastAPI) -> None:
        async with behind_proxy(app, ADDRESS) as one, behind_proxy(app, "192.0.2.8") as other:
            await use_up(one)

            assert (await ask(one, wrong_key()), await ask(other, wrong_key())) == (429, 401)

    async def test_what_others_than_the_proxy_say_is_not_believed(self, app: FastAPI) -> None:
        """Else each wrong key would come from a new address."""
        statuses = []
        async with visitor(app) as client:
            for number in range(MOST + 1):
                forged = {"X-Forwarded-For": f"203.0.113.{number}"}
                statuses.append(await ask(client, wrong_key() | forged))

        assert statuses == [401] * MOST + [429]

    async def test_a_client_cannot_forge_its_own_through_the_proxy(self, app: FastAPI) -> None:
        statuses = []
        for number in range(MOST + 1):
            async with behind_proxy(app, f"203.0.113.{number}", ADDRESS) as client:
                statuses.append(await ask(client, wrong_key()))

        assert statuses[-1] == 429

    async def test_a_keys_last_use_names_the_client_and_not_the_proxy(self, app: FastAPI) -> None:
        browser = as_browser(await new_session(app, "owner", {}, is_administrator=True))
        key = await right_key(app)
        async with behind_proxy(app, ADDRESS) as client, visitor(app, **browser) as admin:
            await ask(client, key)
            listed = (await admin.get("/api/v1/keys")).json()["keys"]

        assert [one["last_used_from"] for one in listed if one["id"] in key["Authorization"]] == [ADDRESS]

    @pytest.mark.parametrize(
        ("peer", "said", "found"),
        [
            (ADDRESS, ["203.0.113.1"], ADDRESS),
            (PROXY, [], PROXY),
            (PROXY, [ADDRESS], ADDRESS),
            (PROXY, ["203.0.113.1", ADDRESS], ADDRESS),
            (PROXY, [ADDRESS, "10.1.9.9"], ADDRESS),
            (PROXY, [f"203.0.113.1,{ADDRESS} , 10.1.9.9"], ADDRESS),
            (PROXY, ["garbage"], PROXY),
            (PROXY, [ADDRESS, "garbage"], PROXY),
            (PROXY, [""], PROXY),
            (PROXY, ["10.1.9.9"], "10.1.9.9"),
            ("::ffff:10.1.2.3", ["2001:db8::1"], "2001:db8::1"),
            ("::ffff:192.0.2.7", ["203.0.113.1"], ADDRESS),
            ("unix", ["203.0.113.1"], "unix"),
        ],
    )
    def test_the_nearest_one_that_is_no_proxy_of_ours_counts(self, peer: str, said: list[str], found: str) -> None:
        trusted = Settings(trusted_proxies=["10.1.0.0/16"]).trusted_proxies
        headers = Headers(raw=[(b"x-forwarded-for", one.encode()) for one in said])

        assert client_address({"type": "http", "client": (peer, 1)}, headers, trusted) == found

    async def test_the_addresses_of_one_ipv6_network_count_as_one(self, app: FastAPI) -> None:
        statuses = []
        for number in range(MOST + 1):
            async with visitor(app, f"2001:db8:1:2:{number:x}::7") as client:
                statuses.append(await ask(client, wrong_key()))
        async with visitor(app, "2001:db8:1:3::7") as neighbour:
            statuses.append(await ask(neighbour, wrong_key()))

        assert statuses == [401] * MOST + [429, 401]

    @pytest.mark.parametrize(
        ("address", "counted"),
        [
            ("192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
            ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"),
            ("2001:db8:1:3::", "2001:db8:1:3::/64"),
            ("fe80::1%eth0", "fe80::/64"),
            ("::ffff:192.0.2.7", "::ffff:192.0.2.7"),
            ("unix", "unix"),
            ("", ""),
        ],
    )
    def test_a_limit_counts_an_ipv4_address_by_itself_and_an_ipv6_one_by_its_network(
        self, address: str, counted: str
    ) -> None:
        assert counted_as(address) == counted

    async def test_a_keys_last_use_names_the_whole_ipv6_address(self, app: FastAPI) -> None:
        browser = as_browser(await new_session(app, "owner", {}, is_administrator=True))
        key = await right_key(app)
        async with visitor(app, "2001:db8:1:2:3:4:5:6") as client, visitor(app, **browser) as admin:
            await ask(client, key)
            listed = (await admin.get("/api/v1/keys")).json()["keys"]

        assert [one["last_used_from"] for one in listed if one["id"] in key["Authorization"]] == [
            "2001:db8:1:2:3:4:5:6"
        ]

    def test_a_connection_without_an_address_has_none(self) -> None:
        assert client_address({"type": "http"}, Headers(), []) == "unknown"


class TestGatheredLookups:
    async def test_a_flood_is_one_look_at_a_time(self) -> None:
        looks: list[set[str]] = []
        under_way = 0

        async def look(asked: Collection[str]) -> dict[str, str]:
            nonlocal under_way
            under_way += 1
            assert under_way == 1
            looks.append(set(asked))
            await asyncio.sleep(0.01)
            under_way -= 1
            return {one: one.upper() for one in asked if one != "none"}

        lookups = GatheredLookups(look)
        first = asyncio.create_task(lookups.answer("a"))
        await asyncio.sleep(0.005)
        others = [lookups.answer(name) for name in ("b", "c", "none", "b")]

        assert await asyncio.gather(first, *others) == ["A", "B", "C", None, "B"]
        assert looks == [{"a"}, {"b", "c", "none"}]

    async def test_a_question_is_never_answered_by_a_look_that_began_before_it(self) -> None:
        known = {"a": 1}

        async def look(asked: Collection[str]) -> dict[str, int]:
            seen = dict(known)
            await asyncio.sleep(0.01)
            return {one: seen[one] for one in asked}

        lookups = GatheredLookups(look)
        before = asyncio.create_task(lookups.answer("a"))
        await asyncio.sleep(0.005)
        known["a"] = 2

        assert await lookups.answer("a") == 2
        assert await before == 1

    async def test_everybody_of_a_look_that_fails_is_told_and_the_next_one_works(self) -> None:
        fails = [True]

        async def look(asked: Collection[str]) -> dict[str, str]:
            if fails[0]:
                raise ConnectionError("the database is away")
            return {one: one for one in asked}

        lookups = GatheredLookups(look)
        outcomes = await asyncio.gather(lookups.answer("a"), lookups.answer("b"), return_exceptions=True)
        fails[0] = False

        assert [type(outcome) for outcome in outcomes] == [ConnectionError, ConnectionError]
        assert await lookups.answer("a") == "a"

    async def test_one_who_leaves_takes_nobody_along(self) -> None:
        async def look(asked: Collection[str]) -> dict[str, str]:
            await asyncio.sleep(0.01)
            return {one: one for one in asked}

        lookups = GatheredLookups(look)
        leaving, staying = (asyncio.create_task(lookups.answer("a")) for _ in "ab")
        await asyncio.sleep(0)
        leaving.cancel()

        assert await staying == "a"

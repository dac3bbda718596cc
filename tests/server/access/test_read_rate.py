"""A sender that reads without end waits; twenty tabs of a person do not, and others do not notice."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from app_in_process import ADDRESS, client_of, running_app
from keys_of_tests import bearer, new_key
from noisescale_server.api.access import rates
from noisescale_server.api.access.rates import AT_ONCE, BURST_SECONDS, ReadRate, Turns
from noisescale_server.api.platform.refusals import Busy, TooManyReads
from noisescale_server.process.settings import Settings
from noisescale_server.services.access import keys
from problems import assert_problem


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def let_in(rate: ReadRate, sender: str, times: int) -> int:
    """How many of so many reads at one moment are let in."""
    found = 0
    for _ in range(times):
        try:
            rate.count(sender)
        except TooManyReads:
            continue
        found += 1
    return found


class TestBucket:
    def test_a_burst_is_let_in_and_then_so_many_a_second(self, clock: Clock) -> None:
        rate = ReadRate(60, clock)

        at_once = let_in(rate, "ada", 100)
        clock.now += 5
        later = let_in(rate, "ada", 100)

        assert (at_once, later) == (BURST_SECONDS, 5)

    def test_it_says_how_long_to_wait(self, clock: Clock) -> None:
        rate = ReadRate(6, clock)
        let_in(rate, "ada", 10)

        with pytest.raises(TooManyReads, match="try again in 10 s") as refused:
            rate.count("ada")

        assert refused.value.retry_after_seconds == 10
        clock.now += 10
        rate.count("ada")

    def test_each_sender_has_its_own(self, clock: Clock) -> None:
        rate = ReadRate(60, clock)

        assert (let_in(rate, "ada", 100), let_in(rate, "bea", 1)) == (BURST_SECONDS, 1)

    def test_those_who_were_here_last_are_remembered(self, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("noisescale_server.api.access.rates.MAX_SENDERS", 2)
        rate = ReadRate(60, clock)
        let_in(rate, "ada", 100)
        for sender in ("bea", "ada", "cid", "ada", "dan"):
            let_in(rate, sender, 1)

        assert let_in(rate, "ada", 1) == 0
        assert len(rate._buckets._known) == 2


async def test_a_few_of_a_sender_are_worked_on_at_once_and_those_of_another_beside_them() -> None:
    turns, gate = Turns(), asyncio.Event()
    here: list[str] = []

    async def read(sender: str) -> None:
        async with turns.of(sender):
            here.append(sender)
            await gate.wait()

    tasks = [asyncio.create_task(read(sender)) for sender in ["ada"] * 50 + ["bea"]]
    await asyncio.sleep(0.01)
    at_once = sorted(here)
    gate.set()
    await asyncio.gather(*tasks)

    assert at_once == ["ada"] * AT_ONCE + ["bea"]
    assert len(here) == 51
    assert turns._turns == {}


async def test_who_waits_for_its_own_reads_in_vain_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "LONGEST_WAIT_SECONDS", 0.02)
    turns = Turns(at_once=1)

    async with turns.of("ada"):
        with pytest.raises(Busy, match="try again in 2 s"):
            async with turns.of("ada"):
                pytest.fail("it was not its turn")
        async with turns.of("bea"):
            pass
    async with turns.of("ada"):
        pass

    assert turns._turns == {}


@pytest.fixture
async def client(new_database: Callable[[], str]) -> AsyncIterator[httpx.AsyncClient]:
    """HTTP into a server that lets three reads a minute in, and one more at once."""
    async with running_app(new_database(), reads_per_minute=3) as app, client_of(app) as opened:
        yield opened


async def test_one_read_too_many_is_429_with_the_seconds_to_wait_and_the_connection_ends(
    client: httpx.AsyncClient,
) -> None:
    answers = [await client.get("/api/v1/runs") for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 429]
    assert_problem(answers[1], 429, "too-many-reads")
    assert answers[1].json()["limit_per_minute"] == 3
    assert 1 <= int(answers[1].headers["retry-after"]) <= 20
    # what waits on the same connection would be refused, too
    assert answers[1].headers["connection"] == "close"


async def test_another_key_is_not_held_back(client: httpx.AsyncClient) -> None:
    key = await new_key(client, "read")
    used_up = [(await client.get("/api/v1/runs")).status_code for _ in range(2)]

    answer = await client.get("/api/v1/runs", headers=bearer(key))

    assert (used_up[-1], answer.status_code) == (429, 200)


async def test_who_has_no_key_is_counted_by_ipv6_network(new_database: Callable[[], str]) -> None:
    statuses = []
    async with running_app(new_database(), reads_per_minute=3) as app:
        for address in ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::2"):
            transport = httpx.ASGITransport(app=app, client=(address, 1))
            async with httpx.AsyncClient(transport=transport, base_url=ADDRESS) as client:
                statuses.append((await client.get("/login")).status_code)

    assert statuses[1] == 429
    assert statuses[0] == statuses[2] != 429


async def test_who_has_no_key_is_counted_by_address(client: httpx.AsyncClient) -> None:
    client.headers.pop("Authorization")

    answers = [(await client.get("/login")).status_code for _ in range(2)]

    assert answers[1] == 429


async def test_a_key_that_many_requests_bring_at_once_is_looked_up_with_the_first_and_once_more(
    new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up = []
    before = keys.recognized

    async def recognized(*given: Any, **named: Any) -> Any:
        looked_up.append(named)
        return await before(*given, **named)

    async with running_app(new_database(), pool_size=1, pool_max_overflow=0) as app, client_of(app) as opened:
        key = await new_key(opened, "read")
        monkeypatch.setattr(keys, "recognized", recognized)
        answers = await asyncio.gather(*(opened.get("/api/v1/me", headers=bearer(key)) for _ in range(50)))

    assert {answer.status_code for answer in answers} == {200}
    assert 1 <= len(looked_up) <= 2


async def test_probes_are_never_held_back(client: httpx.AsyncClient) -> None:
    answers = [(await client.get(path)).status_code for path in ("/livez", "/readyz") for _ in range(5)]

    assert set(answers) == {200}


async def test_what_jobs_send_and_changes_are_not_counted_as_reads(client: httpx.AsyncClient) -> None:
    run = [(await client.post("/api/v1/runs", json={"project": "demo"})).status_code for _ in range(5)]
    cursor = [(await client.get("/api/v1/streams/7d1f0c9e-0000-4000-8000-000000000000")).status_code for _ in range(5)]

    assert (set(run), set(cursor)) == ({201}, {404})


class TestWhatEverybodyMayAskFor:
    """Files and the login: those who read them without end keep no neighbour from either."""

    async def test_a_known_key_behind_the_same_address_gets_its_files(self, client: httpx.AsyncClient) -> None:
        key = await new_key(client, "read")
        used_up = [(await client.get("/assets/nothing.css")).status_code for _ in range(3)]

        answer = await client.get("/assets/nothing.css", headers=bearer(key))

        assert used_up[-1] == 429
        assert answer.status_code != 429

    async def test_a_wrong_key_gets_none(self, client: httpx.AsyncClient) -> None:
        for _ in range(3):
            await client.get("/assets/nothing.css")

        assert (await client.get("/assets/nothing.css", headers=bearer("ns_r_wrong"))).status_code == 429

    async def test_the_login_has_a_bucket_of_its_own(self, client: httpx.AsyncClient) -> None:
        used_up = [(await client.get("/assets/nothing.css")).status_code for _ in range(3)]

        assert (used_up[-1], (await client.get("/login")).status_code) == (429, 200)


def test_the_default_lets_in_what_twenty_tabs_ask_when_they_open_at_once() -> None:
    """A page asks 12 to 27 times until it is drawn: itself, callbacks, what these read; counted in a browser."""
    asked = 20 * 27

    assert BURST_SECONDS * Settings(database_url=None).reads_per_minute / 60 >= asked
